"""What a comparison is made from: the store, the cards' published figures, and estimates for one GPU."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rlbench.catalogue import CANDIDATES, cards, find_model
from rlbench.core.card import ModelCard
from rlbench.core.cost import Price
from rlbench.core.gpu import Gpu
from rlbench.core.job import MemoryCheck
from rlbench.core.memory import Setting, estimate
from rlbench.core.memory_record import estimate_record, memory_values
from rlbench.core.record import Record
from rlbench.core.speed import estimate_rollout
from rlbench.core.workload import workload
from rlbench.errors import StoreError
from rlbench.grading.generated import available, generate, generated_tasks
from rlbench.store import JobFolder, Store


class Sources:
    """Cards, records and job folders of the models that are compared."""

    def __init__(
        self, store: Path, names: Sequence[str], offline: bool, on_error: Callable[[StoreError], None]
    ) -> None:
        """Read the store; a folder that is not there yet holds nothing.

        Args:
            store: the results folder.
            names: cards, hub ids or folders; none means the candidates and whatever the store has measured.
            offline: do not ask the hub for a model without a card.
            on_error: gets what cannot be read; the rest goes on.

        Raises:
            UnknownName: a name is no model.
            StoreError: the store is a file.
        """
        opened = Store(store)
        chosen = [find_model(name, offline) for name in names or CANDIDATES]
        measured = opened.records(on_error)
        wanted = {card.name for card in chosen} | {card.hub_id for card in chosen}
        if not names:
            chosen += _cards_of(measured, wanted)
            wanted |= {record.subject.name for record in measured}
        self.cards: tuple[ModelCard, ...] = tuple({card.name: card for card in chosen}.values())
        self.measured: list[Record] = [record for record in measured if record.subject.name in wanted]
        self.published: list[Record] = [record for card in self.cards for record in card.published_records()]
        self.folders: list[JobFolder] = [f for f in opened.folders() if _is_of(f, wanted, on_error)]


def estimates(models: Iterable[ModelCard], gpu: Gpu, price: Price | None) -> list[Record]:
    """Memory of full fine-tuning and speed of a GRPO step's rollouts, for every card on `gpu`."""
    step = workload("grpo-short")
    return [
        record
        for card in models
        for record in (
            estimate_record(card, gpu, Setting(), f"rlbench estimate-memory {card.name} --gpu {gpu.name}"),
            estimate_rollout(card, gpu, step, price=price),
        )
    ]


def counterparts(records: Iterable[Record], models: Iterable[ModelCard]) -> list[Record]:
    """For each measured or traced memory check, the estimate of the same step, to stand beside it."""
    shapes = {card.name: card.architecture for card in models}
    found = []
    for record in records:
        shape = shapes.get(record.subject.name)
        if shape is None or record.job is None or not isinstance(record.job.settings, MemoryCheck):
            continue
        check, device = record.job.settings, record.job.device
        setting = Setting(
            regime=check.regime,
            seq_len=check.seq_len,
            micro_batch=check.micro_batch,
            checkpointing=check.checkpointing,
            device="cpu" if device == "cpu" else "gpu",
        )
        visible = (record.host.memory_bytes if record.host else None) or 0
        values = memory_values(estimate(shape, setting), device, visible)
        found.append(
            Record(
                subject=record.subject,
                provenance="estimated",
                source=f"rlbench.core.memory, for the step of: {record.source}",
                values=values if visible else values.model_copy(update={"gpu_visible_bytes": None, "fits": None}),
            )
        )
    return found


def generated_prompts() -> dict[str, str]:
    """The text of every generated held-out prompt, by its id."""
    return {
        prompt.id: prompt.prompt
        for task in generated_tasks()
        for prompt in generate(task, seed=0, count=available(task, "held-out"))
    }


def _cards_of(records: Iterable[Record], known: set[str]) -> list[ModelCard]:
    """Cards of measured models that nobody named; a model without a card has its records alone."""
    names = dict.fromkeys(record.subject.card for record in records if record.subject.card)
    by_name = cards()
    return [by_name[name] for name in names if name not in known and name in by_name]


def _is_of(folder: JobFolder, wanted: set[str], on_error: Callable[[StoreError], None]) -> bool:
    try:
        return folder.job().subject.name in wanted
    except StoreError as error:
        on_error(error)
        return False
