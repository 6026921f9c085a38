"""Seconds of a probe, by phase and by training step, kept on disk: a run that is taken up again knows its whole cost.

The file only grows, a JSON line an entry. A step that is done again after a kill replaces its earlier self, so
the sums are those of a run without the interruption.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rlbench.measure.context import PhaseClock

FILE_NAME = "seconds.jsonl"


class StepSeconds(NamedTuple):
    rollout: float
    update: float


class Spent(NamedTuple):
    """What earlier attempts took: by phase outside the training steps, and by step."""

    phases: dict[str, float]
    steps: dict[int, StepSeconds]

    def total(self) -> dict[str, float]:
        """Seconds by phase, the steps' rollouts and updates included."""
        seconds = dict(self.phases)
        if self.steps:
            seconds["rollout"] = sum(step.rollout for step in self.steps.values())
            seconds["update"] = sum(step.update for step in self.steps.values())
        return seconds


def read_ledger(scratch: Path | None, last_step: int | None = None) -> Spent:
    """What the ledger in `scratch` holds, steps after `last_step` left out; nothing where there is none."""
    phases: dict[str, float] = {}
    steps: dict[int, StepSeconds] = {}
    path = scratch / FILE_NAME if scratch is not None else None
    for line in path.read_text().splitlines() if path is not None and path.exists() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # the half-written line of a killed attempt
        if "step" in entry:
            steps[entry["step"]] = StepSeconds(entry["rollout"], entry["update"])
        else:
            phases[entry["phase"]] = phases.get(entry["phase"], 0.0) + entry["seconds"]
    kept = {step: seconds for step, seconds in steps.items() if last_step is None or step <= last_step}
    return Spent(phases, kept)


class Ledger:
    """Writes the file and keeps the attempt's clock, which starts from what earlier attempts took."""

    def __init__(self, scratch: Path, clock: PhaseClock, last_step: int) -> None:
        """Go on after training step `last_step` (0: none is kept)."""
        self._path = scratch / FILE_NAME
        self._clock = clock
        for name, seconds in read_ledger(scratch, last_step).total().items():
            clock.add(name, seconds)

    @contextmanager
    def phase(self, name: str) -> Iterator[Callable[[], None]]:
        """Time what is inside as `name`. Calling what it gives notes the seconds so far, in case of a kill."""
        last = time.perf_counter()

        def lap() -> None:
            nonlocal last
            now = time.perf_counter()
            self.add(name, now - last)
            last = now

        try:
            yield lap
        finally:
            lap()

    def add(self, phase: str, seconds: float) -> None:
        """Note seconds of a phase."""
        self._clock.add(phase, seconds)
        self._write(phase=phase, seconds=seconds)

    def add_step(self, step: int, seconds: StepSeconds) -> None:
        """Note a training step."""
        self._clock.add("rollout", seconds.rollout)
        self._clock.add("update", seconds.update)
        self._write(step=step, rollout=seconds.rollout, update=seconds.update)

    def _write(self, **entry: object) -> None:
        # The newline comes first: it also ends a line that a killed attempt left half-written.
        with self._path.open("a") as file:
            file.write("\n" + json.dumps(entry))
