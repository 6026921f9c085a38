"""A wheel built from the checkout works whole, far from the checkout."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the unpacked wheel, as an installer would lay it out."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    site = folder / "site"
    zipfile.ZipFile(wheel).extractall(site)
    return site


def rlbench(site: Path, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": str(site), "HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    environment.pop("XDG_CACHE_HOME", None)
    command = [sys.executable, "-m", "rlbench", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_cards_prices_plans_and_templates_travel_with_it(installed: Path, tmp_path: Path) -> None:
    where = subprocess.run(
        [sys.executable, "-c", "import rlbench; print(rlbench.__file__)"],
        env=os.environ | {"PYTHONPATH": str(installed)}, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert where.stdout.startswith(str(installed)), "the wheel is what is tested, not the checkout"

    models = rlbench(installed, tmp_path, "models", "--json")
    assert models.returncode == 0, models.stderr
    assert {model["name"] for model in json.loads(models.stdout)["models"]} >= {"qwen3-4b", "smollm2-135m"}

    gpus = rlbench(installed, tmp_path, "gpus", "a40", "--json")
    assert gpus.returncode == 0, gpus.stderr

    plan = rlbench(installed, tmp_path, "run", "cpu-demo", "--dry-run", "--json")
    assert plan.returncode == 0, plan.stderr
    assert {job["job"].split()[0] for job in json.loads(plan.stdout)["jobs"]} == {
        "memory", "rollout", "accuracy", "probe",
    }  # fmt: skip

    report = rlbench(installed, tmp_path, "compare", "--out", "report.html")
    assert report.returncode == 0, report.stderr
    assert "qwen3-4b" in (tmp_path / "report.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html"], "nothing else is written"


def test_the_wheel_holds_no_results_of_ours(installed: Path) -> None:
    assert (installed / "rlbench" / "py.typed").exists()
    assert (installed / "rlbench" / "data" / "model_cards").is_dir()
    assert not list(installed.rglob("runs"))
