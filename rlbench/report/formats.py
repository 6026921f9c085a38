"""Numbers as people read them, the same in the page, in Markdown and in the terminal."""

import math

from rlbench.core.cost import Price

MINUS = "−"
NONE = "–"
GIB = 2**30


def number(value: float | None, digits: int = 3) -> str:
    """`digits` significant digits, thousands grouped, never in scientific notation."""
    if value is None:
        return NONE
    if value == 0:
        return "0"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    rounded = round(value, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{rounded:,.{decimals}f}".replace("-", MINUS)


def dollars(value: float | None) -> str:
    """US dollars: cents above one dollar, two significant digits below."""
    if value is None:
        return NONE
    sign = MINUS if value < 0 else ""
    size = abs(value)
    if size >= 1000:
        return f"{sign}${size:,.0f}"
    return f"{sign}${size:.2f}" if size >= 1 or size == 0 else f"{sign}${number(size, 2)}"


def hourly(price: Price) -> str:
    """What an hour costs, from whom and of which date."""
    tier = f", {price.tier}" if price.tier else ""
    return f"{dollars(price.usd_per_hour)} an hour ({price.provider}{tier}, {price.date})"


def points(value: float | None) -> str:
    """Points with their sign."""
    return NONE if value is None else f"{value:+.1f}".replace("-", MINUS)


def percent(value: float | None) -> str:
    """A share as a percentage with one decimal."""
    return NONE if value is None else f"{100 * value:.1f}%"


def certainty(probability: float) -> str:
    """A probability as whole percent; never 0% or 100%, which nothing here can show."""
    if probability > 0.99:
        return ">99%"
    return "<1%" if probability < 0.01 else f"{100 * probability:.0f}%"


def span(low: str, high: str) -> str:
    """The limits of an interval."""
    return f"{low} to {high}"


def gib(size: float | None) -> str:
    """Bytes as GiB."""
    return NONE if size is None else f"{size / GIB:,.1f} GiB"


def billions(count: float | None) -> str:
    """Parameters as B or M."""
    if count is None:
        return NONE
    return f"{count / 1e9:.2f} B" if count >= 1e9 else f"{count / 1e6:.0f} M"


def ranks(low: int, high: int) -> str:
    """A rank that says how sure it is: `1`, or `1–3`."""
    return str(low) if low == high else f"{low}–{high}"


def duration(seconds: float | None) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if seconds is None:
        return NONE
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
