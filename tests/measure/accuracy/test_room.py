"""The room with a tiny real model: what is stored, resumed, extended; and the same through lm-eval's own evaluator."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlbench.core.cost import Price
from rlbench.core.job import AccuracyTask, Attempt, EngineSpec, Job, Targets
from rlbench.core.record import AccuracyValues
from rlbench.core.sample import Sample
from rlbench.core.subject import Sampling, Subject
from rlbench.errors import InputError
from rlbench.measure.accuracy.data import content_hash, read
from rlbench.measure.accuracy.room import run
from rlbench.measure.context import Context, Deadline, DeadlineReached


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [{"id": f"p{n}", "problem": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(4)]
    (tmp_path / "aime24.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def job(data: Path, task: str = "aime24") -> Job:
    return Job(
        subject=Subject(
            model="local:tiny", mode="no_think", task=task, task_hash=content_hash(task, read(data / "aime24.jsonl")),
            max_new_tokens=6, sampling=Sampling(),
        ),
        settings=AccuracyTask(), engine=EngineSpec(batch_size=4), versions={}, device="cpu",
    )  # fmt: skip


def context(model: Path, data: Path, stored: list[Sample], limit: int | None, samples: int) -> Context:
    price = Price(device="cpu", usd_per_hour=1.0, provider="test", date="2026-01-01", source="test")
    attempt = Attempt(
        number=1, targets=Targets(limit=limit, samples_per_prompt=samples), model_path=model, data_dir=data,
        command="", started="", price=price,
    )  # fmt: skip
    scratch = data / "scratch"
    scratch.mkdir(exist_ok=True)
    return Context(attempt, lambda: iter(list(stored)), stored.append, lambda *_: None, Deadline(), scratch)


@pytest.fixture
def answer_of_the_model(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], None]:
    """Put words into the engine's mouth: what a prompt that contains the key is answered with."""
    from rlbench.engines.transformers import TransformersEngine

    generate = TransformersEngine.generate

    def say(answers: dict[str, str]) -> None:
        def spoken(self: TransformersEngine, requests: Any, done: Any = ()) -> Any:
            prompts = {request.key: request.prompt for request in requests}
            for sample in generate(self, requests, done):
                words = next((text for key, text in answers.items() if key in prompts[sample.key]), "")
                yield sample.model_copy(update={"text": words, "finish_reason": "stop"})

        monkeypatch.setattr(TransformersEngine, "generate", spoken)

    return say


def test_generated_once_resumed_and_extended(tiny_model: Path, data: Path) -> None:
    stored: list[Sample] = []
    first = run(job(data), context(tiny_model, data, stored, limit=2, samples=1))
    assert first.status == "ok"
    assert [sample.prompt_id for sample in stored] == ["p0", "p1"]
    assert {"load", "generate"} <= first.phase_seconds.keys()
    more = run(job(data), context(tiny_model, data, stored, limit=None, samples=2))
    assert len(stored) == 8
    assert len({sample.key for sample in stored}) == 8
    assert all(sample.verdict is not None and sample.strict is not None for sample in stored)
    assert isinstance(more.values, AccuracyValues)
    assert (more.values.n_prompts, more.values.samples_per_prompt) == (4, 2)
    again = run(job(data), context(tiny_model, data, stored, limit=None, samples=2))
    assert len(stored) == 8
    assert again.phase_seconds == {}


def test_right_answers_are_right(
    tiny_model: Path, data: Path, answer_of_the_model: Callable[[dict[str, str]], None]
) -> None:
    answer_of_the_model({"0 + 0": r"so \boxed{0}", "1 + 1": r"\boxed{3}", "2 + 2": "it is 4", "3 + 3": "I give up"})
    stored: list[Sample] = []
    outcome = run(job(data), context(tiny_model, data, stored, limit=None, samples=1))
    assert [(s.strict, s.lenient) for s in stored] == [(1, 1), (0, 0), (0, 1), (0, 0)]
    assert isinstance(outcome.values, AccuracyValues)
    assert (outcome.values.accuracy, outcome.values.lenient_accuracy) == (0.25, 0.5)
    assert outcome.values.usd_per_correct is not None
    assert outcome.values.usd_per_correct == pytest.approx(outcome.phase_seconds["generate"] / 3600, rel=1e-6)


def test_the_same_through_lm_evals_own_evaluator(
    tiny_model: Path, data: Path, answer_of_the_model: Callable[[dict[str, str]], None]
) -> None:
    from lm_eval import evaluate

    from rlbench.engines import open_engine
    from rlbench.measure.accuracy.lm_eval_adapter import EngineModel, load_task

    answer_of_the_model({"0 + 0": r"so \boxed{0}", "1 + 1": r"\boxed{3}", "2 + 2": "it is 4", "3 + 3": "I give up"})
    asked = context(tiny_model, data, [], limit=None, samples=1)
    engine = open_engine(job(data), asked.attempt)
    model = EngineModel(engine, lambda _, sample: sample.text, samples=1, max_new_tokens=6, sampling=Sampling())
    task = load_task("aime24", read(data / "aime24.jsonl"), asked.scratch)
    results = evaluate(lm=model, task_dict={"aime24": task}, apply_chat_template=True, bootstrap_iters=0)
    engine.close()
    assert results is not None
    figures = results["results"]["aime24"]
    assert (figures["strict,none"], figures["lenient,none"]) == (0.25, 0.5)


def test_the_deadline_keeps_what_is_there(tiny_model: Path, data: Path) -> None:
    stored: list[Sample] = []
    late = context(tiny_model, data, stored, limit=None, samples=1)
    late.deadline = Deadline(seconds=0.0)
    with pytest.raises(DeadlineReached):
        run(job(data), late)
    assert len(stored) == 1


def test_changed_data_are_refused(tiny_model: Path, data: Path) -> None:
    planned = job(data)
    (data / "aime24.jsonl").write_text('{"problem": "another", "answer": "1"}\n')
    with pytest.raises(InputError, match="has changed since this job was planned"):
        run(planned, context(tiny_model, data, [], limit=None, samples=1))
