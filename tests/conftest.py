"""What every test may ask for: isolation from the user's machine, the shared data, a tiny real model."""

import json
import os
from pathlib import Path

import pytest

# Before any test imports huggingface_hub, which reads this once.
os.environ["HF_HUB_OFFLINE"] = "1"

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(autouse=True)
def _isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """No RLBENCH_ setting of the user's reaches a test, and no test reaches the hub."""
    for name in [name for name in os.environ if name.startswith("RLBENCH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data that lies beside some checkouts."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip(f"needs the public test data at {data}, which a bare clone does not have")
    return data


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real two-layer Llama with random weights, a byte-level tokenizer and a chat template, on disk."""
    folder = tmp_path_factory.mktemp("tiny-model")
    save_tiny_model(folder)
    return folder


def save_tiny_model(folder: Path, seed: int = 0) -> None:
    """Write a 2-layer Llama (hidden 64, 300 tokens) as a hub download would look."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<pad>", "<|im_start|>", "<|im_end|>"]
    vocabulary = {token: index for index, token in enumerate(special + alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<|im_start|>", eos_token="<|im_end|>"
    )
    fast.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    fast.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=vocabulary["<|im_start|>"],
        eos_token_id=vocabulary["<|im_end|>"],
        pad_token_id=vocabulary["<pad>"],
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    generation = folder / "generation_config.json"
    if not generation.exists():
        generation.write_text(json.dumps({"eos_token_id": vocabulary["<|im_end|>"]}))
