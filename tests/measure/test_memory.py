"""The memory room on the CPU: a tiny model, real and traced steps, every regime's bytes counted from live tensors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlbench.core.job import Attempt, EngineSpec, Job, MemoryCheck, Regime, Targets
from rlbench.core.memory import STATES
from rlbench.core.record import MemoryValues, Outcome
from rlbench.core.sample import Sample
from rlbench.core.subject import Subject
from rlbench.measure import memory
from rlbench.measure.context import Context, Deadline


def no_samples() -> Iterator[Sample]:
    return iter(())


def step(folder: Path, scratch: Path, **settings: Any) -> Outcome:
    job = Job(
        subject=Subject(model="tiny"),
        settings=MemoryCheck(**{"seq_len": 32, "micro_batch": 2, **settings}),
        engine=EngineSpec(random_weights=True),
        versions={},
        device="cpu",
    )
    attempt = Attempt(number=1, targets=Targets(), model_path=folder, command="a test", started="2026-12-01T00:00:00")
    context = Context(attempt, no_samples, lambda _: None, lambda *_: None, Deadline(), scratch)
    return memory.run(job, context)


def values_of(outcome: Outcome) -> MemoryValues:
    assert isinstance(outcome.values, MemoryValues)
    return outcome.values


@pytest.mark.parametrize("regime", list(STATES))
def test_live_tensors_are_what_each_regime_claims(tiny_model: Path, tmp_path: Path, regime: Regime) -> None:
    outcome = step(tiny_model, tmp_path, regime=regime)
    values = values_of(outcome)
    each, count = STATES[regime], values.parameters
    assert outcome.provenance == "measured"
    assert values.bytes_per_parameter == each.total
    assert values.weights_bytes == (each.weights + each.master) * count
    assert values.gradients_bytes == each.gradients * count
    assert values.optimizer_bytes == each.optimizer * count
    assert set(values.phase_bytes) == {"forward", "backward begins", "backward ends", "optimizer step"}


@pytest.mark.parametrize("regime", list(STATES))
def test_the_traced_step_counts_the_same(tiny_model: Path, tmp_path: Path, regime: Regime) -> None:
    outcome = step(tiny_model, tmp_path, regime=regime, run="traced")
    values = values_of(outcome)
    assert outcome.provenance == "traced"
    assert values.bytes_per_parameter == STATES[regime].total
    assert values.parameters == values_of(step(tiny_model, tmp_path, regime=regime)).parameters
    assert values.peak_bytes >= values.states_bytes


def test_longer_sequences_hold_more_and_checkpointing_less(tiny_model: Path, tmp_path: Path) -> None:
    short = values_of(step(tiny_model, tmp_path, regime="bf16", run="traced", seq_len=64))
    long = values_of(step(tiny_model, tmp_path, regime="bf16", run="traced", seq_len=128))
    again = values_of(
        step(tiny_model, tmp_path, regime="bf16", run="traced", seq_len=128, checkpointing="full")
    )  # fmt: skip
    assert short.phase_bytes["forward"] < long.phase_bytes["forward"]
    assert again.phase_bytes["forward"] < long.phase_bytes["forward"]
    assert again.states_bytes == long.states_bytes


def test_an_attempt_that_ended_early_leaves_no_figure(tiny_model: Path) -> None:
    attempt = Attempt(number=1, targets=Targets(), model_path=tiny_model, command="a test", started="2026-12-01")
    job = Job(
        subject=Subject(model="tiny"),
        settings=MemoryCheck(regime="fp32", seq_len=8, micro_batch=1),
        engine=EngineSpec(),
        versions={},
        device="cpu",
    )
    assert memory.summarise(job, attempt, no_samples()).values is None
