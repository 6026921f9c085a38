"""What a probe's stored samples say: base statistics, gates, the learning curve, the paired gain and its cost. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from rlbench.core.cost import usd
from rlbench.core.job import Attempt, GrpoProbe, Job
from rlbench.core.record import BaseStatistics, Gain, ProbeValues, StepPoint
from rlbench.core.sample import Sample
from rlbench.core.statistics import POINTS, PairedGain, paired_gain, pass_at_k, points_per_usd
from rlbench.measure.probe.evaluation import BEFORE, after_phase
from rlbench.measure.probe.ledger import Spent
from rlbench.measure.probe.prompts import probe_settings

TRUNCATED_SHARE = 0.30
SATURATED = 0.90
NO_SIGNAL_LENIENT = 0.02
NO_SIGNAL_MIXED = 0.10
FORMAT_GAIN_POINTS = 20.0
UNDECIDED_HALF_WIDTH = 5.0
"""Gates and the width of an undecided interval, in shares and points: judgement, after probes.md §2.7 and §2.10."""

Groups = Mapping[str, Sequence[Sample]]
"""The samples of each prompt."""


def training_phase(step: int) -> str:
    """The phase of the rollouts that a training step learned from."""
    return f"train-{step}"


def summarise_probe(job: Job, attempt: Attempt, samples: Iterable[Sample], spent: Spent) -> ProbeValues | None:
    """The values of a probe as far as it has come; `None` before any held-out prompt was sampled."""
    settings = probe_settings(job)
    phases = _by_phase(samples)
    before = _complete(phases.get(BEFORE, {}), settings.samples_per_prompt)
    if not before:
        return None
    base = base_statistics(before, spent.phases.get("stage0"))
    curve = _curve(phases, spent)
    after_name = after_phase(attempt.targets.steps or 0)
    after = _complete(phases.get(after_name, {}), settings.samples_per_prompt)
    finished = len(after) == len(before) == settings.held_out_prompts
    gain = _gain(before, after, lenient=False) if finished else None
    seconds = spent.total()
    cost = _usd(attempt, seconds, *seconds)
    gates = find_gates(base, _mean(before, lenient=True))
    values = ProbeValues(
        task=job.subject.task or "",
        n_prompts=len(before),
        samples_per_prompt=settings.samples_per_prompt,
        gain=None,
        before=base.pass_at_1,
        base=base,
        steps=max((point.step for point in curve), default=0),
        rollouts=sum(len(group) for point in curve for group in phases[training_phase(point.step)].values()),
        gpu_seconds=sum(seconds.values()) * attempt.device_count,
        usd=cost,
        training_usd=_usd(attempt, seconds, "rollout", "update"),
        state=_early_state(settings, len(before), gates, curve) if gain is None else _state(gain),
        gates=gates,
        curve=curve,
    )
    if gain is None:
        return values
    return values.model_copy(update={**_gained(gain, cost), "lenient": _as_gain(_gain(before, after, lenient=True))})


def base_statistics(groups: Groups, seconds: float | None = None) -> BaseStatistics:
    """Stage 0, from the untrained model's samples (at least one of each prompt); `seconds` gives the speed."""
    scores = _scores(groups, lenient=False)
    means = [fmean(row) for row in scores]
    everything = [sample for group in groups.values() for sample in group]
    fewest = min(len(row) for row in scores)
    tokens = sum(sample.output_tokens for sample in everything)
    return BaseStatistics(
        pass_at_1=fmean(means),
        pass_at_k={str(k): pass_at_k(scores, k) for k in (1, 2, 4, 8, 16, 32, 64) if k <= fewest},
        mean_p_one_minus_p=fmean(_spread(row) for row in scores),
        all_right_share=fmean(mean == 1 for mean in means),
        all_wrong_share=fmean(mean == 0 for mean in means),
        mixed_share=fmean(0 < mean < 1 for mean in means),
        truncated_share=fmean(sample.truncated for sample in everything),
        mean_output_tokens=tokens / len(everything),
        output_tokens_per_second=tokens / seconds if seconds else None,
    )


def find_gates(base: BaseStatistics, lenient: float) -> dict[str, bool]:
    """Which warnings the base statistics give. `no_signal` and `saturated` make a training pointless.

    A group of mixed outcomes is the only one with a gradient; their share in few samples of a prompt is a
    lower bound on the share in larger groups.
    """
    saturated = base.pass_at_1 > SATURATED
    return {
        "truncated": base.truncated_share > TRUNCATED_SHARE,
        "no_signal": not saturated and (lenient < NO_SIGNAL_LENIENT or base.mixed_share < NO_SIGNAL_MIXED),
        "saturated": saturated,
        "format_gain_expected": POINTS * (lenient - base.pass_at_1) > FORMAT_GAIN_POINTS,
    }


def _by_phase(samples: Iterable[Sample]) -> dict[str, dict[str, list[Sample]]]:
    """Samples by phase and prompt; of those stored twice (a step done again after a kill) the later counts."""
    latest = {sample.key: sample for sample in samples}
    phases: dict[str, dict[str, list[Sample]]] = {}
    for sample in latest.values():
        phases.setdefault(sample.phase, {}).setdefault(sample.prompt_id, []).append(sample)
    return phases


def _complete(groups: Groups, size: int) -> Groups:
    return {prompt: group for prompt, group in groups.items() if len(group) >= size}


def _scores(groups: Groups, lenient: bool) -> list[list[float]]:
    return [
        [(sample.lenient if lenient else sample.strict) or 0.0 for sample in groups[prompt]]
        for prompt in sorted(groups)
    ]


def _mean(groups: Groups, lenient: bool) -> float:
    return fmean(fmean(row) for row in _scores(groups, lenient))


def _spread(row: Sequence[float]) -> float:
    """p(1−p) of a prompt, unbiased for K > 1 samples: K/(K−1) times that of the sampled share."""
    p, k = fmean(row), len(row)
    return p * (1 - p) * (k / (k - 1) if k > 1 else 1.0)


def _curve(phases: Mapping[str, Groups], spent: Spent) -> tuple[StepPoint, ...]:
    """The steps whose update was finished: those that the ledger knows."""
    points = []
    for step, seconds in sorted(spent.steps.items()):
        groups = phases.get(training_phase(step), {})
        everything = [sample for group in groups.values() for sample in group]
        if not everything:
            continue
        points.append(
            StepPoint(
                step=step,
                reward=_mean(groups, lenient=False),
                lenient_reward=_mean(groups, lenient=True),
                zero_spread_share=fmean(len(set(row)) == 1 for row in _scores(groups, lenient=False)),
                truncated_share=fmean(sample.truncated for sample in everything),
                mean_output_tokens=fmean(sample.output_tokens for sample in everything),
                rollout_seconds=seconds.rollout,
                update_seconds=seconds.update,
            )
        )
    return tuple(points)


def _gain(before: Groups, after: Groups, lenient: bool) -> PairedGain:
    return paired_gain(_scores(before, lenient), _scores(after, lenient))


def _as_gain(gain: PairedGain) -> Gain:
    return Gain(
        before=gain.before / POINTS,
        after=gain.after / POINTS,
        gain=gain.gain,
        ci_low=gain.low,
        ci_high=gain.high,
        p_gain_positive=gain.p_positive,
    )


def _gained(gain: PairedGain, cost: float | None) -> dict[str, float | None]:
    per_usd = points_per_usd(gain.interval, cost) if cost else None
    return {
        "gain": gain.gain,
        "ci_low": gain.low,
        "ci_high": gain.high,
        "p_gain_positive": gain.p_positive,
        "after": gain.after / POINTS,
        "points_per_usd": per_usd.estimate if per_usd else None,
        "points_per_usd_low": per_usd.low if per_usd else None,
        "points_per_usd_high": per_usd.high if per_usd else None,
        "usd_per_point": cost / gain.gain if cost and gain.low > 0 else None,
    }


def _early_state(settings: GrpoProbe, prompts: int, gates: Mapping[str, bool], curve: Sequence[StepPoint]) -> str:
    if settings.stop_at_gates and prompts == settings.held_out_prompts and not curve:
        if gates["saturated"]:
            return "saturated"
        if gates["no_signal"]:
            return "no signal"
    return "unfinished"


def _state(gain: PairedGain) -> str:
    if gain.low > 0:
        return "gain"
    if gain.high < 0:
        return "loss"
    return "undecided: extend" if (gain.high - gain.low) / 2 > UNDECIDED_HALF_WIDTH else "no gain detected"


def _usd(attempt: Attempt, seconds: Mapping[str, float], *phases: str) -> float | None:
    if attempt.price is None:
        return None
    total = sum(seconds.get(phase, 0.0) for phase in phases) * attempt.device_count
    return usd(total, attempt.price.usd_per_hour)
