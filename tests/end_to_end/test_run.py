"""A whole plan on a toy model: run, killed, taken up again, compared."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import save_tiny_model

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PLAN = """
about = "everything once, on a model of 120,000 random weights"

[[job]]
kind = "memory"
models = ["{model}"]
regime = "fp32"
seq_len = 32

[[job]]
kind = "rollout"
models = ["{model}"]
prompts = 2
group_size = 2
max_new_tokens = 8
repeats = 2

[[job]]
kind = "accuracy"
models = ["{model}"]
tasks = ["short-answer"]
limit = 6
samples = 2
max_new_tokens = 20

[[job]]
kind = "probe"
models = ["{model}"]
task = "short-answer"
steps = 2
group_size = 4
prompts_per_step = 1
training_prompts = 4
held_out = 4
samples = 2
max_new_tokens = 20
lr = 1e-3
"""

ANSWERS = ("a big round thing", "it is a thing that is so very old and so very big that")
"""What the toy has learned to say, half the time each: one that is short enough, one that runs into the cap."""


def rlbench(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "rlbench", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def toy_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model after a few seconds of teaching, so that a probe has something to learn from."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tmp_path_factory.mktemp("toy")
    save_tiny_model(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Describe a bell in at most eight words."}],
        tokenize=False,
        add_generation_prompt=True,
    )
    texts = [prompt + answer + tokenizer.eos_token for answer in ANSWERS]
    batch = tokenizer(texts, return_tensors="pt", padding=True, padding_side="right", add_special_tokens=False)
    asked = len(tokenizer(prompt, add_special_tokens=False)["input_ids"])
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    labels[:, :asked] = -100
    for _ in range(150):
        loss = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def project(tmp_path: Path, toy_model: Path) -> Path:
    (tmp_path / "plan.toml").write_text(PLAN.format(model=toy_model))
    return tmp_path


def records(folder: Path) -> dict[str, dict[str, object]]:
    return {
        path.parent.name: json.loads(path.read_text()) for path in sorted(folder.glob("results/runs/*/record.json"))
    }


def without_times(value: object) -> object:
    """The record less what depends on the clock, the process and the day."""
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if not _of_the_clock(key)}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def _of_the_clock(key: str) -> bool:
    clocks = ("second", "per_hour", "usd", "created", "cost", "peak", "host", "straggler", "phase_bytes", "elapsed")
    return any(word in key for word in clocks)


def test_a_plan_runs_and_a_second_run_does_nothing(project: Path) -> None:
    first = rlbench(project, "run", "plan.toml", "--json")
    assert first.returncode == 0, first.stderr
    results = json.loads(first.stdout)["results"]
    assert [result["values"]["kind"] for result in results] == ["memory", "rollout", "accuracy", "probe"]
    assert {result["provenance"] for result in results} == {"measured"}
    assert all(result["cost"]["price"] for result in results), "even a CPU hour has a stated price"

    before = records(project)
    second = rlbench(project, "run", "plan.toml")
    assert second.returncode == 0, second.stderr
    assert second.stderr.count("already answered") == 4
    assert records(project) == before

    report = rlbench(project, "compare", "--out", "report.html")
    assert report.returncode == 0, report.stderr
    assert "short-answer" in (project / "report.html").read_text()


def test_a_killed_plan_goes_on_where_it_was(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    undisturbed = tmp_path_factory.mktemp("undisturbed")
    (undisturbed / "plan.toml").write_text((project / "plan.toml").read_text())
    assert rlbench(undisturbed, "run", "plan.toml").returncode == 0

    command = [sys.executable, "-m", "rlbench", "run", "plan.toml"]
    with subprocess.Popen(command, cwd=project, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as victim:
        _wait_for(lambda: list(project.glob("results/runs/probe-*/samples.jsonl")) != [])
        os.kill(victim.pid, signal.SIGKILL)
    finished_before = {key for key in records(project) if not key.startswith("probe")}
    assert len(finished_before) == 3

    again = rlbench(project, "run", "plan.toml")
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("already answered") == 3, "finished jobs are not run again"
    assert without_times(records(project)) == without_times(records(undisturbed))


def _wait_for(happened: "object", seconds: float = 240) -> None:
    assert callable(happened)
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_the_plan_is_forecast_without_running(project: Path) -> None:
    answer = rlbench(project, "run", "plan.toml", "--dry-run", "--json")
    assert answer.returncode == 0, answer.stderr
    jobs = json.loads(answer.stdout)["jobs"]
    assert len(jobs) == 4
    assert not (project / "results").exists(), "a dry run writes nothing"


def test_a_plan_with_a_mistake_is_refused(project: Path) -> None:
    plan = project / "plan.toml"
    plan.write_text(plan.read_text().replace("repeats = 2", "repeets = 2"))
    answer = rlbench(project, "run", "plan.toml")
    assert answer.returncode == 2
    assert answer.stderr.strip() == "rlbench: the plan plan.toml: job 2, 'repeets' is not a key of a plan."
    assert rlbench(project, "run", "cpu-dmo").returncode == 2
