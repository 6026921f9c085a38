"""The ranking: what is ranked together, what is tied, what is not shown."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlbench.core.cost import Cost, Price
from rlbench.core.ranking import NOT_SHOWN, Ranking, rank, rank_anew, tie_letters
from rlbench.core.record import BaseStatistics, ProbeValues, Record
from rlbench.core.subject import Subject

PRICE = Price(device="test-gpu", usd_per_hour=3.6, provider="test", date="2026-01-01", source="made up for a test")


def probe(model: str, gain: float, half: float, usd: float = 1.0, **changes: object) -> Record:
    """A probe of `gain` ± `half` points that cost `usd` dollars."""
    task = str(changes.pop("task", "toy"))
    status = changes.pop("status", "ok")
    priced = changes.pop("priced", True)
    values = ProbeValues(
        task=task,
        n_prompts=64,
        samples_per_prompt=8,
        gain=gain,
        ci_low=gain - half,
        ci_high=gain + half,
        before=30.0,
        after=30.0 + gain,
        base=BaseStatistics(
            pass_at_1=0.3, mean_p_one_minus_p=0.1, all_right_share=0.1, all_wrong_share=0.2, mixed_share=0.7,
            truncated_share=0.0, mean_output_tokens=20,
        ),
        steps=10,
        rollouts=320,
        gpu_seconds=usd * 1000,
        state="gain",
    )  # fmt: skip
    return Record.model_validate(
        {
            "subject": Subject(model=model, mode="no_think", task=task, max_new_tokens=32),
            "provenance": "measured",
            "source": "made up for a test",
            "created": "2026-01-01T00:00:00+00:00",
            "cost": Cost(phase_seconds={"update": usd * 1000}, device="test-gpu", price=PRICE if priced else None),
            "status": status,
            "values": values.model_copy(update=changes),
        }
    )


def unfinished() -> Record:
    record = probe("a", 9, 1)
    assert isinstance(record.values, ProbeValues)
    return record.model_copy(update={"values": record.values.model_copy(update={"gain": None})})


def names(ranking: Ranking) -> list[str]:
    return [entry.model for entry in ranking.ranked]


def test_points_per_dollar_decide_not_points() -> None:
    ranking = rank([probe("big", 20, 1, usd=10), probe("small", 10, 1, usd=1)])
    assert names(ranking) == ["small", "big"]
    first, second = ranking.ranked
    assert (first.rank_low, first.rank_high, second.rank_low, second.rank_high) == (1, 1, 2, 2)
    assert first.points_per_usd == pytest.approx(10)
    assert first.p_best > 0.99
    assert ranking.ties == ()


def test_what_the_data_do_not_decide_is_a_tie_and_the_ranks_say_so() -> None:
    ranking = rank([probe("a", 10, 4), probe("b", 9, 4), probe("c", 0.5, 1)])
    ranks = {entry.model: (entry.rank_low, entry.rank_high) for entry in ranking.ranked}
    assert ranks == {"a": (1, 2), "b": (1, 2), "c": (3, 3)}
    assert [tie.models for tie in ranking.ties] == [("a", "b")]
    assert tie_letters(ranking.groups[0], ranking.ties) == {"a": "a", "b": "a", "c": ""}


def test_overlapping_ties_are_named_apart() -> None:
    ranking = rank([probe("a", 12, 4), probe("b", 8, 4), probe("c", 4, 4)])
    assert [tie.models for tie in ranking.ties] == [("a", "b"), ("b", "c")]


def test_dollars_per_point_only_where_the_gain_lies_above_zero() -> None:
    sure, unsure, loss = rank([probe("a", 10, 4), probe("b", 3, 4), probe("c", -6, 4)]).ranked
    assert sure.usd_per_point == pytest.approx(0.1)
    assert sure.usd_per_point_low == pytest.approx(1 / 14)
    assert sure.usd_per_point_high == pytest.approx(1 / 6)
    assert (unsure.usd_per_point, unsure.usd_per_point_note) == (None, NOT_SHOWN)
    assert (loss.usd_per_point, loss.usd_per_point_note) == (None, "not shown: the reward fell")


def test_only_like_is_ranked_with_like() -> None:
    ranking = rank([probe("a", 10, 1), probe("b", 5, 1), probe("a", 1, 1, task="other"), probe("c", 9, 1, steps=20)])
    assert [[entry.model for entry in group] for group in ranking.groups] == [["a", "b"], ["a"], ["c"]]
    assert all(entry.rank_low == entry.rank_high == 1 for group in ranking.groups[1:] for entry in group)


@pytest.mark.parametrize("record", [unfinished(), probe("a", 9, 1, status="failed"), probe("a", 9, 1, priced=False)])
def test_what_did_not_end_or_has_no_price_is_not_ranked(record: Record) -> None:
    assert rank([record]).ranked == ()


def test_dollars_are_derived_from_the_seconds_and_the_budget_is_marked() -> None:
    ranking = rank([probe("a", 10, 1, usd=2.0), probe("b", 10, 1, usd=9.0)], budget_usd=5)
    assert [(e.usd, e.within_budget) for e in ranking.ranked] == [(pytest.approx(2), True), (pytest.approx(9), False)]


def test_without_what_is_not_to_be_had_the_places_move_up() -> None:
    ranked = rank([probe("dear", 30, 1, usd=1.0), probe("a", 10, 1), probe("b", 3, 1)]).ranked
    assert [(e.model, e.rank_low, e.rank_high) for e in rank_anew(ranked[1:])] == [("a", 1, 1), ("b", 2, 2)]
    assert rank_anew([]) == []


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.floats(-20, 40), st.floats(0.5, 20), st.floats(0.1, 10)), min_size=1, max_size=5))
def test_a_ranking_holds_together(gains: list[tuple[float, float, float]]) -> None:
    ranking = rank([probe(f"m{i}", *gain) for i, gain in enumerate(gains)])
    group = ranking.groups[0]
    assert sum(entry.p_best for entry in group) == pytest.approx(1)
    assert group[0].rank_low == 1
    for entry in group:
        assert 1 <= entry.rank_low <= entry.rank_high <= len(gains)
    tied = {name for tie in ranking.ties for name in tie.models}
    assert {entry.name for entry in group if entry.rank_low < entry.rank_high} <= tied


def test_the_best_model_is_in_the_top_tie_set_and_p_best_is_honest() -> None:
    generator = random.Random(4)
    runs, held, confidence, right = 60, 0, 0.0, 0
    for _ in range(runs):
        truth = [generator.gauss(8, 4) for _ in range(4)]
        estimates = [t + generator.gauss(0, 2) for t in truth]
        ranking = rank([probe(f"m{i}", estimate, 1.96 * 2) for i, estimate in enumerate(estimates)])
        best = f"m{truth.index(max(truth))}"
        held += any(entry.rank_low == 1 for entry in ranking.ranked if entry.model == best)
        confidence += ranking.ranked[0].p_best
        right += ranking.ranked[0].model == best
    assert held / runs > 0.94
    assert right / runs == pytest.approx(confidence / runs, abs=0.13)
