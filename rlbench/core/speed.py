"""How fast a GPU that is not here would generate a workload: a step-time model and a simulation of the batch.

The structure is theory (weights and KV cache to read, arithmetic, host and launch costs); the constants are
fitted to public measurements and each names what it was fitted to:

* QWEN: the single-stream tables of the Qwen2.5 and Qwen3 documentation (vLLM 0.6.3 and transformers 4.46 on
  A100, SGLang 0.4.6 and transformers 4.51 on H20, half precision).
* OPEN-RS: the vLLM 0.7.2 log of knoveleng/open-rs: whole batches of a 1.5B model on one A40.
* VIDUR: the kernel times of microsoft/vidur on A40 and A100.

How well that does: single streams of servers, median error 4%, the worst 19%; transformers up to 6,000 prompt
tokens within 27%, with more it is far too fast (its attention moves more than this says); OPEN-RS's 48 whole
batches from their mean length alone, median 17%, two in three within 25%, and 85% of them inside the range given,
which there spans a factor of 2.1. `tests/core/test_speed.py` holds it to that.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rlbench.core.card import Architecture, ModelCard
from rlbench.core.cost import SECONDS_PER_HOUR, Price, usd
from rlbench.core.gpu import Gpu
from rlbench.core.lengths import completion_lengths
from rlbench.core.record import Record, RolloutValues
from rlbench.core.subject import Mode, Subject
from rlbench.core.workload import Workload

EngineName = Literal["vllm", "transformers"]

BYTES = 2
"""Of a weight and of a KV element: half precision, which every engine here uses on a GPU."""
WEIGHT_READ_EFFICIENCY = 0.81
"""Share of the listed bandwidth at which weights are read. VIDUR: 0.80 on an A40 at 1–16 tokens; QWEN."""
KV_READ_EFFICIENCY = 0.81
"""The same for the KV cache. OPEN-RS: the slope over context tokens is 81% of 696 GB/s."""
SAMPLER_READ_EFFICIENCY = 0.8
SAMPLER_BYTES_PER_LOGIT = 20
"""Sampling reads and writes each fp32 logit about five times. OPEN-RS (its step grows with B · vocabulary)."""
DECODE_COMPUTE_EFFICIENCY = 0.78
PREFILL_COMPUTE_EFFICIENCY = 0.54
ATTENTION_COMPUTE_EFFICIENCY = 0.60
"""Shares of the listed dense tensor rate. VIDUR: 0.73–0.77 on an A40 at 1,000 tokens; QWEN at 6k–30k input."""
MEMORY_COMPUTE_BLEND = 1.5
"""Reading and arithmetic overlap, but not wholly: the exponent of their smooth maximum. VIDUR: the dip at 64–256."""
HOST_DEVICE_BLEND = 4.0
"""For transformers: the host launches ahead of the device, so the slower of the two decides. QWEN."""
FREE_SHARE = 0.9
"""Of visible memory: what vLLM takes by default (`gpu_memory_utilization`)."""
WORK_BYTES = 2.5e9
"""Beside weights and KV cache: activations of the profile run, CUDA graphs. OPEN-RS's memory ledger: 2.3 GB."""
DEFAULT_SLOTS = 256
"""vLLM's `max_num_seqs` when nothing is said."""


class HostCosts(NamedTuple):
    """Seconds that a decode step takes beside the device's work."""

    fixed: float
    per_layer: float
    per_sequence: float
    sigma: float
    """Standard deviation of the logarithm of (measured ÷ predicted) on a GPU fitted on."""
    source: str


HOST_COSTS: dict[str, HostCosts] = {
    "vllm": HostCosts(0.22e-3, 60e-6, 10e-6, 0.25, "vLLM 0.8 and later; single streams on A100, mid-2025"),
    "vllm-v0": HostCosts(0.22e-3, 97e-6, 60e-6, 0.20, "vLLM up to 0.7; QWEN and OPEN-RS"),
    "transformers": HostCosts(0.0, 0.73e-3, 0.0, 0.35, "QWEN: 0.87 ms a layer on one host, 0.62 on another"),
}
DELIVERED_BANDWIDTH = {"h20": 0.52}
"""Share of the listed bandwidth that such a GPU has to give in the first place. QWEN: H20, 0.42 ÷ 0.81."""
FITTED_GPUS = ("a40", "a100")
"""The constants were fitted on these; for other GPUs the spread of the error is doubled."""

LENGTH_SIGMA = 1.0
"""Spread of the logarithm of completion lengths where only their mean is known. OPEN-RS: the spread that explains
the elapsed time of its batches is 0.7 (AMC23) to 1.3 (MATH-500)."""
LENGTH_SIGMAS = (0.7, 1.3)
MEAN_SHARE = 0.5
"""Mean completion length as a share of the cap where nothing is known of it."""
MEAN_SHARES = (0.25, 0.8)
DRAWS = 4
"""Random draws of the lengths, beside the evenly spread ones, to see what a long tail does."""
Z_90 = 1.645


@dataclass(frozen=True)
class Device:
    """A GPU in the two rates that decide a step: bytes and floating-point operations a second."""

    bandwidth: float
    peak: float


def device_of(gpu: Gpu) -> Device:
    """The GPU's listed half-precision rates."""
    tflops = gpu.bf16_tflops or gpu.fp16_tflops or gpu.fp32_tflops or 0.1 * gpu.memory_bandwidth_gb_per_second
    bandwidth = gpu.memory_bandwidth_gb_per_second * 1e9 * DELIVERED_BANDWIDTH.get(gpu.name, 1.0)
    return Device(bandwidth, tflops * 1e12)


def decode_step_seconds(
    architecture: Architecture, device: Device, engine: str, running: int, context_tokens: float
) -> float:
    """Seconds in which each of `running` sequences gets one more token.

    vLLM: core + fixed + per_layer · L + per_sequence · B; transformers: the smooth maximum of core and host.
    core = (mem^1.5 + comp^1.5)^(1/1.5) + kv + sampler, with
    mem = 2 · (parameters − untied input embedding) / (0.81 · bandwidth),
    comp = 2 · (the same) · B / (0.78 · peak), kv = context tokens · KV bytes a token / (0.81 · bandwidth).

    Args:
        architecture: the model's.
        device: the GPU's rates.
        engine: a key of `HOST_COSTS`.
        running: sequences in the batch (B).
        context_tokens: tokens in the KV cache over all of them.
    """
    host = HOST_COSTS[engine]
    parameters = architecture.decode_parameters
    memory = BYTES * parameters / (WEIGHT_READ_EFFICIENCY * device.bandwidth)
    compute = 2 * parameters * running / (DECODE_COMPUTE_EFFICIENCY * device.peak)
    core = _blend(memory, compute, MEMORY_COMPUTE_BLEND)
    core += context_tokens * _kv_bytes_read(architecture, engine) / (KV_READ_EFFICIENCY * device.bandwidth)
    sampler_bytes = SAMPLER_BYTES_PER_LOGIT * running * architecture.vocab_size
    core += sampler_bytes / (SAMPLER_READ_EFFICIENCY * device.bandwidth)
    launching = host.fixed + host.per_layer * architecture.layers + host.per_sequence * running
    return _blend(core, launching, HOST_DEVICE_BLEND) if engine == "transformers" else core + launching


def prefill_seconds(architecture: Architecture, device: Device, prompts: int, prompt_len: int) -> float:
    """Seconds to read `prompts` prompts of `prompt_len` tokens (N): 2·(active − V·h)·N / (0.54·peak) and attention.

    Attention is 2·N²·query heads·head size·layers / (0.60·peak) a prompt.
    """
    active = architecture.non_embedding_parameters
    dense = 2 * active * prompts * prompt_len / (PREFILL_COMPUTE_EFFICIENCY * device.peak)
    width = architecture.query_heads * architecture.head_dim
    attention = 2 * prompt_len**2 * width * architecture.layers * prompts
    return dense + attention / (ATTENTION_COMPUTE_EFFICIENCY * device.peak)


def _blend(a: float, b: float, exponent: float) -> float:
    return float((a**exponent + b**exponent) ** (1 / exponent))


def _kv_bytes_read(architecture: Architecture, engine: str) -> float:
    if engine != "transformers":
        return float(architecture.kv_bytes_per_token(BYTES))
    # Each step copies the cache as it grows (one read, one write), then repeats it for every query head (one
    # read, g writes) and reads that (g). QWEN's rows with 14k tokens and more at one sequence show still more.
    group = architecture.query_heads / architecture.kv_heads
    return architecture.kv_bytes_per_token(BYTES) * (3 + 2 * group)


class Timeline(NamedTuple):
    """A batch gone by."""

    seconds: float
    idle_slot_seconds: float
    """Slot-seconds in which a finished sequence's slot had nothing left to run."""
    slots: int
    output_tokens: int

    @property
    def tokens_per_second(self) -> float:
        return self.output_tokens / self.seconds

    @property
    def straggler_share(self) -> float:
        return self.idle_slot_seconds / (self.slots * self.seconds)


def continuous_batch(
    lengths: Sequence[int], prompt_len: int, slots: int, capacity_tokens: float, step: Callable[[int, float], float]
) -> Timeline:
    """Continuous batching: a sequence is taken in as soon as a slot and room in the KV cache are free.

    Args:
        lengths: completion length of each sequence, in the order of arrival (all at the start).
        prompt_len: tokens of each prompt, already read.
        slots: sequences that may run together.
        capacity_tokens: tokens the KV cache holds.
        step: seconds of a decode step, from (running, context tokens).
    """
    usable = min(slots, len(lengths))
    running: list[tuple[int, int]] = []  # (step at which it ends, tokens it will hold then)
    waiting = 0
    now = started = reserved = 0
    seconds = idle = 0.0
    while running or waiting < len(lengths):
        while waiting < len(lengths) and len(running) < usable:
            need = prompt_len + lengths[waiting]
            if running and reserved + need > capacity_tokens:
                break
            heapq.heappush(running, (now + lengths[waiting], need))
            reserved, started, waiting = reserved + need, started + now, waiting + 1
        steps = running[0][0] - now
        batch = len(running)
        context = batch * (prompt_len + now + steps / 2) - started
        spent = steps * step(batch, context)
        seconds += spent
        idle += spent * (usable - batch) if waiting == len(lengths) else 0.0
        now += steps
        while running and running[0][0] == now:
            _, need = heapq.heappop(running)
            reserved, started = reserved - need, started - (now - (need - prompt_len))
    return Timeline(seconds, idle, usable, sum(lengths))


def static_batches(
    lengths: Sequence[int], prompt_len: int, slots: int, capacity_tokens: float, step: Callable[[int, float], float]
) -> Timeline:
    """Batches one after another, each as long as its longest sequence, finished rows still computed.

    The arguments are those of `continuous_batch`.
    """
    longest = max(lengths)
    size = max(1, min(slots, len(lengths), int(capacity_tokens // (prompt_len + longest))))
    seconds = idle = 0.0
    for first in range(0, len(lengths), size):
        batch = lengths[first : first + size]
        each = step(len(batch), len(batch) * (prompt_len + max(batch) / 2))
        seconds += max(batch) * each
        idle += (size * max(batch) - sum(batch)) * each
    return Timeline(seconds, idle, size, sum(lengths))


class Prediction(NamedTuple):
    """What a workload would take; `low` and `high` bound the tokens a second at nine in ten."""

    tokens_per_second: float
    low: float
    high: float
    seconds: float
    straggler_share: float
    truncated_share: float
    mean_output_tokens: float


def predict(architecture: Architecture, gpu: Gpu, workload: Workload, engine: str) -> Prediction | None:
    """Simulate the workload; `None` when weights and one sequence do not fit the GPU.

    The range joins two sources in quadrature (of logarithms): how far the length distributions that fit the
    workload (other spreads, other means where none is given, random draws) move the result, and the model's
    own error on measured rows.
    """
    capacity = kv_capacity_tokens(architecture, gpu)
    if capacity < workload.prompt_len + workload.max_new_tokens:
        return None
    device = device_of(gpu)

    def run(lengths: Sequence[int]) -> Timeline:
        return _run(architecture, device, workload, engine, capacity, lengths)

    lengths = _expected_lengths(workload)
    expected = run(lengths)
    others = [run(other).tokens_per_second for other in _other_lengths(workload)]
    rate = expected.tokens_per_second
    error = Z_90 * HOST_COSTS[engine].sigma * (1 if gpu.name.startswith(FITTED_GPUS) else 2)
    natural = workload.lengths != "fixed"
    return Prediction(
        tokens_per_second=rate,
        low=rate * math.exp(-math.hypot(error, math.log(rate / min([rate, *others])))),
        high=rate * math.exp(math.hypot(error, math.log(max([rate, *others]) / rate))),
        seconds=expected.seconds,
        straggler_share=expected.straggler_share,
        truncated_share=sum(n >= workload.max_new_tokens for n in lengths) / len(lengths) if natural else 0.0,
        mean_output_tokens=sum(lengths) / len(lengths),
    )


def kv_capacity_tokens(architecture: Architecture, gpu: Gpu) -> float:
    """Tokens of KV cache beside the weights: (0.9 · visible − 2 · parameters − 2.5 GB) ÷ KV bytes a token."""
    free = FREE_SHARE * gpu.visible_bytes - BYTES * architecture.parameters - WORK_BYTES
    return free / architecture.kv_bytes_per_token(BYTES)


def _run(
    architecture: Architecture, device: Device, workload: Workload, engine: str, capacity: float, lengths: Sequence[int]
) -> Timeline:
    def step(running: int, context_tokens: float) -> float:
        return decode_step_seconds(architecture, device, engine, running, context_tokens)

    static = engine == "transformers"
    slots = workload.concurrency or (len(lengths) if static else DEFAULT_SLOTS)
    simulate = static_batches if static else continuous_batch
    decoding = simulate(lengths, workload.prompt_len, slots, capacity, step)
    # vLLM reads the prompt of a group once (prefix caching); transformers once a sample.
    prompts = workload.rollouts if static else workload.prompts
    prefill = prefill_seconds(architecture, device, prompts, workload.prompt_len)
    return decoding._replace(seconds=decoding.seconds + prefill)


def _expected_lengths(workload: Workload) -> Sequence[int]:
    mean = workload.mean_new_tokens or MEAN_SHARE * workload.max_new_tokens
    if workload.lengths == "fixed":
        return [round(workload.mean_new_tokens or workload.max_new_tokens)] * workload.rollouts
    return completion_lengths(mean, workload.max_new_tokens, workload.rollouts, LENGTH_SIGMA)


def _other_lengths(workload: Workload) -> list[Sequence[int]]:
    """Lengths that would be no surprise either."""
    if workload.lengths == "fixed":
        return []
    cap, count = workload.max_new_tokens, workload.rollouts
    mean = workload.mean_new_tokens or MEAN_SHARE * cap
    found: list[Sequence[int]] = [completion_lengths(mean, cap, count, sigma) for sigma in LENGTH_SIGMAS]
    found += [completion_lengths(mean, cap, count, LENGTH_SIGMA, seed) for seed in range(1, DRAWS + 1)]
    if workload.mean_new_tokens is None:
        found += [completion_lengths(share * cap, cap, count, LENGTH_SIGMA) for share in MEAN_SHARES]
    return found


def estimate_rollout(
    card: ModelCard,
    gpu: Gpu,
    workload: Workload,
    engine: EngineName = "vllm",
    mode: Mode | None = None,
    price: Price | None = None,
) -> Record:
    """The estimated record of a workload on a GPU that need not be here.

    Its status is `out_of_memory`, without values, when the model and one sequence of the workload do not fit.
    """
    chosen = mode or card.default_mode
    subject = Subject(
        model=card.hub_id,
        card=card.name,
        revision=card.revision,
        mode=chosen,
        max_new_tokens=workload.max_new_tokens,
        sampling=card.modes[chosen].sampling if chosen in card.modes else None,
    )
    prediction = predict(card.architecture, gpu, workload, engine)
    source = f"rlbench's step-time model and batch simulation ({HOST_COSTS[engine].source})"
    if prediction is None:
        return Record(
            subject=subject,
            provenance="estimated",
            source=source,
            status="out_of_memory",
            detail=f"{card.name} and one sequence of {workload.prompt_len + workload.max_new_tokens} tokens do not fit "
            f"the {gpu.visible_gib:.1f} GiB of a {gpu.name}",
        )
    values = _values(prediction, gpu, workload, engine, price)
    return Record(subject=subject, provenance="estimated", source=source, values=values)


def _values(prediction: Prediction, gpu: Gpu, workload: Workload, engine: str, price: Price | None) -> RolloutValues:
    dollars = None if price is None else usd(prediction.seconds, price.usd_per_hour)
    tokens = prediction.mean_output_tokens * workload.rollouts
    fitted = gpu.name.startswith(FITTED_GPUS)
    near = "its constants were fitted on such a GPU" if fitted else "nothing was fitted on it, so the range is wider"
    lengths = f"mean {prediction.mean_output_tokens:.0f} tokens" + (
        "" if workload.mean_new_tokens else f" (assumed: {MEAN_SHARE:.0%} of the cap)"
    )
    return RolloutValues(
        gpu=gpu.name,
        engine=engine,
        workload=workload,
        output_tokens_per_second=prediction.tokens_per_second,
        output_tokens_per_second_low=prediction.low,
        output_tokens_per_second_high=prediction.high,
        elapsed_seconds=prediction.seconds,
        rollouts_per_hour=workload.rollouts / prediction.seconds * SECONDS_PER_HOUR,
        prompt_tokens_per_second=workload.rollouts * workload.prompt_len / prediction.seconds,
        mean_output_tokens=prediction.mean_output_tokens,
        truncated_share=prediction.truncated_share,
        straggler_share=prediction.straggler_share,
        usd_per_million_output_tokens=None if dollars is None else dollars / tokens * 1e6,
        usd_per_thousand_rollouts=None if dollars is None else dollars / workload.rollouts * 1e3,
        how=f"simulated with lognormal lengths, {lengths}; {near}.",
    )
