"""Is this the right mathematical answer? What is certain is decided by text and exact numbers, the rest by math-verify.

math-verify reads LaTeX only inside `$…$`, so bare answers and golds are wrapped that way before it sees them.
Everything here is pure and may take for ever on a hostile answer: `grading/pool.py` runs it in worker
processes with a deadline. Only `decide_by_text` is safe to call anywhere.
"""

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from rlbench.core.sample import Verdict
from rlbench.grading.answer import LONGEST_ANSWER, Found, after_thinking, find_answer
from rlbench.grading.choice import chosen_letter, gold_letter
from rlbench.grading.number import read_number, same_number

if TYPE_CHECKING:
    from sympy import Basic

Kind = Literal["answer", "text"]
"""answer: the answer alone; text: a full response that has to be searched for it."""


class Judgement(NamedTuple):
    """`verdict` forgives: right wherever the answer stands. `in_final_form`: it stood in a box or after a phrase."""

    verdict: Verdict
    in_final_form: bool
    reason: str

    @property
    def strict(self) -> float:
        return float(self.verdict == "right" and self.in_final_form)

    @property
    def lenient(self) -> float:
        return float(self.verdict == "right")


class Question(NamedTuple):
    prediction: str
    gold: str
    kind: Kind = "text"


_WORDS = re.compile(r"(?<![\\{A-Za-z])[A-Za-z]{2,}")
_EQUALITY = re.compile(r"^\s*(?:y|[a-zA-Z]\([a-z]\))\s*=\s*(?!.*=)")
_UNICODE = str.maketrans(
    {"−": "-", "–": "-", "×": "\\times ", "·": "\\cdot ", "÷": "/", "π": "\\pi ", "∞": "\\infty ", "≤": "\\leq ",
     "≥": "\\geq ", "≠": "\\neq ", "∪": "\\cup ", "∩": "\\cap ", "°": "^\\circ ", "²": "^2", "³": "^3", "√": "\\sqrt "}
)  # fmt: skip
_PLAIN_NAMES = (
    (re.compile(r"(?<![\\A-Za-z])pi(?![A-Za-z])"), r"\\pi "),
    (re.compile(r"(?<![\\A-Za-z])(?:oo|inf(?:inity)?)(?![A-Za-z])"), r"\\infty "),
    (re.compile(r"(?<![\\A-Za-z])exp\(([^()]*)\)"), r"e^{\1}"),
    (re.compile(r"\\?(?<![A-Za-z])sqrt\s*\(([^()]*)\)"), r"\\sqrt{\1}"),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"\*"), r"\\cdot "),
)
_BOLD = re.compile(r"(?<!\S)\*\*([^*\s][^*]*)\*\*(?!\S)")
_WRAPPERS = re.compile(
    r"^\s*(?:\\(?:text|textbf|mathrm|mathbf|bm|boldsymbol)\s*\{([^{}]*)\}|\*\*([^*]*)\*\*|\[([^\[\],]*)\])\s*\.?\s*$"
)


def judge(question: Question) -> Judgement:
    """Judge one answer, however long it takes.

    Args:
        question: the prediction, the gold and whether the prediction is a bare answer or a full response.
    """
    certain = decide_by_text(question)
    if certain is not None:
        return certain
    found = _found(question)
    for candidate in found.candidates:
        if len(candidate) <= LONGEST_ANSWER and same_answer(candidate, question.gold):
            return Judgement("right", True, f"{_WHERE[found.how]} equals the gold")
    if _worth_extracting(found) and _plain(found.context, question.gold):
        return Judgement("right", found.how != "last", f"math-verify finds the gold {_IN[found.how]}")
    if not found.candidates and not _parse(found.context):
        return Judgement("unparsable", False, "no answer was found in the text")
    return Judgement("wrong", found.how != "last", f"{_WHERE[found.how]} does not equal the gold")


def decide_by_text(question: Question) -> Judgement | None:
    """The judgement where text and exact numbers leave no doubt; `None` where mathematics is needed."""
    if not question.gold.strip() or question.gold.strip() == "\\boxed{}":
        return Judgement("wrong", False, "there is no gold to compare with")
    found = _found(question)
    if not any(text.strip() for text in (found.context, *found.candidates)):
        return Judgement("unparsable", False, "there is no answer")
    letter = gold_letter(question.gold)
    if letter is not None:
        return _judge_choice(found, letter)
    if len(found.candidates) != 1:
        return None
    candidate, gold = found.candidates[0], unwrap(question.gold)
    if tidy(candidate) == tidy(gold):
        return Judgement("right", True, f"{_WHERE[found.how]} is the gold, letter by letter")
    given, wanted = read_number(unwrap(candidate)), read_number(gold)
    if given is None or wanted is None:
        return None
    if same_number(given, wanted):
        return Judgement("right", True, f"{_WHERE[found.how]} is the gold's number")
    if given.exact and wanted.exact and not (given.percent or wanted.percent):
        return Judgement("wrong", True, f"{_WHERE[found.how]} is another number than the gold")
    return None


def same_answer(given: str, gold: str) -> bool:
    """Whether a bare answer equals the gold, by exact numbers or by math-verify."""
    given, gold = unwrap(given), unwrap(gold)
    first, second = read_number(given), read_number(gold)
    if first is not None and second is not None and same_number(first, second):
        return True
    if _EQUALITY.match(given) and _EQUALITY.match(gold):
        given, gold = _EQUALITY.sub("", given), _EQUALITY.sub("", gold)
    if "ldots" in given + gold or "cdots" in given + gold:
        # A sequence that goes on: math-verify would compare its first term only.
        return False
    return _verify(as_math(gold), as_math(given))


def unwrap(answer: str) -> str:
    r"""The answer without dollar signs, box, bold face, brackets or a `\text{…}` around the whole of it."""
    answer = _BOLD.sub(r"\1", answer.strip())
    if answer.count("\\boxed") > 1:
        return answer
    for opening, closing in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
        inside = answer[len(opening) : -len(closing)]
        if answer.startswith(opening) and answer.endswith(closing) and inside and opening not in inside:
            answer = inside.strip()
            break
    whole = re.fullmatch(r"\\(?:boxed|fbox|framebox)\s*\{(.*)\}", answer, re.DOTALL) or _WRAPPERS.match(answer)
    return next((group for group in whole.groups() if group is not None), answer).strip() if whole else answer


def tidy(answer: str) -> str:
    """The answer for a comparison letter by letter: spacing and spelling variants of LaTeX removed."""
    answer = unwrap(answer.strip().rstrip("."))
    answer = re.sub(r"\\[dtc]frac", r"\\frac", answer)
    answer = re.sub(r"\\left(?![a-z])|\\right(?![a-z])|\\[,;!: ]|\\quad|~", "", answer)
    return re.sub(r"\s+", "", answer)


def as_math(answer: str) -> str:
    """A bare answer as math-verify wants it: LaTeX inside `$…$`."""
    if any(mark in answer for mark in ("$", "\\[", "\\(", "\\boxed")):
        return answer
    answer = answer.translate(_UNICODE)
    for pattern, replacement in _PLAIN_NAMES:
        answer = pattern.sub(replacement, answer)
    return f"${answer}$"


def _found(question: Question) -> Found:
    text = after_thinking(question.prediction)
    if question.kind == "text":
        return find_answer(text)
    if is_prose(text):
        found = find_answer(text)
        return Found(((text, *found.candidates)), found.how if found.candidates else "phrase", found.context)
    # A bare answer is in final form by definition, and nothing is to be extracted from it.
    return Found((text,), "box", "")


def is_prose(text: str) -> bool:
    """Whether a bare answer is really a sentence."""
    return len(_WORDS.findall(re.sub(r"\\[A-Za-z]+(?:\{[A-Za-z ]*\})?", " ", text))) >= 2


def _judge_choice(found: Found, letter: str) -> Judgement:
    for answer in found.candidates[::-1] or (found.context,):
        chosen = chosen_letter(answer)
        if chosen is not None:
            same = chosen == letter
            return Judgement(
                "right" if same else "wrong", found.how != "last", f"{chosen} is chosen, {letter} is right"
            )
    return Judgement("unparsable", False, "no choice was found in the text")


def _worth_extracting(found: Found) -> bool:
    if not found.context:
        return False
    # One glued token after "the answer is" ("42abc") is the whole answer: nothing may be extracted from it.
    return not (found.how == "phrase" and re.fullmatch(r"\S*\d[A-Za-z]{2,}\S*", found.candidates[0].strip()))


def _plain(text: str, gold: str) -> bool:
    return _verify(gold if "$" in gold or "\\boxed" in gold else as_math(gold), text)


def _verify(gold: str, given: str) -> bool:
    from math_verify import verify

    wanted, found = _parse(gold), _parse(given)
    # The pool's deadline takes the place of math-verify's own, which needs the main thread.
    if not verify(wanted, found, timeout_seconds=None, allow_set_relation_comp=True):
        return False
    return not (wanted and found and _numbers_differ(wanted[0], found[0]))


def _parse(text: str) -> "list[Basic | str]":
    from math_verify import parse

    parsed: list[Basic | str] = parse(text, parsing_timeout=None)
    return parsed


def _numbers_differ(wanted: "Basic | str", found: "Basic | str") -> bool:
    """Whether two numbers that math-verify calls equal are not.

    It compares rounded decimals, so that any two numbers near zero are equal to it (1/2004! and 1/2006!).
    A factor of 100 is a percentage and stays equal.
    """
    from sympy import Expr

    if not isinstance(wanted, Expr) or not isinstance(found, Expr) or wanted.free_symbols or found.free_symbols:
        return False
    first, second = wanted.evalf(20), found.evalf(20)
    if not (first.is_Float and second.is_Float) or first == 0:
        return False
    ratio = second / first
    return all(abs(ratio * factor - 1) > 1e-4 for factor in (1, 100, 0.01))


_WHERE = {"box": "the answer", "phrase": "the answer", "last": "the last formula", "none": "nothing"}
_IN = {"box": "in the boxes", "phrase": "after the answer phrase", "last": "at the end of the text", "none": ""}
