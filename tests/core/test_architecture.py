"""Counts against literal figures, against transformers on the meta device, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlbench.catalogue import cards
from rlbench.core.architecture import COUNTED, Architecture
from rlbench.errors import InputError

KNOWN = {
    # card: parameters, not embeddings, read per decoded token, KV bytes per token in half precision
    "qwen3-4b": (4_022_468_096, 3_633_511_936, 4_022_468_096, 147_456),
    "smollm3-3b": (3_075_098_624, 2_812_430_336, 3_075_098_624, 73_728),
    "qwen3-1.7b": (1_720_574_976, 1_409_410_048, 1_720_574_976, 114_688),
    "olmo-1b": (1_279_787_008, 1_073_741_824, 1_176_764_416, 131_072),
    "qwen3-0.6b": (596_049_920, 440_467_456, 596_049_920, 114_688),
    "smollm2-360m": (361_821_120, 314_635_200, 361_821_120, 40_960),
    "deepseek-r1-distill-1.5b": (1_777_088_000, 1_310_340_608, 1_543_714_304, 28_672),
    "smollm2-135m": (134_515_008, 106_203_456, 134_515_008, 23_040),
    "open-rs1": (1_777_088_000, 1_310_340_608, 1_543_714_304, 28_672),
    "open-rs2": (1_777_088_000, 1_310_340_608, 1_543_714_304, 28_672),
    "open-rs3": (1_777_088_000, 1_310_340_608, 1_543_714_304, 28_672),
    "olmo-2-1b": (1_484_916_736, 1_073_874_944, 1_279_395_840, 131_072),
}

FOLDERS = {
    "qwen3-4b": "Qwen3-4B",
    "smollm3-3b": "SmolLM3-3B",
    "qwen3-1.7b": "Qwen3-1.7B",
    "olmo-1b": "OLMo-1B-0724-hf",
    "qwen3-0.6b": "Qwen3-0.6B",
    "smollm2-360m": "SmolLM2-360M-Instruct",
    "deepseek-r1-distill-1.5b": "DeepSeek-R1-Distill-Qwen-1.5B",
}
"""Where the shared data has a card's config.json."""

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 300,
}

shapes = st.builds(
    lambda heads, groups, **rest: Architecture(query_heads=heads * groups, kv_heads=heads, model_type="llama", **rest),
    heads=st.integers(1, 8),
    groups=st.integers(1, 8),
    hidden_size=st.integers(1, 512),
    layers=st.integers(1, 8),
    head_dim=st.integers(1, 128),
    intermediate_size=st.integers(1, 512),
    vocab_size=st.integers(1, 5000),
    tied_embeddings=st.booleans(),
    attention_bias=st.booleans(),
    qk_norm=st.sampled_from(["none", "head", "full"]),
    norm=st.sampled_from(["rms", "weightless"]),
)


def config(**changes: Any) -> dict[str, Any]:
    """A small Llama's config.json; a key given as `None` is left out."""
    return {key: value for key, value in (CONFIG | changes).items() if value is not None}


def built_by_transformers(architecture: Architecture) -> int:
    """How many parameters transformers instantiates from the architecture."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**architecture.to_config()))
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", KNOWN)
def test_every_card_counts_to_the_known_figures(name: str) -> None:
    card = cards()[name]
    found = (card.parameters, card.non_embedding_parameters, card.architecture.decode_parameters)
    assert (*found, card.kv_bytes_per_token) == KNOWN[name]


def test_transformers_instantiates_as_many_parameters_for_every_card() -> None:
    found = {name: built_by_transformers(card.architecture) for name, card in cards().items() if name in KNOWN}
    assert found == {name: figures[0] for name, figures in KNOWN.items()}


@pytest.mark.parametrize(
    "kind_and_bias", [("llama", True), ("qwen3", True), ("qwen2", False), ("smollm3", True), ("mistral", False)]
)
def test_biases_are_counted_where_the_model_class_has_them(kind_and_bias: tuple[str, bool]) -> None:
    kind, bias = kind_and_bias
    architecture = Architecture.from_config(config(model_type=kind, attention_bias=bias, mlp_bias=None), "a test")
    assert built_by_transformers(architecture) == architecture.parameters


def test_an_mlp_bias_is_counted() -> None:
    architecture = Architecture.from_config(config(mlp_bias=True), "a test")
    assert built_by_transformers(architecture) == architecture.parameters


@pytest.mark.parametrize("name", FOLDERS)
def test_a_published_config_gives_the_architecture_of_its_card(name: str, shared_data: Path) -> None:
    path = shared_data / "models" / FOLDERS[name] / "config.json"
    assert Architecture.from_config(json.loads(path.read_text()), str(path)) == cards()[name].architecture


def test_smollm3_ties_its_embeddings_when_the_config_does_not_say() -> None:
    assert Architecture.from_config(config(model_type="smollm3"), "a test").tied_embeddings
    assert not Architecture.from_config(config(model_type="llama"), "a test").tied_embeddings


def test_qwen3_heads_are_128_wide_when_the_config_does_not_say() -> None:
    assert Architecture.from_config(config(model_type="qwen3"), "a test").head_dim == 128
    assert Architecture.from_config(config(model_type="llama", head_dim=None), "a test").head_dim == 16


def test_a_config_that_transformers_5_saved_reads_as_one_of_transformers_4(tiny_model: Path) -> None:
    saved = json.loads((tiny_model / "config.json").read_text())
    assert "rope_parameters" in saved
    old = {key: value for key, value in saved.items() if key not in ("rope_parameters", "dtype")}
    old |= {"rope_theta": 10000.0, "torch_dtype": "float32"}
    assert Architecture.from_config(saved, "new") == Architecture.from_config(old, "old")


def test_every_counted_model_type_is_counted_as_transformers_builds_it() -> None:
    shapes = [
        Architecture.from_config(config(model_type=kind, tie_word_embeddings=tied, head_dim=24), kind)
        for kind in COUNTED
        for tied in (True, False)
    ]
    assert [built_by_transformers(shape) for shape in shapes] == [shape.parameters for shape in shapes]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_experts": 8}, "mixture of experts"),
        ({"n_routed_experts": 64}, "mixture of experts"),
        ({"vision_config": {"depth": 2}}, "multimodal"),
        ({"text_config": {"hidden_size": 64}}, "multimodal"),
        ({"model_type": "mamba", "state_size": 16}, "state-space"),
        ({"model_type": "opt"}, "of the type 'opt'"),
        ({"model_type": "gemma2"}, "of the type 'gemma2'"),
        ({"hidden_size": None}, "lacks the field 'hidden_size'"),
        ({"num_hidden_layers": "two"}, "'num_hidden_layers'"),
        ({"vocab_size": 0}, "'vocab_size'"),
        ({"num_key_value_heads": 3}, "not a multiple"),
    ],
)
def test_what_cannot_be_counted_is_refused_in_a_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        Architecture.from_config(config(**changes), "some/model")
    sentence = str(caught.value)
    assert "some/model" in sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")


def test_a_single_expert_is_a_dense_layer() -> None:
    assert Architecture.from_config(config(num_local_experts=1), "a test").layers == 2


@given(shapes)
def test_parts_sum_to_the_whole(shape: Architecture) -> None:
    parts = shape.parameters_by_part
    assert sum(parts.values()) == shape.parameters
    assert shape.parameters - shape.non_embedding_parameters == parts["embedding"] + parts["output_layer"]
    assert shape.non_embedding_parameters < shape.decode_parameters <= shape.parameters


@given(shapes, st.integers(1, 4))
def test_more_layers_cost_parameters_and_cache(shape: Architecture, more: int) -> None:
    deeper = shape.model_copy(update={"layers": shape.layers + more})
    assert deeper.parameters > shape.parameters
    assert deeper.kv_bytes_per_token() > shape.kv_bytes_per_token()
    assert shape.kv_bytes_per_token(4) == 2 * shape.kv_bytes_per_token(2)
