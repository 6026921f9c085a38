"""Probes through the real TRL on a tiny model: what is stored, what is reported, and that a kill changes nothing."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlbench.core.cost import Price
from rlbench.core.job import Attempt, EngineSpec, GrpoProbe, Job, Targets
from rlbench.core.record import BaseStatistics, Outcome, ProbeValues
from rlbench.core.sample import Sample, SampleKey
from rlbench.core.subject import Sampling, Subject
from rlbench.errors import RlbenchError
from rlbench.grading.generated import Scores
from rlbench.measure.context import Context, Deadline, DeadlineReached
from rlbench.measure.probe import room
from rlbench.measure.probe.ledger import read_ledger
from rlbench.measure.probe.prompts import held_out_prompts, training_order, training_prompts
from rlbench.measure.probe.summary import base_statistics, find_gates

pytestmark = pytest.mark.filterwarnings(
    # TRL 1.16 still speaks of gradient checkpointing as transformers 5.24 no longer does.
    "ignore:.*gradient_checkpointing.*:FutureWarning",
    "ignore::DeprecationWarning",
)

PRICE = Price(device="cpu", usd_per_hour=0.1, provider="test", date="2026-01-01", source="made up")


class Killed(Exception):
    """Stands for a kill: the attempt ends between two samples."""


def a_job(task: str = "short-answer", **settings: object) -> Job:
    chosen = {
        "prompts_per_step": 2, "group_size": 4, "micro_batch": 4, "learning_rate": 1e-3, "training_prompts": 5,
        "held_out_prompts": 4, "samples_per_prompt": 2, "stop_at_gates": False, **settings,
    }  # fmt: skip
    return Job(
        subject=Subject(
            model="local:tiny", mode="no_think", task=task, max_new_tokens=12, sampling=Sampling(temperature=1.0)
        ),
        settings=GrpoProbe.model_validate(chosen),
        engine=EngineSpec(),
        versions={},
        device="cpu",
    )


class Folder:
    """A job folder as the worker would hold it, in one process."""

    def __init__(self, path: Path, model: Path, steps: int = 3) -> None:
        path.mkdir()
        self.path = path
        self.file = path / "samples.jsonl"
        self.file.touch()
        self.attempt = Attempt(
            number=1, targets=Targets(steps=steps), model_path=model, command="test", started="2026-01-01T00:00:00",
            price=PRICE, scratch=path,
        )  # fmt: skip

    def samples(self) -> Iterator[Sample]:
        for line in self.file.read_text().splitlines():
            yield Sample.model_validate_json(line)

    def texts(self) -> dict[SampleKey, str]:
        return {sample.key: sample.text for sample in self.samples()}

    def run(self, job: Job, kill_at: int | None = None, seconds: float | None = None) -> Outcome:
        stored = 0

        def sink(sample: Sample) -> None:
            nonlocal stored
            stored += 1
            if stored == kill_at:
                raise Killed
            with self.file.open("a") as file:
                file.write(sample.model_dump_json() + "\n")

        context = Context(
            attempt=self.attempt, stored=self.samples, sink=sink, progress=lambda *_: None, deadline=Deadline(seconds),
            scratch=self.path,
        )  # fmt: skip
        return room.run(job, context)


def _by_length(_: object, text: str, **__: object) -> Scores:
    """Random weights never answer; a score that they meet by chance lets the whole path run."""
    return Scores(float(len(text) % 2), 1.0)


def _never(*_: object, **__: object) -> Scores:
    return Scores(0.0, 0.0)


@pytest.fixture(autouse=True)
def _learnable_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    from rlbench.measure.probe import evaluation, trainer_adapter

    monkeypatch.setattr(evaluation, "score", _by_length)
    monkeypatch.setattr(trainer_adapter, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)


@pytest.fixture(scope="module")
def undisturbed(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Folder, Outcome]:
    from rlbench.measure.probe import evaluation, trainer_adapter

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "score", _by_length)
        patch.setattr(trainer_adapter, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
        folder = Folder(tmp_path_factory.mktemp("probe") / "whole", tiny_model)
        return folder, folder.run(a_job())


def values_of(outcome: Outcome) -> ProbeValues:
    assert isinstance(outcome.values, ProbeValues)
    return outcome.values


def test_a_probe_reports_gain_curve_and_cost(undisturbed: tuple[Folder, Outcome]) -> None:
    _, outcome = undisturbed
    values = values_of(outcome)
    assert outcome.status == "ok"
    assert (values.steps, values.rollouts, values.n_prompts, values.samples_per_prompt) == (3, 24, 4, 2)
    assert values.after is not None
    assert values.gain == pytest.approx(100 * (values.after - values.before))
    assert values.ci_low < values.gain < values.ci_high
    assert values.lenient is not None and values.lenient.gain == 0
    assert [point.step for point in values.curve] == [1, 2, 3]
    assert set(outcome.phase_seconds) == {"load", "stage0", "rollout", "update", "save", "eval"}
    assert values.gpu_seconds == pytest.approx(sum(outcome.phase_seconds.values()))
    assert values.usd == pytest.approx(values.gpu_seconds / 3600 * 0.1)
    training = outcome.phase_seconds["rollout"] + outcome.phase_seconds["update"]
    assert values.training_usd == pytest.approx(training / 3600 * 0.1)
    assert values.points_per_usd == pytest.approx(values.gain / values.usd)


def test_every_rollout_is_stored_with_its_score(undisturbed: tuple[Folder, Outcome]) -> None:
    folder, outcome = undisturbed
    by_phase: dict[str, list[Sample]] = {}
    for sample in folder.samples():
        by_phase.setdefault(sample.phase, []).append(sample)
    assert {phase: len(samples) for phase, samples in by_phase.items()} == {
        "before": 8, "train-1": 8, "train-2": 8, "train-3": 8, "after-3": 8,
    }  # fmt: skip
    first = by_phase["train-1"]
    assert values_of(outcome).curve[0].reward == pytest.approx(sum(s.strict or 0 for s in first) / 8)
    assert all(s.output_tokens == 12 for s in first if s.truncated)
    before, after = ({(s.prompt_id, s.index) for s in by_phase[p]} for p in ("before", "after-3"))
    assert before == after


def test_prompts_reach_the_trainer_as_the_engine_renders_them(undisturbed: tuple[Folder, Outcome]) -> None:
    from transformers import AutoTokenizer

    folder, _ = undisturbed
    tokenizer = AutoTokenizer.from_pretrained(folder.attempt.model_path)
    texts = {prompt.id: prompt.prompt for prompt in training_prompts(a_job())}
    for sample in folder.samples():
        if sample.phase == "train-1":
            message = [{"role": "user", "content": texts[sample.prompt_id]}]
            ids = tokenizer.apply_chat_template(message, add_generation_prompt=True)["input_ids"]
            assert sample.prompt_tokens == len(ids)


def test_the_trained_weights_stay_and_the_checkpoints_go(undisturbed: tuple[Folder, Outcome]) -> None:
    from rlbench.measure.probe.weights import changed_tensors

    folder, _ = undisturbed
    assert sorted(path.name for path in folder.path.iterdir()) == ["samples.jsonl", "seconds.jsonl", "trained-3"]
    assert changed_tensors(folder.attempt.model_path, folder.path / "trained-3") > 0


@pytest.mark.parametrize("kill_at", [3, 8 + 2, 8 + 8 * 2 + 3, 8 + 8 * 3 + 4])
def test_a_killed_probe_goes_on_to_the_same_result(
    undisturbed: tuple[Folder, Outcome], tiny_model: Path, tmp_path: Path, kill_at: int
) -> None:
    """Killed in stage 0, in the first step, in the third (a checkpoint is there), in the second evaluation."""
    whole, outcome = undisturbed
    folder = Folder(tmp_path / "killed", tiny_model)
    with pytest.raises(Killed):
        folder.run(a_job(), kill_at)
    again = values_of(folder.run(a_job()))
    assert folder.texts() == whole.texts()
    expected = values_of(outcome)
    assert (again.gain, again.ci_low, again.before, again.base.pass_at_k) == (
        expected.gain, expected.ci_low, expected.before, expected.base.pass_at_k,
    )  # fmt: skip
    assert [point.reward for point in again.curve] == [point.reward for point in expected.curve]


def test_a_killed_probe_reports_what_it_had(tiny_model: Path, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "killed", tiny_model)
    with pytest.raises(Killed):
        folder.run(a_job(), kill_at=8 + 8 + 3)
    outcome = room.summarise(a_job(), folder.attempt, folder.samples())
    values = values_of(outcome)
    assert (values.state, values.gain, values.steps) == ("unfinished", None, 1)
    assert values.base.pass_at_1 == values.before
    assert outcome.phase_seconds["stage0"] > 0 and outcome.phase_seconds["update"] > 0


def test_nothing_sampled_is_nothing_to_report(tmp_path: Path) -> None:
    assert room.summarise(a_job(), Folder(tmp_path / "new", tmp_path).attempt, iter(())).values is None


def test_asking_for_more_steps_goes_the_same_way_further(
    undisturbed: tuple[Folder, Outcome], tiny_model: Path, tmp_path: Path
) -> None:
    longer = Folder(tmp_path / "longer", tiny_model, steps=4)
    longer.run(a_job())
    texts = longer.texts()
    assert {
        key: text for key, text in undisturbed[0].texts().items() if key.phase != "after-3"
    }.items() <= texts.items()
    assert any(key.phase == "train-4" for key in texts)


def test_a_deadline_leaves_a_checkpoint(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path / "late", tiny_model)
    monkeypatch.setattr(Deadline, "remaining", lambda _: 0.0 if list(folder.path.glob("checkpoints")) else 1.0)
    with pytest.raises(DeadlineReached):
        folder.run(a_job(), seconds=1.0)
    assert list(folder.path.glob("checkpoints/checkpoint-*/complete"))


def test_lora_trains_and_is_merged_into_plain_weights(tiny_model: Path, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "lora", tiny_model, steps=1)
    values = values_of(folder.run(a_job(method="lora", lora_rank=2, learning_rate=1e-2)))
    assert values.gain is not None
    assert not list(folder.path.glob("trained-1/adapter*"))


def test_without_signal_nothing_is_trained(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlbench.measure.probe.evaluation.score", _never)
    outcome = Folder(tmp_path / "none", tiny_model).run(a_job(stop_at_gates=True))
    values = values_of(outcome)
    assert (outcome.status, values.state, values.gain, values.steps) == ("ok", "no signal", None, 0)
    assert "--train-anyway" in outcome.detail


def test_training_that_changes_nothing_is_a_failure_with_a_reason(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlbench.measure.probe.evaluation.score", _never)
    folder = Folder(tmp_path / "flat", tiny_model, steps=1)
    with pytest.raises(RlbenchError, match="changed no weight"):
        folder.run(a_job())
    assert not list(folder.path.glob("trained-*"))


def test_a_step_never_asks_one_prompt_twice_and_the_order_does_not_depend_on_the_length() -> None:
    job = a_job(training_prompts=5, prompts_per_step=2)
    order = training_order(job, 9)
    assert training_order(job, 4) == order[:8]
    assert all(order[i].id != order[i + 1].id for i in range(0, 18, 2))
    assert {prompt.id for prompt in order} <= {prompt.id for prompt in training_prompts(job)}
    assert not {prompt.id for prompt in order} & {prompt.id for prompt in held_out_prompts(job)}


def test_a_step_done_twice_counts_once(tmp_path: Path) -> None:
    lines = [
        {"phase": "load", "seconds": 2.0}, {"step": 1, "rollout": 1.0, "update": 3.0},
        {"step": 2, "rollout": 9.0, "update": 9.0}, {"step": 2, "rollout": 1.5, "update": 2.5},
    ]  # fmt: skip
    (tmp_path / "seconds.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + '\n{"phase": "sa')
    assert read_ledger(tmp_path).total() == {"load": 2.0, "rollout": 2.5, "update": 5.5}
    assert read_ledger(tmp_path, last_step=1).total() == {"load": 2.0, "rollout": 1.0, "update": 3.0}


def a_sample(prompt: str, index: int, strict: float, lenient: float = 1.0, truncated: bool = False) -> Sample:
    return Sample(
        prompt_id=prompt, index=index, seed=0, prompt_tokens=9, answer_tokens=10, text="",
        finish_reason="length" if truncated else "stop", strict=strict, lenient=lenient,
    )  # fmt: skip


def test_base_statistics_of_a_known_table() -> None:
    groups = {
        "right": [a_sample("right", i, 1) for i in range(2)],
        "wrong": [a_sample("wrong", i, 0, truncated=True) for i in range(2)],
        "mixed": [a_sample("mixed", i, i) for i in range(2)],
        "also mixed": [a_sample("also mixed", i, i) for i in range(2)],
    }
    base = base_statistics(groups, seconds=4.0)
    assert (base.pass_at_1, base.pass_at_k) == (0.5, {"1": 0.5, "2": 0.75})
    assert (base.all_right_share, base.all_wrong_share, base.mixed_share) == (0.25, 0.25, 0.5)
    assert base.mean_p_one_minus_p == pytest.approx((0 + 0 + 0.5 + 0.5) / 4)
    assert (base.truncated_share, base.mean_output_tokens, base.output_tokens_per_second) == (0.25, 10, 20)


def base(pass_at_1: float = 0.5, mixed: float = 0.5, truncated: float = 0.0) -> BaseStatistics:
    return BaseStatistics(
        pass_at_1=pass_at_1, mean_p_one_minus_p=0.1, all_right_share=0.2, all_wrong_share=0.2, mixed_share=mixed,
        truncated_share=truncated, mean_output_tokens=10,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("statistics", "lenient", "fired"),
    [
        (base(), 0.5, set()),
        (base(truncated=0.31), 0.5, {"truncated"}),
        (base(pass_at_1=0.95, mixed=0.05), 0.95, {"saturated"}),
        (base(pass_at_1=0.01, mixed=0.02), 0.015, {"no_signal"}),
        (base(pass_at_1=0.0, mixed=0.0), 0.6, {"no_signal", "format_gain_expected"}),
        (base(pass_at_1=0.2, mixed=0.4), 0.6, {"format_gain_expected"}),
    ],
)
def test_gates(statistics: BaseStatistics, lenient: float, fired: set[str]) -> None:
    assert {name for name, on in find_gates(statistics, lenient).items() if on} == fired
