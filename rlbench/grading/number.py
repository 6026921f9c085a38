"""Numbers as people write them, read exactly: thousands, fractions, mixed numbers, percent, units, currency."""

import re
from fractions import Fraction
from typing import NamedTuple

_CURRENCY = "$€£¥₹₩"
_UNITS = (
    "mm", "cm", "dm", "m", "km", "in", "ft", "yd", "mi", "inch", "inches", "foot", "feet", "mile", "miles", "meter",
    "meters", "metre", "metres", "g", "kg", "mg", "lb", "lbs", "oz", "s", "sec", "min", "h", "hr", "hrs", "ms",
    "second", "seconds", "minute", "minutes", "hour", "hours", "day", "days", "week", "weeks", "month", "months",
    "year", "years", "l", "ml", "degree", "degrees", "dollar", "dollars", "cent", "cents", "point", "points",
    "unit", "units", "people", "ways",
)  # fmt: skip
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:[  ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_PLAIN = re.compile(rf"(?P<sign>[+-]?)\s*(?P<number>{_NUMBER})")
_FRACTION = re.compile(r"(?P<sign>[+-]?)(?:(?P<whole>\d{1,30})\s+)?(?P<top>\d{1,30})\s*/\s*(?P<bottom>\d{1,30})")
_LATEX_FRACTION = re.compile(r"\\[dtc]?frac\s*\{\s*(-?\d{1,30})\s*\}\s*\{\s*(\d{1,30})\s*\}")
_PERCENT = re.compile(r"\s*(?:\\?%|percent(?:age)?|pct)$", re.IGNORECASE)
_DEGREES = re.compile(r"\s*(?:\^\s*\{?\s*\\circ\s*\}?|°|\\degree)$")
_TEXT_UNIT = re.compile(r"\s*\\(?:text|textnormal|textbf|mathrm|mbox)\s*\{\s*[A-Za-z.²³^/ ]+\}(?:\s*\^\s*\{?\d\}?)?$")
_WORD_UNIT = re.compile(r"(?<=\d)\s+[A-Za-z]{2,}(?:\s+[A-Za-z]{2,}){0,2}(?:\s*\^?[23²³])?$")
_GLUED_UNIT = re.compile(rf"(?<=\d)\s?(?:{'|'.join(sorted(_UNITS, key=len, reverse=True))})(?:\^?[23²³])?$")


class Number(NamedTuple):
    value: Fraction
    percent: bool = False
    exact: bool = True
    """Written as an integer or a fraction, so that a different value is a different answer."""


def read_number(text: str) -> Number | None:
    """The number that `text` is, units and currency left out; `None` when it is anything else."""
    if len(text) > 200:
        return None
    text, percent = _without_decoration(text)
    fraction = _FRACTION.fullmatch(text)
    if fraction is not None:
        return _from_fraction(fraction, percent)
    plain = _PLAIN.fullmatch(text)
    if plain is None:
        return None
    digits = re.sub(r"[,  ]", "", plain["number"])
    value = Fraction(digits) * (-1 if plain["sign"] == "-" else 1)
    return Number(value, percent, exact="." not in digits)


def same_number(given: Number, gold: Number) -> bool:
    """Equal, where a percentage may be written as its number or as its share: 25%, 25 and 0.25 are one."""
    if given.value == gold.value:
        return True
    if gold.percent and not given.percent:
        return given.value * 100 == gold.value
    return given.percent and not gold.percent and given.value == gold.value * 100


def _without_decoration(text: str) -> tuple[str, bool]:
    text = text.strip().replace("−", "-").replace("{,}", ",").replace("\\,", "").replace("\\!", "")
    text = text.replace("\\$", "").strip().rstrip(".").strip(f"{_CURRENCY} ")
    text = re.sub(r"^-\s*\\?[$€£]", "-", text)
    text = _LATEX_FRACTION.sub(r" \1/\2", text).replace("- ", "-").strip()
    percent = _PERCENT.search(text) is not None
    for ending in (_PERCENT, _DEGREES, _TEXT_UNIT, _GLUED_UNIT, _WORD_UNIT):
        text = ending.sub("", text)
    return text.strip(), percent


def _from_fraction(fraction: re.Match[str], percent: bool) -> Number | None:
    bottom = int(fraction["bottom"])
    if bottom == 0:
        return None
    value = int(fraction["whole"] or 0) + Fraction(int(fraction["top"]), bottom)
    return Number(-value if fraction["sign"] == "-" else value, percent)
