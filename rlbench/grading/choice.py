"""Multiple choice: the letter a gold stands for, and the letter a response chooses."""

import re

_GOLD = re.compile(r"^\W*(?:option |choice )?\(?([A-Z])\)?(?:$|[).:,](?:\s|$)|\s+[A-Z(])")
_LEADING = re.compile(r"^[\s(\[*_\"']*([A-Za-z])(?=$|[)\].:,;*_\"']|[^\x00-\x7f])")
_LETTER = re.compile(r"(?<![A-Za-z\\{])([A-Z])(?![A-Za-z'’])")
_WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textit)\s*\{\s*\(?([A-Za-z])\)?\s*\}")
_PRONOUN = re.compile(r"^(?:I\b|A [a-z])")


def gold_letter(gold: str) -> str | None:
    """`B` for golds such as `B`, `(B)`, `(B) Alina`; `None` when the gold is no choice."""
    last = gold.strip().rsplit("answer is\n", 1)[-1].strip().strip("$")
    match = _GOLD.match(last)
    return match[1] if match else None


def chosen_letter(answer: str) -> str | None:
    """The letter that an answer chooses: the one it starts with, else the first that stands alone."""
    answer = _WRAPPED.sub(r"\1", answer.strip().strip("$")).strip()
    leading = _LEADING.match(answer)
    if leading is not None:
        return leading[1].upper()
    for letter in _LETTER.finditer(answer):
        if not _PRONOUN.match(answer[letter.start() :]):
            return letter[1]
    return None
