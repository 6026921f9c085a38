import json
from pathlib import Path

import pytest

from rlbench.grading.math import Judgement, Kind, Question, as_math, decide_by_text, tidy
from rlbench.grading.pool import GradingPool


@pytest.mark.parametrize(
    ("prediction", "gold", "verdict", "strict"),
    [
        (r"so the answer is \boxed{42}", "42", "right", True),
        (r"so the answer is \boxed{43}", "42", "wrong", True),
        (r"\boxed{\dfrac{1}{2}}", r"\frac{1}{2}", "right", True),
        (r"<think>\boxed{42}</think> I do not know, \boxed{41}", "42", "wrong", True),
        ("The answer is (B).", "B", "right", True),
        ("The answer is (C).", "B", "wrong", True),
        (r"\boxed{\text{E}}", "E", "right", True),
        ("", "42", "unparsable", False),
        ("<think> 42, or is it", "42", "unparsable", False),
    ],
)
def test_what_text_alone_decides(prediction: str, gold: str, verdict: str, strict: bool) -> None:
    judgement = decide_by_text(Question(prediction, gold))
    assert judgement is not None
    assert (judgement.verdict, judgement.in_final_form) == (verdict, strict)


def test_what_needs_mathematics_is_left_to_it() -> None:
    assert decide_by_text(Question(r"\boxed{2x+3}", "3+2x")) is None
    assert decide_by_text(Question(r"\boxed{0.3333}", r"\frac{1}{3}")) is None


def test_spelling_variants_are_one() -> None:
    assert tidy(r"$\left( 3, \dfrac{\pi}{2} \right)$.") == tidy(r"(3,\frac{\pi}{2})")
    assert as_math("pi/2") == r"$\pi /2$"
    assert as_math(r"4\sqrt(2)") == r"$4\sqrt{2}$"
    assert as_math("$x$") == "$x$"


CASES: list[tuple[str, str, Kind, bool]] = [
    (r"Thus \boxed{3+2x}.", "2x+3", "text", True),
    (r"\frac{1}{2006!}", r"\frac{1}{2004!}", "answer", False),
    ("-1 + exp(16)", "e^{16} - 1", "answer", True),
    ("x^2-4", "(x-2)(x+2)", "answer", True),
    (r"4\sqrt{2}", "4", "answer", False),
    (r"\boxed{2} and \boxed{3}", "2,3", "text", True),
    ("y = 2x + 3", "f(x) = 2x + 3", "answer", True),
    ("$1:4:9:\\ldots$", "$1:2:3:\\ldots$", "answer", False),
    ("The answer is 42abc", "42", "text", False),
    (r"\cos(x)=\frac{42}{59}", r"\sin(x)=\frac{42}{59}", "answer", False),
    ("so it must be 12", "12", "text", True),
]


@pytest.fixture(scope="module")
def judgements() -> dict[tuple[str, str], Judgement]:
    with GradingPool(workers=2) as pool:
        found = pool.judge_all(Question(prediction, gold, kind) for prediction, gold, kind, _ in CASES)
        return {(case[0], case[1]): judgement for case, judgement in zip(CASES, found, strict=True)}


@pytest.mark.parametrize(("prediction", "gold", "kind", "right"), CASES)
def test_judgements(
    judgements: dict[tuple[str, str], Judgement], prediction: str, gold: str, kind: Kind, right: bool
) -> None:
    del kind
    assert (judgements[prediction, gold].verdict == "right") is right


def test_a_formula_without_form_is_right_leniently_only(judgements: dict[tuple[str, str], Judgement]) -> None:
    judgement = judgements["so it must be 12", "12"]
    assert (judgement.strict, judgement.lenient) == (0.0, 1.0)


@pytest.mark.slow
def test_agreement_with_graded_answers_of_other_projects(shared_data: Path) -> None:
    rows = [json.loads(line) for line in (shared_data / "grading" / "cases.jsonl").read_text().splitlines()]
    rows = [row for row in rows if not row["ambiguous"]]
    questions = [
        Question(row["prediction_text"], row["gold"], "answer" if row["kind"] == "answer" else "text") for row in rows
    ]
    with GradingPool(workers=2) as pool:
        right = [judgement.verdict == "right" for judgement in pool.judge_all(questions)]
    agreeing = sum(given == row["correct"] for given, row in zip(right, rows, strict=True))
    false_correct = sum(given and not row["correct"] for given, row in zip(right, rows, strict=True))
    plain_false_correct = sum(row["math_verify_0_9_0"] and not row["correct"] for row in rows)
    assert agreeing / len(rows) >= 0.97
    assert false_correct <= plain_false_correct
