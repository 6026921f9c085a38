"""The held-out prompts, sampled by the engine: before the training and after it, in one and the same way."""

from collections.abc import Sequence

from rlbench.core.card import ModeSpec
from rlbench.core.job import Attempt, Job
from rlbench.core.sample import Sample, SampleKey
from rlbench.core.subject import Sampling
from rlbench.engines import open_engine
from rlbench.engines.base import Engine, Request
from rlbench.engines.chat import split
from rlbench.grading.generated import GeneratedPrompt, score
from rlbench.measure.context import Context
from rlbench.measure.probe.ledger import Ledger
from rlbench.measure.probe.prompts import held_out_prompts, mode_spec, probe_settings

BEFORE = "before"


def after_phase(steps: int) -> str:
    """The phase of the samples taken after so many training steps; asking for more steps adds another."""
    return f"after-{steps}"


def evaluate(job: Job, attempt: Attempt, context: Context, ledger: Ledger, phase: str) -> int | None:
    """Sample what of `phase` is not stored yet, grade and store it; the engine's peak memory in bytes.

    Args:
        job: the probe.
        attempt: names the folder of the weights to sample from.
        context: where samples go.
        ledger: takes the seconds, as `stage0` before the training and `eval` after it.
        phase: `before`, or what `after_phase` gives.
    """
    prompts = held_out_prompts(job)
    keys = _keys(job, prompts, phase)
    done = {sample.key for sample in context.stored()} & set(keys)
    if len(done) == len(keys):
        return None
    context.progress(f"{phase}: loading", len(done), len(keys))
    with ledger.phase("load"):
        engine = open_engine(job, attempt)
    try:
        _sample(job, context, ledger, engine, mode_spec(job, attempt), prompts, phase, done)
        return engine.peak_memory_bytes()
    finally:
        engine.close()


def grade(sample: Sample, prompt: GeneratedPrompt, spec: ModeSpec) -> Sample:
    """The sample with its scores; only the answer counts, not the thinking."""
    scores = score(prompt, split(sample.text, spec).answer, truncated=sample.finish_reason != "stop")
    return sample.model_copy(
        update={"strict": scores.strict, "lenient": scores.lenient, "verdict": "right" if scores.strict else "wrong"}
    )


def _keys(job: Job, prompts: Sequence[GeneratedPrompt], phase: str) -> list[SampleKey]:
    count = probe_settings(job).samples_per_prompt
    return [SampleKey(phase, prompt.id, index, job.seed) for prompt in prompts for index in range(count)]


def _sample(
    job: Job,
    context: Context,
    ledger: Ledger,
    engine: Engine,
    spec: ModeSpec,
    prompts: Sequence[GeneratedPrompt],
    phase: str,
    done: set[SampleKey],
) -> None:
    by_id = {prompt.id: prompt for prompt in prompts}
    keys = _keys(job, prompts, phase)
    rendered = {prompt.id: engine.render([{"role": "user", "content": prompt.prompt}]) for prompt in prompts}
    cap, sampling = job.subject.max_new_tokens or 0, job.subject.sampling or Sampling()
    requests = [Request(key, rendered[key.prompt_id], cap, sampling) for key in keys]
    with ledger.phase("stage0" if phase == BEFORE else "eval") as lap:
        for count, sample in enumerate(engine.generate(requests, done), len(done) + 1):
            context.sink(grade(sample, by_id[sample.prompt_id], spec))
            lap()
            context.progress(f"{phase}: held-out samples", count, len(keys))
            context.deadline.check()
