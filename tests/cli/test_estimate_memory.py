"""estimate-memory as a user meets it: keys, verdicts, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from rlbench.cli.app import run

KEYS = {
    "model", "regime", "method", "parameters", "bytes_per_parameter", "states_bytes", "weights_bytes",
    "gradients_bytes", "optimizer_bytes", "activations_bytes", "logits_bytes", "kv_cache_bytes",
    "rollout_engine_bytes", "overhead_bytes", "peak_bytes", "peak_bytes_low", "peak_bytes_high", "peak_phase", "gpu",
    "gpu_visible_bytes", "fits", "advice", "check", "provenance", "status", "source",
}  # fmt: skip


def results(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    assert run(["estimate-memory", *arguments, "--json"]) == code
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["results"]
    return found


def test_a_model_that_does_not_fit_the_gpu_named_ends_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = results(capsys, "qwen3-4b", "--gpu", "a40", code=3)
    assert set(row) >= KEYS
    assert row["fits"] is False
    assert row["states_bytes"] == 18 * 4_022_468_096
    assert row["peak_bytes_low"] <= row["peak_bytes"] <= row["peak_bytes_high"]
    assert row["peak_bytes"] == sum(part["bytes"] for part in row["parts_at_peak"])
    assert row["advice"][0].startswith("--method lora")
    assert row["as_trl_runs_it"]["bytes_per_parameter"] == 16
    assert row["check"] is None
    assert row["provenance"] == "estimated"


def test_following_the_advice_makes_it_fit(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = results(capsys, "qwen3-4b", "--gpu", "a40", "--method", "lora")
    assert row["fits"] is True
    assert row["advice"] == []


def test_without_a_gpu_every_gpu_gets_a_verdict_and_the_exit_code_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    rows = results(capsys, "qwen3-4b", "smollm2-135m")
    of_each = {name: [row for row in rows if row["model"] == name] for name in ("qwen3-4b", "smollm2-135m")}
    assert len(of_each["qwen3-4b"]) == len(of_each["smollm2-135m"]) > 1
    assert {row["fits"] for row in of_each["qwen3-4b"]} == {True, False}
    assert all(row["fits"] for row in of_each["smollm2-135m"])
    assert all(row["fits"] is not None for row in rows)


def test_inference_is_weights_and_kv_cache(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = results(
        capsys, "qwen3-4b", "--gpu", "a40", "--inference", "--concurrency", "8", "--seq-len", "4096"
    )  # fmt: skip
    assert row["weights_bytes"] == row["states_bytes"] == 2 * row["parameters"]
    assert row["kv_cache_bytes"] == 147_456 * 8 * 4096
    assert row["peak_phase"] == "generation"
    assert (row["gradients_bytes"], row["optimizer_bytes"], row["activations_bytes"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["qwen3-4c"], "did you mean"),
        (["qwen3-4b", "--gpu", "a41"], "did you mean a40"),
        (["qwen3-4b", "--regime", "mixt"], "regime"),
        (["qwen3-4b", "--seq-len", "0"], "--seq-len"),
        (["qwen3-4b", "--method", "lora", "--lora-rank", "4096"], "hidden size of 2560"),
        (["qwen3-4b", "--method", "lora", "--check"], "leave out"),
        (["qwen3-4b", "--inference", "--method", "lora"], "leave out --method lora"),
        ([], "MODEL"),
    ],
)
def test_bad_input_is_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert run(["estimate-memory", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert words.lower() in shown.err.lower()
    assert shown.err.count("\n") == 1


def test_a_sequence_beyond_the_context_warns(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate-memory", "smollm2-135m", "--seq-len", "100000", "--json"]) == 0
    assert "beyond smollm2-135m's context of 8192 tokens" in capsys.readouterr().err


def test_the_terminal_shows_parts_bar_range_and_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate-memory", "qwen3-4b", "--gpu", "a40"]) == 3
    shown = capsys.readouterr()
    for words in ("18.00 bytes a parameter, 72.40 GB", "master copy", "W weights", "TRL as", "--method lora"):
        assert words in shown.out
    assert "qwen3-4b needs" in shown.err


def test_the_cpu_is_this_machine(capsys: pytest.CaptureFixture[str], tiny_model: Path) -> None:
    (row,) = results(capsys, str(tiny_model), "--gpu", "cpu", "--regime", "fp32")
    assert row["gpu"] == "cpu"
    assert row["fits"] is True


def test_check_runs_the_step_in_a_worker_and_stores_it(
    capsys: pytest.CaptureFixture[str], tiny_model: Path, tmp_path: Path
) -> None:
    asked = [str(tiny_model), "--gpu", "a40", "--seq-len", "32", "--check", "--store", str(tmp_path / "store")]
    (row,) = results(capsys, *asked)
    check = row["check"]
    assert check["provenance"] == "measured"
    assert check["holds"] is True
    assert check["bytes_per_parameter"] == 18
    assert check["peak_bytes"] > 0
    assert "18.00 B/parameter claimed, 18.00 measured (states)" in check["verdict"]
    assert len(list((tmp_path / "store" / "runs").glob("memory-*/record.json"))) == 1
    (again,) = results(capsys, *asked)
    assert again["check"] == check, "an answered check is read from the store"


def test_a_check_that_does_not_hold_ends_with_5_and_not_fitting_wins(
    capsys: pytest.CaptureFixture[str], tiny_model: Path, tmp_path: Path
) -> None:
    """A stored record of another machine that counted 20 bytes where 18 are claimed."""
    store = tmp_path / "store"
    asked = [str(tiny_model), "--seq-len", "32", "--check", "--store", str(store)]
    results(capsys, *asked)
    (record,) = (store / "runs").glob("memory-*/record.json")
    data = json.loads(record.read_text())
    data["values"]["bytes_per_parameter"] = 20.0
    record.write_text(json.dumps(data))
    assert run(["estimate-memory", *asked]) == 5
    assert "20.00 measured (states)" in capsys.readouterr().err
    too_long = ["--gpu", "a40", "--seq-len", "32", "--micro-batch", "100000000"]
    assert run(["estimate-memory", str(tiny_model), *too_long]) == 3
