import pytest

from rlbench.grading.answer import after_thinking, find_answer, find_boxes
from rlbench.grading.choice import chosen_letter, gold_letter


@pytest.mark.parametrize(
    ("text", "candidate", "how"),
    [
        (r"so \boxed{42} it is", "42", "box"),
        (r"\boxed{\frac{1}{\sqrt{2}}}", r"\frac{1}{\sqrt{2}}", "box"),
        (r"\boxed{1}, but wait. Then \boxed{2}", "2", "box"),
        (r"the roots are \boxed{2} and \boxed{3}", "2, 3", "box"),
        (r"\framebox{100}", "100", "box"),
        (r"\boxed{\boxed{7}}", "7", "box"),
        ("The final answer is 12.", "12", "phrase"),
        ("**Answer:** $\\frac{1}{2}$.", r"\frac{1}{2}", "phrase"),
        ("#### 18", "18", "phrase"),
        (r"we get \boxed{255}, and add. Final Answer: The final answer is $10,455$.", "10,455", "phrase"),
    ],
)
def test_the_final_answer_is_found(text: str, candidate: str, how: str) -> None:
    found = find_answer(text)
    assert (found.candidates[-1], found.how) == (candidate, how)


def test_a_formula_without_form_is_only_the_last_one() -> None:
    assert find_answer("so it must be 12").how == "last"
    assert find_answer("  ").how == "none"


def test_exact_and_rounded_boxes_are_one_answer() -> None:
    found = find_answer(r"Exact: \boxed{\sqrt{2}}, numerically \boxed{\approx 1.41421}")
    assert r"\sqrt{2}" in found.candidates


def test_an_open_box_is_no_box() -> None:
    assert find_boxes(r"\boxed{12") == []
    assert [content for _, _, content in find_boxes(r"\boxed{ \boxed{5}")] == ["5"]


def test_boxes_in_a_huge_text_are_found_at_once() -> None:
    text = r"\boxed{" * 20_000 + r"\boxed{4}"
    assert find_answer(text).candidates == ("4",)


def test_an_answer_inside_the_thinking_does_not_count() -> None:
    assert after_thinking(r"<think>\boxed{1}</think>\boxed{2}") == r"\boxed{2}"
    assert after_thinking(r"<think>\boxed{1}") == ""
    assert after_thinking("no thinking") == "no thinking"


@pytest.mark.parametrize(
    ("answer", "letter"),
    [("B", "B"), ("(B).", "B"), ("[D] is correct", "D"), (r"\text{E}", "E"), ("Because B is valid", "B"), ("a", "A"),
     ("I think B is wrong", "B"), ("C. the third one", "C"), ("1, 2, 3", None), ("none of them", None)],
)  # fmt: skip
def test_the_chosen_letter(answer: str, letter: str | None) -> None:
    assert chosen_letter(answer) == letter


@pytest.mark.parametrize(
    ("gold", "letter"), [("B", "B"), ("(D) Alina", "D"), ("$C$", "C"), ("A:B=1", None), ("Alina", None), ("12", None)]
)
def test_the_letter_of_a_gold(gold: str, letter: str | None) -> None:
    assert gold_letter(gold) == letter


def test_braces_that_are_written_are_not_counted() -> None:
    assert find_answer(r"\boxed{\left\{1, 2\right\}}").candidates == (r"\left\{1, 2\right\}",)
    assert find_answer(r"} \boxed{3} {").candidates == ("3",)
