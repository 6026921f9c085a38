"""Results on disk: one folder a job, samples appended line by line, the record put in place by rename.

    runs/<job.key>/job.json            what is asked
                   attempts/N.json     how far to go, where, on which day; N.log beside it
                   samples.jsonl       one completion a line, as the engine returned it
                   record.json         the answer

One writer a folder (a lock file that the operating system releases when the writer dies). A half-written
last line of samples.jsonl is dropped on reading and cut before the next is added.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from filelock import FileLock, Timeout
from pydantic import ValidationError

from rlbench.core.job import Attempt, Job
from rlbench.core.record import SCHEMA_VERSION, Record
from rlbench.core.sample import Sample
from rlbench.errors import StoreError

if TYPE_CHECKING:
    import pandas

AnyValue = TypeVar("AnyValue", Job, Attempt)

LOCK_WAIT_SECONDS = 10.0
"""A worker whose parent was killed needs a moment to notice; longer than that, somebody else is at work."""


class JobFolder:
    """The folder of one job."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.samples_path = path / "samples.jsonl"
        self.record_path = path / "record.json"
        self.scratch = path / "scratch"

    def job(self) -> Job:
        return _validated(Job, self.path / "job.json")

    def attempts(self) -> list[Attempt]:
        """All attempts, oldest first."""
        return [_validated(Attempt, file) for file in self._attempt_files()]

    def _attempt_files(self) -> list[Path]:
        files = [file for file in (self.path / "attempts").glob("*.json") if file.stem.isdecimal()]
        return sorted(files, key=lambda file: int(file.stem))

    def add_attempt(self, make: Callable[[int], Attempt]) -> Attempt:
        """Note an attempt before its work begins; `make` gets its number."""
        with _as_store_error(self.path):
            (self.path / "attempts").mkdir(exist_ok=True)
            attempt = make(max((int(file.stem) for file in self._attempt_files()), default=0) + 1)
            write_json(self.path / "attempts" / f"{attempt.number}.json", attempt.to_json())
        return attempt

    def log_path(self, attempt: Attempt) -> Path:
        """Where everything printed during this attempt goes."""
        return self.path / "attempts" / f"{attempt.number}.log"

    def samples(self) -> Iterator[Sample]:
        """The samples stored so far, one at a time; a half-written last line is left out."""
        if not self.samples_path.exists():
            return
        with _as_read_error(self.samples_path), self.samples_path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    yield Sample.model_validate_json(line)
                except ValidationError as error:
                    raise StoreError(
                        f"line {number} of {self.samples_path} is not a sample: remove that line and run again."
                    ) from error

    @contextmanager
    def appending(self) -> Iterator[Callable[[Sample], None]]:
        """A sink that hands each sample to the operating system before it returns."""
        with _as_store_error(self.path):
            _cut_half_line(self.samples_path)
            with self.samples_path.open("ab", buffering=0) as file:

                def append(sample: Sample) -> None:
                    with _as_store_error(self.path):
                        _write_all(file.fileno(), sample.model_dump_json().encode() + b"\n")

                yield append

    def record(self) -> Record | None:
        """The answer, or `None` when there is none yet.

        Raises:
            StoreError: record.json is not a record of this version.
        """
        if not self.record_path.exists():
            return None
        return read_record(self.record_path)

    def write_record(self, record: Record) -> None:
        """Put the answer in place whole, or not at all."""
        with _as_store_error(self.path):
            write_json(self.record_path, record.to_json())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only writer of this folder.

        Raises:
            StoreError: another process is.
        """
        with _as_store_error(self.path):
            lock = FileLock(self.path / "lock", timeout=LOCK_WAIT_SECONDS)
            try:
                lock.acquire()
            except Timeout:
                raise StoreError(
                    f"another rlbench process is writing {self.path}: wait for it to end, or use another --store."
                ) from None
        try:
            yield
        finally:
            lock.release()


class Store:
    """A results folder: everything below `root/runs`."""

    def __init__(self, root: Path) -> None:
        """Take `root` as it is; it is made when the first job is written.

        Raises:
            StoreError: `root` is there and is not a folder.
        """
        if root.exists() and not root.is_dir():
            raise StoreError(f"the store {root} is a file, not a folder: name a folder with --store.")
        self.root = root
        self.runs = root / "runs"

    def open(self, job: Job) -> JobFolder:
        """The folder of `job`, made and given its job.json when it is new."""
        folder = JobFolder(self.runs / job.key)
        with _as_store_error(self.root):
            folder.path.mkdir(parents=True, exist_ok=True)
            if not (folder.path / "job.json").exists():
                write_json(folder.path / "job.json", job.to_json())
        return folder

    def folders(self) -> list[JobFolder]:
        """Every job folder, in the order of their names."""
        return [JobFolder(path.parent) for path in sorted(self.runs.glob("*/job.json"))]

    def records(self, on_error: Callable[[StoreError], None]) -> list[Record]:
        """Every record; one that cannot be read goes to `on_error` and the rest goes on."""
        found = []
        for folder in self.folders():
            try:
                record = folder.record()
            except StoreError as error:
                on_error(error)
                continue
            if record is not None:
                found.append(record)
        return found

    def merge(self, other: "Store") -> int:
        """Take in the job folders of another store that are not here yet; returns how many."""
        taken = 0
        for folder in other.folders():
            target = self.runs / folder.path.name
            if target.exists():
                continue
            with _as_store_error(self.root):
                self.runs.mkdir(parents=True, exist_ok=True)
                staging = Path(tempfile.mkdtemp(prefix=".merge-", dir=self.runs))
                shutil.copytree(folder.path, staging / target.name, ignore=shutil.ignore_patterns("lock", "scratch"))
                (staging / target.name).rename(target)
                staging.rmdir()
            taken += 1
        return taken


def read_record(path: Path) -> Record:
    """The record in a file.

    Raises:
        StoreError: it is not a record, or of another schema version.
    """
    data = _read_json(path)
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version is not None and version != SCHEMA_VERSION:
        raise StoreError(
            f"{path} has schema version {version}; this rlbench reads version {SCHEMA_VERSION}: "
            "read it with the rlbench that wrote it."
        )
    try:
        return Record.model_validate(data)
    except ValidationError as error:
        raise _unusable(path, "a record", error) from error


def load_results(store: str | Path = "results") -> dict[str, "pandas.DataFrame"]:
    """The store as pandas frames: `records` (one row a record, nested keys joined by dots) and `samples`.

    Args:
        store: the results folder.

    Returns:
        A frame by name. `samples` has the job's key in the column `job`.

    Raises:
        StoreError: the folder or a record in it cannot be read.
    """
    import pandas as pd

    def fail(error: StoreError) -> None:
        raise error

    opened = Store(Path(store))
    if not opened.root.is_dir():
        raise StoreError(f"there is no results folder {store}: run a measurement first, or name another folder.")
    samples = [
        {"job": folder.path.name, **sample.to_json()} for folder in opened.folders() for sample in folder.samples()
    ]
    records = [record.to_json() for record in opened.records(fail)]
    return {"records": pd.json_normalize(records), "samples": pd.DataFrame(samples)}


def write_json(path: Path, data: object) -> None:
    """Write `data` beside `path` and rename it into place, so that no reader sees half a file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(data, file, indent=1, allow_nan=False, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def _validated(kind: type[AnyValue], path: Path) -> AnyValue:
    try:
        return kind.model_validate(_read_json(path))
    except ValidationError as error:
        raise _unusable(path, f"the {kind.__name__.lower()} it should be", error) from error


def _unusable(path: Path, what: str, error: ValidationError) -> StoreError:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    reason = f"{where}: {first['msg']}" if where else first["msg"]
    return StoreError(f"{path} is not {what} ({reason}): move it away and run its command again.")


def _read_json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoreError(f"{path} is missing: the folder is not a job of rlbench's.") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"{path} is damaged ({error}): move it away and run its command again; its samples are kept."
        ) from error


def _cut_half_line(path: Path) -> None:
    if not path.exists():
        return
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        end = size
        while end > 0:
            step = min(end, 1 << 16)
            file.seek(end - step)
            newline = file.read(step).rfind(b"\n")
            if newline >= 0:
                end = end - step + newline + 1
                break
            end -= step
        if end < size:
            file.truncate(end)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


@contextmanager
def _as_read_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read: {error.strerror or error}: change its rights or move it away."
        ) from error


@contextmanager
def _as_store_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write to {path}: {error.strerror or error}: "
            "free some space, change its rights, or use another --store."
        ) from error
