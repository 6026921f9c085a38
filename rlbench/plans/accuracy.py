"""Accuracy: what a user asks for, and the jobs that answer it."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from rlbench.core.job import AccuracyTask, EngineSpec, Job, Targets
from rlbench.core.subject import Mode, Subject
from rlbench.core.value import Value
from rlbench.core.workload import Workload
from rlbench.errors import HubError, UnknownName
from rlbench.measure.accuracy.data import DATA_SETS, check_task, is_generated, locate, size, task_hash
from rlbench.plans.base import Planned, Surroundings, generated_cap, this_device, versions_for
from rlbench.plans.forecast import of_generation

if TYPE_CHECKING:
    from rlbench.core.card import ModelCard

PROMPT_TOKENS = 100
"""Of a problem with its template, for forecasts: MATH-500's problems have a mean of 71 with Qwen3's tokenizer."""


class AccuracyRequest(Value):
    """Every model on every task, in each of its modes."""

    kind: Literal["accuracy"] = "accuracy"
    models: tuple[str, ...] = ()
    """None: the seven candidates."""
    tasks: tuple[str, ...] = Field(min_length=1)
    modes: tuple[Mode, ...] = ()
    """None: every mode of the card."""
    limit: int | None = Field(default=None, gt=0)
    samples: int | None = Field(default=None, gt=0)
    """None: the task's (8 for AIME and AMC, else 1)."""
    max_new_tokens: int | None = Field(default=None, gt=0)
    """None: the card's recommendation for the mode, within the model's context; a generated task's own cap."""
    batch_size: int = Field(default=32, gt=0)
    seed: int = Field(default=0, ge=0)

    def plan(self, around: Surroundings) -> list[Planned]:
        """One job for each model, mode and task.

        Raises:
            InputError: an unknown model or task, a mode that a model does not have, data that is missing.
            HubError: weights or data are nowhere.
        """
        from rlbench.catalogue import CANDIDATES, find_model

        for task in self.tasks:
            check_task(task)
        cards = [find_model(name, around.offline) for name in self.models or CANDIDATES]
        modes = {card.name: self._modes(card) for card in cards}
        folders = {task: _data(task, around) for task in self.tasks}
        return [
            self._planned(card, mode, task, folders[task], around)
            for card in cards
            for task in self.tasks
            for mode in modes[card.name]
        ]

    def _modes(self, card: "ModelCard") -> tuple[Mode, ...]:
        for mode in self.modes:
            if mode not in card.modes:
                raise UnknownName(f"mode of {card.name}", mode, card.modes)
        return self.modes or tuple(card.modes)

    def _planned(self, card: "ModelCard", mode: Mode, task: str, folder: Path | None, around: Surroundings) -> Planned:
        from rlbench.catalogue import find_price
        from rlbench.engines.weights import fetch, resolve

        weights = resolve(card, around.offline, around.forecast_only)
        device = this_device()
        job = Job(
            subject=Subject(
                model=weights.model,
                card=card.name,
                revision=weights.revision,
                mode=mode,
                task=task,
                task_hash=task_hash(task, folder) if folder is not None or is_generated(task) else None,
                max_new_tokens=self.max_new_tokens or default_cap(card, mode, task),
                sampling=card.modes[mode].sampling,
            ),
            settings=AccuracyTask(),
            engine=EngineSpec(dtype="float32" if device == "cpu" else "bfloat16", batch_size=self.batch_size),
            versions=versions_for("lm-eval", "math-verify"),
            device=device,
            seed=self.seed,
        )
        samples = self.samples or (1 if is_generated(task) else DATA_SETS[task].samples)
        return Planned(
            job=job,
            targets=Targets(limit=self.limit, samples_per_prompt=samples),
            fetch=partial(fetch, weights),
            price=find_price(device, around.usd_per_hour),
            data_dir=folder,
            forecast=of_generation(card, device, self._workload(job, task, samples)),
        )

    def _workload(self, job: Job, task: str, samples: int) -> Workload:
        """What the engine will be asked for, in the terms of a forecast."""
        assert job.subject.max_new_tokens is not None
        return Workload(
            prompts=min(self.limit or size(task), size(task)),
            group_size=samples,
            prompt_len=PROMPT_TOKENS,
            max_new_tokens=job.subject.max_new_tokens,
            concurrency=self.batch_size,
        )


def _data(task: str, around: Surroundings) -> Path | None:
    """The folder with the task's data; `None` for a generated task, and for a forecast without the data."""
    try:
        return locate(task, around.data_dir, around.offline)
    except HubError:
        if around.forecast_only:
            return None
        raise


def default_cap(card: "ModelCard", mode: Mode, task: str) -> int:
    """The cap when the user gives none: the card's, else the task's, leaving half of the context to the prompt."""
    spec = card.modes[mode]
    if is_generated(task):
        return generated_cap(card, mode, task)
    return min(spec.max_new_tokens or DATA_SETS[task].max_new_tokens, card.context.native // 2)
