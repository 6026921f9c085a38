"""The answer to a job, with where it comes from and what it cost.

A record is discriminated by the `kind` of its values. Every number in it is a plain number in the unit
its name says, or `None` when it is not known.
"""

from typing import Annotated, Literal

from pydantic import Field

from rlbench.core.cost import Cost
from rlbench.core.job import Job, Targets
from rlbench.core.regime import Regime
from rlbench.core.subject import Subject
from rlbench.core.value import Value
from rlbench.core.workload import Workload

SCHEMA_VERSION: Literal[1] = 1

Provenance = Literal["measured", "traced", "estimated", "published"]
"""measured: it ran on the device named; traced: the real program ran without the device (fake tensors);
estimated: a formula or a simulation; published: somebody else's figure."""

Status = Literal["ok", "partial", "out_of_memory", "timeout", "failed", "wrong_device", "interrupted", "cap_reached"]


class MemoryValues(Value):
    """Bytes by part. `None` where a part was not looked at (a measurement sees totals, not every part)."""

    kind: Literal["memory"] = "memory"
    regime: Regime
    method: Literal["full", "lora", "inference"] = "full"
    seq_len: int | None = None
    micro_batch: int | None = None
    parameters: int
    bytes_per_parameter: float
    """Model states alone: weights, gradients, optimizer, master copy."""
    states_bytes: int
    weights_bytes: int | None = None
    gradients_bytes: int | None = None
    optimizer_bytes: int | None = None
    activations_bytes: int | None = None
    logits_bytes: int | None = None
    kv_cache_bytes: int | None = None
    rollout_engine_bytes: int | None = None
    overhead_bytes: int | None = None
    peak_bytes: int
    peak_bytes_low: int | None = None
    peak_bytes_high: int | None = None
    peak_phase: str | None = None
    phase_bytes: dict[str, int] = Field(default_factory=dict)
    """Of a step that ran: the most held in each of its phases."""
    gpu: str | None = None
    gpu_visible_bytes: int | None = None
    fits: bool | None = None
    advice: tuple[str, ...] = ()
    how: str = ""
    """The method in a sentence: which formula, or which step ran and which counter was read."""


class RolloutValues(Value):
    """Generation speed of one workload. Output tokens are generated tokens, never the prompt's."""

    kind: Literal["rollout"] = "rollout"
    gpu: str
    engine: str
    workload: Workload
    output_tokens_per_second: float
    output_tokens_per_second_low: float | None = None
    output_tokens_per_second_high: float | None = None
    elapsed_seconds: float | None = None
    rollouts_per_hour: float | None = None
    prompt_tokens_per_second: float | None = None
    mean_output_tokens: float | None = None
    output_tokens_percentiles: dict[str, float] = Field(default_factory=dict)
    """Completion lengths: `p10`, `p50`, `p90`, `p99`."""
    truncated_share: float | None = None
    straggler_share: float | None = None
    """Share of slot-time in which a finished sequence's slot had nothing left to run."""
    usd_per_million_output_tokens: float | None = None
    usd_per_thousand_rollouts: float | None = None
    peak_reserved_bytes: int | None = None
    start_up_seconds: float | None = None
    repeats: int = 1
    how: str = ""


class AccuracyValues(Value):
    """Mean score of K samples a problem, with an interval over problems."""

    kind: Literal["accuracy"] = "accuracy"
    n_prompts: int | None = None
    samples_per_prompt: int | None = None
    accuracy: float
    """Share right, 0 to 1, truncated answers counted as wrong."""
    ci_low: float | None = None
    ci_high: float | None = None
    accuracy_if_truncated_right: float | None = None
    lenient_accuracy: float | None = None
    pass_at_k: dict[str, float] = Field(default_factory=dict)
    mean_output_tokens: float | None = None
    truncated_share: float | None = None
    stopped_in_thinking_share: float | None = None
    grader_timeouts: int | None = None
    usd_per_correct: float | None = None
    limited: bool = False
    """Only a part of the task's prompts was asked."""
    generated: bool = False
    """The prompts come from rlbench's own generators, not from a public data set."""
    harness: str | None = None
    metrics: dict[str, float] = Field(default_factory=dict)
    """Further named figures of the task (IFEval: strict and loose, by prompt and by instruction)."""


class StepPoint(Value):
    """One optimizer step of a probe, over the rollouts it trained on."""

    step: int
    reward: float
    lenient_reward: float | None = None
    zero_spread_share: float | None = None
    """Share of groups in which every completion got the same reward: no gradient."""
    truncated_share: float | None = None
    mean_output_tokens: float | None = None
    rollout_seconds: float | None = None
    update_seconds: float | None = None


class BaseStatistics(Value):
    """Stage 0: what the untrained model does with the held-out prompts."""

    pass_at_1: float
    pass_at_k: dict[str, float] = Field(default_factory=dict)
    mean_p_one_minus_p: float
    all_right_share: float
    all_wrong_share: float
    mixed_share: float
    truncated_share: float
    mean_output_tokens: float
    output_tokens_per_second: float | None = None


class Gain(Value):
    """Paired difference after − before over the held-out prompts; the gain and its interval in points.

    `before` and `after` are shares of success, 0 to 1; 1 point is 0.01 of success.
    """

    before: float
    after: float
    gain: float
    ci_low: float
    ci_high: float
    p_gain_positive: float


class ProbeValues(Value):
    """Reward gained by a short GRPO run. `gain` and its interval are in points: 1 point is 0.01 of success.

    `before` and `after` are shares of success, 0 to 1.
    """

    kind: Literal["probe"] = "probe"
    task: str
    n_prompts: int
    samples_per_prompt: int
    gain: float | None
    """`None` when the run ended before the after-evaluation."""
    ci_low: float | None = None
    ci_high: float | None = None
    p_gain_positive: float | None = None
    before: float
    after: float | None = None
    lenient: Gain | None = None
    base: BaseStatistics
    steps: int
    rollouts: int
    gpu_seconds: float
    usd: float | None = None
    training_usd: float | None = None
    points_per_usd: float | None = None
    points_per_usd_low: float | None = None
    points_per_usd_high: float | None = None
    usd_per_point: float | None = None
    """Shown only where the gain's interval excludes zero."""
    state: Literal[
        "gain", "loss", "no gain detected", "undecided: extend", "slow start", "saturated", "no signal",
        "collapsed", "unfinished",
    ]  # fmt: skip
    gates: dict[str, bool] = Field(default_factory=dict)
    curve: tuple[StepPoint, ...] = ()
    peak_memory_bytes: int | None = None


Values = Annotated[MemoryValues | RolloutValues | AccuracyValues | ProbeValues, Field(discriminator="kind")]


class Host(Value):
    """The machine and the software that answered."""

    platform: str
    device: str
    device_count: int = 1
    cpu_count: int | None = None
    memory_bytes: int | None = None
    driver: str | None = None
    packages: dict[str, str] = Field(default_factory=dict)
    rlbench_version: str
    rlbench_commit: str | None = None


class Record(Value):
    """One answer. A failed measurement is a record too: `status` says how it ended, `detail` why."""

    schema_version: Literal[1] = 1
    subject: Subject
    job: Job | None = None
    targets: Targets | None = None
    """How far the attempt behind this record was asked to go."""
    provenance: Provenance
    source: str
    """The command that made it, or the citation."""
    created: str | None = None
    host: Host | None = None
    cost: Cost | None = None
    status: Status = "ok"
    detail: str = ""
    values: Values | None = None
    """`None` only when a failed measurement left nothing to report."""

    @property
    def kind(self) -> str:
        if self.values is not None:
            return self.values.kind
        return self.job.kind if self.job is not None else "unknown"


class Outcome(Value):
    """What a room of `measure` returns; the worker adds host, cost and provenance's frame around it."""

    status: Status = "ok"
    detail: str = ""
    provenance: Provenance = "measured"
    values: Values | None = None
    phase_seconds: dict[str, float] = Field(default_factory=dict)
    peak_memory_bytes: int | None = None
