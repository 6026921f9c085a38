"""`rlbench compare`: the ranking and the report, from what the store holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlbench.cli.app import app
from rlbench.cli.common import Session, command

if TYPE_CHECKING:
    from rich.table import Table

    from rlbench.core.ranking import Ranked, Ranking
    from rlbench.core.record import Record
    from rlbench.report.comparison import Comparison

GUIDE_GPU = "a40"
"""The GPU of the cheapest published run (Open-RS), on which the models are estimated unless another is named."""


@command(app, "compare", "the ranking and the report")
def compare(
    session: Session,
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL", help="Card names, hub ids or folders; none: the seven and all that were measured."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the report: .html, .md, .csv or .json.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(help="GPU for the estimates of memory and speed.", show_default=GUIDE_GPU)
    ] = None,
    budget_usd: Annotated[
        float | None, typer.Option(metavar="USD", help="Recommend only what a run cost no more than.", min=0)
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(
            metavar="USD",
            help="Dollars per device-hour for every device, or for --gpu alone when that is given.",
            min=0,
            show_default="the dated price of each",
        ),
    ] = None,
) -> None:
    """Rank models by reward per dollar from the store, judge the claims, say what is missing.

    Exit code 1 when a result in the store could not be read; the rest is still compared.
    """
    from rlbench.report.export import check_path, write
    from rlbench.report.headline import headline

    if out is not None:
        check_path(out)
    comparison = _gather(session, models or [], gpu, budget_usd, price)
    says = headline(comparison)
    if out is not None:
        write(comparison, out)
    if session.json:
        session.emit(comparison.document(says.text))
    else:
        _show(session, comparison)
        session.out.print(f"\n{says.text}", markup=False, highlight=False)
        session.out.print(f"{says.next_step}\n  {says.command}", markup=False, highlight=False, soft_wrap=True)
        if out is not None:
            session.out.print(f"\nReport: {out.resolve()}", markup=False, highlight=False, soft_wrap=True)
    if comparison.unreadable:
        raise typer.Exit(1)


def _gather(
    session: Session, models: list[str], gpu_name: str | None, budget_usd: float | None, price: float | None
) -> "Comparison":
    from datetime import UTC, datetime

    from rlbench import __version__
    from rlbench.catalogue import find_gpu, find_price
    from rlbench.cli.common import command_line
    from rlbench.plans.comparison import Sources, counterparts, estimates, generated_prompts
    from rlbench.report.comparison import Question
    from rlbench.report.comparison import compare as compare_records
    from rlbench.report.examples import examples

    unreadable: list[str] = []

    def note(error: Exception) -> None:
        if str(error) not in unreadable:
            unreadable.append(str(error))
            session.warn(str(error))

    gpu = find_gpu(gpu_name or GUIDE_GPU)
    gpu_price = find_price(gpu.name, price)
    sources = Sources(session.store, models, session.offline, note)
    measured = sources.measured
    if price is not None:
        measured = [_repriced(record, price, gpu.name if gpu_name else None) for record in measured]
    question = Question(
        gpu=gpu.name,
        gpu_visible_bytes=gpu.visible_bytes,
        price=gpu_price,
        budget_usd=budget_usd,
        command=command_line(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        store=str(session.store),
        version=__version__,
    )
    shown = examples(sources.folders, generated_prompts(), note)  # before `unreadable` is read
    return compare_records(
        question,
        sources.cards,
        [
            *measured,
            *estimates(sources.cards, gpu, gpu_price),
            *counterparts(measured, sources.cards),
            *sources.published,
        ],
        shown,
        unreadable,
    )


def _repriced(record: "Record", usd_per_hour: float, device: str | None) -> "Record":
    """The record at the stated price, when it ran on `device` or no device was named."""
    from rlbench.catalogue import find_price
    from rlbench.report.comparison import reprice

    ran_on = record.cost.device if record.cost else None
    price = find_price(ran_on, usd_per_hour) if ran_on is not None and device in (None, ran_on) else None
    return reprice(record, price) if price is not None else record


def _show(session: Session, comparison: "Comparison") -> None:
    for entries in comparison.ranking.groups:
        session.out.print(_ranking_table(entries, comparison.ranking))
    if comparison.unprobed:
        session.out.print(_unprobed_table(comparison))


def _ranking_table(entries: "tuple[Ranked, ...]", ranking: "Ranking") -> "Table":
    from rich.text import Text

    from rlbench.core.ranking import tie_letters
    from rlbench.report.formats import certainty, dollars, number, points, ranks, span

    group, letters = entries[0].group, tie_letters(entries, ranking.ties)
    table = _table(f"Points per dollar on {group.task} (same letter: tied)")
    for heading in ("rank", "model", "points per $", "P(best)", "gain, points", "cost and $ per point"):
        table.add_column(
            heading, justify="left" if heading == "model" else "right", no_wrap=not heading.startswith("cost")
        )
    for entry in entries:
        limits = span(number(entry.points_per_usd_low), number(entry.points_per_usd_high))
        price, on = entry.usd_per_point, f" on {entry.device}" if entry.device else ""
        a_point = f"{dollars(price)} a point" if price is not None else entry.usd_per_point_note
        cells = (
            f"{ranks(entry.rank_low, entry.rank_high)} {letters[entry.name]}".strip(),
            entry.name,
            f"{number(entry.points_per_usd)}\n{limits}",
            certainty(entry.p_best) if len(entries) > 1 else "–",
            f"{points(entry.gain)}\n{span(points(entry.ci_low), points(entry.ci_high))}",
            f"{dollars(entry.usd)}{on}\n{a_point}",
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _table(title: str) -> "Table":
    from rich.table import Table

    return Table(
        title=f"\n{title}", title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0), header_style="dim"
    )


def _unprobed_table(comparison: "Comparison") -> "Table":
    from rich.text import Text

    from rlbench.report.formats import billions, dollars, gib, hourly, percent

    question, task = comparison.question, next((row.score_task for row in comparison.unprobed if row.score_task), "")
    at = f" at {hourly(question.price)}" if question.price else ""
    table = _table(f"Not ranked; estimates for {question.gpu}{at}, cheapest rollouts first")
    for heading in ("model", "size", "1,000\nrollouts", "full fine-\ntuning", task or "score", "why"):
        left = heading in ("model", "why")
        table.add_column(heading, justify="left" if left else "right", no_wrap=heading != "why")
    for row in comparison.unprobed:
        fits = {True: "\nfits", False: "\ndoes not fit", None: ""}[row.fits]
        known = f"{percent(row.score)}\n{row.score_provenance}" if row.score is not None else "–"
        cells = (
            row.model,
            billions(row.parameters),
            dollars(row.usd_per_thousand_rollouts),
            gib(row.training_peak_bytes) + fits,
            known,
            row.state,
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table
