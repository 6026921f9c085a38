import json
from pathlib import Path

import pytest

from rlbench.errors import HubError, InputError, UnknownName
from rlbench.measure.accuracy.data import (
    DATA_SETS,
    TASKS_FOLDER,
    check_task,
    content_hash,
    gold_hash,
    locate,
    read,
    size,
    task_hash,
)


def write(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_every_public_set_has_a_task_file() -> None:
    for name in DATA_SETS:
        assert f"task: {name}\n" in (TASKS_FOLDER / f"{name}.yaml").read_text()


def test_a_file_that_is_another_set_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "amc23.jsonl", *[{"id": str(n), "problem": "p", "answer": str(n)} for n in range(83)])
    with pytest.raises(InputError, match=r"amc23 \(40 problems\): it has 83 problems"):
        locate("amc23", tmp_path, offline=True)
    write(tmp_path / "amc23.jsonl", *[{"id": str(n), "problem": "p", "answer": str(n)} for n in range(40)])
    with pytest.raises(InputError, match="other answers"):
        locate("amc23", tmp_path, offline=True)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"math500\.jsonl.*HuggingFaceH4/MATH-500"):
        locate("math500", tmp_path, offline=True)


def test_offline_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlbench.measure.accuracy.data.user_cache_dir", lambda _: str(tmp_path))
    with pytest.raises(HubError, match=r"put aime24\.jsonl into a folder and name it with --data-dir"):
        locate("aime24", None, offline=True)


def test_an_unknown_task_gets_near_names() -> None:
    with pytest.raises(UnknownName, match="math500"):
        check_task("math50")


def test_damaged_rows_are_named(tmp_path: Path) -> None:
    path = tmp_path / "aime24.jsonl"
    path.write_text('{"problem": "p", "answer": 3}\n{"problem": "q"}\n')
    with pytest.raises(InputError, match="line 2"):
        read(path)


def test_leading_zeros_and_integers_are_one(tmp_path: Path) -> None:
    first = read(write(tmp_path / "a.jsonl", {"problem": "p", "answer": "025"}, {"problem": "q", "answer": "0"}))
    second = read(write(tmp_path / "b.jsonl", {"problem": "p", "answer": 25}, {"problem": "q", "answer": 0.0}))
    assert first == second
    assert gold_hash(first) == gold_hash(reversed(first))
    assert content_hash("aime24", first) != content_hash("aime24", list(reversed(first)))


def test_generated_tasks_need_no_data() -> None:
    assert locate("short-answer", None, offline=True) is None
    assert task_hash("short-answer", None) != task_hash("lowercase", None)
    assert size("short-answer") >= 40


@pytest.mark.parametrize("task", DATA_SETS)
def test_the_public_files_are_the_sets_they_are_called(shared_data: Path, task: str) -> None:
    folder = shared_data / "benchmarks"
    assert locate(task, folder, offline=True) == folder
    assert len(task_hash(task, folder)) == 16


def test_a_line_ends_at_a_line_feed_alone_and_text_is_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text('\ufeff{"problem": "one\u2028two", "answer": "3"}\n', encoding="utf-8")
    assert read(path)[0]["problem"] == "one\u2028two"
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="cannot be read"):
        read(path)
