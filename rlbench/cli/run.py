"""`rlbench run PLAN`: every job of a plan, taken up where it stopped."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlbench.cli.app import app
from rlbench.cli.common import Session, command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.core.record import Record
    from rlbench.plans.base import Planned


@command(app, "run", "every job of a plan, taken up where it stopped")
def run(
    session: Session,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan's name (cpu-demo) or a TOML file.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the jobs, time, memory and dollars; run nothing.")
    ] = False,
    max_usd: Annotated[
        float | None, typer.Option(metavar="USD", help="Start no job that would go over this.", min=0)
    ] = None,
    max_hours: Annotated[
        float | None, typer.Option(metavar="H", help="Stop when this time is up, with what is there.", min=0)
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Data sets as JSONL, instead of the hub.")
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(metavar="USD", help="Dollars per device-hour, instead of the catalogue's.", min=0),
    ] = None,
) -> None:
    """Run every job of a plan; jobs already answered are left alone."""
    from rlbench.plans.base import Surroundings
    from rlbench.plans.plan import load_plan

    around = Surroundings(session.offline, data_dir, usd_per_hour=price, forecast_only=dry_run)
    jobs = load_plan(plan).jobs(around)
    if dry_run:
        _show_forecast(session, jobs)
        return
    from rlbench.cli.measured import answer, fail_if_any_failed

    records = answer(session, jobs, max_usd, max_hours * 3600 if max_hours is not None else None)
    if session.json:
        session.emit({"results": [record.to_json() for record in records]})
    else:
        _show_results(session, records)
    fail_if_any_failed(records)


def _show_forecast(session: Session, jobs: "Sequence[Planned]") -> None:
    from rlbench.runners.queue import answered
    from rlbench.store import JobFolder, Store

    runs = Store(session.store).runs
    rows = []
    for planned in jobs:
        seconds, rate = planned.forecast.seconds, planned.price.usd_per_hour if planned.price else None
        rows.append(
            {
                "job": planned.label,
                "key": planned.job.key,
                "answered": answered(JobFolder(runs / planned.job.key), planned) is not None,
                "device": planned.job.device,
                "seconds": seconds,
                "peak_bytes": planned.forecast.peak_bytes,
                "usd": seconds / 3600 * rate if seconds is not None and rate is not None else None,
                "how": planned.forecast.how,
            }
        )
    if session.json:
        session.emit({"jobs": rows})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("forecast", "device", "minutes", "memory GiB", "USD", ""):
        table.add_column(column, justify="left" if column in ("forecast", "device", "") else "right")
    for row in rows:
        table.add_row(
            str(row["job"]),
            str(row["device"]),
            _number(row["seconds"], 60, 1),
            _number(row["peak_bytes"], 2**30, 1),
            _number(row["usd"], 1, 4),
            "answered already" if row["answered"] else "",
        )
    session.out.print(table)
    session.out.print(_total(rows), highlight=False, soft_wrap=True)
    for sentence in sorted({str(row["how"]) for row in rows if row["how"]}):
        session.out.print(f"Forecast: {sentence}", markup=False, highlight=False, soft_wrap=True)


def _total(rows: "Sequence[dict[str, object]]") -> str:
    """What is still to do, in minutes and dollars; what is not known is said."""
    ahead = [row for row in rows if not row["answered"]]
    known = [(row["seconds"], row["usd"]) for row in ahead]
    minutes = sum(seconds / 60 for seconds, _ in known if isinstance(seconds, float | int))
    usd = sum(dollars for _, dollars in known if isinstance(dollars, float | int))
    unknown = sum(None in pair for pair in known)
    beside = f", and {unknown} of which that is not known" if unknown else ""
    return f"Still to do: {len(ahead)} of {len(rows)} jobs, about {minutes:.1f} minutes and ${usd:.4f}{beside}."


def _number(value: object, divisor: float, digits: int) -> str:
    return f"{value / divisor:.{digits}f}" if isinstance(value, (int, float)) else "not known"


def _show_results(session: Session, records: "Sequence[Record]") -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("measured", "result", "USD"):
        table.add_column(column, justify="right" if column == "USD" else "left")
    for record in records:
        subject = record.subject
        usd = record.cost.usd if record.cost else None
        words = (record.kind, subject.name, subject.task, (subject.mode or "").replace("_", "-"))
        state = "" if record.status == "ok" else f"{record.status.replace('_', ' ')}: "
        table.add_row(
            " ".join(word for word in words if word),
            Text(state + summary(record)),
            "" if usd is None else f"{usd:.4f}",
        )
    session.out.print(table)


def summary(record: "Record") -> str:
    """The record's figure in a few words."""
    from rlbench.core.record import AccuracyValues, MemoryValues, ProbeValues, RolloutValues

    match record.values:
        case MemoryValues() as memory:
            peak = memory.peak_bytes / 2**30
            return f"{memory.bytes_per_parameter:.2f} B/parameter ({memory.regime}), peak {peak:.2f} GiB"
        case RolloutValues() as rollout:
            return f"{rollout.output_tokens_per_second:.1f} output tokens/s"
        case AccuracyValues() as accuracy:
            low, high = accuracy.ci_low, accuracy.ci_high
            interval = f" [{low:.3f}, {high:.3f}]" if low is not None and high is not None else ""
            return f"{accuracy.accuracy:.3f}{interval} of {accuracy.n_prompts} prompts"
        case ProbeValues() as probe if probe.gain is not None:
            return f"{probe.gain:+.1f} points [{probe.ci_low:+.1f}, {probe.ci_high:+.1f}], {probe.steps} steps"
        case ProbeValues() as probe:
            return f"{probe.state}: {probe.before:.3f} before"
        case _:
            return record.detail
