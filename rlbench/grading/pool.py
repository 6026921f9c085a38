"""Worker processes that judge answers, each with a hard deadline and a memory limit.

A computer algebra system can be made to run for ever by one line of text, and a thread cannot be stopped. So
each answer is judged in another process (`python -m rlbench.grading.judge_process`), one JSON document a line;
one that is late is killed and replaced, and its answer counts as `timeout`. This works off the main thread and
on every platform, which math-verify's own timeout (`signal.alarm`) does not.
"""

import atexit
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import TracebackType

from rlbench.errors import MissingPackage, RlbenchError
from rlbench.grading.math import Judgement, Question, decide_by_text

DEADLINE_SECONDS = 5.0
"""An answer that is not judged by then is not an answer a person would have written."""

START_SECONDS = 120.0
"""Importing sympy takes about two seconds, on a busy machine many more; not counted as judging."""

MOST_WORKERS = 4


class GradingPool:
    """Judges answers in worker processes, which start when first needed."""

    def __init__(self, workers: int | None = None, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        """Make a pool of `workers` processes; by default as many as there are cores, at most four."""
        self.workers = workers or min(os.cpu_count() or 1, MOST_WORKERS)
        self.deadline_seconds = deadline_seconds
        self._all = [_Worker(deadline_seconds) for _ in range(self.workers)]
        self._free: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._all:
            self._free.put(worker)

    def __enter__(self) -> "GradingPool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def judge(self, question: Question) -> Judgement:
        """Judge one answer; what text alone decides costs no process. Safe to call from any thread."""
        certain = decide_by_text(question)
        if certain is not None:
            return certain
        worker = self._free.get()
        try:
            return worker.judge(question)
        finally:
            self._free.put(worker)

    def judge_all(self, questions: Iterable[Question]) -> Iterator[Judgement]:
        """Judge many, several at once, in their order."""
        with ThreadPoolExecutor(self.workers) as threads:
            yield from threads.map(self.judge, questions)

    def close(self) -> None:
        """End the processes."""
        for worker in self._all:
            worker.stop()


@cache
def shared_pool() -> GradingPool:
    """The one pool of this process, ended with it."""
    pool = GradingPool(workers=1)
    atexit.register(pool.close)
    return pool


class _Worker:
    def __init__(self, deadline_seconds: float) -> None:
        self._deadline_seconds = deadline_seconds
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def judge(self, question: Question) -> Judgement:
        process = self._process or self._start()
        if not _send(process, question):
            process = self._start()
            _send(process, question)
        try:
            line = self._lines.get(timeout=self._deadline_seconds)
        except queue.Empty:
            line = ""
        if line:
            return Judgement(*json.loads(line))
        late = process.poll() is None
        self.stop()
        why = f"no verdict within {self._deadline_seconds:g} s" if late else "the grader died of it (memory, recursion)"
        return Judgement("timeout", False, why)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> "subprocess.Popen[str]":
        self.stop()
        process = subprocess.Popen(
            [sys.executable, "-m", "rlbench.grading.judge_process", str(self._deadline_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        self._process, self._lines = process, queue.SimpleQueue()
        threading.Thread(target=_read_lines, args=(process, self._lines), daemon=True).start()
        try:
            greeting = self._lines.get(timeout=START_SECONDS)
        except queue.Empty:
            greeting = ""
        if greeting.strip() == "missing":
            self.stop()
            raise MissingPackage("math-verify", "local")
        if greeting.strip() != "ready":
            self.stop()
            raise RlbenchError(
                "the grading process did not start: run `python -m rlbench.grading.judge_process 5` to see why."
            )
        return process


def _send(process: "subprocess.Popen[str]", question: Question) -> bool:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
    except (BrokenPipeError, OSError):
        return False
    return True


def _read_lines(process: "subprocess.Popen[str]", lines: "queue.SimpleQueue[str]") -> None:
    assert process.stdout is not None
    try:
        for line in process.stdout:
            lines.put(line)
    except ValueError:
        # The pool closed the pipe while this thread was waiting on it.
        return
    lines.put("")
