"""From a memory request to its jobs: what this machine holds is run, the rest is traced."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from rlbench.core.architecture import Architecture
from rlbench.core.job import MemoryCheck
from rlbench.errors import UnknownName
from rlbench.plans.base import Surroundings
from rlbench.plans.memory import MemoryRequest


def test_a_step_that_this_machine_cannot_hold_is_traced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (planned,) = MemoryRequest(models=("qwen3-4b",), micro_batch=64).plan(Surroundings(offline=True))
    settings = planned.job.settings
    assert isinstance(settings, MemoryCheck)
    assert settings.run == "traced"
    assert planned.job.device == "cpu"
    config = json.loads((planned.fetch() / "config.json").read_text())
    assert Architecture.from_config(config, "what the room reads").parameters == 4_022_468_096


def test_a_small_folder_is_run_for_real_and_its_key_follows_the_setting(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Path
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    here = Surroundings(offline=True)
    (first,) = MemoryRequest(models=(str(tiny_model),), regime="fp32", seq_len=32).plan(here)
    (second,) = MemoryRequest(models=(str(tiny_model),), regime="bf16", seq_len=32).plan(here)
    assert isinstance(first.job.settings, MemoryCheck)
    assert first.job.settings.run == "real"
    assert first.job.key != second.job.key
    assert first.fetch() == tiny_model


def test_bad_requests_are_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean"):
        MemoryRequest(models=("qwen3-4c",)).plan(Surroundings(offline=True))
    with pytest.raises(ValidationError):
        MemoryRequest(models=("qwen3-4b",), seq_len=0)
    with pytest.raises(ValidationError):
        MemoryRequest(models=())
