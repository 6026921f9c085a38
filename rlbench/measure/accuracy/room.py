"""Accuracy: K samples of every problem of a task, each scored and stored as it comes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rlbench.core.cost import usd
from rlbench.core.job import Attempt, Job
from rlbench.core.record import AccuracyValues, Outcome
from rlbench.core.sample import Sample, Verdict
from rlbench.engines import card_of, open_engine
from rlbench.engines.chat import split
from rlbench.measure.accuracy.data import documents
from rlbench.measure.accuracy.summary import summary
from rlbench.measure.context import Context

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance
    from lm_eval.api.task import Task

Metrics = dict[str, Any]


def run(job: Job, context: Context) -> Outcome:
    """Generate and score what is not stored yet, then sum up.

    Raises:
        InputError: the data is missing or has changed, or a prompt does not fit the model's context.
        MissingPackage: lm-eval or math-verify is not installed.
    """
    generated = _Answers(job, context).generate()
    outcome = summarise(job, context.attempt, context.stored())
    if isinstance(outcome.values, AccuracyValues):
        cost = _usd_per_correct(outcome.values, context, generated)
        outcome = outcome.model_copy(update={"values": outcome.values.model_copy(update={"usd_per_correct": cost})})
    return outcome.model_copy(update={"phase_seconds": dict(context.clock.seconds)})


def summarise(job: Job, attempt: Attempt, samples: Iterator[Sample]) -> Outcome:
    """The figures of the stored samples alone; `partial` while some that were asked for are missing."""
    return summary(job, attempt, samples)


def graded(sample: Sample, score: "Metrics | None") -> Sample:
    """The sample with its scores. `score` is `None` where there was no answer to score.

    A truncated answer is strictly wrong, whatever it holds so far; the lenient score looks at what it holds.
    """
    if score is None:
        return sample.model_copy(update={"strict": 0.0, "lenient": 0.0, "verdict": "wrong"})
    strict = float(score["strict"] if "strict" in score else score["prompt_level_strict_acc"])
    lenient = float(score["lenient"] if "lenient" in score else score["prompt_level_loose_acc"])
    verdict: Verdict = "right" if strict and not sample.truncated else "wrong"
    for kind in ("timeout", "unparsable"):
        if score.get(kind):
            verdict = "timeout" if kind == "timeout" else "unparsable"
    levels = {"strict": "inst_level_strict_acc", "loose": "inst_level_loose_acc"}
    parts = {name: tuple(score[level]) for name, level in levels.items() if level in score}
    counted = 0.0 if sample.truncated else strict
    return sample.model_copy(update={"strict": counted, "lenient": lenient, "verdict": verdict, "parts": parts})


class _Answers:
    """One pass over the task: what is done already, and how a sample is scored and stored."""

    def __init__(self, job: Job, context: Context) -> None:
        self._job = job
        self._context = context
        self._spec = card_of(job, context.attempt).modes[job.subject.mode or "no_think"]
        self._samples = context.attempt.targets.samples_per_prompt or 1
        self._stored = 0
        self._wanted = 0
        self._task: Task | None = None

    def generate(self) -> int:
        """Generate what is missing; how many samples that were."""
        from rlbench.measure.accuracy.lm_eval_adapter import EngineModel, build_instances, load_task

        job, context = self._job, self._context
        context.progress("loading", 0, None)
        asked = documents(job, context.attempt.data_dir)[: context.attempt.targets.limit]
        done = {sample.key for sample in context.stored()}
        self._wanted = len(asked) * self._samples
        wanted_ids = {str(document["id"]) for document in asked}
        before = sum(key.prompt_id in wanted_ids and key.index < self._samples for key in done)
        if before == self._wanted:
            return 0
        self._stored = before
        with context.clock.phase("load"):
            self._task = load_task(str(job.subject.task), asked, context.scratch)
            engine = open_engine(job, context.attempt)
        assert job.subject.sampling is not None and job.subject.max_new_tokens is not None
        model = EngineModel(
            engine,
            self._keep,
            samples=self._samples,
            max_new_tokens=job.subject.max_new_tokens,
            sampling=job.subject.sampling,
            stop=self._spec.stop,
            seed=job.seed,
            done=done,
        )
        try:
            instances = build_instances(self._task, model)
            context.progress("samples", self._stored, self._wanted)
            with context.clock.phase("generate"):
                model.generate_until(instances)
        finally:
            engine.close()
        return self._stored - before

    def _keep(self, instance: "Instance", sample: Sample) -> str:
        parts = split(sample.text, self._spec)
        answer = parts.answer.strip() if sample.finish_reason != "stopped_in_thinking" else ""
        assert self._task is not None
        score: Metrics | None = self._task.process_results(instance.doc, [answer]) if answer else None
        self._context.sink(graded(sample, score))
        self._stored += 1
        self._context.progress("samples", self._stored, self._wanted)
        self._context.deadline.check()
        return answer


def _usd_per_correct(values: AccuracyValues, context: Context, generated: int) -> float | None:
    """Dollars of generation for each right answer: what a sample cost in this attempt, over the share right."""
    price = context.attempt.price
    if price is None or not generated or not values.accuracy:
        return None
    seconds = context.clock.seconds.get("generate", 0.0) * context.attempt.device_count
    return usd(seconds / generated, price.usd_per_hour) / values.accuracy
