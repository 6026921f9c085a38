"""Intervals: they hold what they promise, on shapes of data that GRPO probes give."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlbench.core.statistics import (
    Interval,
    accuracy_interval,
    fieller,
    joint_draws,
    paired_gain,
    pass_at_k,
    points_per_usd,
    student_t_quantile,
)
from rlbench.errors import InputError

outcomes = st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=6), min_size=1, max_size=30)


def beta_scores(generator: random.Random, problems: int, samples: int, a: float, b: float) -> list[list[float]]:
    rates = [generator.betavariate(a, b) for _ in range(problems)]
    return [[float(generator.random() < rate) for _ in range(samples)] for rate in rates]


@pytest.mark.parametrize(
    ("probability", "degrees", "expected"), [(0.975, 1, 12.7062), (0.975, 9, 2.2622), (0.95, 127, 1.6569)]
)
def test_student_t_quantiles_are_those_of_the_tables(probability: float, degrees: int, expected: float) -> None:
    assert student_t_quantile(probability, degrees) == pytest.approx(expected, abs=1e-4)


@given(outcomes)
def test_an_accuracy_lies_within_its_interval_within_0_and_1(scores: list[list[float]]) -> None:
    interval = accuracy_interval(scores)
    assert 0 <= interval.low <= interval.estimate <= interval.high <= 1
    assert interval.high - interval.low > 0.001


@given(outcomes)
def test_fewer_problems_never_give_a_narrower_accuracy_interval(scores: list[list[float]]) -> None:
    few, many = accuracy_interval(scores), accuracy_interval(scores * 3)
    assert many.high - many.low <= few.high - few.low + 1e-12


def test_samples_of_one_problem_do_not_count_as_problems() -> None:
    all_alike = [[1.0] * 8, [0.0] * 8] * 15
    interval, single = accuracy_interval(all_alike), accuracy_interval([[1.0], [0.0]] * 15)
    assert interval == pytest.approx(single)
    assert interval.high - interval.low == pytest.approx(0.35, abs=0.03)  # binomial for n = 30, not for 240


@pytest.mark.parametrize(
    ("problems", "samples", "a", "b"), [(30, 1, 1.0, 1.0), (40, 4, 0.3, 2.7), (128, 8, 2.0, 2.0), (30, 8, 0.3, 0.3)]
)
def test_accuracy_intervals_cover(problems: int, samples: int, a: float, b: float) -> None:
    generator = random.Random(7)
    runs, truth = 300, a / (a + b)
    intervals = [accuracy_interval(beta_scores(generator, problems, samples, a, b)) for _ in range(runs)]
    covered = sum(interval.low <= truth <= interval.high for interval in intervals) / runs
    assert 0.91 <= covered <= 0.99


def test_pass_at_k_is_the_unbiased_estimator() -> None:
    # One of four right: of the six pairs, three hold it.
    assert pass_at_k([[1.0, 0.0, 0.0, 0.0]], 2) == pytest.approx(0.5)
    assert pass_at_k([[1.0, 0.0, 0.0, 0.0], [0.0] * 4], 2) == pytest.approx(0.25)
    assert pass_at_k([[0.0, 1.0], [0.0, 0.0, 1.0, 1.0]], 1) == pytest.approx(0.5)


@given(outcomes)
def test_more_tries_never_lower_pass_at_k(scores: list[list[float]]) -> None:
    fewest = min(len(row) for row in scores)
    rates = [pass_at_k(scores, k) for k in range(1, fewest + 1)]
    assert rates == sorted(rates)
    assert all(0 <= rate <= 1 for rate in rates)


def test_pass_at_k_refuses_more_tries_than_samples() -> None:
    with pytest.raises(InputError, match="pass@3 needs at least 3 samples of every problem; one has 2"):
        pass_at_k([[1.0, 0.0], [1.0, 0.0, 0.0]], 3)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=30))
def test_a_paired_gain_lies_within_its_interval(counts: list[tuple[int, int]]) -> None:
    before = [[1.0] * a + [0.0] * (8 - a) for a, _ in counts]
    after = [[1.0] * b + [0.0] * (8 - b) for _, b in counts]
    gain = paired_gain(before, after)
    assert -100 <= gain.low <= gain.gain <= gain.high <= 100
    assert gain.high - gain.low > 0.01
    assert gain.gain == pytest.approx(gain.after - gain.before)
    reverse = paired_gain(after, before)
    assert (reverse.gain, reverse.low, reverse.high) == pytest.approx((-gain.gain, -gain.high, -gain.low))
    assert reverse.p_positive == pytest.approx(1 - gain.p_positive)


def test_gain_intervals_cover_and_pairing_makes_them_narrow() -> None:
    generator = random.Random(11)
    runs, covered, widths = 400, 0, []
    for _ in range(runs):
        rates = [generator.betavariate(1, 1.5) for _ in range(64)]
        lifted = [rate + 0.15 * rate * (1 - rate) for rate in rates]
        truth = 100 * 0.15 * (0.4 - (0.4 * 0.6 / 3.5 + 0.16))  # E[p(1−p)] of Beta(1, 1.5), times .15
        before = [[float(generator.random() < rate) for _ in range(8)] for rate in rates]
        after = [[float(generator.random() < rate) for _ in range(8)] for rate in lifted]
        gain = paired_gain(before, after)
        covered += gain.low <= truth <= gain.high
        widths.append(gain.high - gain.low)
    assert 0.92 <= covered / runs <= 0.98
    assert sum(widths) / runs < 12  # unpaired it would be about 20


def test_a_planted_gain_is_found_and_no_gain_is_not() -> None:
    generator = random.Random(3)
    before = beta_scores(generator, 128, 8, 2, 3)
    same = beta_scores(generator, 128, 8, 2, 3)
    lifted = [[min(score + (generator.random() < 0.3), 1.0) for score in row] for row in before]
    found = paired_gain(before, lifted)
    assert found.interval.excludes_zero
    assert found.p_positive > 0.999
    assert not paired_gain(before, same).interval.excludes_zero


def test_a_gain_of_nothing_still_has_a_width() -> None:
    gain = paired_gain([[0.0] * 8] * 64, [[0.0] * 8] * 64)
    assert gain.gain == 0
    assert gain.low < 0 < gain.high
    assert gain.p_positive == pytest.approx(0.5)


@pytest.mark.parametrize("scores", [[], [[]], [[1.0], []], [[1.5]], [[float("nan")]]])
def test_scores_that_are_none_are_refused(scores: list[list[float]]) -> None:
    with pytest.raises(InputError):
        accuracy_interval(scores)


def test_a_gain_over_different_problems_is_refused() -> None:
    with pytest.raises(InputError, match="got 2 before, 1 after"):
        paired_gain([[1.0], [0.0]], [[1.0]])


def test_points_per_dollar() -> None:
    assert points_per_usd(Interval(5, 2, 9), 2) == pytest.approx((2.5, 1, 4.5))
    noisy = points_per_usd(Interval(5, 2, 9), 2, usd_standard_error=0.4)
    assert noisy.low < 1
    assert noisy.high > 4.5
    with pytest.raises(InputError, match="cost above zero"):
        points_per_usd(Interval(5, 2, 9), 0)


def test_fieller_is_the_published_interval_where_the_gain_is_known_from_zero() -> None:
    ratio = fieller(10, 0, 5, 1)
    assert ratio is not None
    # Without noise in the cost, Fieller inverts the gain's own interval.
    assert ratio == pytest.approx((2, 10 / (5 + 1.959964), 10 / (5 - 1.959964)))
    assert fieller(10, 1, 1, 1) is None
    assert fieller(10, 1, 0, 0) is None
    exact = fieller(10, 1, 5, 0)
    assert exact == pytest.approx((2, 2 - 1.959964 / 5, 2 + 1.959964 / 5))


def test_fieller_covers() -> None:
    generator = random.Random(5)
    runs, covered, bounded = 2000, 0, 0
    for _ in range(runs):
        gain, cost = generator.gauss(8, 1.55), generator.gauss(10, 0.3)
        interval = fieller(cost, 0.3, gain, 1.55)
        if interval is not None:
            bounded += 1
            covered += interval.low <= 10 / 8 <= interval.high
    assert bounded > 0.99 * runs
    assert 0.93 <= covered / bounded <= 0.97


def test_joint_draws_are_the_same_every_time_and_keep_each_side_of_an_interval() -> None:
    draws = joint_draws([Interval(0, -1, 4), Interval(10, 10, 10)], count=4000)
    assert draws == joint_draws([Interval(0, -1, 4), Interval(10, 10, 10)], count=4000)
    first = sorted(row[0] for row in draws)
    assert first[100] == pytest.approx(-1, abs=0.1)
    assert first[-101] == pytest.approx(4, abs=0.3)
    assert {row[1] for row in draws} == {10}
