"""What the measured commands share: plan the jobs, run them here, say which failed."""

from collections.abc import Sequence

from rlbench.cli.common import Session, command_line
from rlbench.cli.progress import Watch
from rlbench.core.record import Record
from rlbench.errors import CapReached, RlbenchError
from rlbench.plans.base import Planned
from rlbench.runners.local import run_job
from rlbench.runners.queue import run_all
from rlbench.store import Store


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
