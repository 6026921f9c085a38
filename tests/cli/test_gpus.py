"""gpus lists what is known of each GPU and says what this machine is."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlbench.cli.app import run
from rlbench.measure import host


@pytest.fixture
def machine_with_an_a40(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An `nvidia-smi` on the path that answers as on a machine with one A40."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho NVIDIA A40\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture(autouse=True)
def _names_are_asked_anew() -> Iterator[None]:
    host.gpu_names.cache_clear()
    yield
    host.gpu_names.cache_clear()


@pytest.fixture
def machine_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def test_the_list_has_every_gpu_with_its_price_and_where_it_is_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gpus"]) == 0
    shown = capsys.readouterr().out
    a40 = next(line for line in shown.splitlines() if line.startswith("a40 "))
    assert a40.split()[1:5] == ["44.34", "696", "149.7", "0.40"]
    assert "RunPod" in a40
    t4 = next(line for line in shown.splitlines() if line.startswith("t4 "))
    assert "14.60?" in t4, "a figure that nobody confirmed is marked"
    assert "this machine:" in shown


def test_one_gpu_is_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gpus", "NVIDIA A100-SXM4-80GB"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("a100-80gb (also a100")
    assert "fp32, TFLOP/s           19.5   (unverified)" in shown
    chosen = [line for line in shown.splitlines() if line.startswith(">")]
    assert len(chosen) == 1
    assert "1.790  2026-11-09  RunPod, on-demand, secure; github:datareceipts" in chosen[0]
    assert "1.390" in shown, "the community price is shown, though not chosen"


@pytest.mark.usefixtures("machine_without_a_gpu")
def test_json_is_one_document_in_plain_units(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gpus", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    gpus = {gpu["name"]: gpu for gpu in document["gpus"]}
    h100 = gpus["h100-sxm"]
    assert h100["visible_bytes"] == int(79.18 * 2**30)
    assert h100["memory_bandwidth_gb_per_second"] == 3350
    assert "h100" in h100["aliases"]
    assert h100["price"]["usd_per_hour"] == 3.9492
    assert {price["kind"] for price in gpus["rtx-4090"]["prices"]} == {"on-demand", "community", "serverless"}
    assert document["this_machine"]["device"] == "cpu"
    assert document["this_machine"]["price"]["usd_per_hour"] == pytest.approx(0.158256)


@pytest.mark.usefixtures("machine_with_an_a40")
def test_a_machine_with_a_known_gpu_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gpus", "a40", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [gpu["name"] for gpu in document["gpus"]] == ["a40"]
    assert document["this_machine"]["gpus"] == [{"device": "NVIDIA A40", "name": "a40"}]
    assert document["this_machine"]["price"]["device"] == "a40"
    assert run(["gpus", "a40"]) == 0
    assert "this machine: NVIDIA A40 (a40); counted at $0.400 an hour" in capsys.readouterr().out


def test_an_unknown_gpu_is_bad_input_with_a_near_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gpus", "a4o"]) == 2
    assert "did you mean a40?" in capsys.readouterr().err


def test_gpus_needs_no_heavy_library() -> None:
    heavy = "{'torch', 'transformers', 'pandas', 'numpy', 'scipy'}"
    code = (
        f"import sys\nfrom rlbench.cli.app import run\nrun(['gpus', '-q'])\nsys.exit(bool({heavy} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
