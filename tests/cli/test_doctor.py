"""doctor tells what is here and what is missing, on any machine."""

import json
import sys
from pathlib import Path

import pytest

from rlbench.cli.app import run


def test_doctor_names_versions_device_and_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    assert run(["doctor", "--json", "--offline"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["hub_cache"] == str(tmp_path / "hub")
    assert facts["hub_reachable"] is None, "--offline asks no hub"
    extras = {extra["name"]: extra for extra in facts["extras"]}
    assert "torch" in extras["local"]["installed"]
    assert (extras["vllm"]["command"] is None) == (not extras["vllm"]["missing"])


def test_doctor_says_when_the_hub_does_not_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert run(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hub_reachable"] is False


def test_doctor_on_a_terminal_reads_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--offline"]) == 0
    shown = capsys.readouterr().out
    assert "device" in shown
    assert "local: measuring on this machine" in shown
