"""A queue of jobs: what is answered stays, what fails is recorded, the cap holds."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rlbench.core.cost import Cost, Price
from rlbench.core.job import AccuracyTask, Attempt, EngineSpec, Job, Targets
from rlbench.core.record import AccuracyValues, Record
from rlbench.core.subject import Subject
from rlbench.errors import HubError, StoreError
from rlbench.plans.base import Forecast, Planned
from rlbench.runners.queue import run_all
from rlbench.store import JobFolder, Store

PRICE = Price(device="cpu", usd_per_hour=3600.0, provider="test", date="2026-12-01", source="test")


class Diary:
    """An observer that keeps what it sees."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, bool]] = []

    def started(self, planned: Planned, number: int, count: int) -> None: ...

    def progress(self, what: str, done: int, total: int | None) -> None: ...

    def finished(self, planned: Planned, record: Record, reused: bool) -> None:
        self.ends.append((record.status, reused))


def planned(task: str, targets: Targets, fetch: Callable[[], Path] = Path, seconds: float = 1.0) -> Planned:
    job = Job(
        subject=Subject(model="local:0123", task=task),
        settings=AccuracyTask(),
        engine=EngineSpec(),
        versions={},
        device="cpu",
    )
    return Planned(job, targets, fetch, price=PRICE, forecast=Forecast(seconds=seconds))


def one_second(folder: JobFolder, attempt: Attempt, progress: Callable[[str, int, int | None], None]) -> Record:
    """Answers at once, and says it took one second."""
    job = folder.job()
    record = Record(
        subject=job.subject,
        job=job,
        targets=attempt.targets,
        provenance="measured",
        source=attempt.command,
        cost=Cost(phase_seconds={"rollout": 1.0}, device="cpu", price=attempt.price),
        values=AccuracyValues(accuracy=0.5),
    )
    folder.write_record(record)
    return record


def test_what_is_answered_is_left_alone_and_asking_for_more_runs_again(tmp_path: Path) -> None:
    store, diary = Store(tmp_path), Diary()
    for samples in (2, 2, 1, 4):
        run_all(store, [planned("a", Targets(samples_per_prompt=samples))], one_second, "test", diary)
    assert diary.ends == [("ok", False), ("ok", True), ("ok", True), ("ok", False)]
    assert len(store.folders()) == 1


def test_a_failure_is_recorded_and_the_rest_goes_on(tmp_path: Path) -> None:
    def unreachable() -> Path:
        raise HubError("the hub cannot be reached: try again, or name a local folder.")

    store, diary = Store(tmp_path), Diary()
    plan = [planned("a", Targets(), fetch=unreachable), planned("b", Targets())]
    records = run_all(store, plan, one_second, "test", diary)
    assert [record.status for record in records] == ["failed", "ok"]
    assert records[0].detail.startswith("the hub cannot be reached")
    assert {r.status for r in store.records(lambda error: None)} == {"failed", "ok"}
    assert run_all(store, plan[:1], one_second, "test", diary)[0].status == "failed", "a failure is tried again"


def test_no_job_starts_that_would_go_over_the_cap(tmp_path: Path) -> None:
    store, diary = Store(tmp_path), Diary()
    plan = [planned(task, Targets()) for task in "abc"]
    records = run_all(store, plan, one_second, "test", diary, max_usd=2.5)
    assert [record.status for record in records] == ["ok", "ok", "cap_reached"]
    assert "$0.5000 is left of the cap of $2.5000" in records[2].detail
    records = run_all(store, plan, one_second, "test", diary, max_usd=1.0)
    assert [record.status for record in records] == ["ok", "ok", "ok"], "answered jobs cost nothing now"


def test_an_attempt_that_never_began_does_not_replace_an_answer(tmp_path: Path) -> None:
    def unreachable() -> Path:
        raise HubError("the hub cannot be reached: try again, or name a local folder.")

    store, diary = Store(tmp_path), Diary()
    run_all(store, [planned("a", Targets(samples_per_prompt=2))], one_second, "test", diary)
    more = [planned("a", Targets(samples_per_prompt=4), fetch=unreachable)]
    assert run_all(store, more, one_second, "test", diary)[0].status == "failed"
    assert [record.status for record in store.records(print)] == ["ok"]


def test_a_second_process_notes_no_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlbench.store.LOCK_WAIT_SECONDS", 0.1)
    store, one = Store(tmp_path), planned("a", Targets())
    folder = store.open(one.job)
    with folder.lock(), pytest.raises(StoreError, match="another rlbench process is writing"):
        run_all(store, [one], one_second, "test", Diary())
    assert folder.attempts() == []
