"""One completion: what was generated, how it ended, how it was graded."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from rlbench.core.value import Value

FinishReason = Literal["stop", "length", "stopped_in_thinking", "aborted"]
Verdict = Literal["right", "wrong", "timeout", "unparsable"]


@dataclass(frozen=True, slots=True)
class SampleKey:
    """What names one completion within its job."""

    phase: str
    prompt_id: str
    index: int
    seed: int


class Sample(Value):
    """One completion of one prompt.

    `phase` tells apart the passes of one job over the same prompts: a probe's `before` and `after`,
    a rollout measurement's repeats.
    """

    phase: str = ""
    prompt_id: str
    index: int = Field(ge=0)
    """Which of the samples of this prompt, from 0."""
    seed: int
    prompt_tokens: int = Field(ge=0)
    thinking_tokens: int = Field(default=0, ge=0)
    answer_tokens: int = Field(ge=0)
    finish_reason: FinishReason
    text: str
    """The completion as generated, thinking included, special tokens removed."""
    finished_seconds: float | None = Field(default=None, ge=0)
    """When it was done, counted from the start of its generation pass."""
    strict: float | None = None
    """Score by the verifier as written, 0 to 1."""
    lenient: float | None = None
    """Score by the forgiving verifier: right answer, wrong format."""
    verdict: Verdict | None = None
    parts: dict[str, tuple[bool, ...]] = Field(default_factory=dict)
    """Verdicts on the parts of an answer: of IFEval, each instruction `strict` and `loose`."""

    @property
    def key(self) -> SampleKey:
        return SampleKey(self.phase, self.prompt_id, self.index, self.seed)

    @property
    def output_tokens(self) -> int:
        return self.thinking_tokens + self.answer_tokens

    @property
    def truncated(self) -> bool:
        return self.finish_reason == "length"
