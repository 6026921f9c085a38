"""lm-eval on top of rlbench: its tasks ask and score, an engine of ours answers.

lm-eval's own evaluator keeps one score a prompt. Here every one of K samples is scored and stored as it comes,
so `room.py` drives the task itself; `EngineModel` still is a complete lm-eval model, which
`lm_eval.evaluate` runs as it runs any other (the tests do).
"""

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.task import Task
from lm_eval.tasks import TaskManager

from rlbench.core.sample import Sample, SampleKey
from rlbench.core.subject import Sampling
from rlbench.engines.base import Engine, Request
from rlbench.measure.accuracy.data import TASKS_FOLDER, Document, is_generated

Keep = Callable[[Instance, Sample], str]
"""Scores and stores a sample of an instance; gives the answer that lm-eval is to see."""


class EngineModel(LM):  # type: ignore[misc]  # lm-eval brings no types
    """An lm-eval model whose text comes from an engine, K samples a prompt."""

    def __init__(
        self,
        engine: Engine,
        keep: Keep,
        *,
        samples: int,
        max_new_tokens: int,
        sampling: Sampling,
        stop: tuple[str, ...] = (),
        seed: int = 0,
        done: Collection[SampleKey] = (),
    ) -> None:
        """Sample each prompt `samples` times; keys in `done` are not generated again."""
        super().__init__()
        self._engine = engine
        self._keep = keep
        self._samples = samples
        self._max_new_tokens = max_new_tokens
        self._sampling = sampling
        self._stop = stop
        self._seed = seed
        self._done = done

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Submit every request at once; the first answer to each, in their order ("" where it was done before)."""
        del disable_tqdm  # progress is the room's
        asked: dict[str, Instance] = {prompt_id(instance): instance for instance in requests}
        first: dict[str, str] = {}
        for sample in self._engine.generate(self._requests(asked), self._done):
            answer = self._keep(asked[sample.prompt_id], sample)
            if sample.index == 0:
                first[sample.prompt_id] = answer
        return [first.get(prompt_id(instance), "") for instance in requests]

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """The prompt as the card's mode wants it."""
        del add_generation_prompt  # lm-eval leaves it out only for prefilled answers, which no task here has
        return self._engine.render(chat_history)

    @property
    def tokenizer_name(self) -> str:
        """Names lm-eval's request cache, which is not used."""
        return ""

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError("rlbench's engines generate text; tasks that compare likelihoods cannot run.")

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        raise NotImplementedError("rlbench's engines generate text; tasks that compare likelihoods cannot run.")

    def _requests(self, asked: dict[str, Instance]) -> list[Request]:
        return [
            Request(
                key=SampleKey("", prompt, index, self._seed),
                prompt=instance.args[0],
                max_new_tokens=self._max_new_tokens,
                sampling=self._sampling,
                stop=(*self._stop, *instance.args[1].get("until", ())),
            )
            for prompt, instance in asked.items()
            for index in range(self._samples)
        ]


def prompt_id(instance: Instance) -> str:
    """The id of an instance's document; its place in the set where it has none."""
    return str(instance.doc.get("id", instance.doc_id))


def load_task(name: str, documents: Sequence[Document], scratch: Path) -> Task:
    """The lm-eval task of that name over the given documents, which are written below `scratch`."""
    folder = scratch / "lm_eval"
    folder.mkdir(exist_ok=True)
    rows = folder / "documents.jsonl"
    rows.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in documents), encoding="utf-8")
    frame = TASKS_FOLDER / ("_generated" if is_generated(name) else f"{name}.yaml")
    files = {"data_files": {"test": str(rows)}, "cache_dir": str(folder / "datasets")}
    # JSON is YAML too.
    definition = {"include": str(frame), "task": name, "dataset_kwargs": files}
    (folder / f"{name}.yaml").write_text(json.dumps(definition), encoding="utf-8")
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    task: Task = manager.load([name])["tasks"][name]
    return task


def build_instances(task: Task, model: EngineModel) -> list[Instance]:
    """One instance a document, its prompt rendered with the model's chat template."""
    task.build_all_requests(apply_chat_template=True, chat_template=model.apply_chat_template)
    instances: list[Instance] = task.instances
    return instances
