"""One grading process of the pool: a question a line on standard input, a judgement a line on standard output."""

import json
import os
import signal
import sys
from importlib.util import find_spec
from typing import TextIO

from rlbench.grading.math import Question, judge

MEMORY_BYTES = 2 << 30
"""Address space of a grading process; sympy itself takes some hundred megabytes of it."""


def main() -> None:
    """Judge until standard input ends."""
    deadline_seconds = float(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    if find_spec("math_verify") is None:
        answers.write("missing\n")
        return
    judge(Question("$x+x$", "$2x$"))  # the imports happen here, before the clock of the first question runs
    _limit_memory()
    answers.write("ready\n")
    for line in sys.stdin:
        _answer(Question(*json.loads(line)), deadline_seconds, answers)


def _answer(question: Question, deadline_seconds: float, answers: TextIO) -> None:
    _end_after(2 * deadline_seconds)
    judgement = judge(question)
    _end_after(0)
    answers.write(json.dumps(judgement) + "\n")


def _end_after(seconds: float) -> None:
    # The pool kills a late process. Should the pool itself be gone, the kernel's default action for this
    # signal ends the process even in the middle of one long integer operation. 0 takes it back.
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or hard > MEMORY_BYTES:
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, hard))
        except (ValueError, OSError):  # macOS does not take this limit
            return


if __name__ == "__main__":
    main()
