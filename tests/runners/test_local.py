"""A worker at the edge: it ends well, it is killed, its time runs out, its parent dies."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from rlbench.core.job import Attempt, Targets
from rlbench.core.record import RolloutValues
from rlbench.plans.base import Planned, Surroundings
from rlbench.plans.rollout import RolloutRequest
from rlbench.runners.local import run_job
from rlbench.store import JobFolder, Store


def planned(model: Path, repeats: int = 1, max_new_tokens: int = 4) -> Planned:
    request = RolloutRequest(
        models=(str(model),), prompts=2, group_size=2, max_new_tokens=max_new_tokens, repeats=repeats
    )
    return request.plan(Surroundings(offline=True))[0]


def attempt_at(folder: JobFolder, one: Planned, targets: Targets) -> Attempt:
    return folder.add_attempt(
        lambda number: Attempt(
            number=number,
            targets=targets,
            model_path=one.fetch(),
            command="a test",
            started="2026-12-01T00:00:00",
            price=one.price,
        )
    )


def silent(what: str, done: int, total: int | None) -> None: ...


def worker_of(folder: Path) -> psutil.Process:
    """The worker process at work on `folder`."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if "rlbench.worker" in words and str(folder) in words:
                return process
        time.sleep(0.02)
    raise AssertionError(f"no worker on {folder}")


def kill_at_first_sample(folder: JobFolder) -> Callable[[str, int, int | None], None]:
    killed = False

    def progress(what: str, done: int, total: int | None) -> None:
        nonlocal killed
        if not killed and folder.samples_path.exists() and folder.samples_path.stat().st_size:
            worker_of(folder.path).send_signal(signal.SIGKILL)
            killed = True

    return progress


def test_a_job_runs_in_a_worker_and_its_prints_go_to_its_log(tmp_path: Path, tiny_model: Path) -> None:
    one = planned(tiny_model)
    folder = Store(tmp_path).open(one.job)
    attempt = attempt_at(folder, one, one.targets)
    seen: list[str] = []
    record = run_job(folder, attempt, lambda what, done, total: seen.append(what))
    assert record.status == "ok"
    assert record == folder.record()
    assert isinstance(record.values, RolloutValues)
    assert record.values.output_tokens_per_second > 0
    assert record.cost is not None
    assert record.cost.usd == pytest.approx(record.cost.device_seconds / 3600 * one.price.usd_per_hour)  # type: ignore[union-attr]
    assert record.host is not None
    assert "torch" in record.host.packages
    assert seen
    assert folder.log_path(attempt).exists()


def test_a_killed_worker_is_a_record_with_what_it_had(tmp_path: Path, tiny_model: Path) -> None:
    one = planned(tiny_model, repeats=500, max_new_tokens=16)
    folder = Store(tmp_path).open(one.job)
    record = run_job(folder, attempt_at(folder, one, one.targets), kill_at_first_sample(folder))
    assert record.status == "out_of_memory"
    assert "SIGKILL" in record.detail
    assert isinstance(record.values, RolloutValues), "the samples it had stored are summed up"
    assert 0 < len(list(folder.samples())) < 2000


def test_a_deadline_ends_the_work_and_keeps_it(tmp_path: Path, tiny_model: Path) -> None:
    one = planned(tiny_model, repeats=100_000, max_new_tokens=16)
    folder = Store(tmp_path).open(one.job)
    targets = one.targets.model_copy(update={"deadline_seconds": 15.0})
    record = run_job(folder, attempt_at(folder, one, targets), silent)
    assert record.status == "timeout"
    assert "deadline of 15 s" in record.detail


def test_a_worker_does_not_outlive_its_parent(tmp_path: Path, tiny_model: Path) -> None:
    one = planned(tiny_model, repeats=100_000, max_new_tokens=16)
    folder = Store(tmp_path).open(one.job)
    attempt_at(folder, one, one.targets)
    parent_script = textwrap.dedent(
        f"""
        from pathlib import Path
        from rlbench.runners.local import run_job
        from rlbench.store import JobFolder
        folder = JobFolder(Path({str(folder.path)!r}))
        run_job(folder, folder.attempts()[-1], lambda *_: None)
        """
    )
    with subprocess.Popen([sys.executable, "-c", parent_script]) as parent:
        worker = worker_of(folder.path)
        os.kill(parent.pid, signal.SIGKILL)
    gone, alive = psutil.wait_procs([worker], timeout=10)
    assert gone
    assert not alive
    with folder.lock():
        assert folder.record() is None


def test_a_worker_that_cannot_load_the_model_says_why(tmp_path: Path, tiny_model: Path) -> None:
    one = planned(tiny_model)
    folder = Store(tmp_path).open(one.job)
    attempt = attempt_at(folder, one, one.targets).model_copy(update={"model_path": tmp_path / "nowhere"})
    (folder.path / "attempts" / "1.json").write_text(attempt.model_dump_json())
    record = run_job(folder, attempt, silent)
    assert record.status == "failed"
    assert record.detail
    assert record.values is None
