"""The rollout room on a tiny real model, and its arithmetic on made-up samples."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlbench.core.cost import Price
from rlbench.core.job import Attempt, EngineSpec, Job, RolloutMeasurement, Targets
from rlbench.core.record import Outcome, RolloutValues
from rlbench.core.sample import Sample
from rlbench.core.subject import Sampling, Subject
from rlbench.core.workload import Workload
from rlbench.measure import rollouts
from rlbench.measure.context import Context, Deadline, DeadlineReached

SMALL = Workload(prompts=3, group_size=2, prompt_len=60, max_new_tokens=8)


def job(workload: Workload = SMALL, batch_size: int = 4) -> Job:
    return Job(
        subject=Subject(model="tiny", mode="no_think", max_new_tokens=workload.max_new_tokens, sampling=Sampling()),
        settings=RolloutMeasurement(workload=workload),
        engine=EngineSpec(batch_size=batch_size),
        versions={},
        device="cpu",
    )


def attempt(folder: Path, repeats: int = 2) -> Attempt:
    price = Price(device="cpu", usd_per_hour=3.6, provider="p", date="2026-01-01", source="s")
    return Attempt(
        number=1, targets=Targets(repeats=repeats), model_path=folder, command="a test",
        started="2026-12-01T00:00:00", price=price,
    )  # fmt: skip


def measure(asked: Job, folder: Path, scratch: Path, stored: list[Sample], repeats: int = 2) -> Outcome:
    context = Context(
        attempt(folder, repeats), lambda: iter(list(stored)), stored.append, lambda *_: None, Deadline(), scratch
    )
    return rollouts.run(asked, context)


def values_of(outcome: Outcome) -> RolloutValues:
    assert isinstance(outcome.values, RolloutValues)
    return outcome.values


def test_a_workload_is_measured_from_end_to_end(tiny_model: Path, tmp_path: Path) -> None:
    stored: list[Sample] = []
    outcome = measure(job(), tiny_model, tmp_path, stored)
    values = values_of(outcome)
    assert outcome.status == "ok"
    assert {(s.phase, s.index) for s in stored} == {(f"repeat-{n}", i) for n in (1, 2) for i in (0, 1)}
    assert len(stored) == 12
    assert all(s.prompt_tokens > 40 for s in stored)
    assert values.repeats == 2
    assert values.elapsed_seconds is not None
    assert values.output_tokens_per_second_low is not None
    assert values.output_tokens_per_second_low <= values.output_tokens_per_second
    assert values.mean_output_tokens == pytest.approx(sum(s.output_tokens for s in stored) / 12)
    assert values.usd_per_thousand_rollouts == pytest.approx(values.elapsed_seconds * 0.001 / 6 * 1000)
    assert (values.start_up_seconds or 0) > 0
    assert (values.peak_reserved_bytes or 0) > 1e6
    assert set(outcome.phase_seconds) == {"start-up", "warm-up", "rollout"}

    again = measure(job(), tiny_model, tmp_path, stored, repeats=3)
    assert len(stored) == 18
    assert values_of(again).repeats == 3


def test_an_unfinished_pass_is_left_out_and_named(tiny_model: Path, tmp_path: Path) -> None:
    stored: list[Sample] = []
    measure(job(), tiny_model, tmp_path, stored, repeats=1)
    cut = stored[:4]
    outcome = measure(job(), tiny_model, tmp_path, cut, repeats=1)
    assert [s.phase for s in cut] == ["repeat-1"] * 4 + ["repeat-2"] * 6
    assert values_of(outcome).repeats == 1
    assert outcome.detail == "1 unfinished pass left out"
    nothing = rollouts.summarise(job(), attempt(tiny_model), iter(stored[:3]))
    assert (nothing.status, nothing.values) == ("partial", None)


def test_forced_lengths_are_what_was_asked(tiny_model: Path, tmp_path: Path) -> None:
    stored: list[Sample] = []
    fixed = SMALL.model_copy(update={"lengths": "fixed", "mean_new_tokens": 5.0})
    values = values_of(measure(job(fixed), tiny_model, tmp_path, stored, repeats=1))
    assert {s.output_tokens for s in stored} == {5}
    assert values.truncated_share == 0
    assert values.straggler_share == pytest.approx(0, abs=0.05)


def test_short_prompts_are_filled_up_to_the_workload_s_length(tiny_model: Path, tmp_path: Path) -> None:
    stored: list[Sample] = []
    long = SMALL.model_copy(update={"prompt_len": 300, "prompts": 2})
    measure(job(long), tiny_model, tmp_path, stored, repeats=1)
    assert all(200 <= s.prompt_tokens <= 400 for s in stored)


def test_the_deadline_ends_a_pass(tiny_model: Path, tmp_path: Path) -> None:
    stored: list[Sample] = []
    context = Context(attempt(tiny_model), lambda: iter(()), stored.append, lambda *_: None, Deadline(1e-6), tmp_path)
    with pytest.raises(DeadlineReached):
        rollouts.run(job(), context)
    assert len(stored) == 1


def made_up(finished: list[float], tokens: list[int], phase: str = "repeat-1") -> Iterator[Sample]:
    for number, (seconds, count) in enumerate(zip(finished, tokens, strict=True)):
        yield Sample(
            phase=phase, prompt_id=str(number // 2), index=number % 2, seed=0, prompt_tokens=10, answer_tokens=count,
            finish_reason="stop", text="", finished_seconds=seconds,
        )  # fmt: skip


def test_idle_slots_are_counted_by_batch() -> None:
    one = rollouts.timed(list(made_up([1, 2, 4, 6, 8, 10], [10] * 6)), batch_size=4)
    # The first batch ends at 6 s and holds 4 slots, idle 5 + 4 + 2; the second takes 4 s and holds 2, idle 2.
    assert one.seconds == 10
    assert one.straggler_share == pytest.approx((5 + 4 + 2 + 2) / (4 * 6 + 2 * 4))
    assert one.tokens_per_second == 6


def test_repeats_that_differ_widen_the_interval(tmp_path: Path) -> None:
    def between(last: float) -> tuple[float | None, float | None]:
        samples = [*made_up([10.0] * 6, [10] * 6), *made_up([last] * 6, [10] * 6, "repeat-2")]
        values = values_of(rollouts.summarise(job(), attempt(tmp_path), iter(samples)))
        return values.output_tokens_per_second_low, values.output_tokens_per_second_high

    assert between(10.0) == (6, 6)
    low, high = between(11.0)
    assert low is not None
    assert high is not None
    assert low < 60 / 11 < 6 < high
    single = rollouts.summarise(job(), attempt(tmp_path), made_up([10.0] * 6, [10] * 6))
    assert values_of(single).output_tokens_per_second_low is None
