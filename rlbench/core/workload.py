"""A rollout workload: how many prompts, how many samples of each, how long."""

from typing import Literal

from pydantic import Field

from rlbench.core.value import Value
from rlbench.errors import UnknownName


class Workload(Value):
    """P prompts × G samples under a cap, as a GRPO step asks for them."""

    name: str = "custom"
    prompts: int = Field(gt=0)
    group_size: int = Field(gt=0)
    prompt_len: int = Field(gt=0)
    """Tokens of a synthetic prompt; the mean length where the prompts are real."""
    max_new_tokens: int = Field(gt=0)
    prompt_source: str = "generated"
    """`generated` (rlbench's own tasks), `synthetic` (random words of `prompt_len` tokens) or a JSONL file."""
    lengths: Literal["natural", "fixed", "lognormal"] = "natural"
    """natural: real end-of-sequence under the cap; the others force lengths."""
    mean_new_tokens: float | None = Field(default=None, gt=0)
    """Mean completion length; needed by forced lengths and by predictions."""
    concurrency: int | None = Field(default=None, gt=0)
    """Sequences generated at once (`max_num_seqs`); all of them when `None`."""

    @property
    def rollouts(self) -> int:
        return self.prompts * self.group_size


WORKLOADS: dict[str, Workload] = {
    w.name: w
    for w in (
        Workload(name="grpo-short", prompts=16, group_size=8, prompt_len=256, max_new_tokens=512),
        Workload(name="open-rs", prompts=12, group_size=6, prompt_len=512, max_new_tokens=3584),
        Workload(name="aime-think", prompts=30, group_size=8, prompt_len=256, max_new_tokens=32768),
        Workload(name="cpu-demo", prompts=8, group_size=4, prompt_len=40, max_new_tokens=48),
    )
}


def workload(name: str) -> Workload:
    """The named workload.

    Raises:
        UnknownName: there is none of that name.
    """
    try:
        return WORKLOADS[name]
    except KeyError:
        raise UnknownName("workload", name, WORKLOADS) from None
