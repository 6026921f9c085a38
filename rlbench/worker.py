"""The only place where a job runs: `python -m rlbench.worker JOB_DIR`, here and on a rented GPU.

It runs the folder's last attempt in its own process, so that memory comes back when it ends and a crash is
a status. Standard output carries one JSON document a line (progress, then the end); everything that
libraries print goes to standard error. With `--tethered` it ends when its standard input closes, which is
what happens when its parent dies, however it dies.
"""

import argparse
import json
import os
import signal
import sys
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from rlbench.core.cost import Cost
from rlbench.core.job import Attempt, Job
from rlbench.core.record import Outcome, Record, Status
from rlbench.errors import RlbenchError, StoreError
from rlbench.measure.context import Context, Deadline, DeadlineReached, PhaseClock
from rlbench.measure.host import describe_host
from rlbench.measure.rooms import room
from rlbench.store import JobFolder


def main() -> None:
    """Run the job folder named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m rlbench.worker", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tethered", action="store_true", help="end when standard input closes")
    parser.add_argument("--close", metavar="STATUS", help="run nothing: sum up what is stored, with this status")
    parser.add_argument("--detail", default="", help="with --close: why")
    arguments = parser.parse_args()
    messages = _take_stdout()
    if arguments.tethered:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    folder = JobFolder(arguments.folder)
    try:
        with folder.lock():
            if arguments.close:
                close(folder, arguments.close, arguments.detail)
            else:
                run(folder, messages)
    except StoreError as error:
        _say(messages, error=str(error))
        sys.exit(error.exit_code)


def run(folder: JobFolder, messages: TextIO) -> None:
    """Run the last attempt of `folder` and put its record in place, whatever happens."""
    job, attempt = folder.job(), _last_attempt(folder)
    folder.scratch.mkdir(exist_ok=True)
    clock = PhaseClock()
    with folder.appending() as sink:
        context = Context(
            attempt=attempt,
            stored=folder.samples,
            sink=sink,
            progress=lambda what, done, total: _say(messages, progress=[what, done, total]),
            deadline=Deadline(attempt.targets.deadline_seconds),
            scratch=folder.scratch,
            clock=clock,
        )
        outcome = _outcome(job, context)
    folder.write_record(frame(job, attempt, outcome))
    _say(messages, status=outcome.status, detail=outcome.detail)


def close(folder: JobFolder, status: Status, detail: str) -> None:
    """Sum up a folder whose worker died: what it stored is kept and reported."""
    job, attempt = folder.job(), _last_attempt(folder)
    outcome = room(job).summarise(job, attempt, folder.samples())
    folder.write_record(frame(job, attempt, outcome.model_copy(update={"status": status, "detail": detail})))


def _last_attempt(folder: JobFolder) -> Attempt:
    return folder.attempts()[-1].model_copy(update={"scratch": folder.scratch})


def frame(job: Job, attempt: Attempt, outcome: Outcome) -> Record:
    """The record of an outcome: who answered, what it cost, which command asked."""
    return Record(
        subject=job.subject,
        job=job,
        targets=attempt.targets,
        provenance=outcome.provenance,
        source=attempt.command,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        host=describe_host(job, attempt),
        cost=Cost(
            phase_seconds=outcome.phase_seconds,
            device=job.device,
            count=attempt.device_count,
            price=attempt.price,
        ),
        status=outcome.status,
        detail=outcome.detail,
        values=outcome.values,
    )


def _outcome(job: Job, context: Context) -> Outcome:
    this_room = room(job)
    try:
        return this_room.run(job, context)
    except DeadlineReached:
        status: Status = "timeout"
        detail = f"the deadline of {context.attempt.targets.deadline_seconds:.0f} s was reached"
    except RlbenchError as error:
        status, detail = "failed", str(error)
    except MemoryError:
        status, detail = "out_of_memory", "the process ran out of memory"
    except Exception as error:  # noqa: BLE001 - the job boundary: whatever a library raises becomes a result
        traceback.print_exc()
        memory = type(error).__name__ == "OutOfMemoryError"
        status = "out_of_memory" if memory else "failed"
        said = (str(error).strip().splitlines() or [""])[0].rstrip(" .:")
        log = f"runs/{job.key}/attempts/{context.attempt.number}.log"
        detail = f"{type(error).__name__}: {said} (all of it in the store's {log})"
    summed = this_room.summarise(job, context.attempt, context.stored())
    return summed.model_copy(update={"status": status, "detail": detail, "phase_seconds": dict(context.clock.seconds)})


def _take_stdout() -> TextIO:
    """Keep standard output for messages; what anything else prints goes to standard error."""
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    return messages


def _say(messages: TextIO, **message: object) -> None:
    messages.write(json.dumps(message) + "\n")


def _end_with_parent() -> None:
    while os.read(0, 1024):
        pass
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    main()
