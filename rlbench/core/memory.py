"""How many bytes a model needs, by part and by phase of the step: pure arithmetic, nothing is run.

A step goes through phases, and what is held differs between them:

    generation       weights, optimizer, KV cache                      (only with sequences to generate)
    backward begins  weights, optimizer, activations, logits           (the forward pass is done)
    backward ends    weights, optimizer, every gradient
    optimizer step   weights, optimizer, every gradient

The peak is the largest phase. Symbols: V vocabulary, h hidden size, q and k the widths of all query and all
key heads, f feed-forward width, L layers, N parameters. GB is 10^9 bytes.

What is kept for the backward pass was read off torch 2.13 and transformers 5.24: fake tensors, every storage
that autograd saves, counted once (`rlbench estimate-memory --check` runs the same step and counts again).
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from rlbench.core.architecture import Architecture
from rlbench.core.regime import Regime
from rlbench.core.value import Value

Method = Literal["full", "lora", "inference"]
Checkpointing = Literal["none", "full"]

GB = 10**9

CONTEXT_BYTES = 900_000_000
"""CUDA context and libraries, as nvidia-smi shows beyond the reserved memory (facts: 0.47–0.92 GiB on an A100)."""
CONTEXT_BYTES_LOW = 505_000_000
CONTEXT_BYTES_HIGH = 990_000_000
ALLOCATOR_SLACK = 0.10
"""Reserved over allocated: prime-rl's Qwen3-0.6B peaks show 17.6·V a token where 16·V are held."""
LOGITS_BYTES = 16
"""Bytes a logit: half logits 2, fp32 copy 4, log-softmax 4, fp32 gradient 4, half gradient 2."""
LOGITS_BYTES_LOW = 14
"""When the fp32 copy is freed before the gradients come, as traced with torch 2.13 and transformers 5.24."""
GENERATION_BYTES = 30_000_000
"""Working memory of transformers' generate: Qwen3 and Qwen2.5 allocation tables beyond weights and KV cache."""
CPU_LIBRARY_BYTES = 500_000_000
"""Python, torch and transformers in the process before a model is built."""


@dataclass(frozen=True)
class StateBytes:
    """Bytes per trained parameter."""

    weights: int
    master: int
    gradients: int
    optimizer: int
    buffered: bool
    """The gradients lie in buffers of their own and stay allocated during the forward pass."""
    formula: str

    @property
    def total(self) -> int:
        return self.weights + self.master + self.gradients + self.optimizer


STATES: dict[Regime, StateBytes] = {
    "mixed": StateBytes(2, 4, 4, 8, True, "half weights, fp32 master, fp32 gradients (Megatron-LM, HF's '18')"),
    "half-grads": StateBytes(2, 4, 2, 8, True, "half weights and gradients, fp32 master (ZeRO paper)"),
    "both-grads": StateBytes(2, 4, 6, 8, True, "half and fp32 gradients, fp32 master (ZeRO-Infinity)"),
    "fp32": StateBytes(4, 0, 4, 8, False, "fp32, autocast on a GPU (HF Trainer, TRL, FSDP2)"),
    "bf16": StateBytes(2, 0, 2, 4, False, "pure bf16 AdamW (torchtune, LLaMA-Factory pure_bf16)"),
}


class Setting(Value):
    """What is run: the regime, the shape of a batch, and what is kept."""

    regime: Regime = "mixed"
    method: Method = "full"
    lora_rank: int = Field(default=16, gt=0)
    """Of adapters on all linear layers of the blocks; used by `lora` alone."""
    seq_len: int = Field(default=1024, gt=0)
    """Prompt and completion together."""
    micro_batch: int = Field(default=1, gt=0)
    checkpointing: Checkpointing = "none"
    concurrency: int = Field(default=0, ge=0)
    """Sequences of `seq_len` whose KV cache is held at once."""
    device: Literal["gpu", "cpu"] = "gpu"

    @property
    def tokens(self) -> int:
        """Tokens in one forward and backward pass."""
        return self.seq_len * self.micro_batch

    @property
    def autocast(self) -> bool:
        """Whether fp32 weights are multiplied in half precision."""
        return self.regime == "fp32" and self.device == "gpu"

    @property
    def weight_bytes(self) -> int:
        return STATES[self.regime].weights


@dataclass(frozen=True)
class Part:
    """So many bytes, and the formula that gives them."""

    name: str
    bytes: int
    formula: str


@dataclass(frozen=True)
class Phase:
    """What is held at one moment of the step."""

    name: str
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    def part_bytes(self, *names: str) -> int:
        """Bytes of the named parts; 0 for one that this phase does not hold."""
        return sum(part.bytes for part in self.parts if part.name in names)


@dataclass(frozen=True)
class Estimate:
    """What a setting needs, phase by phase, between a low and a high figure."""

    setting: Setting
    parameters: int
    trained_parameters: int
    states: tuple[Part, ...]
    """Weights, master copy, gradients, optimizer: what the bytes per parameter speak of."""
    phases: tuple[Phase, ...]
    low_bytes: int
    high_bytes: int
    why_a_range: tuple[str, ...]

    @property
    def states_bytes(self) -> int:
        return sum(part.bytes for part in self.states)

    @property
    def bytes_per_parameter(self) -> float:
        return self.states_bytes / self.parameters

    @property
    def peak(self) -> Phase:
        """The phase that needs most; of equal ones the first."""
        return max(self.phases, key=lambda phase: phase.bytes)

    def most(self, *names: str) -> int:
        """The most that the named parts take in any phase."""
        return max(phase.part_bytes(*names) for phase in self.phases)

    def state_bytes(self, *names: str) -> int:
        return sum(part.bytes for part in self.states if part.name in names)


@dataclass(frozen=True)
class _Margins:
    """What the low, the middle and the high figure assume differently."""

    context_bytes: int
    bytes_per_logit: int
    logits_slack: float
    activations_slack: float
    gradients_stay: bool
    foreach: bool
    prefill: bool
    """Whether the sequences are prompts, read in one pass."""


_LOW = _Margins(CONTEXT_BYTES_LOW, LOGITS_BYTES_LOW, 0.0, 0.0, gradients_stay=False, foreach=False, prefill=False)
_MIDDLE = _Margins(
    CONTEXT_BYTES, LOGITS_BYTES, ALLOCATOR_SLACK, 0.0, gradients_stay=False, foreach=False, prefill=False
)
_HIGH = _Margins(
    CONTEXT_BYTES_HIGH, LOGITS_BYTES, ALLOCATOR_SLACK, ALLOCATOR_SLACK, gradients_stay=True, foreach=True, prefill=True
)

_WHY_TRAINING = (
    "the loss's copies of the logits (14 or 16 bytes each)",
    "the allocator's slack (0–10% of activations and logits)",
    "a foreach optimizer's temporaries (0 when fused)",
)
_WHY_KEPT_GRADIENTS = "gradients kept from an earlier micro-batch (0 without gradient accumulation)"
_WHY_PROMPT = "how much of a sequence is prompt, read in one pass (6·f + 7·h a token)"
_WHY_CONTEXT = "the CUDA context (0.5–1.0 GB)"


def estimate(architecture: Architecture, setting: Setting) -> Estimate:
    """What `setting` needs with a model of this architecture."""
    states = model_states(architecture, setting)
    phases = _phases(architecture, setting, states, _MIDDLE)
    low = max(phase.bytes for phase in _phases(architecture, setting, states, _LOW))
    high = max(phase.bytes for phase in _phases(architecture, setting, states, _HIGH))
    return Estimate(
        setting=setting,
        parameters=architecture.parameters,
        trained_parameters=trained_parameters(architecture, setting),
        states=states,
        phases=phases,
        low_bytes=low,
        high_bytes=high,
        why_a_range=_why(setting),
    )


def as_trl_runs_it(setting: Setting) -> Setting:
    """The same step with the states that TRL's trainer holds under `rlbench probe`'s settings.

    `rlbench probe` loads fp32 weights; on a GPU TRL's autocast multiplies in bf16 and activations are computed
    again (gradient checkpointing): 4 + 4 + 8 bytes per parameter, not 18. On the CPU everything is fp32.
    """
    checkpointing = "full" if setting.device == "gpu" else "none"
    return setting.model_copy(update={"regime": "fp32", "checkpointing": checkpointing})


def model_states(architecture: Architecture, setting: Setting) -> tuple[Part, ...]:
    """Weights, master copy, gradients and optimizer, in bytes."""
    count = architecture.parameters
    if setting.method == "inference":
        return (Part("weights", setting.weight_bytes * count, f"{setting.weight_bytes}·N"),)
    if setting.method == "lora":
        return _lora_states(count, lora_parameters(architecture, setting.lora_rank), setting.weight_bytes)
    each = STATES[setting.regime]
    parts = (
        Part("weights", each.weights * count, f"{each.weights}·N"),
        Part("master copy", each.master * count, f"{each.master}·N, fp32"),
        Part("gradients", each.gradients * count, f"{each.gradients}·N"),
        Part("optimizer", each.optimizer * count, f"{each.optimizer}·N, AdamW's two moments"),
    )
    return tuple(part for part in parts if part.bytes)


def trained_parameters(architecture: Architecture, setting: Setting) -> int:
    """Parameters that the optimizer changes."""
    if setting.method == "inference":
        return 0
    if setting.method == "lora":
        return lora_parameters(architecture, setting.lora_rank)
    return architecture.parameters


def lora_parameters(architecture: Architecture, rank: int) -> int:
    """`rank` × (inputs + outputs) of every linear layer of every block (PEFT's `all-linear`)."""
    return architecture.layers * sum(rank * (i + o) for i, o in _linear_shapes(architecture))


def logits_bytes(architecture: Architecture, tokens: int, bytes_per_logit: int = LOGITS_BYTES) -> int:
    """16·V a token, for an unfused loss over all tokens, as transformers computes it.

    fp32 logits come to the same: logits, log-softmax and two gradients, 4 each.
    """
    return bytes_per_logit * architecture.vocab_size * tokens


def kv_cache_bytes(architecture: Architecture, tokens: int, bytes_per_element: int = 2) -> int:
    """Keys and values of every layer for so many tokens."""
    return architecture.kv_bytes_per_token(bytes_per_element) * tokens


def activation_bytes(architecture: Architecture, setting: Setting) -> int:
    """What the forward pass keeps for the backward pass, without the logits.

    With full checkpointing: each layer's input, and one layer in full while it is computed again.
    """
    last = _token_bytes_after_layers(architecture, setting)
    layer = saved_per_layer(architecture, setting)
    if setting.checkpointing == "none":
        return setting.tokens * (architecture.layers * layer + last)
    kept = architecture.layers * _residual_bytes(setting) * architecture.hidden_size
    return setting.tokens * (kept + last)


def saved_per_layer(architecture: Architecture, setting: Setting) -> int:
    """Bytes that autograd saves in one layer for one token, with an attention kernel that keeps no scores.

    Half precision, in bytes: each RMSNorm keeps its fp32 input 4h, the normalized value 2h and its output 2h;
    attention keeps queries, keys, values, its output (2q + 2k each in half) and a log-sum 4 a head; the gated
    feed-forward keeps four values of width f. Autocast keeps the residual stream in fp32 and one half copy of
    a norm's output for each linear layer that reads it; clipping keeps what it clips. With LoRA the frozen
    norms keep their input alone, and each adapter a copy of its input.
    """
    h, f = architecture.hidden_size, architecture.intermediate_size
    q, k = architecture.query_heads * architecture.head_dim, architecture.kv_heads * architecture.head_dim
    width = 4 if setting.regime == "fp32" and not setting.autocast else 2
    attention = width * (2 * q + 2 * k) + 4 * architecture.query_heads
    attention += width * (q + 2 * k) if architecture.clip_qkv is not None else 0
    if setting.method == "lora":
        norms = 2 * 4 * h + (4 * (q + k) if architecture.qk_norm != "none" else 0)
        inputs = 2 * (5 * h + q + f)
        return norms + attention + width * 3 * f + inputs
    qk_norm = (4 + width) * (q + k) if architecture.qk_norm != "none" else 0
    return 2 * 4 * h + _norm_outputs(architecture, setting) + qk_norm + attention + width * 4 * f


def _norm_outputs(architecture: Architecture, setting: Setting) -> int:
    """What a layer's two norms keep beside their fp32 inputs: normalized values (if scaled after) and outputs."""
    width = 2 if setting.autocast or setting.regime != "fp32" else 4
    normalized = 2 * _residual_bytes(setting) if architecture.norm == "rms" else 0
    outputs = 5 if setting.autocast else 2  # q, k, v, gate and up each get a half copy of their own
    return (normalized + outputs * width) * architecture.hidden_size


def _lora_states(count: int, adapters: int, weight_bytes: int) -> tuple[Part, ...]:
    return (
        Part("weights", weight_bytes * count + 4 * adapters, f"{weight_bytes}·N frozen + 4·A, fp32 adapters"),
        Part("gradients", 4 * adapters, "4·A"),
        Part("optimizer", 8 * adapters, "8·A, AdamW's two moments"),
    )


def _linear_shapes(architecture: Architecture) -> tuple[tuple[int, int], ...]:
    """Inputs and outputs of q, k, v, o, gate, up and down."""
    h, f = architecture.hidden_size, architecture.intermediate_size
    q, k = architecture.query_heads * architecture.head_dim, architecture.kv_heads * architecture.head_dim
    return ((h, q), (h, k), (h, k), (q, h), (h, f), (h, f), (f, h))


def _residual_bytes(setting: Setting) -> int:
    return 4 if setting.regime == "fp32" else 2


def _token_bytes_after_layers(architecture: Architecture, setting: Setting) -> int:
    """The last norm's input, normalized value and output, and the rotary tables, a token."""
    return (4 + 2 * _residual_bytes(setting)) * architecture.hidden_size + 4 * architecture.head_dim


def _autocast_copies(architecture: Architecture, setting: Setting) -> int:
    """Half copies of every fp32 linear weight, which autograd keeps until the backward pass has used them."""
    if not setting.autocast or setting.method == "inference":
        return 0
    block = sum(i * o for i, o in _linear_shapes(architecture))
    head = architecture.vocab_size * architecture.hidden_size
    layers = architecture.layers if setting.checkpointing == "none" else 1
    return 2 * (layers * block + head)


def _phases(
    architecture: Architecture, setting: Setting, states: tuple[Part, ...], margins: _Margins
) -> tuple[Phase, ...]:
    context = _context(setting, margins)
    if setting.method == "inference":
        return (Phase("generation", (*states, *_generating(architecture, setting, margins), context)),)
    gradients = tuple(part for part in states if part.name == "gradients")
    others = tuple(part for part in states if part.name != "gradients")
    stay = margins.gradients_stay or (setting.method == "full" and STATES[setting.regime].buffered)
    resident = (*others, *gradients) if stay else others
    phases = [
        Phase("backward begins", (*resident, *_for_backward(architecture, setting, margins), context)),
        Phase("backward ends", (*others, *gradients, *_embedding_gradient(architecture, setting), context)),
        Phase("optimizer step", (*others, *gradients, *_temporaries(architecture, setting, margins), context)),
    ]
    if setting.concurrency:
        generating = (*resident, *_generating(architecture, setting, margins), context)
        phases.insert(0, Phase("generation", generating))
    return tuple(phases)


def _for_backward(architecture: Architecture, setting: Setting, margins: _Margins) -> tuple[Part, ...]:
    """Activations and logits; with checkpointing a layer computed again, when that is more than the logits."""
    checkpointed = setting.checkpointing == "full"
    kept = activation_bytes(architecture, setting)
    logits = logits_bytes(architecture, setting.tokens, margins.bytes_per_logit)
    again = setting.tokens * saved_per_layer(architecture, setting) if checkpointed else 0
    how = "L·h a token (layer inputs)" if checkpointed else "L·(norms, attention, feed-forward) a token"
    with_logits = (
        Part("activations", kept, how),
        Part("logits", logits, f"{margins.bytes_per_logit}·V a token, unfused loss"),
        _slack(margins.activations_slack * kept + margins.logits_slack * logits),
    )
    with_layer = (
        Part("activations", kept + again, f"{how} and one layer computed again"),
        _slack(margins.activations_slack * (kept + again)),
    )
    larger = max(with_logits, with_layer, key=lambda parts: sum(part.bytes for part in parts))
    copies = Part("activations", _autocast_copies(architecture, setting), "2 a linear weight, autocast's half copies")
    return tuple(part for part in (*larger, copies) if part.bytes)


def _slack(size: float) -> Part:
    return Part("overhead", round(size), "allocator's slack, reserved over allocated")


def _embedding_gradient(architecture: Architecture, setting: Setting) -> tuple[Part, ...]:
    """What a tied embedding's two gradients take while autograd adds them: both, and their sum.

    Where gradients have no buffers the sum is the gradient itself, counted already.
    """
    if setting.method != "full" or not architecture.tied_embeddings:
        return ()
    size = 4 if setting.regime == "fp32" else 2
    copies = 3 if STATES[setting.regime].buffered else 2
    count = architecture.vocab_size * architecture.hidden_size
    return (Part("gradients", copies * size * count, f"{copies}·{size}·V·h, the tied embedding's two being added"),)


def _temporaries(architecture: Architecture, setting: Setting, margins: _Margins) -> tuple[Part, ...]:
    """What `foreach` holds for a moment: one more value of the moments' type for every trained parameter."""
    if not margins.foreach:
        return ()
    size = 2 if setting.regime == "bf16" and setting.method == "full" else 4
    return (Part("overhead", size * trained_parameters(architecture, setting), f"{size}·N, foreach temporaries"),)


def _generating(architecture: Architecture, setting: Setting, margins: _Margins) -> tuple[Part, ...]:
    """KV cache and working memory.

    A prompt read in one pass holds three values of width f and three and a half of width h a token in half
    precision: what Qwen2.5's published table shows beyond weights and KV cache, from 0.5B to 7B.
    """
    sequences = max(setting.concurrency, 1)
    width = setting.weight_bytes
    tokens = sequences * setting.seq_len
    each = architecture.kv_bytes_per_token(width)
    prefill = width * (6 * architecture.intermediate_size + 7 * architecture.hidden_size) // 2
    working = GENERATION_BYTES + (prefill * tokens if margins.prefill else 0)
    return (
        Part("KV cache", kv_cache_bytes(architecture, tokens, width), f"{each:,} a token × {tokens:,}"),
        Part("overhead", working, "generate's working memory"),
    )


def _context(setting: Setting, margins: _Margins) -> Part:
    if setting.device == "cpu":
        return Part("overhead", CPU_LIBRARY_BYTES, "Python and torch in this process")
    return Part("overhead", margins.context_bytes, "CUDA context and libraries")


def _why(setting: Setting) -> tuple[str, ...]:
    training = () if setting.method == "inference" else _WHY_TRAINING
    kept = setting.method == "lora" or not STATES[setting.regime].buffered
    gradients = (_WHY_KEPT_GRADIENTS,) if training and kept else ()
    prompt = (_WHY_PROMPT,) if setting.concurrency or not training else ()
    context = (_WHY_CONTEXT,) if setting.device == "gpu" else ()
    return (*training, *gradients, *prompt, *context)
