"""What the measured commands share: plan the jobs, run them here, say which failed."""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from rlbench.cli.common import Session, command_line, validation_sentence
from rlbench.cli.progress import Watch
from rlbench.core.record import Record
from rlbench.core.value import Value
from rlbench.errors import CapReached, InputError, RlbenchError
from rlbench.plans.base import Planned
from rlbench.runners.local import run_job
from rlbench.runners.queue import run_all
from rlbench.store import Store

Asked = TypeVar("Asked", bound=Value)


def answer(
    session: Session, plan: Sequence[Planned], max_usd: float | None = None, max_seconds: float | None = None
) -> list[Record]:
    """The records of the planned jobs, from the store or measured now, with progress on standard error."""
    with Watch(session) as watch:
        return run_all(Store(session.store), plan, run_job, command_line(), watch, max_usd, max_seconds)


def fail_if_any_failed(records: Sequence[Record]) -> None:
    """Turn failed measurements into the exit code, after their results have been printed.

    Raises:
        CapReached: the spending cap left something unrun.
        RlbenchError: a measurement did not end well; `partial` counts as well.
    """
    capped = [record for record in records if record.status == "cap_reached"]
    bad = [record for record in records if record.status not in ("ok", "partial", "cap_reached")]
    if bad:
        first = bad[0]
        more = f" ({len(bad)} of {len(records)} did not end well)" if len(records) > 1 else ""
        raise RlbenchError(f"{first.kind} of {first.subject.name} ended as {first.status}: {first.detail}{more}")
    if capped:
        raise CapReached(f"{len(capped)} of {len(records)} jobs were not run: {capped[0].detail}")


def request_of(request: type[Asked], asked: dict[str, Any], command: str) -> Asked:
    """The command's options as the request that a plan's table would be.

    Raises:
        InputError: a value is not one that the request takes.
    """
    try:
        return request.model_validate(asked)
    except ValidationError as error:
        raise InputError(validation_sentence(error, command)) from None


def result(record: Record, kind: type[Value]) -> dict[str, Any]:
    """A record as one of a command's `--json` results: its values of that kind, null where it has none."""
    values = record.values if isinstance(record.values, kind) else None
    fields = [name for name in kind.model_fields if name != "kind"]
    found = values.to_json() if values is not None else dict.fromkeys(fields)
    subject = record.subject
    return {
        "model": subject.name,
        "mode": subject.mode,
        **{name: found[name] for name in fields},
        "task": subject.task,
        "max_new_tokens": subject.max_new_tokens,
        "phase_seconds": record.cost.phase_seconds if record.cost else None,
        "provenance": record.provenance,
        "status": record.status,
        "detail": record.detail,
        "source": record.source,
    }
