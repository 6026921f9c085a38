"""What an estimate means for a GPU: whether it fits, and what would make it fit."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rlbench.core.architecture import Architecture
from rlbench.core.gpu import Gpu
from rlbench.core.memory import GB, Setting, estimate

SHORTEST = 256
"""Tokens below which a shorter sequence is no advice any more."""


@dataclass(frozen=True)
class Change:
    """One change to a setting, as the options that make it, and what it costs."""

    options: str
    cost: str
    setting: Setting


def advise(
    architecture: Architecture, setting: Setting, visible_bytes: int, gpus: Iterable[Gpu] = ()
) -> tuple[str, ...]:
    """What would make it fit, the cheapest change first, each with its figure; empty when it fits.

    Changes that suffice alone are listed; when none does, they are added up until they do.
    """
    if _peak(architecture, setting) <= visible_bytes:
        return ()
    alone = [c for c in _changes(setting) if _peak(architecture, c.setting) <= visible_bytes]
    chosen = alone or list(_added_up(architecture, setting, visible_bytes))
    sentences = [_sentence(architecture, change, visible_bytes) for change in chosen]
    need = _peak(architecture, setting)
    if setting.device == "gpu" and (larger := _smallest_that_holds(gpus, need)) is not None:
        sentences.append(f"a larger GPU: {larger.name} has {larger.visible_bytes / GB:.1f} GB")
    return tuple(sentences)


def longest_sequence(architecture: Architecture, setting: Setting, visible_bytes: int) -> int | None:
    """The largest seq_len that fits with everything else as it is; `None` when not even one token does."""
    if _peak(architecture, setting.model_copy(update={"seq_len": 1})) > visible_bytes:
        return None
    low, high = 1, 2
    while _peak(architecture, setting.model_copy(update={"seq_len": high})) <= visible_bytes and high < 2**24:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        fits = _peak(architecture, setting.model_copy(update={"seq_len": middle})) <= visible_bytes
        low, high = (middle, high) if fits else (low, middle)
    return low


def _peak(architecture: Architecture, setting: Setting) -> int:
    return estimate(architecture, setting).peak.bytes


def _changes(setting: Setting) -> Iterator[Change]:
    """Single changes, from the cheapest on."""
    if setting.concurrency > 1:
        yield Change("--concurrency 1", "slower generation", setting.model_copy(update={"concurrency": 1}))
    if setting.method != "inference":
        yield from _training_changes(setting)
    shorter = setting.seq_len // 2
    while shorter >= SHORTEST:
        yield Change(f"--seq-len {shorter}", "shorter answers", setting.model_copy(update={"seq_len": shorter}))
        shorter //= 2


def _training_changes(setting: Setting) -> Iterator[Change]:
    if setting.micro_batch > 1:
        yield Change(
            "--micro-batch 1", "more, smaller passes", setting.model_copy(update={"micro_batch": 1})
        )  # fmt: skip
    if setting.checkpointing == "none":
        yield Change(
            "--checkpointing full", "about a third more computing", setting.model_copy(update={"checkpointing": "full"})
        )
    if setting.method == "full":
        yield Change("--method lora", "trains adapters only", setting.model_copy(update={"method": "lora"}))
    if setting.regime != "bf16":
        yield Change("--regime bf16", "coarser updates", setting.model_copy(update={"regime": "bf16"}))


def _added_up(architecture: Architecture, setting: Setting, visible_bytes: int) -> Iterator[Change]:
    """Each change on top of those before it, until it fits or nothing is left to change."""
    options: list[str] = []
    while (change := next(_changes(setting), None)) is not None:
        setting = change.setting
        flag = change.options.split()[0]
        options = [option for option in options if option.split()[0] != flag] + [change.options]
        yield Change(" ".join(options), change.cost, setting)
        if _peak(architecture, setting) <= visible_bytes:
            return


def _sentence(architecture: Architecture, change: Change, visible_bytes: int) -> str:
    peak = _peak(architecture, change.setting)
    verdict = "fits" if peak <= visible_bytes else "does not fit yet"
    return f"{change.options} ({change.cost}): {peak / GB:.1f} GB, {verdict}"


def _smallest_that_holds(gpus: Iterable[Gpu], need: int) -> Gpu | None:
    return min((gpu for gpu in gpus if gpu.visible_bytes >= need), key=lambda gpu: gpu.visible_bytes, default=None)
