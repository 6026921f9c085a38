"""The command frame: where options may stand, what a mistake says, what --help costs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlbench.cli.app import run

HEAVY = (
    "torch", "transformers", "trl", "peft", "vllm", "lm_eval", "modal", "altair", "vl_convert", "pandas", "scipy",
    "numpy", "datasets", "math_verify", "jinja2", "huggingface_hub",
)  # fmt: skip


def store_with_nothing(tmp_path: Path) -> Path:
    (tmp_path / "other" / "runs").mkdir(parents=True)
    return tmp_path / "other"


def test_common_options_stand_before_or_after_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = str(store_with_nothing(tmp_path))
    store = str(tmp_path / "mine")
    for arguments in (
        ["--json", "--store", store, "merge", other],
        ["merge", other, "--json", "--store", store],
        ["--json", "merge", other, "--output_path", store],
    ):
        assert run(arguments) == 0
        assert json.loads(capsys.readouterr().out) == {"taken": 0, "already_here": 0}


def test_a_mistake_is_one_sentence_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["merg"], "no such command 'merg'"),
        (["merge", "--jsn", "x"], "no such option: --jsn"),
        (["merge"], "missing argument 'DIR'"),
        (["merge", "/there/is/no/such/folder"], "there is no results folder /there/is/no/such/folder"),
        (["merge", "/"], "there is no results folder /"),
        (["run", "cpu-demo", "--price", "inf", "--dry-run"], "--price is inf: give a finite number"),
        (["compare", "--budget-usd", "inf"], "--budget-usd is inf: give a finite number"),
    ):
        assert run(arguments) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert words in shown.err
        assert shown.err.count("\n") == 1
        assert "Traceback" not in shown.err


def test_a_config_file_gives_options_and_flags_win(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = str(store_with_nothing(tmp_path))
    config = tmp_path / "rlbench.toml"
    config.write_text('json = true\n[merge]\nstore = "from-config"\n')
    monkeypatch.chdir(tmp_path)
    assert run(["--config", str(config), "merge", other]) == 0
    assert json.loads(capsys.readouterr().out)["taken"] == 0
    monkeypatch.setenv("RLBENCH_CONFIG", str(config))
    assert run(["merge", other]) == 0
    assert json.loads(capsys.readouterr().out)["taken"] == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("jsno = true", "has the key 'jsno', which is no option: did you mean 'json'?"),
        ("[merg]", "has the key 'merg', which is no command: did you mean 'merge'?"),
        ("json = ", "is not TOML"),
    ],
)
def test_a_config_file_with_a_mistake_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    config = tmp_path / "rlbench.toml"
    config.write_text(text)
    assert run(["merge", "x", "--config", str(config)]) == 2
    assert words in capsys.readouterr().err


def test_every_flag_has_its_variable_and_an_unknown_one_warns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLBENCH_JSON", "1")
    monkeypatch.setenv("RLBENCH_STOER", "x")
    assert run(["merge", str(store_with_nothing(tmp_path))]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["taken"] == 0
    assert "RLBENCH_STOER is not one of rlbench's and does nothing; did you mean RLBENCH_STORE?" in shown.err


@pytest.mark.parametrize("arguments", [["--help"], ["estimate-memory", "qwen3-4b"], ["models"], ["gpus"]])
def test_light_commands_import_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys\nfrom rlbench.cli.app import run\n"
        f"code = run({arguments!r})\n"
        f"loaded = sorted(set({HEAVY!r}) & set(sys.modules))\n"
        "print(code, loaded, file=sys.stderr)"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stderr.splitlines()[-1] == "0 []"
    assert answer.stdout


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("rlbench 0.")


def test_an_unusable_path_is_one_sentence_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "m" * 300]) == 1
    shown = capsys.readouterr()
    assert "File name too long" in shown.err
    assert shown.err.count("\n") == 1


def rlbench(command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The command in a shell, `RLBENCH` in it being the program; the exit code is that of the pipe's first part."""
    shell = command.replace("RLBENCH", f"{sys.executable} -m rlbench")
    return subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def test_a_reader_that_goes_away_is_no_failure() -> None:
    ended = rlbench("RLBENCH gpus | true; exit ${PIPESTATUS[0]}")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_full_disk_under_standard_output_is_one_sentence() -> None:
    ended = rlbench("RLBENCH gpus --json > /dev/full")
    assert ended.returncode == 1
    assert ended.stderr.startswith("rlbench: standard output: No space left on device")
    assert ended.stderr.count("\n") == 1


def test_a_locale_without_the_characters_costs_no_result() -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = rlbench("RLBENCH estimate-memory qwen3-4b --gpu h200", **ascii_only)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "1 ? 1,024 tokens" in ended.stdout


def test_a_terminal_of_unknown_width_gets_its_table() -> None:
    assert "rtx-4090" in rlbench("RLBENCH gpus", COLUMNS="0").stdout


def test_ctrl_c_says_that_nothing_is_lost(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rlbench.catalogue.cards", interrupted)
    assert run(["models"]) == 130
    assert capsys.readouterr().err == "rlbench: stopped; the same command goes on where it was.\n"
