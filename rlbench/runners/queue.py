"""Several jobs, one after another: those already answered are left alone, a failure is recorded, the rest goes on."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from rlbench.core.job import Attempt
from rlbench.core.record import Record
from rlbench.errors import RlbenchError, StoreError
from rlbench.plans.base import Planned
from rlbench.store import JobFolder, Store

RunJob = Callable[[JobFolder, Attempt, Callable[[str, int, int | None], None]], Record]


class Observer(Protocol):
    """Who watches the jobs go by."""

    def started(self, planned: Planned, number: int, count: int) -> None: ...

    def progress(self, what: str, done: int, total: int | None) -> None: ...

    def finished(self, planned: Planned, record: Record, reused: bool) -> None: ...


def run_all(
    store: Store,
    plan: Sequence[Planned],
    run_job: RunJob,
    command: str,
    observer: Observer,
    max_usd: float | None = None,
    max_seconds: float | None = None,
) -> list[Record]:
    """Answer every job of `plan`, in its order, from the store or by running it.

    With `max_usd`, a job whose forecast does not fit what is left of the cap is not started and gets the
    status `cap_reached`; with `max_seconds`, each job gets what is left of that time as its deadline.

    Raises:
        StoreError: the store cannot be written, or another process is at work on a job.
    """
    records = []
    spent, started = 0.0, time.monotonic()
    for number, planned in enumerate(plan, 1):
        observer.started(planned, number, len(plan))
        folder = store.open(planned.job)
        record, reused = answered(folder, planned), True
        if record is None:
            reused = False
            planned = _within(planned, max_seconds, started)
            record = _capped(planned, command, max_usd, spent) or _run(folder, planned, run_job, command, observer)
            spent += (record.cost.usd or 0.0) if record.cost else 0.0
        observer.finished(planned, record, reused)
        records.append(record)
    return records


def answered(folder: JobFolder, planned: Planned) -> Record | None:
    """The stored record, when it answers the job as far as it is asked now."""
    record = folder.record()
    if record is None or record.status != "ok" or record.targets is None:
        return None
    return record if record.targets.covers(planned.targets) else None


def _within(planned: Planned, max_seconds: float | None, started: float) -> Planned:
    if max_seconds is None:
        return planned
    left = max(max_seconds - (time.monotonic() - started), 1e-3)
    return replace(planned, targets=planned.targets.model_copy(update={"deadline_seconds": left}))


def _run(folder: JobFolder, planned: Planned, run_job: RunJob, command: str, observer: Observer) -> Record:
    try:
        observer.progress("weights", 0, None)
        model_path = planned.fetch()
    except StoreError:
        raise
    except RlbenchError as error:
        record, earlier = _unanswered(planned, command, str(error)), folder.record()
        if earlier is None or earlier.values is None:
            folder.write_record(record)
        return record
    with folder.lock():
        attempt = folder.add_attempt(
            lambda number: Attempt(
                number=number,
                targets=planned.targets,
                model_path=model_path,
                data_dir=planned.data_dir,
                command=command,
                started=datetime.now(UTC).isoformat(timespec="seconds"),
                price=planned.price,
            )
        )
    return run_job(folder, attempt, observer.progress)


def _unanswered(planned: Planned, command: str, detail: str) -> Record:
    return Record(
        subject=planned.job.subject,
        job=planned.job,
        targets=planned.targets,
        provenance="measured",
        source=command,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        status="failed",
        detail=detail,
    )


def _capped(planned: Planned, command: str, max_usd: float | None, spent: float) -> Record | None:
    if max_usd is None or planned.price is None:
        return None
    forecast = (planned.forecast.seconds or 0.0) / 3600 * planned.price.usd_per_hour
    if spent + forecast <= max_usd and spent < max_usd:
        return None
    detail = f"needs about ${forecast:.4f}; ${max(max_usd - spent, 0):.4f} is left of the cap of ${max_usd:.4f}"
    return _unanswered(planned, command, detail).model_copy(update={"status": "cap_reached"})
