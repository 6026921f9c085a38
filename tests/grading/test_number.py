from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlbench.grading.number import read_number, same_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,625", 1625), ("1 000", 1000), ("14{,}916", 14916), ("4 4/9", Fraction(40, 9)), ("-4 4/9", Fraction(-40, 9)),
        (r"\frac{3}{4}", Fraction(3, 4)), (r"-\frac{3}{4}", Fraction(-3, 4)), ("$7.50", Fraction(15, 2)), ("-$5", -5),
        ("42 points", 42), ("10weeks", 10), (r"100\text{ square units}", 100), (r"90^\circ", 90), ("72 degrees", 72),
        ("+916", 916), (r"\$1,000.99", Fraction(100099, 100)), (".5", Fraction(1, 2)), ("25\\%", 25),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(text: str, value: Fraction) -> None:
    number = read_number(text)
    assert number is not None
    assert number.value == value


@pytest.mark.parametrize(
    "text", ["", "x", "42abc", "2x", "1/0", "1,2", "(1, 2)", "12:30", "1.2.3", "3 or 4", "9" * 300]
)
def test_anything_else_is_no_number(text: str) -> None:
    assert read_number(text) is None


@given(st.fractions(max_denominator=10**6, min_value=-(10**9), max_value=10**9))
def test_a_fraction_is_read_exactly(value: Fraction) -> None:
    number = read_number(f"{value.numerator}/{value.denominator}")
    assert number is not None
    assert number.value == value


@given(st.integers(min_value=-(10**12), max_value=10**12))
def test_thousands_separators_change_nothing(value: int) -> None:
    plain, separated = read_number(str(value)), read_number(f"{value:,}")
    assert plain is not None
    assert separated is not None
    assert plain.value == separated.value == value


def test_a_percentage_may_be_written_as_number_or_share() -> None:
    gold = read_number(r"25\%")
    assert gold is not None
    readings = {text: read_number(text) for text in ("25", "25%", "0.25", "1/4", "0.2", "2.5")}
    assert [text for text, given in readings.items() if given and same_number(given, gold)] == [
        "25",
        "25%",
        "0.25",
        "1/4",
    ]
