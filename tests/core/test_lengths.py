"""Completion lengths: under the cap, with the mean asked for, the same when asked again."""

from statistics import fmean

from hypothesis import given
from hypothesis import strategies as st

from rlbench.core.lengths import completion_lengths


@given(share=st.floats(0.05, 0.9), cap=st.integers(200, 40_000), count=st.integers(40, 400), sigma=st.floats(0.2, 1.4))
def test_the_mean_holds_under_the_cap(share: float, cap: int, count: int, sigma: float) -> None:
    lengths = completion_lengths(share * cap, cap, count, sigma)
    assert len(lengths) == count
    assert all(1 <= length <= cap for length in lengths)
    assert abs(fmean(lengths) / (share * cap) - 1) < 0.12


def test_no_spread_and_a_mean_at_the_cap_give_one_length() -> None:
    assert set(completion_lengths(30, 100, 5, 0.0)) == {30}
    assert set(completion_lengths(500, 100, 5, 1.0)) == {100}


def test_draws_repeat_by_seed_and_differ_between_seeds() -> None:
    first = completion_lengths(100, 1000, 50, 1.0, seed=1)
    assert first == completion_lengths(100, 1000, 50, 1.0, seed=1)
    assert first != completion_lengths(100, 1000, 50, 1.0, seed=2)
