"""The step-time model and the batch simulation: invariants, and the public measurements they must come near."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlbench.catalogue import CANDIDATES, find_gpu, find_model, gpus
from rlbench.core.card import Architecture
from rlbench.core.cost import Price
from rlbench.core.lengths import completion_lengths
from rlbench.core.record import RolloutValues
from rlbench.core.speed import (
    HOST_COSTS,
    Z_90,
    continuous_batch,
    decode_step_seconds,
    device_of,
    estimate_rollout,
    predict,
    prefill_seconds,
    static_batches,
)
from rlbench.core.workload import WORKLOADS, Workload

LENGTHS = st.lists(st.integers(1, 500), min_size=1, max_size=40)
A40_KV_TOKENS = 1_125_056
"""As the Open-RS log prints it."""


def one_second(running: int, context_tokens: float) -> float:
    return 1.0


@given(lengths=LENGTHS, slots=st.integers(1, 50))
def test_slots_are_busy_idle_or_were_waited_for(lengths: list[int], slots: int) -> None:
    line = continuous_batch(lengths, 10, slots, 1e9, one_second)
    assert line.output_tokens == sum(lengths)
    assert max(lengths) <= line.seconds <= sum(lengths)
    assert line.idle_slot_seconds + sum(lengths) == pytest.approx(line.slots * line.seconds)
    assert 0 <= line.straggler_share < 1


@given(lengths=LENGTHS, slots=st.integers(1, 50))
def test_static_batches_take_the_longest_of_each(lengths: list[int], slots: int) -> None:
    line = static_batches(lengths, 10, slots, 1e9, one_second)
    size = min(slots, len(lengths))
    assert line.seconds == sum(max(lengths[i : i + size]) for i in range(0, len(lengths), size))
    assert line.seconds >= continuous_batch(lengths, 10, slots, 1e9, one_second).seconds


@given(lengths=LENGTHS)
def test_less_room_in_the_cache_never_saves_time(lengths: list[int]) -> None:
    wide = continuous_batch(lengths, 10, 40, 1e9, one_second)
    narrow = continuous_batch(lengths, 10, 40, 600, one_second)
    assert narrow.seconds >= wide.seconds
    assert narrow.output_tokens == wide.output_tokens


@given(running=st.integers(1, 512), context=st.floats(1, 1e6), engine=st.sampled_from(sorted(HOST_COSTS)))
def test_more_to_do_never_takes_less_time(running: int, context: float, engine: str) -> None:
    shape, device = find_model("qwen3-1.7b").architecture, device_of(find_gpu("a40"))
    step = decode_step_seconds(shape, device, engine, running, context)
    assert decode_step_seconds(shape, device, engine, running + 1, context) >= step
    assert decode_step_seconds(shape, device, engine, running, context * 2) >= step
    assert decode_step_seconds(find_model("qwen3-4b").architecture, device, engine, running, context) > step
    assert decode_step_seconds(shape, device_of(find_gpu("h100")), engine, running, context) <= step


def test_every_candidate_on_every_gpu_has_an_ordered_range() -> None:
    for gpu in gpus().values():
        for name in CANDIDATES:
            found = predict(find_model(name).architecture, gpu, WORKLOADS["open-rs"], "vllm")
            assert found is not None
            assert 0 < found.low < found.tokens_per_second < found.high
            assert 0 <= found.straggler_share < 1


def test_an_estimate_says_what_it_is_and_what_it_costs() -> None:
    price = Price(device="a40", usd_per_hour=0.5, provider="p", date="2026-01-01", source="s")
    record = estimate_rollout(find_model("qwen3-0.6b"), find_gpu("a40"), WORKLOADS["grpo-short"], price=price)
    values = record.values
    assert isinstance(values, RolloutValues)
    assert (record.provenance, record.status, values.gpu) == ("estimated", "ok", "a40")
    assert "assumed: 50% of the cap" in values.how
    assert values.elapsed_seconds is not None
    assert values.usd_per_thousand_rollouts == pytest.approx(values.elapsed_seconds / 3600 * 0.5 / 128 * 1000)


def test_what_does_not_fit_is_said() -> None:
    record = estimate_rollout(find_model("qwen3-4b"), find_gpu("t4"), WORKLOADS["aime-think"])
    assert (record.status, record.values) == ("out_of_memory", None)
    assert "do not fit the 14.6 GiB of a t4" in record.detail


def test_fixed_lengths_leave_no_stragglers_and_a_narrower_range() -> None:
    fixed = Workload(prompts=8, group_size=4, prompt_len=100, max_new_tokens=300, lengths="fixed")
    shape, gpu = find_model("qwen3-1.7b").architecture, find_gpu("a40")
    exact, natural = predict(shape, gpu, fixed, "vllm"), predict(shape, gpu, WORKLOADS["cpu-demo"], "vllm")
    assert exact is not None
    assert natural is not None
    assert (exact.straggler_share, exact.truncated_share, exact.mean_output_tokens) == (0, 0, 300)
    assert exact.high / exact.low < natural.high / natural.low


def single_streams(data: Path) -> Iterator[tuple[str, float, float, float]]:
    """(engine, input length, measured tokens/s, predicted) of the half-precision rows of the Qwen tables."""
    folders = {"Qwen/Qwen3-0.6B": "Qwen3-0.6B", "Qwen/Qwen3-4B": "Qwen3-4B"}
    devices = {"A100-80GB": "a100-80gb", "H20-96GB": "h20"}
    engines = {"vLLM": "vllm-v0", "Transformers": "transformers", "SGLang": "vllm"}
    with (data / "throughput" / "throughput_truth.csv").open() as file:
        for row in csv.DictReader(file):
            if row["kind"] != "single_stream" or row["dtype"] != "BF16":
                continue
            folder = folders.get(row["model"], f"other/{row['model'].removeprefix('Qwen/')}")
            config = json.loads((data / "models" / folder / "config.json").read_text())
            shape, device = Architecture.from_config(config, folder), device_of(find_gpu(devices[row["gpu"]]))
            given, tokens = int(row["input_len"]), int(row["output_len"])
            engine = engines[row["engine"]]
            step = decode_step_seconds(shape, device, engine, 1, given + tokens / 2)
            seconds = prefill_seconds(shape, device, 1, given) + tokens * step
            # The Qwen3 table counts prompt tokens in its own column of speeds; the derived one does not.
            yield engine, given, float(row["gen_tok_s_derived"] or row["value"]), tokens / seconds


def test_single_streams_of_servers_come_near(shared_data: Path) -> None:
    rows = [(m, p) for engine, _, m, p in single_streams(shared_data) if engine != "transformers"]
    errors = [abs(p / m - 1) for m, p in rows]
    assert len(rows) > 10
    assert median(errors) < 0.12
    assert max(errors) < 0.35


def test_single_streams_of_transformers_come_near_at_rollout_lengths(shared_data: Path) -> None:
    errors = [
        abs(p / m - 1) for engine, n, m, p in single_streams(shared_data) if engine == "transformers" and n < 10e3
    ]
    assert len(errors) > 5
    assert max(errors) < 0.35


def open_rs(data: Path) -> Iterator[tuple[int, float, float, float, float]]:
    """(prompts, measured tokens/s, predicted, low, high) of whole vLLM batches of a 1.5B on an A40."""
    config = json.loads((data / "models" / "DeepSeek-R1-Distill-Qwen-1.5B" / "config.json").read_text())
    shape = Architecture.from_config(config, "config.json")
    with (data / "throughput" / "openrs_eval_throughput.csv").open() as file:
        for row in csv.DictReader(file):
            if row["complete"] != "yes":
                continue
            workload = Workload(
                prompts=int(row["n_prompts"]),
                group_size=1,
                prompt_len=int(row["mean_in_len"]),
                max_new_tokens=32_768 - int(row["mean_in_len"]),
                mean_new_tokens=float(row["mean_out_len"]),
            )
            found = predict(shape, find_gpu("a40"), workload, "vllm-v0")
            assert found is not None
            yield workload.prompts, float(row["out_tok_s"]), found.tokens_per_second, found.low, found.high


def test_the_range_holds_most_of_the_open_rs_batches(shared_data: Path) -> None:
    rows = list(open_rs(shared_data))
    assert len(rows) > 40
    assert median(abs(p / m - 1) for _, m, p, _, _ in rows) < 0.25
    assert sum(low <= m <= high for _, m, _, low, high in rows) / len(rows) >= 0.8


def test_the_range_is_no_wider_than_three_on_a_gpu_fitted_on(shared_data: Path) -> None:
    assert median(high / low for *_, low, high in open_rs(shared_data)) < 3


def test_the_kv_cache_that_the_open_rs_log_prints(shared_data: Path) -> None:
    from rlbench.core.speed import kv_capacity_tokens

    config = json.loads((shared_data / "models" / "DeepSeek-R1-Distill-Qwen-1.5B" / "config.json").read_text())
    shape = Architecture.from_config(config, "config.json")
    assert kv_capacity_tokens(shape, find_gpu("a40")) == pytest.approx(A40_KV_TOKENS, rel=0.2)


def test_a_longer_tail_takes_longer() -> None:
    def seconds(sigma: float) -> float:
        lengths = completion_lengths(500, 4000, 64, sigma)
        return continuous_batch(lengths, 100, 64, 1e9, one_second).seconds

    assert seconds(0.2) < seconds(0.7) < seconds(1.2)
    assert pytest.approx(1.645) == Z_90
