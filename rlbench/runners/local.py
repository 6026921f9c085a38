"""Jobs on this machine: a worker process for each, one after another, with a deadline and a tether."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from rlbench.core.job import Attempt
from rlbench.core.record import Record, Status
from rlbench.errors import RlbenchError, StoreError
from rlbench.store import JobFolder

GRACE_SECONDS = 60.0
"""How long a worker may take past its own deadline to sum up before it is killed."""

Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class _End:
    status: Status
    detail: str


def run_job(folder: JobFolder, attempt: Attempt, progress: Progress) -> Record:
    """Run the attempt in a worker and return its record.

    A worker that dies is a result: the record then says how it ended and reports what it had stored.

    Raises:
        StoreError: another process is at work on this folder, or the folder cannot be written.
        RlbenchError: the worker left no record.
    """
    worker = _start(folder, attempt)
    try:
        ended = _follow(worker, attempt, progress)
    except StoreError:
        _kill(worker)
        raise
    except BaseException:
        _kill(worker)
        _close(folder, attempt, "interrupted", "stopped by the user; run the same command to go on")
        raise
    finally:
        _close_pipes(worker)
    if ended is not None:
        _close(folder, attempt, ended.status, ended.detail)
    record = folder.record()
    if record is None:
        raise RlbenchError(f"the worker left no record; its log is {folder.log_path(attempt)}.")
    return record


def _start(folder: JobFolder, attempt: Attempt) -> "subprocess.Popen[str]":
    with folder.log_path(attempt).open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "rlbench.worker", str(folder.path), "--tethered"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            # Libraries open model files in the locale's encoding; under LC_ALL=C that is ASCII.
            env={**os.environ, "PYTHONUTF8": "1"},
        )


def _follow(worker: "subprocess.Popen[str]", attempt: Attempt, progress: Progress) -> _End | None:
    """Pass the worker's progress on until it ends; how it died, or `None` when it wrote its own record."""
    late = threading.Event()
    limit = attempt.targets.deadline_seconds

    def end() -> None:
        late.set()
        _kill(worker)

    timer = threading.Timer(limit + GRACE_SECONDS, end) if limit is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    finished = False
    try:
        assert worker.stdout is not None
        for line in worker.stdout:
            message = json.loads(line)
            if "progress" in message:
                progress(*message["progress"])
            elif "error" in message:
                raise StoreError(message["error"])
            finished = finished or "status" in message
        code = worker.wait()
    finally:
        if timer is not None:
            timer.cancel()
    if finished and code == 0:
        return None
    if late.is_set():
        return _End("timeout", f"killed {GRACE_SECONDS:.0f} s after its deadline of {limit:.0f} s")
    return _death(code)


def _death(code: int) -> _End:
    if code == -signal.SIGKILL:
        # Nobody here sends SIGKILL without noting why, so it was the kernel (out of memory) or a person.
        return _End("out_of_memory", "the worker was killed (SIGKILL), most likely for want of memory")
    if code < 0:
        return _End("failed", f"the worker died of {signal.Signals(-code).name}")
    return _End("failed", f"the worker ended with exit code {code}")


def _close(folder: JobFolder, attempt: Attempt, status: Status, detail: str) -> None:
    command = [
        sys.executable,
        "-m",
        "rlbench.worker",
        str(folder.path),
        "--close",
        status,
        "--detail",
        detail,
    ]
    with folder.log_path(attempt).open("a") as log:
        subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False)


def _close_pipes(worker: "subprocess.Popen[str]") -> None:
    for pipe in (worker.stdin, worker.stdout):
        if pipe is not None:
            pipe.close()


def _kill(worker: "subprocess.Popen[str]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
