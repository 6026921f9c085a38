"""Intervals for accuracies, gains and their ratios to a cost.

A *problem* (or prompt) is the unit that is drawn from the world; its K samples share its difficulty, so every
interval here is taken over problems, never over samples. 95% throughout, unless `confidence` says otherwise.
These intervals cover the choice of problems and of samples, not the seed of a training run.
"""

import math
import random
from collections.abc import Sequence
from statistics import NormalDist, fmean, variance
from typing import NamedTuple

from rlbench.errors import InputError

CONFIDENCE = 0.95
POINTS = 100.0
"""1 point is 0.01 of success."""

Scores = Sequence[Sequence[float]]
"""`scores[i][j]`: score in [0, 1] of sample j of problem i. K may differ between problems."""


class Interval(NamedTuple):
    """An estimate with the limits of its confidence interval; `low <= estimate <= high`."""

    estimate: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


class PairedGain(NamedTuple):
    """After − before over the same problems. All but the last in points; `before` and `after` too."""

    before: float
    after: float
    gain: float
    low: float
    high: float
    p_positive: float
    """Confidence, 0 to 1, that the gain is above zero (one-sided t)."""

    @property
    def interval(self) -> Interval:
        return Interval(self.gain, self.low, self.high)


def student_t_quantile(probability: float, degrees_of_freedom: float) -> float:
    """The t with P(T <= t) = `probability`."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, probability))


def student_t_cdf(t: float, degrees_of_freedom: float) -> float:
    """P(T <= t)."""
    from scipy.special import stdtr

    return float(stdtr(degrees_of_freedom, t))


def accuracy_interval(scores: Scores, confidence: float = CONFIDENCE) -> Interval:
    """Mean score with an interval clustered by problem, inside [0, 1] and never of zero width.

    Wilson's score interval, with Student's t for the normal quantile and with the effective number of
    independent samples n* = p(1−p) / (s²/n) for the number of trials, where s² is the variance of the n
    problem means (Korn and Graubard 1998 use the same n* in an exact interval). n* lies between n and n·K;
    where every sample scored alike nothing is known of how problems differ, and n* = n.

    Raises:
        InputError: there is no problem, or one without samples, or a score outside [0, 1].
    """
    means = _problem_means(scores)
    n = len(means)
    p = fmean(means)
    trials = float(n)
    if n > 1 and 0 < p < 1:
        spread = variance(means) / n
        samples = float(sum(len(row) for row in scores))
        trials = min(samples, p * (1 - p) / spread) if spread > 0 else samples
    low, high = _wilson(p, trials, _two_sided_t(n, confidence))
    return Interval(p, min(low, p), max(high, p))


def pass_at_k(scores: Scores, k: int) -> float:
    """Chance that at least one of k samples is right, averaged over problems.

    The unbiased estimator 1 − C(n−c, k) / C(n, k) of Chen et al. 2021 (arXiv 2107.03374), n samples of a
    problem of which c are right. A sample is right when it scores 1.

    Raises:
        InputError: k is below 1, or a problem has fewer than k samples.
    """
    _problem_means(scores)
    fewest = min(len(row) for row in scores)
    if not 1 <= k <= fewest:
        raise InputError(f"pass@{k} needs at least {max(k, 1)} samples of every problem; one has {fewest}.")
    return fmean(_pass_at_k(len(row), sum(score >= 1 for score in row), k) for row in scores)


def paired_gain(before: Scores, after: Scores, confidence: float = CONFIDENCE) -> PairedGain:
    """Mean difference of the problem means, with a t interval over problems.

    `before[i]` and `after[i]` are samples of the same problem; their numbers may differ. With d the P
    differences: gain = mean(d), SE = sd(d)/√P, interval ± t(P−1)·SE (probes.md §2.6, E1; its coverage on
    real GRPO data was 94–95%). Where every problem moved alike, sd(d) says nothing about the noise, and the
    binomial noise of the samples (at smoothed success rates) takes its place.

    Raises:
        InputError: the two do not hold the same number of problems, or a score is outside [0, 1].
    """
    if len(before) != len(after):
        raise InputError(f"a paired gain needs the same problems twice; got {len(before)} before, {len(after)} after.")
    first, second = _problem_means(before), _problem_means(after)
    differences = [b - a for a, b in zip(first, second, strict=True)]
    n, gain = len(differences), fmean(differences)
    spread = variance(differences) / n if n > 1 else 0.0
    # Equal differences leave a spread of rounding errors only.
    error = math.sqrt(spread) if spread > 1e-20 else math.sqrt(_sampling_variance(before) + _sampling_variance(after))
    half = _two_sided_t(n, confidence) * error
    return PairedGain(
        before=POINTS * fmean(first),
        after=POINTS * fmean(second),
        gain=POINTS * gain,
        low=POINTS * max(gain - half, -1.0),
        high=POINTS * min(gain + half, 1.0),
        p_positive=student_t_cdf(gain / error, max(n - 1, 1)),
    )


def points_per_usd(gain: Interval, usd: float, usd_standard_error: float = 0.0) -> Interval:
    """Points gained for each dollar, with its interval.

    G = D/C, SE² = s_D²/C² + D²·s_C²/C⁴ (delta method in C, whose noise is small; exact in D), each side of
    the gain's interval by itself. Unlike C/D this keeps its coverage when the gain is near zero.

    Raises:
        InputError: the cost is not above zero.
    """
    if not usd > 0:
        raise InputError(f"points per dollar need a cost above zero; got {usd} USD: give a price with --price.")
    ratio = gain.estimate / usd
    from_cost = _z(CONFIDENCE) * abs(ratio) * usd_standard_error / usd
    below = math.hypot((gain.estimate - gain.low) / usd, from_cost)
    above = math.hypot((gain.high - gain.estimate) / usd, from_cost)
    return Interval(ratio, ratio - below, ratio + above)


def fieller(
    cost: float,
    cost_standard_error: float,
    gain: float,
    gain_standard_error: float,
    correlation: float = 0.0,
    quantile: float = 1.959964,
) -> Interval | None:
    """Cost of one point, R = C/D, with Fieller's interval; `None` when the gain cannot be told from zero.

    C cost, D gain, s_C and s_D their standard errors, ρ their correlation, z the quantile, g = (z·s_D/D)²:
    [R − gρs_C/s_D ± (z/D)·√(s_C² + R²s_D² − 2Rρs_C·s_D − g·s_C²(1−ρ²))] / (1−g). For g ≥ 1 the set is
    unbounded. A negative gain gives a negative R, which is a loss, not a bargain.
    """
    if gain == 0 or (quantile * gain_standard_error / gain) ** 2 >= 1:
        return None
    c, s_c, d, s_d, rho = cost, cost_standard_error, gain, gain_standard_error, correlation
    g = (quantile * s_d / d) ** 2
    ratio = c / d
    # g·ρ·s_C/s_D written without the division, so that an exactly known gain needs no case of its own.
    centre = ratio - quantile**2 * s_d * rho * s_c / d**2
    inside = s_c**2 + ratio**2 * s_d**2 - 2 * ratio * rho * s_c * s_d - g * s_c**2 * (1 - rho**2)
    half = abs(quantile / d) * math.sqrt(max(inside, 0.0))
    return Interval(ratio, (centre - half) / (1 - g), (centre + half) / (1 - g))


def joint_draws(estimates: Sequence[Interval], count: int = 10_000, seed: int = 0) -> list[list[float]]:
    """`count` draws of every quantity at once, each normal around its estimate (a parametric bootstrap).

    The standard error is the half-width over 1.96, each side of an asymmetric interval by itself; with t
    intervals that errs a little to the wide side.

    Returns:
        Rows of the shape [count][len(estimates)].
    """
    generator = random.Random(seed)
    z = _z(CONFIDENCE)
    sides = [(e.estimate, (e.estimate - e.low) / z, (e.high - e.estimate) / z) for e in estimates]
    rows = []
    for _ in range(count):
        row = []
        for middle, below, above in sides:
            noise = generator.gauss(0.0, 1.0)
            row.append(middle + noise * (below if noise < 0 else above))
        rows.append(row)
    return rows


def _problem_means(scores: Scores) -> list[float]:
    if not scores or not all(scores):
        raise InputError("a mean score needs at least one problem, and at least one sample of each.")
    if not all(0 <= score <= 1 for row in scores for score in row):
        raise InputError("a score lies outside 0 to 1: intervals are defined for shares of success only.")
    return [fmean(row) for row in scores]


def _wilson(p: float, trials: float, quantile: float) -> tuple[float, float]:
    """Wilson's score interval for a share `p` of `trials`."""
    square = quantile**2
    centre = (p + square / (2 * trials)) / (1 + square / trials)
    half = quantile / (1 + square / trials) * math.sqrt(p * (1 - p) / trials + square / (4 * trials**2))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def _sampling_variance(scores: Scores) -> float:
    samples = sum(len(row) for row in scores)
    smoothed = (sum(sum(row) for row in scores) + 1) / (samples + 2)
    return smoothed * (1 - smoothed) / samples


def _pass_at_k(samples: int, right: int, k: int) -> float:
    return 1 - math.comb(samples - right, k) / math.comb(samples, k)


def _two_sided_t(problems: int, confidence: float) -> float:
    # One problem leaves no degree of freedom; one is the widest interval there is.
    return student_t_quantile((1 + confidence) / 2, max(problems - 1, 1))


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
