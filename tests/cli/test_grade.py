import json
from pathlib import Path

import pytest

from rlbench.cli.app import run


def write(path: Path, *rows: dict[str, object]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_answers_and_responses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(
        tmp_path / "answers.jsonl",
        {"id": "a", "prediction": "2x+3", "gold": "3+2x"},
        {"id": "b", "prediction_text": r"so \boxed{7}", "gold": "8"},
        {"prediction_text": "", "gold": "8"},
        {"id": "d", "prediction_text": "<think>5</think> The answer is 6.", "gold": "6", "question": "3+3?"},
    )
    assert run(["grade", file, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {key: document[key] for key in ("n", "correct", "timeouts", "unparsable")} == {
        "n": 4, "correct": 2, "timeouts": 0, "unparsable": 1,
    }  # fmt: skip
    assert [(row["id"], row["correct"]) for row in document["results"]] == [
        ("a", True), ("b", False), ("3", False), ("d", True),
    ]  # fmt: skip
    assert all(row["reason"] for row in document["results"])


def test_a_hostile_answer_is_a_timeout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "hostile.jsonl", {"prediction": "$29^{11^{7}}$", "gold": "1"})
    assert run(["grade", file, "--deadline", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["timeouts"], document["correct"]) == (1, 0)


@pytest.mark.parametrize("line", ["{", "[" * 100_000, '{"prediction": "1"}', '{"prediction": 1, "gold": "1"}', "[]"])
def test_a_bad_line_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"prediction": "1", "gold": "1"}\n' + line + "\n")
    assert run(["grade", str(file)]) == 2
    assert "line 2 of" in capsys.readouterr().err


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["grade", str(tmp_path / "none.jsonl")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_line_ends_at_a_line_feed_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "odd.jsonl"
    rows = ({"prediction": "2\u2028", "gold": "2", "id": None}, {"prediction": "2\x85", "gold": "2", "id": "\ud800"})
    text = json.dumps(rows[0], ensure_ascii=False) + "\r\n" + json.dumps(rows[1]) + "\n"
    file.write_bytes(text.encode("utf-8-sig"))
    assert run(["grade", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in document["results"]] == ["1", "\ud800"]
    assert document["correct"] == 2
