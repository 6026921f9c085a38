"""The memory room: runs real AdamW steps with random weights and reads what they hold.

On a GPU the allocator's counters are read; on the CPU the live tensors are counted and the resident memory of
this process is watched; where no device holds the model, the same step is traced under fake tensors.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from rlbench.core.job import Attempt, Job, MemoryCheck
from rlbench.core.record import MemoryValues, Outcome
from rlbench.core.sample import Sample
from rlbench.measure.context import Context
from rlbench.measure.resident import ResidentMemory
from rlbench.measure.training_step import TrainingStep

STEPS = 2
"""The optimizer's moments are made in the first step, so only the second shows the steady state."""

DEPTHS = (2, 4)
"""Layers of the two models that are traced; every part grows by the same bytes with each further layer."""

Phases = dict[str, int]


class Meter(Protocol):
    """Reads the most memory that was held since the last reading, beyond the baseline."""

    how: str

    def __enter__(self) -> "Meter": ...

    def __exit__(self, *_: object) -> None: ...

    def new_step(self) -> None:
        """Be told that a step begins."""
        ...

    def read(self) -> int:
        """The most bytes since the last reading; the next one begins here."""
        ...


def run(job: Job, context: Context) -> Outcome:
    """Run the step that the job names and count.

    Raises:
        OutOfMemoryError: torch's, when the device does not hold it; the worker makes it a result.
    """
    check = job.settings
    assert isinstance(check, MemoryCheck)
    if check.run == "traced":
        return _traced(check, context)
    return _real(check, context, "cpu" if job.device == "cpu" else "cuda")


def summarise(job: Job, attempt: Attempt, samples: Iterator[Sample]) -> Outcome:  # noqa: ARG001 - a room's signature
    """A memory check stores no samples: an attempt that ended early leaves no figure."""
    return Outcome(status="failed", detail="the step did not finish")


def _real(check: MemoryCheck, context: Context, device: str) -> Outcome:
    config = _config(context.attempt.model_path)
    meter: Meter = _CudaMeter() if device == "cuda" else ResidentMemory()
    with context.clock.phase("build"):
        context.progress("building the model", 0, None)
        model = _build(config, check, device, "sdpa")
        step = TrainingStep(model, check.regime, fused=True)
    autocast = check.regime == "fp32" and device == "cuda"
    with context.clock.phase("step"):
        phases = _steps(model, step, check, meter, autocast, context)
    parameters = sum(weight.numel() for weight in step.weights)
    states = step.state_bytes()
    peak = max(*phases.values(), _reserved(device))
    how = f"{STEPS} AdamW steps with random weights on {device}; states: live tensors counted; {meter.how}"
    return _outcome(check, context, "measured", parameters, states, phases, peak, how)


def _traced(check: MemoryCheck, context: Context) -> Outcome:
    config = _config(context.attempt.model_path)
    whole = config.num_hidden_layers
    counts, states, phases = [], [], []
    with context.clock.phase("trace"):
        for depth in DEPTHS:
            context.progress(f"tracing {depth} of {whole} layers", 0, None)
            count, state, phase = _trace(_with_layers(config, depth), check, context)
            counts.append(count)
            states.append(state)
            phases.append(phase)
    extended = _line(phases[0], phases[1], whole)
    peak = max(extended.values())
    how = (
        f"the AdamW step under fake tensors with {DEPTHS[0]} and {DEPTHS[1]} layers, torch's MemTracker, "
        f"and a straight line to {whole} layers for every part and phase; tensors alone, without the allocator's slack "
        "and the CUDA context; the optimizer as a loop over parameters, where a GPU has one fused kernel"
    )
    parameters = counts[0] + (counts[1] - counts[0]) // (DEPTHS[1] - DEPTHS[0]) * (whole - DEPTHS[0])
    return _outcome(
        check, context, "traced", parameters, _line(states[0], states[1], whole), extended, peak, how
    )  # fmt: skip


def _outcome(
    check: MemoryCheck, context: Context, provenance: Any, parameters: int, states: Phases, phases: Phases, peak: int,
    how: str,
) -> Outcome:  # fmt: skip
    total = sum(states.values())
    values = MemoryValues(
        regime=check.regime,
        seq_len=check.seq_len,
        micro_batch=check.micro_batch,
        parameters=parameters,
        bytes_per_parameter=total / parameters,
        states_bytes=total,
        weights_bytes=states["weights"] + states["master copy"],
        gradients_bytes=states["gradients"],
        optimizer_bytes=states["optimizer"],
        peak_bytes=peak,
        peak_phase=max(phases, key=lambda name: phases[name]),
        phase_bytes=phases,
        how=how,
    )
    return Outcome(
        provenance=provenance, values=values, phase_seconds=dict(context.clock.seconds), peak_memory_bytes=peak
    )


def _steps(
    model: Any, step: TrainingStep, check: MemoryCheck, meter: Meter, autocast: bool, context: Context
) -> Phases:
    """Run the steps; the most held in each phase of the last.

    The backward pass is read in two: the loss and the output layer, whose peak grows with the activations,
    and the rest, whose peak grows with the gradients.
    """
    import torch

    device = step.weights[0].device
    tokens = torch.zeros((check.micro_batch, check.seq_len), dtype=torch.long, device=device)
    phases: Phases = {}

    def read(phase: str) -> None:
        phases[phase] = meter.read()

    def split_backward(_: Any, inputs: tuple[Any, ...]) -> None:
        inputs[0].register_hook(lambda _: read("backward begins"))

    handle = model.get_output_embeddings().register_forward_pre_hook(split_backward)
    with meter:
        for number in range(STEPS):
            context.progress("AdamW step", number, STEPS)
            context.deadline.check()
            step.clear_gradients()
            meter.new_step()
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=autocast):
                out = model(input_ids=tokens, labels=tokens, use_cache=False)
            read("forward")
            out.loss.backward()
            read("backward ends")
            del out
            step.step()
            read("optimizer step")
    handle.remove()
    return phases


def _trace(config: Any, check: MemoryCheck, context: Context) -> tuple[int, Phases, Phases]:
    """Parameters, states and the most in each phase, for a model of the config's depth."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), warnings.catch_warnings():
        # MemTracker says so of a gradient that is None; nothing is held for it.
        warnings.filterwarnings("ignore", message="Expected a tensor or a traceable wrapper-subclass")
        model = _build(config, check, "cpu", _causal_attention())
        step = TrainingStep(model, check.regime, fused=False)
        meter = _TracedMeter(model, step)
        phases = _steps(model, step, check, meter, check.regime == "fp32", context)
        return sum(weight.numel() for weight in step.weights), step.state_bytes(), phases


def _reserved(device: str) -> int:
    """What torch's allocator took from the GPU; it gives nothing back, so the end shows the whole step."""
    if device == "cpu":
        return 0
    import torch

    return int(torch.cuda.max_memory_reserved())


def _line(at_first: Phases, at_second: Phases, layers: int) -> Phases:
    """Each figure on the straight line through its two depths."""
    steps = (layers - DEPTHS[0]) / (DEPTHS[1] - DEPTHS[0])
    return {name: round(low + (at_second[name] - low) * steps) for name, low in at_first.items()}


def _config(folder: Path) -> Any:
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(folder)


def _with_layers(config: Any, layers: int) -> Any:
    """The same architecture with fewer layers; lists with an entry a layer are cut with it."""
    values = config.to_dict()
    whole = values["num_hidden_layers"]
    cut = {k: v[:layers] for k, v in values.items() if isinstance(v, list) and len(v) == whole}
    return type(config)(**{**values, **cut, "num_hidden_layers": layers})


def _build(config: Any, check: MemoryCheck, device: str, attention: str) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    dtype = torch.float32 if check.regime == "fp32" else torch.bfloat16
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=attention)
    if check.checkpointing == "full":
        model.activation_checkpointing_enable()
    return model.train()


def _causal_attention() -> str:
    """An attention that needs no mask, as a GPU's kernel.

    transformers cannot look into a fake mask, so with `sdpa` it would keep one of seq_len² values a layer.
    """
    import torch
    from transformers import AttentionInterface

    def attend(
        module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float | None = None, **_: object
    ) -> tuple[Any, None]:
        del mask
        groups = module.num_key_value_groups
        key, value = (x.repeat_interleave(groups, dim=1) if groups > 1 else x for x in (key, value))
        out = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scaling)
        return out.transpose(1, 2).contiguous(), None

    AttentionInterface.register("rlbench_causal", attend)
    return "rlbench_causal"


class _CudaMeter:
    """What torch's allocator held."""

    how = "phases: torch.cuda.max_memory_allocated; peak: max_memory_reserved"

    def __enter__(self) -> "_CudaMeter":
        self.read()
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was installed."""

    def new_step(self) -> None:
        """Each reading resets the counters."""

    def read(self) -> int:
        import torch

        torch.cuda.synchronize()
        most = int(torch.cuda.max_memory_allocated())
        torch.cuda.reset_peak_memory_stats()
        return most


class _TracedMeter:
    """What MemTracker counted, storage by storage."""

    how = "phases: MemTracker"

    def __init__(self, model: Any, step: TrainingStep) -> None:
        from torch.distributed._tools.mem_tracker import MemTracker

        self.tracker = MemTracker()
        self.tracker.track_external(model, *step.masters, *step.buffers)

    def __enter__(self) -> "_TracedMeter":
        self.tracker.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.tracker.__exit__(None, None, None)

    def new_step(self) -> None:
        # It refuses a second forward pass of a module whose figures of the first it still holds.
        self.tracker.reset_mod_stats()

    def read(self) -> int:
        most: int = sum(snapshot["Total"] for snapshot in self.tracker.get_tracker_snapshot("peak").values())
        # It has no public way to begin a new peak without leaving it, which a backward pass under way forbids.
        self.tracker._peak_mem = {
            device: snapshot["Total"] for device, snapshot in self.tracker.get_tracker_snapshot().items()
        }
        self.tracker._peak_mem_snap = self.tracker.get_tracker_snapshot()
        return most
