"""Thinking against not thinking: the same problems twice, compared problem by problem."""

from collections.abc import Iterable
from typing import Literal

from rlbench.core.sample import Sample
from rlbench.core.statistics import POINTS, paired_gain
from rlbench.core.value import Value


class ModeDifference(Value):
    """Accuracy with thinking minus without, as a share (0.1 is ten points), over the problems both were asked."""

    model: str
    task: str
    budget: Literal["same_cap", "same_tokens"]
    n_prompts: int
    difference: float
    ci_low: float
    ci_high: float
    p_think_better: float


def mode_difference(
    model: str, task: str, think: Iterable[Sample], no_think: Iterable[Sample]
) -> ModeDifference | None:
    """The paired difference at the same cap; `None` when no problem was asked in both modes."""
    with_thinking, without = _scores(think), _scores(no_think)
    both = sorted(with_thinking.keys() & without.keys())
    if not both:
        return None
    gain = paired_gain([without[problem] for problem in both], [with_thinking[problem] for problem in both])
    return ModeDifference(
        model=model,
        task=task,
        budget="same_cap",
        n_prompts=len(both),
        difference=gain.gain / POINTS,
        ci_low=gain.low / POINTS,
        ci_high=gain.high / POINTS,
        p_think_better=gain.p_positive,
    )


def _scores(samples: Iterable[Sample]) -> dict[str, list[float]]:
    problems: dict[str, list[float]] = {}
    for sample in samples:
        problems.setdefault(sample.prompt_id, []).append(sample.strict or 0.0)
    return problems
