"""MADE-UP TEST DATA: a store as a week of measurements might leave it. No number in it was measured."""

import math
from pathlib import Path

from rlbench.core.cost import Cost, Price
from rlbench.core.job import AccuracyTask, Attempt, EngineSpec, GrpoProbe, Job, MemoryCheck, RolloutMeasurement, Targets
from rlbench.core.record import (
    AccuracyValues,
    BaseStatistics,
    Gain,
    Host,
    MemoryValues,
    ProbeValues,
    Record,
    RolloutValues,
    StepPoint,
    Values,
)
from rlbench.core.sample import Sample
from rlbench.core.subject import Mode, Sampling, Subject
from rlbench.core.workload import workload
from rlbench.store import JobFolder, Store

SOURCE = "made up for a test"
PRICE = Price(device="cpu", usd_per_hour=0.08, provider="nobody", date="2026-01-01", source=SOURCE)
HOST = Host(
    platform="Made-Up-OS",
    device="Made-up processor",
    cpu_count=2,
    memory_bytes=24 * 2**30,
    packages={"torch": "0.0", "transformers": "0.0"},
    rlbench_version="0.0",
)
SCRIPT = "<script>document.title='the script of a completion ran'</script><img src=x onerror=\"document.title='ran'\">"


def subject(card: str, task: str | None, mode: Mode = "no_think", cap: int | None = 32) -> Subject:
    return Subject(
        model=f"made-up/{card}",
        card=card,
        revision="0" * 40,
        mode=mode,
        task=task,
        max_new_tokens=cap,
        sampling=Sampling(),
    )


def job(subject: Subject, settings: GrpoProbe | MemoryCheck | RolloutMeasurement | AccuracyTask) -> Job:
    return Job(subject=subject, settings=settings, engine=EngineSpec(), versions={}, device="cpu")


def probe_values(before: float, gain: float, half: float, seconds: float, steps: int = 8) -> ProbeValues:
    dollars = seconds / 3600 * PRICE.usd_per_hour
    curve = [
        StepPoint(step=i, reward=min(before + gain / 100 * (1 - math.exp(-i / 4)) + 0.03 * math.sin(3 * i), 1.0))
        for i in range(1, steps + 1)
    ]
    return ProbeValues(
        task="short-answer",
        n_prompts=40,
        samples_per_prompt=4,
        gain=gain,
        ci_low=gain - half,
        ci_high=gain + half,
        p_gain_positive=0.5,
        before=before,
        after=before + gain / 100,
        lenient=Gain(
            before=before + 0.1,
            after=before + 0.1 + gain / 200,
            gain=gain / 2,
            ci_low=gain / 2 - half,
            ci_high=gain / 2 + half,
            p_gain_positive=0.5,
        ),
        base=BaseStatistics(
            pass_at_1=before, mean_p_one_minus_p=0.12, all_right_share=0.1, all_wrong_share=0.3, mixed_share=0.6,
            truncated_share=0.04, mean_output_tokens=21.0,
        ),
        steps=steps,
        rollouts=32 * steps,
        gpu_seconds=seconds,
        usd=dollars,
        training_usd=dollars * 0.7,
        state="gain" if gain > half else "undecided: extend",
        gates={"truncated": False, "format_gain_expected": before < 0.2},
        curve=tuple(curve),
    )  # fmt: skip


def memory_values() -> MemoryValues:
    return MemoryValues(
        regime="fp32", seq_len=64, micro_batch=4, parameters=134_515_008, bytes_per_parameter=16.0,
        states_bytes=16 * 134_515_008, peak_bytes=3_000_000_000, peak_phase="optimizer step", gpu="cpu", how=SOURCE,
    )  # fmt: skip


def rollout_values() -> RolloutValues:
    return RolloutValues(
        gpu="cpu", engine="transformers", workload=workload("cpu-demo"), output_tokens_per_second=112.0,
        output_tokens_per_second_low=108.0, output_tokens_per_second_high=117.0, rollouts_per_hour=9000.0,
        truncated_share=0.1, usd_per_million_output_tokens=0.198, usd_per_thousand_rollouts=0.0089, repeats=3,
        how=SOURCE,
    )  # fmt: skip


def accuracy_values(accuracy: float, half: float) -> AccuracyValues:
    return AccuracyValues(
        n_prompts=40, samples_per_prompt=4, accuracy=accuracy, ci_low=max(accuracy - half, 0),
        ci_high=min(accuracy + half, 1), truncated_share=0.05, mean_output_tokens=20.0, usd_per_correct=0.0004,
        generated=True,
    )  # fmt: skip


def put(store: Store, asked: Job, values: Values | None, seconds: float, created: str, **changes: object) -> JobFolder:
    """Store a record as a worker would."""
    folder = store.open(asked)
    folder.add_attempt(
        lambda number: Attempt(
            number=number, targets=Targets(), model_path=Path("/nowhere"), command=SOURCE, started=created
        )
    )
    record = Record(
        subject=asked.subject,
        job=asked,
        targets=Targets(),
        provenance="measured",
        source=SOURCE,
        created=created,
        host=HOST,
        cost=Cost(phase_seconds={"rollout": seconds}, device="cpu", price=PRICE),
        values=values,
    )
    folder.write_record(record.model_copy(update=changes))
    return folder


def samples(text: str, phases: tuple[str, ...]) -> list[Sample]:
    return [
        Sample(
            phase=phase, prompt_id=f"made-up-{i}", index=0, seed=0, prompt_tokens=10, answer_tokens=12,
            finish_reason="stop", text=text if i == 0 else f"A small lamp that was made up. ({phase})", strict=float(i),
        )
        for phase in phases
        for i in range(3)
    ]  # fmt: skip


def fill(root: Path) -> Store:
    """A store with three probes (two of them tied), one failed probe, a memory check, rollouts and accuracies."""
    store = Store(root)
    for day, (card, before, gain, half, seconds) in enumerate(
        (("smollm2-135m", 0.22, 31.0, 9.0, 420.0), ("qwen3-0.6b", 0.41, 38.0, 8.0, 640.0),
         ("smollm2-360m", 0.37, 6.0, 7.5, 510.0)), 1,
    ):  # fmt: skip
        folder = put(
            store,
            job(subject(card, "short-answer"), GrpoProbe(held_out_prompts=40, samples_per_prompt=4)),
            probe_values(before, gain, half, seconds),
            seconds,
            f"2026-01-0{day}T00:00:00+00:00",
        )
        with folder.appending() as sink:
            for sample in samples(SCRIPT, ("before", "after-8")):
                sink(sample)
    put(
        store, job(subject("olmo-1b", "short-answer", "base"), GrpoProbe()), None, 60.0,
        "2026-01-04T00:00:00+00:00", status="out_of_memory", detail="the process ran out of memory",
    )  # fmt: skip
    small = subject("smollm2-135m", None, cap=None)
    put(
        store,
        job(small, MemoryCheck(regime="fp32", seq_len=64, micro_batch=4)),
        memory_values(),
        9.0,
        "2026-01-05T00:00:00+00:00",
    )
    put(
        store,
        job(small, RolloutMeasurement(workload=workload("cpu-demo"))),
        rollout_values(),
        30.0,
        "2026-01-05T00:00:00+00:00",
    )
    for task, accuracy in (("short-answer", 0.24), ("lowercase", 0.52)):
        folder = put(
            store,
            job(subject("smollm2-135m", task), AccuracyTask()),
            accuracy_values(accuracy, 0.11),
            50.0,
            "2026-01-06T00:00:00+00:00",
        )
        with folder.appending() as sink:
            for sample in samples(SCRIPT, ("",)):
                sink(sample)
    return store
