"""Numbers as they are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlbench.core.cost import Price
from rlbench.report import formats


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0, "0"),
        (3321.4, "3,320"),
        (-131.6, "−132"),
        (0.012345, "0.0123"),
        (16.0, "16.0"),
        (999.6, "1,000"),
    ],
)
def test_numbers(value: float | None, shown: str) -> None:
    assert formats.number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0, "$0.00"), (0.0093333, "$0.0093"), (2.5, "$2.50"), (-3, "−$3.00"), (1234.5, "$1,234")],
)
def test_dollars(value: float | None, shown: str) -> None:
    assert formats.dollars(value) == shown


def test_probabilities_are_never_certain() -> None:
    assert [formats.certainty(p) for p in (0.0, 0.004, 0.5, 0.999, 1.0)] == ["<1%", "<1%", "50%", ">99%", ">99%"]


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_a_number_keeps_three_significant_digits(value: float) -> None:
    assert float(formats.number(value).replace(",", "")) == pytest.approx(value, rel=0.0051)


def test_an_hour_s_price_says_from_whom_and_of_when() -> None:
    price = Price(device="a40", usd_per_hour=0.4, provider="RunPod", tier="secure", date="2026-01-02", source="x")
    assert formats.hourly(price) == "$0.40 an hour (RunPod, secure, 2026-01-02)"


def test_other_units() -> None:
    assert formats.points(-3.04) == "−3.0"
    assert formats.billions(4_022_468_096) == "4.02 B"
    assert formats.billions(134_515_008) == "135 M"
    assert formats.ranks(1, 1) == "1"
    assert formats.ranks(1, 3) == "1–3"
    assert [formats.duration(s) for s in (None, 42, 640, 86400)] == ["–", "42 s", "11 min", "24.0 h"]
