"""The report as one HTML file: it loads nothing, runs no script, and escapes whatever a model wrote."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlbench.core.cost import Price
from rlbench.core.ranking import Ranked, Ranking, tie_letters
from rlbench.core.record import AccuracyValues, Host, MemoryValues, ProbeValues, Record, RolloutValues
from rlbench.report import formats
from rlbench.report.charts import Bar, Chart, Part, Point, Step, curves, intervals, scatter, stacks
from rlbench.report.comparison import Comparison, best_score, rollout_record, score_task
from rlbench.report.examples import Example
from rlbench.report.headline import headline

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"

SECTIONS = (
    ("ranking", "Ranking"),
    ("curves", "What training did"),
    ("quality", "Quality against cost"),
    ("accuracy", "Accuracy by mode"),
    ("memory", "Memory"),
    ("claims", "Claims and verdicts"),
    ("missing", "What is missing"),
    ("completions", "Sample completions"),
    ("conditions", "Conditions"),
)

CHARTED_TASKS = 4
"""Tasks with a chart of their own, the best covered ones; every task has its table."""

FEW_SCORES = 9
"""A task with no measured and at most so many published scores is folded away with others of its kind."""

PARTS = (
    ("weights", "weights_bytes"),
    ("gradients", "gradients_bytes"),
    ("optimizer", "optimizer_bytes"),
    ("activations", "activations_bytes"),
    ("logits", "logits_bytes"),
    ("KV cache", "kv_cache_bytes"),
    ("rollout engine", "rollout_engine_bytes"),
    ("overhead", "overhead_bytes"),
)


def html(comparison: Comparison) -> str:
    """The whole page."""
    template = _environment().get_template("report.html.j2")
    return template.render(**_view(comparison))


def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The only text that is not escaped: charts, in which every label has been escaped when they were drawn.
    environment.filters["drawing"] = Markup
    for name in ("number", "dollars", "points", "percent", "certainty", "gib", "billions", "duration", "hourly"):
        environment.filters[name] = getattr(formats, name)
    environment.filters["raised"] = _raised
    environment.filters["method"] = _method
    return environment


def _view(comparison: Comparison) -> dict[str, Any]:
    """Everything the templates name."""
    from markupsafe import Markup

    by_task = _accuracy_by_task(comparison)
    charted = [(task, records) for task, records in by_task if len(records) > 1][:CHARTED_TASKS]
    probes = _of(comparison.records, ProbeValues)
    memories = _memories(comparison)
    return {
        "style": Markup((TEMPLATES / "style.css").read_text(encoding="utf-8")),
        "sections": SECTIONS,
        "comparison": comparison,
        "question": comparison.question,
        "headline": headline(comparison),
        "ranks": formats.ranks,
        "groups": [_group(entries, comparison.ranking) for entries in comparison.ranking.groups],
        "unprobed_task": next((row.score_task for row in comparison.unprobed if row.score_task), None),
        "curve_charts": _curve_charts(probes),
        "probes": probes,
        "quality_chart": _quality_chart(comparison),
        "speeds": sorted(_of(comparison.records, RolloutValues), key=lambda r: r.provenance != "measured"),
        "accuracy_charts": [_accuracy_chart(task, records) for task, records in charted],
        "accuracy_by_task": by_task,
        "accuracy_own": sum(records[0].provenance == "measured" or len(records) > FEW_SCORES for _, records in by_task),
        "memory_chart": _memory_chart(comparison),
        "memories": memories,
        "memory_ratios": _memory_ratios(memories),
        "claims": [(model, list(rows)) for model, rows in groupby(comparison.claims, key=lambda row: row.model)],
        "missing": [(model, list(rows)) for model, rows in groupby(comparison.missing, key=lambda row: row.model)],
        "completions": _completions(comparison.examples),
        "prices": _prices(comparison),
        "hosts": _hosts(comparison.measured),
    }


def _of(records: Iterable[Record], kind: type) -> list[Record]:
    return [record for record in records if isinstance(record.values, kind)]


def _group(entries: Sequence[Ranked], ranking: Ranking) -> dict[str, Any]:
    group = entries[0].group
    cap = f", at most {group.max_new_tokens:,} new tokens" if group.max_new_tokens else ""
    return {
        "title": f"Task {group.task}{cap}; {group.protocol}",
        "entries": entries,
        "letters": tie_letters(entries, ranking.ties),
        "chart": _ranking_chart(entries) if len(entries) > 1 else None,
    }


def _ranking_chart(entries: Sequence[Ranked]) -> Chart:
    bars = [
        Bar(
            label=entry.name,
            value=entry.points_per_usd,
            low=entry.points_per_usd_low,
            high=entry.points_per_usd_high,
            provenance=entry.provenance,
            words=(
                f"{entry.name}: {formats.number(entry.points_per_usd)} points per dollar, 95% interval "
                f"{formats.span(formats.number(entry.points_per_usd_low), formats.number(entry.points_per_usd_high))}"
            ),
        )
        for entry in entries
    ]
    return intervals("Points per dollar", "with 95% intervals; the best estimate first.", "points per dollar", bars)


def _curve_charts(probes: Sequence[Record]) -> list[Chart]:
    charts = []
    for task in dict.fromkeys(r.values.task for r in probes if isinstance(r.values, ProbeValues)):
        steps = [
            Step(label=_label(record), step=point.step, reward=point.reward)
            for record in probes
            if isinstance(record.values, ProbeValues) and record.values.task == task
            for point in record.values.curve
        ]
        if steps:
            words = "mean strict reward of the rollouts that each step trained on."
            charts.append(curves(f"Learning curves on {task}:", words, steps))
    return charts


def _quality_chart(comparison: Comparison) -> Chart | None:
    task, gpu = score_task(comparison.records), comparison.question.gpu
    dots = []
    for model in comparison.models:
        score = best_score(model, task, comparison.records)
        speed = rollout_record(model, gpu, comparison.records)
        if score is None or speed is None or not isinstance(score.values, AccuracyValues):
            continue
        cost = speed.values.usd_per_thousand_rollouts if isinstance(speed.values, RolloutValues) else None
        if cost:
            mode = f", {score.subject.mode}" if score.subject.mode else ""
            words = (
                f"{model}: {formats.percent(score.values.accuracy)} ({score.provenance}{mode}), "
                f"{formats.dollars(cost)} per 1,000 rollouts ({speed.provenance})"
            )
            value = score.values
            label = f"{model} (think)" if score.subject.mode == "think" else model
            dots.append(Point(label, cost, value.accuracy, value.ci_low, value.ci_high, score.provenance, words))
    if not dots:
        return None
    shapes = "a square is a published score, a circle a measured one"
    return scatter(
        f"Score on {task} against the cost of rollouts on {gpu}:",
        f"up and to the left is better; {shapes}. Scores come from different harnesses, modes and caps.",
        "dollars per 1,000 rollouts (logarithmic)",
        f"score on {task}",
        dots,
    )


def _accuracy_by_task(comparison: Comparison) -> list[tuple[str, list[Record]]]:
    """Scores by task: tasks with measured scores first, then the best covered; in each, measured scores first."""
    tasks: dict[str, list[Record]] = {}
    for record in _of(comparison.records, AccuracyValues):
        tasks.setdefault(record.subject.task or "a task not named", []).append(record)
    order = {model: position for position, model in enumerate(comparison.models)}
    for records in tasks.values():
        records.sort(key=lambda r: (r.provenance != "measured", order[r.subject.name], r.subject.mode or ""))
    return sorted(tasks.items(), key=lambda item: (item[1][0].provenance != "measured", -len(item[1]), item[0]))


def _accuracy_chart(task: str, records: Sequence[Record]) -> Chart:
    bars = []
    for record in records:
        values = record.values
        assert isinstance(values, AccuracyValues)
        label = _label(record) + (f" · {record.subject.mode}" if record.subject.mode else "")
        words = f"{label}: {formats.percent(values.accuracy)} ({record.provenance}, {record.source})"
        bars.append(Bar(label, values.accuracy, values.ci_low, values.ci_high, record.provenance, words))
    return intervals(
        f"{task}:",
        "with 95% intervals where they are known; a circle is measured, a square is published, "
        "several squares in a row are several publications.",
        "share right",
        sorted(bars, key=lambda bar: [b.label for b in bars].index(bar.label)),
        percent=True,
    )


def _memory_chart(comparison: Comparison) -> Chart | None:
    gpu, limit = comparison.question.gpu, comparison.question.gpu_visible_bytes
    parts: list[Part] = []
    peaks: dict[str, float] = {}
    for record in _of(comparison.records, MemoryValues):
        values = record.values
        if not isinstance(values, MemoryValues) or values.gpu != gpu or record.subject.name in peaks:
            continue
        if record.provenance != "estimated":
            continue
        peaks[record.subject.name] = values.peak_bytes / formats.GIB
        for order, (name, field) in enumerate(PARTS):
            size = getattr(values, field)
            if size:
                words = f"{record.subject.name}: {name} {formats.gib(size)}"
                parts.append(Part(record.subject.name, name, order, size / formats.GIB, words))
    if not parts or limit is None:
        return None
    return stacks(
        f"Full fine-tuning, by part, against {gpu}:",
        "estimated, each part at its largest; the tick is the peak, at which not every part is held. "
        "The dashed line is the memory that programs can use on it.",
        parts,
        peaks,
        limit / formats.GIB,
        f"{gpu}: {formats.gib(limit)}",
    )


def _memories(comparison: Comparison) -> list[Record]:
    """What was measured first, each with the estimate of the same step below it; then the estimates for the GPU."""
    order = {model: position for position, model in enumerate(comparison.models)}

    def place(record: Record) -> tuple[bool, int, bool]:
        on_gpu = isinstance(record.values, MemoryValues) and record.values.gpu == comparison.question.gpu
        estimated = record.provenance == "estimated"
        return estimated and on_gpu, order[record.subject.name], estimated

    return sorted(_of(comparison.records, MemoryValues), key=place)


def _memory_ratios(memories: Sequence[Record]) -> list[str]:
    """Measured beside estimated, as ratios, where the same step of the same model has both."""
    found = []
    for record in memories:
        if record.provenance not in ("measured", "traced") or not isinstance(record.values, MemoryValues):
            continue
        for other in memories:
            if other.provenance != "estimated" or not isinstance(other.values, MemoryValues):
                continue
            if (other.subject.name, _step(other.values)) != (record.subject.name, _step(record.values)):
                continue
            real, guess = record.values, other.values
            states, peak = real.bytes_per_parameter / guess.bytes_per_parameter, real.peak_bytes / guess.peak_bytes
            found.append(
                f"{record.subject.name}, {real.method} {real.regime}: {record.provenance} "
                f"{formats.number(real.bytes_per_parameter)} bytes per parameter and a peak of "
                f"{formats.gib(real.peak_bytes)}; estimated {formats.number(guess.bytes_per_parameter)} and "
                f"{formats.gib(guess.peak_bytes)}. Ratios {states:.3f} and {peak:.3f}."
            )
    return list(dict.fromkeys(found))


def _step(values: MemoryValues) -> tuple[str, str, int | None, int | None]:
    return values.regime, values.method, values.seq_len, values.micro_batch


def _completions(examples: Sequence[Example]) -> list[tuple[str, list[tuple[str, str | None, list[Example]]]]]:
    jobs: dict[str, dict[str, list[Example]]] = {}
    for example in examples:
        mode = f", {example.mode}" if example.mode else ""
        title = f"{example.model} on {example.task or 'a task not named'} ({example.kind}{mode})"
        jobs.setdefault(title, {}).setdefault(example.prompt_id, []).append(example)
    return [
        (title, [(prompt, rows[0].prompt, rows) for prompt, rows in prompts.items()]) for title, prompts in jobs.items()
    ]


def _prices(comparison: Comparison) -> list[Price]:
    prices = [record.cost.price for record in comparison.records if record.cost and record.cost.price]
    if comparison.question.price:
        prices.insert(0, comparison.question.price)
    return list({(price.device, price.usd_per_hour, price.source): price for price in prices}.values())


def _hosts(records: Sequence[Record]) -> list[tuple[Host, list[str]]]:
    """Each machine and its software, with what was measured there."""
    found: dict[str, tuple[Host, list[str]]] = {}
    for record in records:
        if record.host is not None:
            _, kinds = found.setdefault(record.host.model_dump_json(), (record.host, []))
            what = f"{record.kind} of {record.subject.name}"
            if what not in kinds:
                kinds.append(what)
    return list(found.values())


def _label(record: Record) -> str:
    seed = record.job.seed if record.job else 0
    return f"{record.subject.name} (seed {seed})" if seed else record.subject.name


def _raised(gates: Mapping[str, bool]) -> str:
    """The names of the gates that were raised."""
    return ", ".join(name.replace("_", " ") for name, raised in gates.items() if raised) or "none"


def _method(record: Record) -> str:
    """How a memory or speed figure was obtained, and what would make the model fit."""
    values = record.values
    if isinstance(values, MemoryValues):
        return " ".join(filter(None, (values.how, *values.advice)))
    return values.how if isinstance(values, RolloutValues) else ""
