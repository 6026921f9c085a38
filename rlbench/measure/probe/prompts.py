"""Which prompts a probe trains on, in which order, and which it holds out."""

import random

from rlbench.core.card import ModeSpec
from rlbench.core.job import Attempt, GrpoProbe, Job
from rlbench.engines import card_of
from rlbench.errors import InputError
from rlbench.grading.generated import GeneratedPrompt, generate


def probe_settings(job: Job) -> GrpoProbe:
    """The settings of a probe job."""
    if not isinstance(job.settings, GrpoProbe):
        raise InputError(f"the job {job.key} is not a probe.")
    return job.settings


def training_prompts(job: Job) -> list[GeneratedPrompt]:
    """The fixed pool that is trained on."""
    return generate(job.subject.task or "", job.seed, probe_settings(job).training_prompts, "training")


def training_order(job: Job, steps: int) -> list[GeneratedPrompt]:
    """The prompts of `steps` training steps, one after another, each prompt once a step.

    The pool is gone through again and again, every time in another order; what does not fill a step is left out
    of that pass. The order is ours because TRL's own differs, after the first pass, when a run is taken up again.
    """
    settings, pool = probe_settings(job), training_prompts(job)
    a_pass = len(pool) // settings.prompts_per_step * settings.prompts_per_step
    passes = -(-steps * settings.prompts_per_step // a_pass)
    order: list[GeneratedPrompt] = []
    for number in range(passes):
        shuffled = list(pool)
        random.Random(f"{job.seed}:{number}").shuffle(shuffled)
        order += shuffled[:a_pass]
    return order[: steps * settings.prompts_per_step]


def held_out_prompts(job: Job) -> list[GeneratedPrompt]:
    """The prompts of the paired evaluation.

    Raises:
        InputError: one of them is also trained on.
    """
    prompts = generate(job.subject.task or "", job.seed, probe_settings(job).held_out_prompts, "held-out")
    shared = {prompt.prompt for prompt in prompts} & {prompt.prompt for prompt in training_prompts(job)}
    if shared:
        raise InputError(f"held-out prompts of '{job.subject.task}' are also trained on, as {min(shared)!r}.")
    return prompts


def mode_spec(job: Job, attempt: Attempt) -> ModeSpec:
    """How the job's mode is prompted and where its thinking ends."""
    card = card_of(job, attempt)
    return card.modes[job.subject.mode or card.default_mode]
