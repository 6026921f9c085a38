"""Generation speed as a GRPO step meets it: groups of samples, real ends of sequence, stragglers, a cap.

A workload is generated from end to end several times after a warm-up. Each pass is timed from its first
prompt to the end of its last sequence, so its rate holds the time in which slots had nothing left to do.
A pass that was cut short is left out: its time says nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean, quantiles, stdev
from typing import NamedTuple

from rlbench.core.cost import SECONDS_PER_HOUR, usd
from rlbench.core.job import Attempt, Job, RolloutMeasurement
from rlbench.core.lengths import completion_lengths
from rlbench.core.record import Outcome, RolloutValues
from rlbench.core.sample import Sample, SampleKey
from rlbench.core.speed import LENGTH_SIGMA
from rlbench.core.statistics import student_t_quantile
from rlbench.core.subject import Sampling
from rlbench.core.workload import Workload
from rlbench.engines import open_engine
from rlbench.engines.base import Engine, Request
from rlbench.engines.weights import in_words
from rlbench.grading.generated import GeneratedPrompt, available, generate
from rlbench.measure.context import Context
from rlbench.measure.host import catalogue_name

REPEATS = 3
TASK = "short-answer"
"""The generated task whose held-out prompts are asked."""
WARM_UP_TOKENS = 8


class Pass(NamedTuple):
    """One timed pass over the workload."""

    seconds: float
    prompt_tokens: int
    output_tokens: int
    straggler_share: float

    @property
    def tokens_per_second(self) -> float:
        return self.output_tokens / self.seconds


def run(job: Job, context: Context) -> Outcome:
    """Generate the workload until there are as many whole passes as asked, then sum up."""
    wanted = context.attempt.targets.repeats or REPEATS
    whole, last = _passes(job, context.stored())
    with context.clock.phase("start-up"):
        engine = open_engine(job, context.attempt)
    try:
        with context.clock.phase("warm-up"):
            _warm_up(engine, requests(job, engine, "warm-up"), job.engine.batch_size)
        for number in range(len(whole), wanted):
            last += 1
            _one_pass(engine, requests(job, engine, f"repeat-{last}"), context, number, wanted)
        outcome = summarise(job, context.attempt, context.stored())
        return outcome.model_copy(
            update={
                "values": _with_engine(outcome.values, engine),
                "phase_seconds": dict(context.clock.seconds),
                "peak_memory_bytes": engine.peak_memory_bytes(),
            }
        )
    finally:
        engine.close()


def summarise(job: Job, attempt: Attempt, samples: Iterator[Sample]) -> Outcome:
    """The figures of all whole passes among the stored samples."""
    found, last = _passes(job, samples)
    whole = list(found.values())
    if not whole:
        return Outcome(status="partial", detail="no pass over the workload was finished")
    cut_short = last - len(whole)
    detail = f"{cut_short} unfinished pass{'es' if cut_short > 1 else ''} left out" if cut_short else ""
    return Outcome(detail=detail, values=_values(job, attempt, whole))


def requests(job: Job, engine: Engine, phase: str) -> list[Request]:
    """The workload's requests: every sample of the first prompt, then of the second, and so on."""
    workload = _workload(job)
    sampling = job.subject.sampling or Sampling()
    forced = _forced_lengths(workload)
    prompts = [(prompt.id, _rendered(prompt, engine, workload)) for prompt in _prompts(job, workload)]
    keys = [
        (SampleKey(phase, prompt_id, index, job.seed), text)
        for prompt_id, text in prompts
        for index in range(workload.group_size)
    ]
    return [
        Request(key, text, workload.max_new_tokens, sampling, forced_tokens=length)
        for (key, text), length in zip(keys, forced, strict=True)
    ]


def _workload(job: Job) -> Workload:
    assert isinstance(job.settings, RolloutMeasurement)
    return job.settings.workload


def _prompts(job: Job, workload: Workload) -> list[GeneratedPrompt]:
    return generate(TASK, job.seed, workload.prompts, "held-out")


def _rendered(prompt: GeneratedPrompt, engine: Engine, workload: Workload) -> str:
    """The prompt as the model sees it, with earlier questions put before it until it is `prompt_len` tokens long."""
    bare = engine.render([{"role": "user", "content": prompt.prompt}])
    missing = workload.prompt_len - engine.count_tokens(bare)
    if missing <= 0:
        return bare
    count = min(workload.prompts, available(TASK, "training"))
    others = [other.prompt for other in generate(TASK, 0, count, "training")]
    each = max(1, engine.count_tokens("\n".join(others)) // len(others))
    before = [others[i % len(others)] for i in range(missing // each)]
    if not before:
        return bare
    return engine.render([{"role": "user", "content": "\n".join([*before, prompt.prompt])}])


def _forced_lengths(workload: Workload) -> Sequence[int | None]:
    if workload.lengths == "natural":
        return [None] * workload.rollouts
    mean = workload.mean_new_tokens or workload.max_new_tokens
    sigma = LENGTH_SIGMA if workload.lengths == "lognormal" else 0.0
    return completion_lengths(mean, workload.max_new_tokens, workload.rollouts, sigma)


def _warm_up(engine: Engine, asked: Sequence[Request], batch_size: int) -> None:
    short = [
        replace(request, max_new_tokens=min(WARM_UP_TOKENS, request.max_new_tokens), forced_tokens=None)
        for request in asked[:batch_size]
    ]
    for _ in engine.generate(short):
        pass


def _one_pass(engine: Engine, asked: Sequence[Request], context: Context, number: int, wanted: int) -> None:
    total = wanted * len(asked)
    done = number * len(asked)
    context.progress("rollouts", done, total)
    with context.clock.phase("rollout"):
        for sample in engine.generate(asked):
            context.sink(sample)
            done += 1
            context.progress("rollouts", done, total)
            context.deadline.check()


def _passes(job: Job, samples: Iterator[Sample]) -> tuple[dict[str, list[Sample]], int]:
    """The whole passes by their name, and the number of the last one begun."""
    by_phase: dict[str, list[Sample]] = {}
    for sample in samples:
        by_phase.setdefault(sample.phase, []).append(sample.model_copy(update={"text": ""}))
    last = max((int(phase.removeprefix("repeat-")) for phase in by_phase), default=0)
    size = _workload(job).rollouts
    return {phase: found for phase, found in by_phase.items() if len(found) == size}, last


def timed(samples: Sequence[Sample], batch_size: int) -> Pass:
    """Time and idle slots of a whole pass, its samples in the order in which they were stored.

    A batch of b sequences holds b slots until its longest ends; a slot is idle from the end of its own.
    """
    began = held = idle = 0.0
    for first in range(0, len(samples), batch_size):
        ends = [sample.finished_seconds or 0.0 for sample in samples[first : first + batch_size]]
        ended = max(ends)
        held += (ended - began) * len(ends)
        idle += sum(ended - end for end in ends)
        began = ended
    return Pass(
        seconds=began,
        prompt_tokens=sum(sample.prompt_tokens for sample in samples),
        output_tokens=sum(sample.output_tokens for sample in samples),
        straggler_share=idle / held,
    )


def _values(job: Job, attempt: Attempt, whole: Sequence[Sequence[Sample]]) -> RolloutValues:
    workload = _workload(job)
    passes = [timed(samples, job.engine.batch_size) for samples in whole]
    rates = [one.tokens_per_second for one in passes]
    low, high = _interval(rates)
    seconds = fmean(one.seconds for one in passes)
    tokens = fmean(one.output_tokens for one in passes)
    dollars = usd(seconds * attempt.device_count, attempt.price.usd_per_hour) if attempt.price else None
    every = [sample for samples in whole for sample in samples]
    return RolloutValues(
        gpu=catalogue_name(job.device),
        engine=job.engine.name,
        workload=workload,
        output_tokens_per_second=fmean(rates),
        output_tokens_per_second_low=low,
        output_tokens_per_second_high=high,
        elapsed_seconds=seconds,
        rollouts_per_hour=workload.rollouts / seconds * SECONDS_PER_HOUR,
        prompt_tokens_per_second=fmean(one.prompt_tokens / one.seconds for one in passes),
        mean_output_tokens=tokens / workload.rollouts,
        output_tokens_percentiles=_percentiles([sample.output_tokens for sample in every]),
        truncated_share=sum(sample.truncated for sample in every) / len(every),
        straggler_share=fmean(one.straggler_share for one in passes),
        usd_per_million_output_tokens=None if dollars is None else dollars / tokens * 1e6,
        usd_per_thousand_rollouts=None if dollars is None else dollars / workload.rollouts * 1e3,
        repeats=len(passes),
        how=_how(job, len(passes)),
    )


def _how(job: Job, repeats: int) -> str:
    weights = "random weights" if job.engine.random_weights else f"weights {in_words(job.subject)}"
    return (
        f"{job.engine.name}, {job.engine.dtype}, {weights}, batches of {job.engine.batch_size} on generated prompts, "
        f"{repeats} timed passes after a warm-up; the interval is Student's t over passes."
    )


def _interval(rates: Sequence[float]) -> tuple[float | None, float | None]:
    """95% limits of the mean rate over passes; unknown from a single one."""
    if len(rates) < 2:
        return None, None
    half = student_t_quantile(0.975, len(rates) - 1) * stdev(rates) / len(rates) ** 0.5
    return max(fmean(rates) - half, 0.0), fmean(rates) + half


def _percentiles(lengths: Sequence[int]) -> dict[str, float]:
    if len(lengths) < 2:
        return {}
    cuts = quantiles(lengths, n=100, method="inclusive")
    return {f"p{percent}": cuts[percent - 1] for percent in (10, 50, 90, 99)}


def _with_engine(values: object, engine: Engine) -> RolloutValues:
    assert isinstance(values, RolloutValues)
    return values.model_copy(
        update={"peak_reserved_bytes": engine.peak_memory_bytes(), "start_up_seconds": engine.start_up_seconds}
    )
