"""A model's card: what competes, with the source of every figure."""

from typing import Any, Literal

from pydantic import Field

from rlbench.core.record import AccuracyValues, Record
from rlbench.core.subject import Mode, Sampling, Subject
from rlbench.core.value import Value
from rlbench.errors import InputError


class Architecture(Value):
    """A dense decoder's shape, in the terms of its config.json."""

    model_type: str
    hidden_size: int = Field(gt=0)
    layers: int = Field(gt=0)
    query_heads: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    intermediate_size: int = Field(gt=0)
    vocab_size: int = Field(gt=0)
    tied_embeddings: bool
    attention_bias: bool = False
    qk_norm: Literal["none", "head", "full"] = "none"
    norm: Literal["rms", "weightless"] = "rms"

    @property
    def non_embedding_parameters(self) -> int:
        h, d = self.hidden_size, self.head_dim
        q, kv = self.query_heads * d, self.kv_heads * d
        layer = h * q + 2 * h * kv + q * h + 3 * h * self.intermediate_size
        layer += q + 2 * kv if self.attention_bias else 0
        layer += {"none": 0, "head": 2 * d, "full": q + kv}[self.qk_norm]
        norm = h if self.norm == "rms" else 0
        return self.layers * (layer + 2 * norm) + norm

    @property
    def parameters(self) -> int:
        return self.non_embedding_parameters + self.vocab_size * self.hidden_size * (1 if self.tied_embeddings else 2)

    @property
    def decode_parameters(self) -> int:
        return self.non_embedding_parameters + self.vocab_size * self.hidden_size

    def kv_bytes_per_token(self, bytes_per_element: int = 2) -> int:
        return 2 * self.layers * self.kv_heads * self.head_dim * bytes_per_element

    @classmethod
    def from_config(cls, config: dict[str, Any], source: str) -> "Architecture":
        """The shape in a config.json, as transformers 4 and 5 spell it."""
        if any(key in config for key in ("num_experts", "num_local_experts", "vision_config", "ssm_cfg", "state_size")):
            raise InputError(f"{source} is not a dense text decoder: rlbench cannot count its parameters.")
        needed = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
        for key in needed:
            if not isinstance(config.get(key), int):
                raise InputError(f"{source} lacks the field '{key}': name a model with a complete config.json.")
        kind = str(config.get("model_type", "unknown"))
        heads = config["num_attention_heads"]
        return cls(
            model_type=kind,
            hidden_size=config["hidden_size"],
            layers=config["num_hidden_layers"],
            query_heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or config["hidden_size"] // heads,
            intermediate_size=config["intermediate_size"],
            vocab_size=config["vocab_size"],
            tied_embeddings=config.get("tie_word_embeddings", kind in ("smollm3", "qwen3")),
            attention_bias=kind == "qwen2" or bool(config.get("attention_bias")),
            qk_norm={"qwen3": "head", "olmo2": "full"}.get(kind, "none"),
            norm="weightless" if kind == "olmo" else "rms",
        )


class ModeSpec(Value):
    chat_template_kwargs: dict[str, bool | str] = Field(default_factory=dict)
    system_prompt: str | None = None
    sampling: Sampling
    stop: tuple[str, ...] = ()
    think_open: str | None = None
    think_close: str | None = None
    opened_in_prompt: bool = False
    max_new_tokens: int | None = None


class PublishedScore(Value):
    task: str
    mode: Mode
    score: float
    samples: int | None = None
    n_prompts: int | None = None
    max_new_tokens: int | None = None
    harness: str | None = None
    source: str
    caveat: str = ""
    copied_from: str | None = None


class Claim(Value):
    claim: str
    source: str
    quantity: Literal[
        "parameters", "non_embedding_parameters", "states_bytes", "context_native", "context_extended", "license",
        "layers", "hidden_size", "vocab_size", "tied_embeddings", "published_score", "measure",
    ]  # fmt: skip
    expected: float | bool | str | None = None
    relative_tolerance: float = 0.01
    regime: str | None = None
    task: str | None = None
    mode: Mode | None = None
    command: str | None = None


class Context(Value):
    native: int
    extended: int | None = None
    how: str = ""


class WeightsPackage(Value):
    package: str
    file: str
    sha256: str
    note: str


class ModelCard(Value):
    name: str
    hub_id: str
    revision: str = "main"
    license: str
    architecture: Architecture
    context: Context
    modes: dict[Mode, ModeSpec]
    default_mode: Mode
    stop_token_ids: tuple[int, ...] = ()
    learning_rate: float = 1e-6
    weights_package: WeightsPackage | None = None
    published: tuple[PublishedScore, ...] = ()
    claims: tuple[Claim, ...] = ()
    caveats: tuple[str, ...] = ()

    @property
    def parameters(self) -> int:
        return self.architecture.parameters

    @property
    def non_embedding_parameters(self) -> int:
        return self.architecture.non_embedding_parameters

    @property
    def kv_bytes_per_token(self) -> int:
        return self.architecture.kv_bytes_per_token()

    def published_records(self) -> list[Record]:
        return [
            Record(
                subject=Subject(
                    model=self.hub_id, card=self.name, mode=p.mode, task=p.task, max_new_tokens=p.max_new_tokens
                ),
                provenance="published",
                source=p.source,
                detail=p.caveat,
                values=AccuracyValues(
                    accuracy=p.score, n_prompts=p.n_prompts, samples_per_prompt=p.samples, harness=p.harness
                ),
            )
            for p in self.published
        ]
