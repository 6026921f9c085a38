"""The shape of a dense decoder, and what follows from it: parameters by part, KV bytes."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from rlbench.core.value import Value
from rlbench.errors import InputError

_CLASS_DEFAULTS: dict[str, dict[str, Any]] = {
    "smollm3": {"tie_word_embeddings": True, "num_key_value_heads": 4},
    "qwen3": {"head_dim": 128},
    "gemma": {"tie_word_embeddings": True, "head_dim": 256},
}
"""What a config.json may leave out because the class in transformers fills it in with something unusual."""

_QK_NORM: dict[str, Literal["head", "full"]] = {"qwen3": "head", "olmo2": "full", "olmo3": "full"}
COUNTED = (
    "llama", "mistral", "qwen2", "qwen3", "smollm3", "olmo", "olmo2", "olmo3", "phi3", "gemma", "granite",
)  # fmt: skip
"""Model types that `Architecture` counts exactly. Of others (opt, phi, gemma2, …) it would be wrong in silence."""

_NOT_DENSE_TEXT = {
    "mixture of experts": ("num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size"),
    "state-space model": ("ssm_cfg", "state_size", "mamba_d_state", "mamba_expand", "linear_num_value_heads"),
    "multimodal model": ("vision_config", "audio_config", "text_config", "thinker_config"),
    "encoder": ("is_encoder_decoder",),
}
"""Keys of a config.json that give away what `Architecture` cannot count."""


class Architecture(Value):
    """A dense decoder with a gated feed-forward layer, in the terms of its config.json.

    Symbols below: h `hidden_size`, L `layers`, q = `query_heads` × `head_dim`, k = `kv_heads` × `head_dim`,
    f `intermediate_size`, V `vocab_size`. All counts are in parameters, checked against what transformers
    instantiates on the meta device.
    """

    model_type: str
    hidden_size: int = Field(gt=0)
    layers: int = Field(gt=0)
    query_heads: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    intermediate_size: int = Field(gt=0)
    vocab_size: int = Field(gt=0)
    """Rows of the embedding, which may be padded beyond what the tokenizer knows."""
    tied_embeddings: bool
    """The output layer is the embedding itself."""
    attention_bias: bool = False
    """Biases on query, key and value."""
    output_bias: bool = False
    """A bias on the attention's output."""
    mlp_bias: bool = False
    qk_norm: Literal["none", "head", "full"] = "none"
    """Norms of queries and keys: one weight for each place in a head, or for the full width."""
    norm: Literal["rms", "weightless"] = "rms"
    clip_qkv: float | None = None
    """Queries, keys and values are clipped to this (OLMo)."""

    @field_validator("model_type")
    @classmethod
    def _can_be_counted(cls, kind: str) -> str:
        if kind not in COUNTED:
            raise ValueError(f"rlbench cannot count the parameters of '{kind}', only those of {', '.join(COUNTED)}")
        return kind

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.query_heads % self.kv_heads:
            raise ValueError(f"'query_heads' ({self.query_heads}) is not a multiple of 'kv_heads' ({self.kv_heads})")
        return self

    @property
    def parameters_by_part(self) -> dict[str, int]:
        """Parameters of the whole model by part; the parts sum to `parameters`.

        attention  L (2·h·q + 2·h·k)
        mlp        3·L·h·f
        biases     L (q + 2k) on query, key, value; L·h on the output; L (2f + h) in the feed-forward layer
        norms      (2L + 1)·h when they have weights, and of queries and keys L·2·head_dim or L (q + k)
        embedding  V·h, and as much again for the output layer unless it is tied
        """
        h, f, q, k = self.hidden_size, self.intermediate_size, self._query_width, self._kv_width
        bias = (q + 2 * k) * self.attention_bias + h * self.output_bias + (2 * f + h) * self.mlp_bias
        qk_norm = {"none": 0, "head": 2 * self.head_dim, "full": q + k}[self.qk_norm]
        norm = h if self.norm == "rms" else 0
        return {
            "attention": self.layers * (2 * h * q + 2 * h * k),
            "mlp": self.layers * 3 * h * f,
            "biases": self.layers * bias,
            "norms": self.layers * (2 * norm + qk_norm) + norm,
            "embedding": self.vocab_size * h,
            "output_layer": 0 if self.tied_embeddings else self.vocab_size * h,
        }

    @property
    def parameters(self) -> int:
        """All parameters, a tied embedding counted once."""
        return sum(self.parameters_by_part.values())

    @property
    def non_embedding_parameters(self) -> int:
        """All but the embedding and the output layer."""
        parts = self.parameters_by_part
        return self.parameters - parts["embedding"] - parts["output_layer"]

    @property
    def decode_parameters(self) -> int:
        """Parameters read for one decoded token: the non-embedding ones and the output layer."""
        return self.non_embedding_parameters + self.vocab_size * self.hidden_size

    def kv_bytes_per_token(self, bytes_per_element: int = 2) -> int:
        """Bytes that one token keeps in the KV cache: 2·L·k × `bytes_per_element`."""
        return 2 * self.layers * self._kv_width * bytes_per_element

    @property
    def _query_width(self) -> int:
        return self.query_heads * self.head_dim

    @property
    def _kv_width(self) -> int:
        return self.kv_heads * self.head_dim

    @classmethod
    def from_config(cls, config: Mapping[str, Any], source: str) -> "Architecture":
        """The shape in a config.json, as transformers 4 and 5 write it.

        Args:
            config: the parsed config.json.
            source: what the config belongs to, for the error.

        Raises:
            InputError: it is no dense text decoder of a type in `COUNTED`, or a figure is missing or
                contradicts another.
        """
        kind = str(config.get("model_type", "unknown"))
        _refuse_other_kinds(config, kind, source)
        config = {**_CLASS_DEFAULTS.get(kind, {}), **{key: v for key, v in config.items() if v is not None}}
        h, heads = _figure(config, "hidden_size", source), _figure(config, "num_attention_heads", source)
        biased = bool(config.get("attention_bias"))
        try:
            return cls(
                model_type=kind,
                hidden_size=h,
                layers=_figure(config, "num_hidden_layers", source),
                query_heads=heads,
                kv_heads=_figure(config, "num_key_value_heads", source, heads),
                head_dim=_figure(config, "head_dim", source, h // heads),
                intermediate_size=_figure(config, "intermediate_size", source),
                vocab_size=_figure(config, "vocab_size", source),
                tied_embeddings=bool(config.get("tie_word_embeddings", False)),
                attention_bias=biased or kind == "qwen2",
                output_bias=biased and kind != "qwen2",
                mlp_bias=bool(config.get("mlp_bias")),
                qk_norm=_QK_NORM.get(kind, "none"),
                norm="weightless" if kind == "olmo" else "rms",
                clip_qkv=config.get("clip_qkv"),
            )
        except ValueError as error:
            raise InputError(f"{source} contradicts itself: {_reason(error)}; name a model that is whole.") from None

    def to_config(self) -> dict[str, Any]:
        """A config.json's content from which transformers builds this many parameters."""
        config = {
            "model_type": self.model_type,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.query_heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "intermediate_size": self.intermediate_size,
            "vocab_size": self.vocab_size,
            "tie_word_embeddings": self.tied_embeddings,
            "attention_bias": self.output_bias,
            "mlp_bias": self.mlp_bias,
            # The classes' own defaults may lie outside a small vocabulary.
            "bos_token_id": None,
            "eos_token_id": None,
            "pad_token_id": None,
        }
        return config if self.clip_qkv is None else config | {"clip_qkv": self.clip_qkv}


def _refuse_other_kinds(config: Mapping[str, Any], kind: str, source: str) -> None:
    for what, keys in _NOT_DENSE_TEXT.items():
        for key in keys:
            # One expert, or none, is a dense layer.
            if config.get(key) not in (None, False, 0, 1):
                raise InputError(
                    f"{source} is a {what} ('{kind}', by its key '{key}'), which rlbench cannot count: "
                    "name a dense text decoder."
                )
    if kind not in COUNTED:
        raise InputError(
            f"{source} is of the type '{kind}', whose parameters rlbench cannot count: name a model of a type "
            f"that it can ({', '.join(COUNTED)})."
        )


def _figure(config: Mapping[str, Any], key: str, source: str, default: int | None = None) -> int:
    value = config.get(key, default)
    if value is None:
        raise InputError(f"{source} lacks the field '{key}': name a model with a complete config.json.")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{source} has {value!r} for '{key}', which is no positive whole number: correct it.")
    return value


def _reason(error: ValueError) -> str:
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    return str(error.errors()[0]["msg"]).removeprefix("Value error, ")
