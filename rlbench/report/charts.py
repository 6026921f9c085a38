"""Charts as SVG, drawn once when the report is written: the page needs no script and no network.

Altair describes a chart, vl-convert draws it. Each is drawn twice, for a wide and for a narrow page. Colours
are placeholders that become CSS variables, so that the charts follow the page into dark mode; every mark
carries its figures as a title, which is what a browser shows on hovering and a screen reader says.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from xml.etree import ElementTree

WIDE, NARROW = 740, 320
"""Width of the plotting area in pixels."""
HEIGHT = 300
LABEL_SIZE = 11

INK, MUTED, GRID, ACCENT, PAPER = "#010101", "#020202", "#030303", "#040404", "#050505"
SERIES = tuple(f"#0501{i:02x}" for i in range(8))
VARIABLES = {INK: "--ink", MUTED: "--muted", GRID: "--grid", ACCENT: "--accent", PAPER: "--paper"} | {
    colour: f"--series-{i + 1}" for i, colour in enumerate(SERIES)
}
SHAPES = {"measured": "circle", "traced": "triangle-up", "estimated": "diamond", "published": "square"}

_SVG = "http://www.w3.org/2000/svg"


@dataclass(frozen=True)
class Chart:
    """One chart: what it shows, in words too, and its two drawings."""

    title: str
    description: str
    wide: str
    narrow: str


@dataclass(frozen=True)
class Bar:
    """A value with its interval, on a row of its own."""

    label: str
    value: float
    low: float | None
    high: float | None
    provenance: str
    words: str
    """The row's figures as a sentence."""


@dataclass(frozen=True)
class Point:
    """A model's quality against what its rollouts cost."""

    label: str
    x: float
    y: float
    low: float | None
    high: float | None
    provenance: str
    words: str


@dataclass(frozen=True)
class Part:
    """One part of one model's memory, in GiB."""

    label: str
    part: str
    order: int
    size: float
    words: str


@dataclass(frozen=True)
class Step:
    """One step of one learning curve."""

    label: str
    step: int
    reward: float


def intervals(title: str, description: str, axis: str, bars: Sequence[Bar], percent: bool = False) -> Chart:
    """Rows of points with their intervals, zero in view."""
    import altair as alt

    rows = [{**vars(bar), "low": _or(bar.low, bar.value), "high": _or(bar.high, bar.value)} for bar in bars]

    def draw(width: int) -> Any:
        y = _rows_axis(alt, width)
        values = alt.Axis(format=".0%" if percent else ",~r", tickCount=5, title=axis)
        scale = alt.Scale(zero=True, domain=[0, 1]) if percent else alt.Scale(zero=True, nice=True)
        data = alt.Chart(alt.Data(values=rows))
        rule = data.mark_rule(color=ACCENT, strokeWidth=2).encode(
            y=y, x=alt.X("low:Q", axis=values, scale=scale), x2="high:Q", description="words:N"
        )
        point = data.mark_point(color=ACCENT, filled=True, size=85, opacity=1).encode(
            y=y, x=alt.X("value:Q", axis=values, scale=scale), shape=_shape(alt), description="words:N"
        )
        zero = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color=MUTED).encode(x="zero:Q")
        return _in_rows(alt, width, data, [zero, rule, point])

    return _chart(title, description, draw)


def scatter(title: str, description: str, x: str, y: str, points: Sequence[Point]) -> Chart:
    """Quality (a share) against cost (logarithmic), with the names beside the points."""
    import altair as alt

    rows = [{**vars(p), "low": _or(p.low, p.y), "high": _or(p.high, p.y)} for p in points]
    domain = [min(p.x for p in points) / 1.5, max(p.x for p in points) * 1.5]

    def draw(width: int) -> Any:
        scale = alt.Scale(type="log", domain=domain, nice=False)
        costs = alt.X("x:Q", scale=scale, axis=alt.Axis(title=x, format="$~g", tickCount=5))
        share = alt.Y("y:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title=y, format=".0%", tickCount=5))
        data = alt.Chart(alt.Data(values=rows))
        rule = data.mark_rule(color=MUTED).encode(x=costs, y="low:Q", y2="high:Q")
        point = data.mark_point(color=ACCENT, filled=True, size=85, opacity=1).encode(
            x=costs, y=share, shape=_shape(alt), description="words:N"
        )
        names = [
            alt.Chart(alt.Data(values=[vars(place.point)]))
            .mark_text(color=INK, align=place.align, dx=place.dx, dy=place.dy, fontSize=LABEL_SIZE)
            .encode(x=costs, y=share, text="label:N")
            for place in _places(points, domain, width)
        ]
        return alt.layer(rule, point, *names).properties(width=width, height=HEIGHT)

    return _chart(title, description, draw)


class Place(NamedTuple):
    """Where the name of a point stands, relative to it."""

    point: Point
    align: str
    dx: float
    dy: float


def _places(points: Sequence[Point], domain: Sequence[float], width: int) -> list[Place]:
    """Names beside their points, each on the first side where it covers neither a point nor another name."""
    span = math.log(domain[1] / domain[0])
    at = {p: (width * math.log(p.x / domain[0]) / span, HEIGHT * (1 - p.y)) for p in points}
    taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in at.values()]
    placed = []
    for point in sorted(points, key=lambda p: p.y):
        x, y = at[point]
        long = LABEL_SIZE * 0.62 * len(point.label)
        sides = (
            (Place(point, "left", 10, 1), (x + 9, x + 9 + long)),
            (Place(point, "right", -10, 1), (x - 9 - long, x - 9)),
            (Place(point, "center", 0, -14), (x - long / 2, x + long / 2)),
            (Place(point, "center", 0, 15), (x - long / 2, x + long / 2)),
        )
        boxes = [(place, (left, y + place.dy - 6, right, y + place.dy + 6)) for place, (left, right) in sides]
        free = [item for item in boxes if item[1][0] >= 0 and not any(_overlap(item[1], other) for other in taken)]
        place, box = (free or boxes)[0]
        taken.append(box)
        placed.append(place)
    return placed


Box = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels."""


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def stacks(
    title: str, description: str, parts: Sequence[Part], peaks: dict[str, float], limit: float, limit_words: str
) -> Chart:
    """Memory by part, one bar a model, with each model's peak as a tick and the GPU's limit as a line."""
    import altair as alt

    rows = [vars(part) for part in parts]
    longest = max(sum(p.size for p in parts if p.label == label) for label in {p.label for p in parts})
    side = "left" if limit < longest / 2 else "right"
    names = [part.part for part in sorted({p.part: p for p in parts}.values(), key=lambda p: p.order)]

    def draw(width: int) -> Any:
        columns = 2 if width == NARROW else 4
        legend = alt.Legend(orient="top", title=None, columns=columns, symbolType="square")
        bars = (
            alt.Chart(alt.Data(values=rows))
            .mark_bar(size=16, stroke=GRID, strokeWidth=0.5)
            .encode(
                y=_rows_axis(alt, width),
                x=alt.X("size:Q", stack="zero", axis=alt.Axis(title="GiB", tickCount=6)),
                color=alt.Color("part:N", scale=alt.Scale(domain=names, range=list(SERIES)), legend=legend),
                order="order:Q",
                description="words:N",
            )
        )
        peak = (
            alt.Chart(alt.Data(values=[{"label": label, "peak": size} for label, size in peaks.items()]))
            .mark_tick(color=INK, thickness=3, size=26)
            .encode(y=_rows_axis(alt, width), x="peak:Q")
        )
        line = alt.Chart(alt.Data(values=[{"limit": limit, "words": limit_words}]))
        rule = line.mark_rule(color=INK, strokeDash=[5, 3], strokeWidth=1.5).encode(x="limit:Q")
        text = line.mark_text(color=INK, align=side, y=0, dy=-7, fontSize=11).encode(x="limit:Q", text="words:N")
        return _in_rows(alt, width, bars, [bars, peak, rule, text])

    return _chart(title, description, draw)


def curves(title: str, description: str, steps: Sequence[Step]) -> Chart:
    """Mean reward by training step, one line a probe, named at its end and told apart by dashes too."""
    import altair as alt

    rows = [vars(step) for step in steps]
    names = list(dict.fromkeys(step.label for step in steps))
    ends = _apart({step.label: vars(step) for step in steps})

    def draw(width: int) -> Any:
        legend = alt.Legend(orient="top", title=None, columns=2, symbolType="stroke") if width == NARROW else None
        x = alt.X("step:Q", axis=alt.Axis(title="training step", format="d", tickMinStep=1))
        y = alt.Y("reward:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="mean reward", format=".0%"))
        colour = alt.Color("label:N", scale=alt.Scale(domain=names, range=list(SERIES)), legend=legend)
        dash = alt.StrokeDash("label:N", scale=alt.Scale(domain=names), legend=legend)
        data = alt.Chart(alt.Data(values=rows))
        line = data.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash)
        dots = data.mark_point(filled=True, size=30, opacity=1).encode(x=x, y=y, color=colour)
        text = (
            alt.Chart(alt.Data(values=ends))
            .mark_text(align="left", dx=9, fontSize=11, fontWeight="bold")
            .encode(x=x, y=alt.Y("label_at:Q", scale=alt.Scale(domain=[0, 1])), color=colour, text="label:N")
        )
        layers = [line, dots] if width == NARROW else [line, dots, text]
        return alt.layer(*layers).properties(width=width, height=260)

    return _chart(title, description, draw)


def _apart(last: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The last point of each line, with a place for its name that keeps clear of the one below."""
    placed: list[dict[str, Any]] = []
    for row in sorted(last.values(), key=lambda row: float(row["reward"])):
        least = placed[-1]["label_at"] + 0.055 if placed else 0.0
        placed.append({**row, "label_at": max(float(row["reward"]), least)})
    return placed


def _in_rows(alt: Any, width: int, data: Any, layers: list[Any]) -> Any:
    """Layers whose rows are named: to the left on a wide page, above each row on a narrow one."""
    if width != NARROW:
        return alt.layer(*layers).properties(width=width, height=alt.Step(30))
    place = {"align": "left", "dx": 2, "dy": -17, "fontSize": 11, "opacity": 1}
    # The same text below itself, wide and in the colour of the paper, keeps grid lines away from it.
    names = [
        alt.Chart(data.data)
        .transform_aggregate(groupby=["label"])
        .mark_text(**place, **look)
        .encode(y=_rows_axis(alt, width), x=alt.value(0), text="label:N")
        for look in ({"stroke": PAPER, "strokeWidth": 4, "color": PAPER}, {"color": INK})
    ]
    return alt.layer(*layers, *names).properties(width=width, height=alt.Step(46))


def _rows_axis(alt: Any, width: int) -> Any:
    axis = alt.Axis(title=None, ticks=False, domain=False, grid=False, labelLimit=240, labelColor=INK, labelPadding=8)
    return alt.Y("label:N", sort=None, axis=None if width == NARROW else axis)


def _shape(alt: Any) -> Any:
    scale = alt.Scale(domain=list(SHAPES), range=list(SHAPES.values()))
    return alt.Shape("provenance:N", scale=scale, legend=None)


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def _chart(title: str, description: str, draw: Callable[[int], Any]) -> Chart:
    wide, narrow = (_svg(draw(width), title, description) for width in (WIDE, NARROW))
    return Chart(title, description, wide, narrow)


def _svg(chart: Any, title: str, description: str) -> str:
    import vl_convert

    styled = (
        chart.configure(background="transparent", font="DejaVu Sans, system-ui, sans-serif", padding=4)
        .configure_view(stroke=None)
        .configure_axis(
            gridColor=GRID, domainColor=MUTED, tickColor=MUTED, labelColor=MUTED, titleColor=MUTED,
            labelFontSize=11, titleFontSize=11, titleFontWeight="normal", gridDash=[2, 3],
        )
        .configure_axisY(domain=False)
        .configure_legend(labelColor=INK, labelFontSize=11)
    )  # fmt: skip
    return _for_the_page(vl_convert.vegalite_to_svg(styled.to_dict(validate=False)), title, description)


def _for_the_page(svg: str, title: str, description: str) -> str:
    """Placeholders become CSS variables, labels become titles; the drawing scales with its column."""
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)
    for element in list(root.iter()):
        for attribute in ("fill", "stroke"):
            variable = VARIABLES.get(element.get(attribute, ""))
            if variable:
                element.set(attribute, f"var({variable})")
        label = element.get("aria-label")
        if label and element.get("aria-roledescription") in ("point", "bar", "rule mark"):
            ElementTree.SubElement(element, f"{{{_SVG}}}title").text = label
    heading, words = ElementTree.Element(f"{{{_SVG}}}title"), ElementTree.Element(f"{{{_SVG}}}desc")
    heading.text, words.text = title, description
    root.insert(0, words)
    root.insert(0, heading)
    root.set("role", "img")
    text = ElementTree.tostring(root, encoding="unicode")
    # The names that vega gives its groups mean nothing on a page with several charts.
    return re.sub(r' (class|pointer-events|aria-roledescription)="[^"]*"', "", text)
