"""What the worker hands to a room: the attempt, what is already stored, where new samples go, and the clock."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rlbench.core.job import Attempt
from rlbench.core.sample import Sample

Progress = Callable[[str, int, int | None], None]
"""What is being done, how many are done, out of how many (`None`: not known)."""


class DeadlineReached(Exception):
    """The attempt's time is up; the room returns what it has with status `timeout`."""


@dataclass
class Deadline:
    """A moment by which the work must end; `None` seconds means never."""

    seconds: float | None = None
    started: float = field(default_factory=time.monotonic)

    def remaining(self) -> float | None:
        """Seconds left, or `None` without a deadline."""
        return None if self.seconds is None else self.seconds - (time.monotonic() - self.started)

    def check(self) -> None:
        """Raise `DeadlineReached` when the time is up."""
        left = self.remaining()
        if left is not None and left <= 0:
            raise DeadlineReached


@dataclass
class PhaseClock:
    """Seconds by phase, for the cost. Phases do not nest."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent inside to `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - start)

    def add(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds


@dataclass
class Context:
    """A room's view of the world outside it."""

    attempt: Attempt
    stored: Callable[[], Iterator[Sample]]
    """Reads the samples of all attempts, in the order they were stored."""
    sink: Callable[[Sample], None]
    """Stores one more sample; it survives whatever happens next."""
    progress: Progress
    deadline: Deadline
    scratch: Path
    """A folder of the job's own, kept between attempts (checkpoints)."""
    clock: PhaseClock = field(default_factory=PhaseClock)
