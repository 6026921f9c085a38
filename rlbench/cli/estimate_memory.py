"""`rlbench estimate-memory`: what a model needs, whether it fits, what would make it fit, and a step that checks it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlbench.cli.app import app
from rlbench.cli.common import Session, command, command_line

if TYPE_CHECKING:
    from rlbench.core.card import ModelCard
    from rlbench.core.memory import Estimate, Setting
    from rlbench.core.record import Record

TOLERANCE = 0.01
"""A claim about model states holds when what was counted is within this share of it."""


@dataclass(frozen=True)
class Place:
    """Where the model should fit."""

    name: str
    visible_bytes: int


@command(app, "estimate-memory", "what a model needs, and which GPUs hold it")
def estimate_memory(
    session: Session,
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Card names, hub ids or folders.")],
    gpu: Annotated[
        str | None, typer.Option(help="A GPU of `rlbench gpus`, or cpu for this machine.", show_default="all GPUs")
    ] = None,
    regime: Annotated[
        str, typer.Option(help="mixed (18 bytes a parameter), half-grads (16), both-grads (20), fp32 (16), bf16 (8).")
    ] = "mixed",
    method: Annotated[str, typer.Option(help="full or lora (adapters on all linear layers).")] = "full",
    lora_rank: Annotated[int, typer.Option(min=1)] = 16,
    seq_len: Annotated[int, typer.Option(help="Tokens of prompt and completion together.", min=1)] = 1024,
    micro_batch: Annotated[int, typer.Option(help="Sequences in one backward pass.", min=1)] = 1,
    checkpointing: Annotated[str, typer.Option(help="none or full: compute activations again.")] = "none",
    inference: Annotated[bool, typer.Option("--inference", help="Weights and KV cache alone; nothing is trained.")] = (
        False
    ),
    concurrency: Annotated[
        int, typer.Option(help="Sequences generated at once in the same process.", min=0, show_default="none")
    ] = 0,
    check: Annotated[
        bool, typer.Option("--check", help="Run the AdamW step here, or trace it where nothing here holds it.")
    ] = False,
) -> None:
    """Estimate the memory that a model needs, by part, and say which GPUs hold it."""
    from pydantic import ValidationError

    from rlbench.catalogue import find_model
    from rlbench.cli.common import validation_sentence
    from rlbench.core.memory import Setting
    from rlbench.errors import InputError

    places = _places(gpu)
    asked = {
        "regime": regime, "method": _method(method, inference, check), "lora_rank": lora_rank, "seq_len": seq_len,
        "micro_batch": micro_batch, "checkpointing": checkpointing, "concurrency": concurrency,
        "device": "cpu" if gpu == "cpu" else "gpu",
    }  # fmt: skip
    try:
        setting = Setting.model_validate(asked)
    except ValidationError as error:
        raise InputError(validation_sentence(error, "estimate-memory")) from None
    cards = [find_model(name, session.offline) for name in models]
    for card in cards:
        _look_at(session, card, setting)
    checks = _check(session, models, setting) if check else [None] * len(cards)
    results = [
        (card, setting, record, places) for card, record in zip(cards, checks, strict=True)
    ]  # fmt: skip
    if session.json:
        session.emit({"results": [row for one in results for row in _rows(*one)]})
    else:
        for one in results:
            _show(session, *one, named=gpu is not None)
    _raise_verdict(cards, setting, places if gpu is not None else (), [record for record in checks if record])


def _method(method: str, inference: bool, check: bool) -> str:
    from rlbench.errors import InputError

    if method == "inference":
        raise InputError("--method is full or lora: for generation alone use --inference.")
    if inference and method == "lora":
        raise InputError("--inference trains nothing: leave out --method lora.")
    if check and (inference or method == "lora"):
        raise InputError("--check runs a full AdamW step: leave out --inference and --method lora.")
    return "inference" if inference else method


def _places(gpu: str | None) -> tuple[Place, ...]:
    from rlbench.catalogue import find_gpu, gpus

    if gpu == "cpu":
        from rlbench.measure.host import total_memory_bytes

        return (Place("cpu", total_memory_bytes()),)
    found = [find_gpu(gpu)] if gpu is not None else sorted(gpus().values(), key=lambda one: one.visible_bytes)
    return tuple(Place(one.name, one.visible_bytes) for one in found)


def _look_at(session: Session, card: "ModelCard", setting: "Setting") -> None:
    """Refuse what cannot be, warn of what should not.

    Raises:
        InputError: adapters wider than the model.
    """
    from rlbench.errors import InputError

    hidden = card.architecture.hidden_size
    if setting.method == "lora" and setting.lora_rank > hidden:
        raise InputError(f"--lora-rank {setting.lora_rank} is above {card.name}'s hidden size of {hidden}: lower it.")
    longest = card.context.extended or card.context.native
    if setting.seq_len > longest:
        session.warn(f"--seq-len {setting.seq_len} is beyond {card.name}'s context of {longest} tokens.")


def _check(session: Session, models: Sequence[str], setting: "Setting") -> "list[Record | None]":
    """One measured or traced step a model."""
    from rlbench.cli.measured import answer
    from rlbench.plans.base import Surroundings
    from rlbench.plans.memory import MemoryRequest

    request = MemoryRequest(
        models=tuple(models),
        regime=setting.regime,
        seq_len=setting.seq_len,
        micro_batch=setting.micro_batch,
        checkpointing=setting.checkpointing,
    )
    return list(answer(session, request.plan(Surroundings(offline=session.offline))))


def _raise_verdict(
    cards: "Sequence[ModelCard]", setting: "Setting", named: Sequence[Place], checks: "Sequence[Record]"
) -> None:
    """The exit code: not fitting a named GPU wins over a check that does not hold.

    Raises:
        DoesNotFit: a model does not fit the GPU named.
        CheckFailed: what was counted is not what was claimed.
        RlbenchError: a check did not end well.
    """
    from rlbench.core.memory import GB, estimate
    from rlbench.errors import CheckFailed, DoesNotFit

    for card in cards:
        for place in named:
            peak = estimate(card.architecture, setting).peak.bytes
            if peak > place.visible_bytes:
                raise DoesNotFit(
                    f"{card.name} needs {peak / GB:.1f} GB and {place.name} has {place.visible_bytes / GB:.1f} GB."
                )
    for card, record in zip(cards, checks, strict=False):
        if _holds(record) is False:
            raise CheckFailed(f"{card.name}: {verdict(record)}")
    if checks:
        from rlbench.cli.measured import fail_if_any_failed

        fail_if_any_failed(checks)


def _holds(record: "Record") -> bool | None:
    """Whether the states counted are those claimed; `None` when nothing was counted."""
    from rlbench.core.memory import STATES
    from rlbench.core.record import MemoryValues

    values = record.values
    if not isinstance(values, MemoryValues):
        return None
    claimed = STATES[values.regime].total
    return abs(values.bytes_per_parameter / claimed - 1) <= TOLERANCE


def verdict(record: "Record") -> str:
    """The check in a sentence."""
    from rlbench.core.memory import STATES
    from rlbench.core.record import MemoryValues

    values = record.values
    if not isinstance(values, MemoryValues):
        return f"not checked: {record.status}, {record.detail}"
    tokens = (values.seq_len or 0) * (values.micro_batch or 1)
    return (
        f"{STATES[values.regime].total:.2f} B/parameter claimed, {values.bytes_per_parameter:.2f} {record.provenance} "
        f"(states), {values.peak_bytes / values.parameters:.1f} at the peak with {tokens:,} tokens: "
        f"{'holds' if _holds(record) else 'does not hold'}"
    )


def _rows(
    card: "ModelCard", setting: "Setting", record: "Record | None", places: Sequence[Place]
) -> Iterator[dict[str, Any]]:
    """One JSON result a GPU."""
    from rlbench.catalogue import gpus
    from rlbench.core.memory import as_trl_runs_it, estimate
    from rlbench.core.memory_record import memory_values
    from rlbench.core.memory_verdict import advise, longest_sequence

    found = estimate(card.architecture, setting)
    trl = estimate(card.architecture, as_trl_runs_it(setting))
    for place in places:
        advice = advise(card.architecture, setting, place.visible_bytes, gpus().values())
        values = memory_values(found, place.name, place.visible_bytes, advice).to_json()
        del values["kind"], values["phase_bytes"]
        yield {
            "model": card.name,
            **values,
            "master_bytes": found.state_bytes("master copy"),
            "trained_parameters": found.trained_parameters,
            "why_a_range": list(found.why_a_range),
            "phases": {phase.name: phase.bytes for phase in found.phases},
            "parts_at_peak": [
                {"part": part.name, "bytes": part.bytes, "formula": part.formula} for part in found.peak.parts
            ],
            "longest_seq_len": longest_sequence(card.architecture, setting, place.visible_bytes)
            if len(places) == 1
            else None,
            "as_trl_runs_it": {
                "regime": trl.setting.regime,
                "checkpointing": trl.setting.checkpointing,
                "bytes_per_parameter": trl.bytes_per_parameter,
                "states_bytes": trl.states_bytes,
                "peak_bytes": trl.peak.bytes,
                "fits": trl.peak.bytes <= place.visible_bytes,
            },
            "check": _check_json(record) if record is not None else None,
            "provenance": "estimated",
            "status": "ok",
            "source": command_line(),
        }


def _check_json(record: "Record") -> dict[str, Any]:
    from rlbench.core.record import MemoryValues

    values = record.values if isinstance(record.values, MemoryValues) else None
    return {
        "provenance": record.provenance,
        "states_bytes": values.states_bytes if values else None,
        "peak_bytes": values.peak_bytes if values else None,
        "bytes_per_parameter": values.bytes_per_parameter if values else None,
        "phase_bytes": values.phase_bytes if values else None,
        "how": values.how if values else record.detail,
        "holds": _holds(record),
        "verdict": verdict(record),
        "status": record.status,
        "source": record.source,
    }


def _show(
    session: Session,
    card: "ModelCard",
    setting: "Setting",
    record: "Record | None",
    places: Sequence[Place],
    named: bool,
) -> None:
    from rlbench.cli.memory_tables import bar, headline, parts_table, places_table, range_sentence, trl_sentence
    from rlbench.core.memory import estimate
    from rlbench.core.memory_verdict import longest_sequence

    found = estimate(card.architecture, setting)
    out = session.out
    out.print(headline(card, found), markup=False, highlight=False, soft_wrap=True)
    out.print(parts_table(found))
    out.print(bar(found.peak), highlight=False, soft_wrap=True)
    for sentence in (range_sentence(found), trl_sentence(card, setting)):
        out.print(sentence, markup=False, highlight=False, soft_wrap=True)
    out.print(places_table(card, setting, [(place.name, place.visible_bytes) for place in places], named))
    for place in places if named else ():
        longest = longest_sequence(card.architecture, setting, place.visible_bytes)
        words = f"up to --seq-len {longest}" if longest else "at no sequence length"
        out.print(f"With everything else as it is, it fits {place.name} {words}.", markup=False, highlight=False)
    if record is not None:
        out.print(f"check: {verdict(record)}", markup=False, highlight=False, soft_wrap=True)
        out.print(f"  {_how(record, found)}", markup=False, highlight=False, soft_wrap=True)
    out.print()


def _how(record: "Record", found: "Estimate") -> str:
    from rlbench.core.memory import GB
    from rlbench.core.record import MemoryValues

    values = record.values
    if not isinstance(values, MemoryValues):
        return f"log and record: {record.source}"
    return (
        f"peak {values.peak_bytes / GB:.2f} GB {record.provenance}, {found.peak.bytes / GB:.2f} estimated; {values.how}"
    )
