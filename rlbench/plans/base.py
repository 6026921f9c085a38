"""From what a user asks for to jobs: what every request needs, and what it gives."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rlbench.core.card import ModelCard
from rlbench.core.cost import Price
from rlbench.core.job import Job, Targets
from rlbench.core.subject import Mode
from rlbench.grading.generated import generated_task
from rlbench.measure.host import gpu_names, package_versions

THINKING_ROOM = 1024
"""Tokens added to a generated task's own cap where the model thinks before it answers."""


@dataclass(frozen=True)
class Surroundings:
    """What lies outside the request: the network, the data, the price the user stated."""

    offline: bool = False
    data_dir: Path | None = None
    usd_per_hour: float | None = None
    forecast_only: bool = False
    """Nothing will run: weights that are nowhere stop no forecast."""


@dataclass(frozen=True)
class Forecast:
    """What a job will take, before it starts. `None` where nothing is known."""

    seconds: float | None = None
    peak_bytes: float | None = None
    how: str = ""


@dataclass(frozen=True)
class Planned:
    """A job ready to be run here: how far to go, how to bring its weights, what an hour costs."""

    job: Job
    targets: Targets
    fetch: Callable[[], Path]
    """Brings the weights to this machine and gives their folder; called only when the job runs."""
    price: Price | None = None
    data_dir: Path | None = None
    forecast: Forecast = Forecast()

    @property
    def label(self) -> str:
        """The job in a few words, for people."""
        subject = self.job.subject
        words = (self.job.kind, subject.name, subject.task, subject.mode)
        return " ".join(word.replace("_", "-") for word in words if word)


class Request(Protocol):
    """What a command or a plan's table asks for."""

    def plan(self, around: Surroundings) -> list[Planned]:
        """The jobs that answer it.

        Raises:
            InputError: it asks for something that does not exist or cannot be done.
            HubError: a model's revision could not be resolved.
        """
        ...


def this_device() -> str:
    """The device a job runs on here: the name of the first visible GPU, or `cpu`."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1"):
        return "cpu"
    names = gpu_names()
    if not names:
        return "cpu"
    first = (visible or "0").split(",")[0].strip()
    return names[int(first)] if first.isdigit() and int(first) < len(names) else names[0]


def generated_cap(card: ModelCard, mode: Mode, task: str) -> int:
    """The cap of a generated task: its own, and room to think first where the mode thinks."""
    return generated_task(task).max_new_tokens + (THINKING_ROOM if card.modes[mode].think_close else 0)


def versions_for(*packages: str) -> dict[str, str]:
    """Versions of the packages that can change a job's answer: torch, transformers and those named."""
    return package_versions(("torch", "transformers", *packages))
