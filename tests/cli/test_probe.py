"""`rlbench probe`: what it refuses before any work, and what it prints."""

import json
from pathlib import Path

import pytest

from rlbench.cli.app import run
from rlbench.cli.measured import result
from rlbench.core.record import BaseStatistics, ProbeValues, Record
from rlbench.core.subject import Subject


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["smollm2-135", "--task", "short-answer"], "did you mean smollm2-135m"),
        (["smollm2-135m", "--task", "short-anwser"], "did you mean short-answer"),
        (["smollm2-135m", "--mode", "think"], "unknown mode of smollm2-135m 'think'"),
        (["smollm2-135m", "--mode", "loud"], "mode: input should be"),
        (["smollm2-135m", "--method", "half"], "method: input should be"),
        (["smollm2-135m", "--max-new-tokens", "0"], "--max-new-tokens"),
        (["smollm2-135m", "--group-size", "1"], "--group-size"),
        (["smollm2-135m", "--steps", "0"], "--steps"),
        (["smollm2-135m", "--lr", "-1"], "lr: input should be greater than 0"),
        (["smollm2-135m", "--price", "-1"], "--price"),
        (["smollm2-135m", "--task", "sums", "--held-out", "100"], "has 67 held-out prompts, not 100"),
        (["smollm2-135m", "--task", "sums", "--training-prompts", "64"], "has 33 training prompts, not 64"),
        (["smollm2-135m", "--prompts-per-step", "65"], "65 prompts a step need as many training prompts, not 64"),
    ],
)
def test_bad_input_is_refused_in_one_sentence_before_any_work(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["probe", *arguments, "--store", str(tmp_path / "store")]) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert not (tmp_path / "store").exists()


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["probe", str(tmp_path), "--store", str(tmp_path / "store")]) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_the_json_of_a_probe_has_the_contract_s_keys() -> None:
    base = BaseStatistics(
        pass_at_1=0.2, mean_p_one_minus_p=0.1, all_right_share=0, all_wrong_share=0.5, mixed_share=0.5,
        truncated_share=0, mean_output_tokens=9,
    )  # fmt: skip
    values = ProbeValues(
        task="short-answer", n_prompts=4, samples_per_prompt=2, gain=30, ci_low=10, ci_high=50, before=0.2, after=0.5,
        base=base, steps=8, rollouts=256, gpu_seconds=300, usd=0.01, points_per_usd=3000, state="gain",
    )  # fmt: skip
    subject = Subject(model="m", card="smollm2-135m", mode="no_think", task="short-answer", max_new_tokens=24)
    found = result(Record(subject=subject, provenance="measured", source="rlbench probe", values=values), ProbeValues)
    assert {
        "model", "mode", "task", "max_new_tokens", "gain", "ci_low", "ci_high", "p_gain_positive", "before", "after",
        "lenient", "steps", "rollouts", "gpu_seconds", "usd", "points_per_usd", "usd_per_point", "state", "gates",
        "provenance", "status", "source",
    } <= set(found)  # fmt: skip
    assert (found["model"], found["gain"], found["usd_per_point"]) == ("smollm2-135m", 30, None)
    failed = result(
        Record(subject=subject, provenance="measured", source="x", status="failed", detail="no hub"), ProbeValues
    )
    assert (failed["gain"], failed["status"], failed["detail"]) == (None, "failed", "no hub")
    assert set(failed) == set(found)
    json.dumps(found, allow_nan=False)
