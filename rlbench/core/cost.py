"""Dollars, derived: device-seconds by phase × a dated price. The seconds are kept, so they can be re-derived."""

from pydantic import Field

from rlbench.core.value import Value

SECONDS_PER_HOUR = 3600.0


class Price(Value):
    """What one device costs for an hour, from whom, on which day."""

    device: str
    usd_per_hour: float = Field(ge=0)
    provider: str
    tier: str = ""
    date: str
    """ISO day on which the price was read."""
    source: str


class Cost(Value):
    """Device-seconds by phase (idle devices counted), and the price they are charged at."""

    phase_seconds: dict[str, float] = Field(default_factory=dict)
    device: str
    count: int = Field(default=1, gt=0)
    price: Price | None = None

    @property
    def device_seconds(self) -> float:
        return sum(self.phase_seconds.values()) * self.count

    def phase_usd(self, *phases: str) -> float | None:
        """Dollars of the named phases, or of all when none is named; `None` without a price."""
        if self.price is None:
            return None
        chosen = phases or tuple(self.phase_seconds)
        seconds = sum(self.phase_seconds.get(phase, 0.0) for phase in chosen) * self.count
        return usd(seconds, self.price.usd_per_hour)

    @property
    def usd(self) -> float | None:
        return self.phase_usd()


def usd(device_seconds: float, usd_per_hour: float) -> float:
    """Dollars for `device_seconds` at `usd_per_hour`."""
    return device_seconds / SECONDS_PER_HOUR * usd_per_hour
