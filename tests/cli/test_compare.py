"""`rlbench compare`, from a store to a file."""

import csv
import json
from pathlib import Path

import pytest

from rlbench.cli.app import run
from rlbench.report.figures import Figure
from tests.report.made_up import SCRIPT, fill

NAMES = ["smollm2-135m", "qwen3-4b"]


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[dict[str, object]]]:
    assert run(["compare", "--json", *arguments]) == 0
    loaded: dict[str, list[dict[str, object]]] = json.loads(capsys.readouterr().out)
    return loaded


def test_json_is_one_document_with_every_model_ranked_or_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path / "store")
    found = document(capsys, *NAMES, "--store", str(tmp_path / "store"))
    assert [entry["model"] for entry in found["ranking"]] == ["smollm2-135m"]
    assert [row["model"] for row in found["unprobed"]] == ["qwen3-4b"]
    row = found["unprobed"][0]
    assert row["memory_provenance"] == "estimated"
    assert row["command"] == (
        "rlbench probe qwen3-4b --task short-answer --steps 8 --held-out 40 --samples 4 --max-new-tokens 32"
    )
    assert {row["model"] for row in found["missing"]} == set(NAMES)
    provenances = {figure["provenance"] for figure in found["figures"]}
    assert {"measured", "estimated"} <= provenances


def test_without_names_the_seven_and_everything_measured_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path / "store")
    found = document(capsys, "--store", str(tmp_path / "store"))
    named = {str(row["model"]) for key in ("ranking", "unprobed") for row in found[key]}
    assert {"smollm2-135m", "qwen3-0.6b", "smollm2-360m", "olmo-1b", "qwen3-4b", "smollm3-3b"} <= named


@pytest.mark.parametrize("ending", ["html", "md", "csv", "json", "HTML"])
def test_the_ending_decides_the_format(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path / "store")
    out = tmp_path / f"report.{ending}"
    assert run(["compare", *NAMES, "--store", str(tmp_path / "store"), "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert f"Report: {out}" in shown.out
    assert shown.err == ""
    text = out.read_text(encoding="utf-8")
    assert SCRIPT not in text
    if ending == "json":
        assert json.loads(text)["ranking"][0]["model"] == "smollm2-135m"
    elif ending == "csv":
        rows = list(csv.DictReader(text.splitlines()))
        assert set(rows[0]) == set(Figure.model_fields)
        assert {row["provenance"] for row in rows} >= {"measured", "estimated"}
    elif ending == "md":
        assert text.startswith("# GRPO raises smollm2-135m on short-answer")
        assert " on a CPU.\n" in text
        assert "| 1 | smollm2-135m |" in text
    else:
        assert text.startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_measured_step_stands_beside_the_estimate_of_the_same_step(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    out = tmp_path / "report.html"
    assert run(["compare", "smollm2-135m", "--store", str(tmp_path / "store"), "--out", str(out)]) == 0
    assert "measured 16.0 bytes per parameter and a peak of 2.8 GiB; estimated 16.0 and" in out.read_text()


def test_an_empty_store_ranks_nothing_and_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "qwen3-4b", "--store", str(tmp_path / "none")]) == 0
    shown = capsys.readouterr().out
    assert "No model can be recommended yet: none has been probed." in shown
    assert "rlbench probe qwen3-4b" in shown
    assert not (tmp_path / "none").exists()


def test_what_is_not_ranked_fits_a_terminal_of_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["compare", "--price", "0.5", "--store", str(tmp_path / "none")]) == 0
    shown = capsys.readouterr().out
    assert "estimates for a40 at $0.50 an hour (stated by the user" in shown
    assert "does not fit" in shown
    assert "…" not in shown


def test_a_price_derives_every_dollar_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path / "store")
    at = ("--store", str(tmp_path / "store"))
    (before,) = document(capsys, *NAMES, *at)["ranking"]
    (after,) = document(capsys, *NAMES, *at, "--price", "0.8")["ranking"]
    assert after["usd"] == pytest.approx(10 * float(str(before["usd"])))
    assert after["points_per_usd"] == pytest.approx(float(str(before["points_per_usd"])) / 10)
    (elsewhere,) = document(capsys, *NAMES, *at, "--price", "0.8", "--gpu", "a40")["ranking"]
    assert elsewhere["usd"] == before["usd"]


def test_a_damaged_record_is_named_left_out_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = fill(tmp_path / "store")
    damaged = next(f for f in store.folders() if f.path.name.startswith("rollout"))
    damaged.record_path.write_text('{"schema_version": 1, "subj')
    out = tmp_path / "report.html"
    assert run(["compare", "--store", str(tmp_path / "store"), "--out", str(out)]) == 1
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1
    assert str(damaged.record_path) in shown.err
    assert str(damaged.record_path) in out.read_text()
    assert "smollm2-135m" in shown.out
    assert damaged.record_path.exists()


def test_a_damaged_sample_costs_its_examples_and_no_ranking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = fill(tmp_path / "store")
    folder = next(folder for folder in store.folders() if folder.samples_path.exists())
    folder.samples_path.write_text("garbage\n")
    assert run(["compare", "--json", "--store", str(tmp_path / "store")]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["ranking"]
    assert f"line 1 of {folder.samples_path} is not a sample" in shown.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "missing/report.html"], "there is no folder missing for the report"),
        (["--out", "report.txt"], "names no format: use .html, .md, .csv, .json"),
        (["--out", "folder.html"], "is a folder"),
        (["qwen3-4c"], "unknown model 'qwen3-4c': did you mean qwen3-4b"),
        (["--gpu", "a41"], "unknown GPU 'a41'"),
        (["--price", "-1"], "--price"),
        (["--budget-usd", "-1"], "--budget-usd"),
        (["--store", "file"], "is a file, not a folder"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").write_text("")
    assert run(["compare", *arguments]) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
