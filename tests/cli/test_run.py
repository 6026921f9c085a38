"""`rlbench run`, before anything runs."""

from pathlib import Path

import pytest

from rlbench.cli.app import run


def test_a_dry_run_adds_up_what_is_still_to_do(
    tmp_path: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, store = tmp_path / "plan.toml", tmp_path / "store"
    plan.write_text(f'about = "one speed"\n\n[[job]]\nkind = "rollout"\nmodels = ["{tiny_model}"]\n')
    assert run(["run", str(plan), "--dry-run", "--price", "1", "--store", str(store)]) == 0
    assert "Still to do: 1 of 1 jobs, about" in capsys.readouterr().out
    assert not store.exists()
