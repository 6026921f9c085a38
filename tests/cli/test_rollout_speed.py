"""`rlbench rollout-speed`: estimates, a real measurement of a tiny model, and what it refuses."""

import json
from pathlib import Path

import pytest

from rlbench.catalogue import CANDIDATES
from rlbench.cli.app import run

KEYS = {
    "model", "gpu", "engine", "mode", "workload", "output_tokens_per_second", "output_tokens_per_second_low",
    "output_tokens_per_second_high", "elapsed_seconds", "rollouts_per_hour", "truncated_share", "straggler_share",
    "usd_per_million_output_tokens", "usd_per_thousand_rollouts", "peak_reserved_bytes", "provenance", "status",
    "source",
}  # fmt: skip


def test_no_model_estimates_all_seven(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["rollout-speed", "--gpu", "a40", "--json", "--store", str(tmp_path / "store")]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert tuple(r["model"] for r in results) == CANDIDATES
    for found in results:
        assert set(found) >= KEYS
        assert (found["provenance"], found["gpu"], found["engine"]) == ("estimated", "a40", "vllm")
        assert found["output_tokens_per_second_low"] < found["output_tokens_per_second_high"]
        assert found["usd_per_thousand_rollouts"] > 0
    assert not (tmp_path / "store").exists()


def test_the_table_fits_a_terminal_and_names_the_method(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["rollout-speed", "qwen3-4b", "--gpu", "l40s", "--price", "1", "--engine", "transformers"]) == 0
    shown = capsys.readouterr().out
    assert "estimated: l40s, transformers, 16 prompts × 8" in shown
    assert "$/1,000" in shown
    assert "step-time model" in shown
    assert "nothing was fitted on it" in shown


def test_what_is_asked_changes_the_workload(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--workload", "open-rs", "--group-size", "4", "--max-new-tokens", "1000", "--mean-new-tokens", "300"]
    assert run(["rollout-speed", "qwen3-4b", "--gpu", "a40", "--json", *flags]) == 0
    (found,) = json.loads(capsys.readouterr().out)["results"]
    asked = found["workload"]
    assert (asked["name"], asked["prompts"], asked["group_size"], asked["prompt_len"]) == ("custom", 12, 4, 512)
    assert found["max_new_tokens"] == asked["max_new_tokens"] == 1000


def test_a_model_that_does_not_fit_is_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rollout-speed", "qwen3-4b", "--gpu", "t4", "--workload", "aime-think", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert (found["status"], found["output_tokens_per_second"]) == ("out_of_memory", None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["qwen3-4", "--gpu", "a40"], "did you mean qwen3-4b"),
        (["qwen3-4b", "--gpu", "a41"], "unknown GPU 'a41'"),
        (["qwen3-4b", "--gpu", "a40", "--mode", "base"], "unknown mode of qwen3-4b 'base'"),
        (["qwen3-4b", "--gpu", "a40", "--workload", "grpo-shrt"], "did you mean grpo-short"),
        (["qwen3-4b", "--gpu", "a40", "--engine", "sglang"], "engine: input should be"),
        (["qwen3-4b", "--gpu", "a40", "--lengths", "lognormal"], "add --mean-new-tokens"),
        (["qwen3-4b", "--max-new-tokens", "0"], "--max-new-tokens"),
        (["qwen3-4b", "--prompts", "0"], "--prompts"),
        (["qwen3-4b", "--gpu", "a40", "--prompts", "99999999999"], "ask for 100,000 at most"),
        (["qwen3-4b", "--repeats", "0"], "--repeats"),
        (["qwen3-4b", "--gpu", "cpu", "--engine", "vllm"], "use --engine transformers"),
        (["smollm2-135m", "--gpu", "cpu", "--max-new-tokens", "9000"], "context of 8192: lower --max-new-tokens"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rollout-speed", *arguments, "--store", str(tmp_path / "store")]) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert not (tmp_path / "store").exists()


def test_a_tiny_model_is_measured_here_and_then_remembered(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "rollout-speed", str(tiny_model), "--gpu", "cpu", "--prompts", "2", "--group-size", "2",
        "--max-new-tokens", "6", "--repeats", "2", "--price", "1", "--json", "--store", str(tmp_path / "store"),
    ]  # fmt: skip
    assert run(command) == 0
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert set(found) >= KEYS
    assert (found["provenance"], found["gpu"], found["engine"]) == ("measured", "cpu", "transformers")
    assert (found["repeats"], found["status"]) == (2, "ok")
    assert found["peak_reserved_bytes"] > 0
    assert run(command) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["results"] == [found]
    assert "already answered" in shown.err
