"""Which room answers which kind of job."""

from collections.abc import Iterator
from importlib import import_module
from typing import Protocol, cast

from rlbench.core.job import Attempt, Job
from rlbench.core.record import Outcome
from rlbench.core.sample import Sample
from rlbench.measure.context import Context

MODULES = {
    "memory": "rlbench.measure.memory",
    "rollout": "rlbench.measure.rollouts",
    "accuracy": "rlbench.measure.accuracy.room",
    "probe": "rlbench.measure.probe.room",
}


class Room(Protocol):
    """A module with these two functions."""

    def run(self, job: Job, context: Context) -> Outcome:
        """Measure; store samples as they come; answer with what was found."""
        ...

    def summarise(self, job: Job, attempt: Attempt, samples: Iterator[Sample]) -> Outcome:
        """Answer from stored samples alone, without any heavy work."""
        ...


def room(job: Job) -> Room:
    """The room for the job's kind, imported only now: rooms bring heavy libraries."""
    return cast(Room, import_module(MODULES[job.kind]))
