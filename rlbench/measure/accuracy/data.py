"""The data sets: which file, how many problems, which golds, where the hub has them.

"AMC23" is the name of at least three sets (40, 46 and 83 problems). So a file given with `--data-dir` must have
the number of problems and the golds of the set that its name stands for; problems' wording may differ between
sources, which is why the hash of what is asked stands in the job's subject.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_cache_dir

from rlbench.cards import hub_unreachable
from rlbench.core.job import Job
from rlbench.errors import HubError, InputError, UnknownName
from rlbench.grading.generated import count_prompts, generate, generated_tasks
from rlbench.grading.generated import task_hash as generated_hash

Document = dict[str, Any]
"""A problem: `id` and `problem` with `answer`, or a row of IFEval with an `id`, or a generated prompt."""

TASKS_FOLDER = Path(__file__).parent / "tasks"


@dataclass(frozen=True)
class DataSet:
    """A public set. `golds` is `gold_hash` of the whole set, `partial_golds` of smaller files that are known."""

    files: tuple[str, ...]
    count: int
    golds: str | None
    hub: str
    """Hub id, configuration (or nothing), split, separated by spaces."""
    from_hub: Callable[[Document], Document]
    max_new_tokens: int
    """Cap where neither the user nor the card says one."""
    samples: int = 1
    partial_golds: tuple[str, ...] = ()


def _problem(row: Document) -> Document:
    return {"problem": row.get("problem") or row["question"], "answer": _text(row["answer"])}


def _gsm8k(row: Document) -> Document:
    return {"problem": row["question"], "answer": row["answer"].rpartition("####")[2].strip().replace(",", "")}


def _instructions(row: Document) -> Document:
    return {name: row[name] for name in ("key", "prompt", "instruction_id_list", "kwargs")}


DATA_SETS: dict[str, DataSet] = {
    "math500": DataSet(
        ("math500.jsonl",), 500, "4563c132723345af", "HuggingFaceH4/MATH-500 - test", _problem, 32768
    ),
    "aime24": DataSet(
        ("aime24.jsonl",), 30, "26b2e319e14bdec5", "HuggingFaceH4/aime_2024 - train", _problem, 32768, samples=8
    ),
    "aime25": DataSet(("aime25.jsonl",), 30, "a0239316151158f3", "math-ai/aime25 - test", _problem, 32768, samples=8),
    "amc23": DataSet(("amc23.jsonl",), 40, "395f5c1282d3240d", "math-ai/amc23 - test", _problem, 32768, samples=8),
    "ifeval": DataSet(
        ("ifeval.jsonl", "ifeval_input_data.jsonl"), 541, "43e2bb90d87e8cd1", "google/IFEval - train", _instructions,
        1280,
    ),
    "gsm8k": DataSet(
        ("gsm8k.jsonl", "gsm8k_test_200.jsonl"), 1319, None, "openai/gsm8k main test", _gsm8k, 8192,
        partial_golds=("c279b79ce7773eda",),
    ),
}  # fmt: skip


def task_names() -> tuple[str, ...]:
    """Every task that `accuracy` knows: the public sets, then the generated tasks."""
    return (*DATA_SETS, *generated_tasks())


def check_task(name: str) -> None:
    """Raise `UnknownName` for a task that is not one."""
    if name not in task_names():
        raise UnknownName("task", name, task_names())


def is_generated(task: str) -> bool:
    return task in generated_tasks()


def size(task: str) -> int:
    """Problems in the whole task."""
    return count_prompts(task) if is_generated(task) else DATA_SETS[task].count


def locate(task: str, data_dir: Path | None, offline: bool) -> Path | None:
    """The folder that holds the task's file, fetched from the hub if need be; `None` for a generated task.

    Raises:
        InputError: the file is missing, or is not the set that its name says.
        HubError: the set is not on this machine and the hub does not give it.
    """
    if is_generated(task):
        return None
    if data_dir is not None:
        _check(task, _file_in(task, data_dir))
        return data_dir
    cached = Path(user_cache_dir("rlbench")) / "data"
    if not (cached / DATA_SETS[task].files[0]).exists():
        _fetch(task, cached, offline)
    return cached


def documents(job: Job, data_dir: Path | None) -> list[Document]:
    """All problems of the job's task, in their order, each with an `id`.

    Raises:
        InputError: the file is missing, unreadable, or no longer what the job was planned with.
    """
    task = str(job.subject.task)
    if is_generated(task):
        return [prompt.to_json() for prompt in generate(task, job.seed, count_prompts(task))]
    if data_dir is None:
        raise InputError(f"the task {task} needs its data: name the folder that holds it with --data-dir.")
    path = _file_in(task, data_dir)
    found = read(path)
    if job.subject.task_hash != content_hash(task, found):
        raise InputError(f"{path} has changed since this job was planned: run the command again.")
    return found


def task_hash(task: str, data_dir: Path | None) -> str:
    """Content hash of what is asked and expected: prompts, golds and the task file that frames them."""
    if is_generated(task):
        return generated_hash(task)
    assert data_dir is not None
    return content_hash(task, read(_file_in(task, data_dir)))


def content_hash(task: str, rows: Iterable[Document]) -> str:
    """16 hexadecimal digits over the problems in their order and the task's lm-eval files."""
    fields = ("id", "problem", "answer", "prompt", "instruction_id_list", "kwargs")
    kept = [{name: row[name] for name in fields if name in row} for row in rows]
    frame = [(TASKS_FOLDER / name).read_text(encoding="utf-8") for name in (f"{task}.yaml", "_math")]
    text = json.dumps([kept, *frame], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def gold_hash(rows: Iterable[Document]) -> str:
    """16 hexadecimal digits over the golds in any order; of IFEval, over the lists of instructions."""
    golds = sorted(" ".join(r["instruction_id_list"]) if "instruction_id_list" in r else r["answer"] for r in rows)
    return hashlib.sha256("\n".join(golds).encode()).hexdigest()[:16]


def read(path: Path) -> list[Document]:
    """The rows of a JSONL file, each with an `id`.

    Raises:
        InputError: it cannot be read, or a row is no problem.
    """
    rows = []
    try:
        # Not `splitlines`: a JSON string may hold U+2028 and its kind, which end no line of JSONL.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the data file {path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(_row(json.loads(line), number))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(
                f"line {number} of {path} is not a problem: it needs `problem` and `answer`, or IFEval's four keys."
            ) from None
    return rows


def _row(row: Document, number: int) -> Document:
    identity = str(row.get("id", row.get("key", number - 1)))
    if "instruction_id_list" in row:
        return {"id": identity, **_instructions(row)}
    return {"id": identity, "problem": row["problem"], "answer": _text(row["answer"])}


def _text(answer: object) -> str:
    if isinstance(answer, float) and answer.is_integer():
        answer = int(answer)
    text = str(answer).strip()
    # AIME's answers are written 025 by some sources.
    return text.lstrip("0") or "0" if text.isdigit() else text


def _file_in(task: str, folder: Path) -> Path:
    names = DATA_SETS[task].files
    for name in names:
        if (folder / name).is_file():
            return folder / name
    hub = DATA_SETS[task].hub.split()[0]
    raise InputError(
        f"the task {task} needs the file {names[0]}, which {folder} does not have: put it there, or leave "
        f"--data-dir away to fetch {hub} from the hub."
    )


def _check(task: str, path: Path) -> None:
    known, rows = DATA_SETS[task], read(path)
    golds = gold_hash(rows)
    if golds in (known.golds, *known.partial_golds) or (known.golds is None and len(rows) == known.count):
        return
    what = f"{len(rows)} problems" if len(rows) != known.count else "other answers"
    raise InputError(
        f"{path} is not the set that rlbench calls {task} ({known.count} problems): it has {what}; "
        "give --data-dir the folder with the right file."
    )


def _unreachable() -> str | None:
    """Why the hub cannot be asked; left to `datasets` where the user chose to be offline and its cache may serve.

    Asked first, since `datasets` tries for half a minute and says so line by line.
    """
    from huggingface_hub import is_offline_mode

    return None if is_offline_mode() else hub_unreachable()


def _fetch(task: str, folder: Path, offline: bool) -> None:
    """Write the hub's rows as JSONL; only their number is checked, since the hub's own wording may differ."""
    known = DATA_SETS[task]
    hub_id, configuration, split = known.hub.split()
    missing = (
        f"the data set {hub_id} of the task {task} is not on this machine and {{}}: put {known.files[0]} into a "
        "folder and name it with --data-dir."
    )
    if offline:
        raise HubError(missing.format("--offline was given"))
    try:
        import datasets
    except ImportError:
        raise HubError(missing.format("fetching it needs `pip install 'rlbench[local]'`")) from None
    if (reason := _unreachable()) is not None:
        raise HubError(missing.format(reason))
    try:
        rows = datasets.load_dataset(hub_id, None if configuration == "-" else configuration, split=split)
    except (OSError, ValueError, RuntimeError) as error:
        # datasets raises subclasses of these for: no network, no such set, no access.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise HubError(missing.format(f"the hub does not give it ({reason})")) from None
    kept = [{"id": str(row.get("unique_id", number)), **known.from_hub(row)} for number, row in enumerate(rows)]
    if len(kept) != known.count:
        raise HubError(f"{hub_id} has {len(kept)} rows, the task {task} {known.count}: give the set with --data-dir.")
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{known.files[0]}.part"
    part.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept), encoding="utf-8")
    part.replace(folder / known.files[0])
