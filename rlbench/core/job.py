"""A job: one question about one subject. Its key is the content hash of everything that can change the answer."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from rlbench.core.cost import Price
from rlbench.core.regime import Regime
from rlbench.core.subject import Subject
from rlbench.core.value import Value
from rlbench.core.workload import Workload


class MemoryCheck(Value):
    """One real AdamW step: forward, backward, optimizer."""

    kind: Literal["memory"] = "memory"
    regime: Regime
    seq_len: int = Field(gt=0)
    micro_batch: int = Field(gt=0)
    checkpointing: Literal["none", "full"] = "none"
    run: Literal["real", "traced"] = "real"
    """real: on the job's device; traced: under fake tensors, on two depths and a straight line to the whole."""


class RolloutMeasurement(Value):
    """A workload generated from end to end, several times."""

    kind: Literal["rollout"] = "rollout"
    workload: Workload


class AccuracyTask(Value):
    """A task with verifiable answers; which one, its hash, cap and sampling stand in the subject."""

    kind: Literal["accuracy"] = "accuracy"


class GrpoProbe(Value):
    """A short GRPO run between two evaluations of the same held-out prompts.

    Defaults: constant learning rate after warm-up (a short probe is the start of a longer one),
    DAPO loss, no KL penalty, one fixed pool of training prompts.
    """

    kind: Literal["probe"] = "probe"
    method: Literal["full", "lora"] = "full"
    lora_rank: int = Field(default=32, gt=0)
    """Of the adapter, its alpha four times as much (Tina's setting, arXiv 2504.15777); not used by `full`."""
    prompts_per_step: int = Field(default=4, gt=0)
    group_size: int = Field(default=8, gt=1)
    micro_batch: int = Field(default=4, gt=0)
    """Completions in one forward and backward pass."""
    learning_rate: float = Field(default=1e-5, gt=0)
    warmup_steps: int = Field(default=0, ge=0)
    beta: float = Field(default=0.0, ge=0)
    loss_type: Literal["dapo", "dr_grpo"] = "dapo"
    training_prompts: int = Field(default=64, gt=0)
    held_out_prompts: int = Field(default=128, gt=1)
    samples_per_prompt: int = Field(default=8, gt=0)
    """Samples of each held-out prompt, before and after."""
    stop_at_gates: bool = True
    """Leave the training out where the base statistics show no signal or nothing left to gain."""


Settings = Annotated[MemoryCheck | RolloutMeasurement | AccuracyTask | GrpoProbe, Field(discriminator="kind")]


class EngineSpec(Value):
    """What generates (or trains), with every argument that can change the answer."""

    name: Literal["transformers", "vllm", "openai"] = "transformers"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    batch_size: int = Field(default=32, gt=0)
    """Sequences generated together."""
    random_weights: bool = False
    """The architecture only: true speed and memory, meaningless text."""


class Job(Value):
    """What is asked. Targets (how many samples, how many steps) are not part of it: asking for more extends."""

    schema_version: Literal[1] = 1
    subject: Subject
    settings: Settings
    engine: EngineSpec
    versions: dict[str, str]
    """Versions of the packages that can change the answer."""
    device: str
    """`cpu` or the name of the GPU."""
    seed: int = 0

    @property
    def kind(self) -> Literal["memory", "rollout", "accuracy", "probe"]:
        return self.settings.kind

    @property
    def key(self) -> str:
        """The kind and 16 hexadecimal digits of the content hash: a folder name."""
        canonical = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return f"{self.kind}-{hashlib.sha256(canonical.encode()).hexdigest()[:16]}"


class Targets(Value):
    """How far to go. A later attempt may ask for more; nothing already there is thrown away."""

    limit: int | None = Field(default=None, gt=0)
    """Only the first so many prompts; the result is then marked partial."""
    samples_per_prompt: int | None = Field(default=None, gt=0)
    repeats: int | None = Field(default=None, gt=0)
    steps: int | None = Field(default=None, gt=0)
    deadline_seconds: float | None = Field(default=None, gt=0)

    def covers(self, asked: "Targets") -> bool:
        """Whether a result reached under these targets also answers `asked`. No limit means every prompt."""
        if self.limit is not None and (asked.limit is None or asked.limit > self.limit):
            return False
        pairs = (
            (self.samples_per_prompt, asked.samples_per_prompt),
            (self.repeats, asked.repeats),
            (self.steps, asked.steps),
        )
        return all(want is None or (have is not None and have >= want) for have, want in pairs)


class Attempt(Value):
    """One try at a job on one machine: how far to go, where things lie there, what an hour costs."""

    number: int = Field(ge=1)
    targets: Targets
    model_path: Path
    """The folder with config.json, tokenizer and safetensors on this machine."""
    data_dir: Path | None = None
    command: str
    """The command line that asked for it."""
    started: str
    """ISO time in UTC."""
    device_count: int = Field(default=1, gt=0)
    price: Price | None = None
    scratch: Path | None = None
    """The job's own folder for checkpoints; the worker fills it in, since it differs from machine to machine."""
