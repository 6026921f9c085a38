r"""Finding the final answer in a response. String work only: linear in the text and free of sympy.

An answer counts as given in *final form* when it stands in a box (`\boxed{…}`; the last one, or the last
row of boxes joined by commas, "and" or "or") or after a phrase such as "the answer is" or "Answer:".
Anything else is only a number or formula that happens to come last.
"""

import re
from typing import Literal, NamedTuple

How = Literal["box", "phrase", "last", "none"]
"""Where the answer was found; `last`: no final form, so whatever formula comes last in the text."""

TAIL = 8000
"""Characters at the end of a response in which an answer without a box is looked for."""

LONGEST_ANSWER = 2000
"""An answer longer than this is no answer; it is not handed to a computer algebra system."""

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{")
_BRACE = re.compile(_BOX.pattern + r"|\\.|[{}]", re.DOTALL)
_JOINT = re.compile(r"(?i)^(?:(?!\.\s|\n\s*\n|\bthen\b|\bwait\b|\bactually\b).){0,80}$", re.DOTALL)
_JOINED_BY = re.compile(r"(?i),|;|\band\b|\bor\b")
_ROUNDED = re.compile(r"(?i)\\approx|≈|\bapprox|\bnumerically\b|\bdecimal\b")
_PHRASE = re.compile(
    r"(?i)(?:\banswer\b|\bréponse\b|\brespuesta\b|\bantwort\b|答案)[\s*_]*"
    r"(?:[:：=–—]|-\s|\bis\b:?|\bare\b:?|[^\n.:]{1,60}?\b(?:is|are)\b:?|是)[\s*_]*|####\s*"
)
_FORMULA = re.compile(r"\\\((.+?)\\\)|(?<!\\)\$([^$\n]+)\$")
_SENTENCE_END = re.compile(r"[.!?。](?=\s|$)|\n|<\|")


class Found(NamedTuple):
    """A final answer: its candidates (any of them may be the right one), how and in which text it was found."""

    candidates: tuple[str, ...]
    how: How
    context: str
    """The part of the response from which plain math-verify may extract."""


def after_thinking(text: str) -> str:
    """What follows the last closed `<think>` block; nothing when the block never closes."""
    _, closed, after = text.rpartition("</think>")
    if closed:
        return after
    return "" if "<think>" in text else text


def find_answer(text: str) -> Found:
    """The final answer of a full response whose thinking has been removed."""
    boxes = find_boxes(text)
    tail = text[boxes[-1][1] if boxes else 0 :][-TAIL:]
    phrases = list(_PHRASE.finditer(tail))
    if boxes and not (phrases and _FORMULA.match(tail[phrases[-1].end() :])):
        return _from_boxes(text, boxes)
    if phrases:
        last = phrases[-1]
        return Found(_in_sentence(tail[last.end() :]), "phrase", tail[last.start() :])
    return Found((), "last" if tail.strip() else "none", tail)


def find_boxes(text: str) -> list[tuple[int, int, str]]:
    """Start, end and content of every closed box, outermost only."""
    found: list[tuple[int, int, str]] = []
    open_braces: list[re.Match[str]] = []
    for token in _BRACE.finditer(text):
        if token.group() == "}":
            opening = open_braces.pop() if open_braces else None
            if opening is None or opening.group() == "{" or token.start() - opening.end() > LONGEST_ANSWER:
                continue
            while found and found[-1][0] > opening.start():
                found.pop()
            content = _unbox(text[opening.end() : token.start()])
            found.append((opening.start(), token.end(), content))
        elif token.group().endswith("{") and not token.group().startswith("\\{"):
            open_braces.append(token)
    return found


def _from_boxes(text: str, boxes: list[tuple[int, int, str]]) -> Found:
    first = len(boxes) - 1
    while first > 0 and _joined(text[boxes[first - 1][1] : boxes[first][0]]):
        first -= 1
    row = boxes[first:]
    context = text[row[0][0] : row[-1][1]]
    contents = tuple(content for _, _, content in row)
    if len(row) > 1 and _ROUNDED.search(text[row[-2][1] : row[-1][0]] + contents[-1][:12]):
        # "\boxed{\sqrt{2}}, numerically \boxed{1.414}": one answer, exact and rounded.
        return Found(contents[-2:], "box", "")
    if len(row) > 1:
        return Found((", ".join(contents),), "box", context)
    if first > 0 and _ROUNDED.search(text[boxes[-2][1] : boxes[-1][0]][-40:]):
        return Found((boxes[-2][2], boxes[-1][2]), "box", "")
    return Found(contents, "box", "")


def _joined(between: str) -> bool:
    return bool(_JOINT.match(between) and _JOINED_BY.search(between))


def _unbox(content: str) -> str:
    inner = _BOX.match(content.strip())
    return content.strip()[inner.end() : -1] if inner and content.strip().endswith("}") else content


def _in_sentence(text: str) -> tuple[str, ...]:
    sentence = _sentence(text)
    formulas = [inside or other for inside, other in _FORMULA.findall(text.split("\n", 1)[0])]
    if len(formulas) < 2 or not _JOINED_BY.search(sentence):
        return (sentence,)
    # "The roots are $x = 3$ and $x = 5$."
    return sentence, ", ".join(formula.rpartition("=")[2].strip() for formula in formulas)


def _sentence(text: str) -> str:
    text = text.lstrip()
    if text.startswith(("$$", "\\[", "$", "\\(")):
        closing = {"$$": "$$", "\\[": "\\]", "$": "$", "\\(": "\\)"}
        opening = next(mark for mark in closing if text.startswith(mark))
        inside, closed, _ = text[len(opening) :].partition(closing[opening])
        if closed:
            return inside
    end = _SENTENCE_END.search(text)
    return text[: end.start()] if end else text[:LONGEST_ANSWER]
