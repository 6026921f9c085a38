"""Probes: what a user asks for, and the jobs that answer it."""

from functools import partial
from math import gcd
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from rlbench.core.job import EngineSpec, GrpoProbe, Job, Targets
from rlbench.core.subject import Mode, Sampling, Subject
from rlbench.core.value import Value
from rlbench.errors import InputError, UnknownName
from rlbench.grading.generated import available, generate, task_hash
from rlbench.measure.host import catalogue_name
from rlbench.plans.base import Forecast, Planned, Surroundings, generated_cap, this_device, versions_for

if TYPE_CHECKING:
    from rlbench.core.card import ModelCard

MICRO_BATCH = 4
"""Completions in one backward pass: the logits of 16 of smollm2-135m's took 5.8 GB, 4 cost no time (tried on a CPU)."""

DEFAULT_POOL = 64

CPU_PARAMETERS = 134_515_008
CPU_LOAD_SECONDS = 17.0
CPU_SAMPLED_TOKENS_PER_SECOND = 85.0
CPU_TRAINED_TOKENS_PER_SECOND = 85.0
CPU_PROMPT_TOKENS = 36
CPU_LIBRARY_BYTES = 1_400_000_000
"""smollm2-135m on two cores, fp32: 40 × 4 held-out samples and steps of 32 completions under a cap of 24 tokens took
8 s to generate and 20 to 29 s to learn from. The forecast scales these by tokens and parameters.
The process peaked at 3.55 GB (resident), 16 bytes per parameter and the rest."""


class ProbeRequest(Value):
    """A short GRPO run of each model on one generated task."""

    kind: Literal["probe"] = "probe"
    models: tuple[str, ...] = ()
    """None: the seven candidates."""
    task: str = "short-answer"
    mode: Mode | None = None
    """None: without thinking where the model can, else the card's default."""
    steps: int = Field(default=8, gt=0)
    group_size: int = Field(default=8, gt=1)
    prompts_per_step: int = Field(default=4, gt=0)
    training_prompts: int | None = Field(default=None, gt=0)
    """None: 64, or all that the task has."""
    held_out: int = Field(default=40, gt=1)
    samples: int = Field(default=4, gt=0)
    max_new_tokens: int | None = Field(default=None, gt=0)
    """None: the task's own cap."""
    learning_rate: float | None = Field(default=None, gt=0, alias="lr")
    """None: the card's."""
    method: Literal["full", "lora"] = "full"
    train_anyway: bool = False
    seed: int = Field(default=0, ge=0)

    def plan(self, around: Surroundings) -> list[Planned]:
        """One job a model.

        Raises:
            InputError: an unknown model, task or mode, or more prompts than the task has.
            HubError: a model's weights are nowhere.
        """
        from rlbench.catalogue import CANDIDATES, find_model

        pool = self._pool()
        if self.prompts_per_step > pool:
            raise InputError(
                f"{self.prompts_per_step} prompts a step need as many training prompts, not {pool}: "
                "raise --training-prompts or lower --prompts-per-step."
            )
        generate(self.task, self.seed, self.held_out, "held-out")
        generate(self.task, self.seed, pool, "training")
        return [self._planned(find_model(name, around.offline), around) for name in self.models or CANDIDATES]

    def _planned(self, card: "ModelCard", around: Surroundings) -> Planned:
        from rlbench.catalogue import find_price
        from rlbench.engines.weights import fetch, resolve

        mode = self._mode(card)
        weights = resolve(card, around.offline, around.forecast_only)
        device = this_device()
        job = Job(
            subject=Subject(
                model=weights.model,
                card=card.name,
                revision=weights.revision,
                mode=mode,
                task=self.task,
                task_hash=task_hash(self.task),
                max_new_tokens=self._cap(card, mode),
                # The plain distribution: GRPO's gradient is that of what is sampled, and top-p or top-k would bias it.
                sampling=Sampling(temperature=1.0),
            ),
            settings=self._settings(card),
            engine=EngineSpec(dtype="float32" if device == "cpu" else "bfloat16"),
            versions=versions_for("trl", "peft") if self.method == "lora" else versions_for("trl"),
            device=device,
            seed=self.seed,
        )
        return Planned(
            job=job,
            targets=Targets(steps=self.steps),
            fetch=partial(fetch, weights),
            price=find_price(catalogue_name(device), around.usd_per_hour),
            forecast=self._forecast(card, device, self._cap(card, mode)),
        )

    def _forecast(self, card: "ModelCard", device: str, cap: int) -> Forecast:
        """Time and memory on a CPU, every completion taken to be as long as its cap."""
        if device != "cpu":
            return Forecast()
        in_step = self.prompts_per_step * self.group_size
        sampled = cap * (2 * self.held_out * self.samples + self.steps * in_step)
        trained = self.steps * in_step * (CPU_PROMPT_TOKENS + cap)
        seconds = sampled / CPU_SAMPLED_TOKENS_PER_SECOND + trained / CPU_TRAINED_TOKENS_PER_SECOND
        scale = card.parameters / CPU_PARAMETERS
        return Forecast(
            seconds=CPU_LOAD_SECONDS + scale * seconds,
            peak_bytes=(16 if self.method == "full" else 4) * card.parameters + CPU_LIBRARY_BYTES,
            how="probes: the seconds of smollm2-135m on two CPU cores, scaled by tokens and parameters",
        )

    def _pool(self) -> int:
        return self.training_prompts or min(DEFAULT_POOL, available(self.task, "training"))

    def _mode(self, card: "ModelCard") -> Mode:
        if self.mode is None:
            return "no_think" if "no_think" in card.modes else card.default_mode
        if self.mode not in card.modes:
            raise UnknownName(f"mode of {card.name}", self.mode, card.modes)
        return self.mode

    def _cap(self, card: "ModelCard", mode: Mode) -> int:
        return self.max_new_tokens or generated_cap(card, mode, self.task)

    def _settings(self, card: "ModelCard") -> GrpoProbe:
        return GrpoProbe(
            method=self.method,
            prompts_per_step=self.prompts_per_step,
            group_size=self.group_size,
            micro_batch=gcd(self.prompts_per_step * self.group_size, MICRO_BATCH),
            learning_rate=self.learning_rate or card.learning_rate,
            training_prompts=self._pool(),
            held_out_prompts=self.held_out,
            samples_per_prompt=self.samples,
            stop_at_gates=not self.train_anyway,
        )
