"""From stored samples to the figures of a task."""

from collections.abc import Iterable
from statistics import fmean

from rlbench.core.job import Attempt, Job
from rlbench.core.record import AccuracyValues, Outcome
from rlbench.core.sample import Sample
from rlbench.core.statistics import accuracy_interval, pass_at_k
from rlbench.measure.accuracy.data import is_generated, size

HARNESS = "rlbench on lm-eval"


def summary(job: Job, attempt: Attempt, samples: Iterable[Sample]) -> Outcome:
    """Accuracy over problems, with what else the samples tell.

    `partial` while a problem or a sample that the attempt asks for is missing.
    """
    task = str(job.subject.task)
    wanted_samples = attempt.targets.samples_per_prompt or 1
    problems: dict[str, list[Sample]] = {}
    for sample in samples:
        if sample.index < wanted_samples:
            problems.setdefault(sample.prompt_id, []).append(sample)
    if not problems:
        return Outcome(status="partial", detail="no sample is stored yet")
    wanted_problems = min(attempt.targets.limit or size(task), size(task))
    have = sum(len(of_problem) for of_problem in problems.values())
    complete = len(problems) >= wanted_problems and all(len(p) == wanted_samples for p in problems.values())
    detail = "" if complete else f"{have} of {wanted_problems * wanted_samples} samples are there"
    return Outcome(status="ok" if complete else "partial", detail=detail, values=_values(list(problems.values()), task))


def _values(problems: list[list[Sample]], task: str) -> AccuracyValues:
    samples = [sample for of_problem in problems for sample in of_problem]
    scores = [[sample.strict or 0.0 for sample in of_problem] for of_problem in problems]
    interval = accuracy_interval(scores)
    fewest = min(len(of_problem) for of_problem in problems)
    return AccuracyValues(
        n_prompts=len(problems),
        samples_per_prompt=fewest,
        accuracy=interval.estimate,
        ci_low=interval.low,
        ci_high=interval.high,
        accuracy_if_truncated_right=_mean_over_problems(
            [[1.0 if sample.truncated else sample.strict or 0.0 for sample in of_problem] for of_problem in problems]
        ),
        lenient_accuracy=_mean_over_problems([[s.lenient or 0.0 for s in of_problem] for of_problem in problems]),
        pass_at_k={str(k): pass_at_k(scores, k) for k in _powers_of_two(fewest)},
        mean_output_tokens=fmean(sample.output_tokens for sample in samples),
        truncated_share=fmean(sample.truncated for sample in samples),
        stopped_in_thinking_share=fmean(sample.finish_reason == "stopped_in_thinking" for sample in samples),
        grader_timeouts=sum(sample.verdict == "timeout" for sample in samples),
        limited=not is_generated(task) and len(problems) < size(task),
        generated=is_generated(task),
        harness=HARNESS,
        metrics=_instruction_metrics(samples) if any(sample.parts for sample in samples) else {},
    )


def _mean_over_problems(scores: list[list[float]]) -> float:
    return fmean(fmean(of_problem) for of_problem in scores)


def _instruction_metrics(samples: list[Sample]) -> dict[str, float]:
    """IFEval's four figures under lm-eval's names; it does not know of truncation, and counts what is there."""
    metrics = {}
    for name in ("strict", "loose"):
        verdicts = [sample.parts.get(name, ()) for sample in samples]
        flat = [verdict for of_sample in verdicts for verdict in of_sample]
        metrics[f"prompt_level_{name}_acc"] = fmean(bool(verdict) and all(verdict) for verdict in verdicts)
        metrics[f"inst_level_{name}_acc"] = fmean(flat)
    return metrics


def _powers_of_two(most: int) -> list[int]:
    """1, 2, 4, … up to `most`, and `most` itself."""
    powers = [1 << exponent for exponent in range(most.bit_length())]
    return sorted({*powers, most})
