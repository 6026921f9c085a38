"""`rlbench accuracy`: how often a model is right, at a stated cap, with and without thinking."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlbench.cli.app import app
from rlbench.cli.common import Session, comma_list, command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.core.modes import ModeDifference
    from rlbench.core.record import Record


@command(app, "accuracy", "with and without thinking, with intervals")
def accuracy(
    session: Session,
    models: Annotated[
        list[str] | None, typer.Argument(metavar="MODEL", help="Card names, hub ids or folders; none: the seven.")
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK,…", help="math500, aime24, aime25, amc23, ifeval, gsm8k, or a generated task.",
                     show_default="math500,ifeval"),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(metavar="MODE,…", help="think, no_think, base.", show_default="every mode of the card"),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first so many problems.", min=1)] = None,
    samples: Annotated[
        int | None, typer.Option(help="Samples of each problem; asking for more later adds to them.", min=1,
                                 show_default="8 for AIME and AMC, else 1")
    ] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(help="Cap of a completion.", min=1, show_default="the card's")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Data sets as JSONL, instead of the hub.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Sequences generated together.", min=1)] = 32,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    price: Annotated[
        float | None,
        typer.Option(metavar="USD", help="Dollars per device-hour.", min=0, show_default="the catalogue's"),
    ] = None,
) -> None:  # fmt: skip
    """Measure accuracy: 95% intervals over problems, and thinking against not thinking, problem by problem."""
    from rlbench.cli.measured import answer, fail_if_any_failed, request_of, result
    from rlbench.core.record import AccuracyValues
    from rlbench.plans.accuracy import AccuracyRequest
    from rlbench.plans.base import Surroundings

    asked: dict[str, Any] = {
        "models": comma_list(models or ()), "tasks": comma_list(tasks or ("math500", "ifeval")),
        "modes": comma_list(mode or ()), "limit": limit, "samples": samples, "max_new_tokens": max_new_tokens,
        "batch_size": batch_size, "seed": seed,
    }  # fmt: skip
    request = request_of(AccuracyRequest, asked, "accuracy")
    plan = request.plan(Surroundings(offline=session.offline, data_dir=data_dir, usd_per_hour=price))
    records = answer(session, plan)
    differences = mode_differences(session, records)
    if session.json:
        session.emit(
            {
                "results": [result(record, AccuracyValues) for record in records],
                "mode_differences": [difference.to_json() for difference in differences],
            }
        )
    else:
        _show(session, records, differences)
    fail_if_any_failed(records)


def mode_differences(session: Session, records: "Sequence[Record]") -> "list[ModeDifference]":
    """Thinking against not thinking, for each model and task that was measured in both modes."""
    from rlbench.core.modes import mode_difference
    from rlbench.store import JobFolder, Store

    runs = Store(session.store).runs
    by_mode = {(r.subject.name, r.subject.task, r.subject.mode): r.job for r in records if r.job and r.values}
    found = []
    for (model, task, mode), job in by_mode.items():
        other = by_mode.get((model, task, "no_think"))
        if mode == "think" and other is not None:
            thinking, plain = JobFolder(runs / job.key), JobFolder(runs / other.key)
            found.append(mode_difference(model, str(task), thinking.samples(), plain.samples()))
    return [difference for difference in found if difference is not None]


def _show(session: Session, records: "Sequence[Record]", differences: "Sequence[ModeDifference]") -> None:
    from rich.table import Table

    title = "Accuracy, % (95% intervals over problems; truncated answers count as wrong)"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("model, task, mode", min_width=22, overflow="fold")
    for column in ("accuracy", "problems", "if cut\nright", "cut\nat", "tokens", "USD a\nright\nanswer"):
        table.add_column(column, justify="right", no_wrap=True)
    for record in records:
        table.add_row(*_cells(record))
    session.out.print(table)
    for record in records:
        for sentence in _remarks(record):
            session.out.print(sentence, markup=False, highlight=False, soft_wrap=True)
    for d in differences:
        session.out.print(
            f"{d.model}, {d.task}: thinking − not thinking = {100 * d.difference:+.1f} points "
            f"[{100 * d.ci_low:+.1f}, {100 * d.ci_high:+.1f}] on {d.n_prompts} problems at the same cap; "
            f"better with {d.p_think_better:.0%} confidence.",
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip


def _cells(record: "Record") -> list[str]:
    from rlbench.core.record import AccuracyValues

    subject, values = record.subject, record.values
    head = f"{subject.name} {subject.task} {str(subject.mode).replace('_', '-')}"
    if not isinstance(values, AccuracyValues):
        return [head, record.status]
    low, high = values.ci_low or 0.0, values.ci_high or 0.0
    cost = values.usd_per_correct
    return [
        head,
        f"{100 * values.accuracy:.1f}\n{100 * low:.1f} – {100 * high:.1f}",
        f"{values.n_prompts} × {values.samples_per_prompt}",
        f"{100 * (values.accuracy_if_truncated_right or 0.0):.1f}",
        f"{subject.max_new_tokens}:\n{values.truncated_share or 0.0:.0%}",
        f"{values.mean_output_tokens or 0.0:.0f}",
        "" if cost is None else f"{cost:.6f}",
    ]


def _remarks(record: "Record") -> list[str]:
    """What a reader must know beside the figures."""
    from rlbench.core.record import AccuracyValues

    name = f"{record.subject.name}, {record.subject.task}"
    remarks = [f"{name}: {record.detail}"] if record.detail else []
    if isinstance(record.values, AccuracyValues):
        values = record.values
        if values.limited:
            remarks.append(f"{name}: only the first {values.n_prompts} problems; not the score of the whole set.")
        if values.generated:
            remarks.append(f"{name}: prompts generated by rlbench, not a public benchmark.")
        if values.grader_timeouts:
            remarks.append(f"{name}: {values.grader_timeouts} answers could not be graded in time and count as wrong.")
        figures = ", ".join(f"{key} {100 * value:.1f}" for key, value in values.metrics.items())
        remarks += [f"{name}: {figures} (lm-eval's figures, truncation not considered)"] if figures else []
    return remarks
