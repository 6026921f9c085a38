"""Jobs going by, on standard error: a live line on a terminal, one line a job elsewhere."""

import time
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from rlbench.cli.common import Session
from rlbench.core.record import Record
from rlbench.plans.base import Planned


class Watch:
    """Shows each job as it starts, moves and ends; made with `with`."""

    def __init__(self, session: Session) -> None:
        """Show on the session's standard error; nothing when it is quiet."""
        self._console = session.err
        self._verbose = session.verbose
        self._live = self._console.is_terminal and not session.quiet
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[what]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._live,
            transient=True,
        )
        self._task: TaskID | None = None
        self._since = time.monotonic()

    def __enter__(self) -> "Watch":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def started(self, planned: Planned, number: int, count: int) -> None:
        self._since = time.monotonic()
        self._task = self._bars.add_task(f"[{number}/{count}] {planned.label}", total=None, what="starting")
        if not self._live:
            self._console.print(f"[{number}/{count}] {planned.label} …", markup=False, highlight=False)

    def progress(self, what: str, done: int, total: int | None) -> None:
        if self._task is not None:
            self._bars.update(self._task, what=what, completed=done, total=total)

    def finished(self, planned: Planned, record: Record, reused: bool) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
        seconds = time.monotonic() - self._since
        end = "already answered" if reused else f"{record.status} in {seconds:.0f} s"
        detail = f": {record.detail}" if record.detail and record.status != "ok" else ""
        self._console.print(f"{planned.label}: {end}{detail}", markup=False, highlight=False)
        if self._verbose:
            phases = record.cost.phase_seconds.items() if record.cost else ()
            spent = ", ".join(f"{phase} {taken:.1f} s" for phase, taken in phases)
            self._console.print(f"  {planned.job.key}: {spent or 'nothing ran'}", markup=False, highlight=False)
