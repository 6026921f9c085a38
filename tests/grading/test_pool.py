"""Hostile answers cost their deadline and one process, nothing more."""

import threading
import time
from collections.abc import Iterator

import pytest

from rlbench.grading.math import Question
from rlbench.grading.pool import GradingPool

DEADLINE = 2.0
FINE = Question(r"\boxed{3+2x}", "2x+3")


@pytest.fixture(scope="module")
def pool() -> Iterator[GradingPool]:
    with GradingPool(workers=1, deadline_seconds=DEADLINE) as opened:
        yield opened


def test_a_hostile_answer_costs_its_deadline_and_the_next_is_judged(pool: GradingPool) -> None:
    assert pool.judge(FINE).verdict == "right"
    start = time.monotonic()
    assert pool.judge(Question("$29^{11^{7}}$", "1", "answer")).verdict == "timeout"
    assert time.monotonic() - start < DEADLINE + 3
    assert pool.judge(FINE).verdict == "right"


@pytest.mark.parametrize(
    "hostile",
    [
        r"\boxed{" + "(" * 900 + "1" + ")" * 900 + "}",
        r"\boxed{100000!+x}",
        "1+" * 1_000_000 + "1",
        r"\boxed{" * 50_000,
    ],
    ids=["deep parentheses", "huge factorial", "megabytes", "open boxes"],
)
def test_hostile_answers_are_never_right_and_never_slow(pool: GradingPool, hostile: str) -> None:
    start = time.monotonic()
    assert pool.judge(Question(hostile, "2")).verdict != "right"
    assert time.monotonic() - start < DEADLINE + 3
    assert pool.judge(FINE).verdict == "right"


def test_it_works_off_the_main_thread(pool: GradingPool) -> None:
    verdicts: list[str] = []
    thread = threading.Thread(target=lambda: verdicts.append(pool.judge(FINE).verdict))
    thread.start()
    thread.join(timeout=60)
    assert verdicts == ["right"]


def test_a_grader_that_died_is_replaced(pool: GradingPool) -> None:
    pool.judge(FINE)
    pool.close()
    assert pool.judge(FINE).verdict == "right"
