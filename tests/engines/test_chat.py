"""Prompts as the models' own templates write them, and completions split into thinking and answer."""

from pathlib import Path
from typing import Any

import pytest

from rlbench.catalogue import find_model
from rlbench.core.card import ModeSpec
from rlbench.core.subject import Mode, Sampling
from rlbench.engines import chat
from rlbench.errors import InputError

ASKED = [{"role": "user", "content": "2 + 2?"}]
THINKING = ModeSpec(sampling=Sampling(), think_open="<think>", think_close="</think>")
PREFILLED = ModeSpec(sampling=Sampling(), think_open="<think>", think_close="</think>", opened_in_prompt=True)
PLAIN = ModeSpec(sampling=Sampling())


@pytest.mark.parametrize(
    ("text", "spec", "thinking", "answer", "closed"),
    [
        ("<think>\nhm\n</think>\n\n4", THINKING, "<think>\nhm\n</think>", "\n\n4", True),
        ("<think>\nhm", THINKING, "<think>\nhm", "", False),
        ("4", THINKING, "", "4", True),
        ("hm\n</think>4", PREFILLED, "hm\n</think>", "4", True),
        ("hm", PREFILLED, "hm", "", False),
        ("a</think>b</think>4", PREFILLED, "a</think>b</think>", "4", True),
        ("<think>hm</think>4", PLAIN, "", "<think>hm</think>4", True),
    ],
)
def test_split(text: str, spec: ModeSpec, thinking: str, answer: str, closed: bool) -> None:
    assert chat.split(text, spec) == (thinking, answer, closed)


def test_an_end_inside_the_thinking_is_neither_a_stop_nor_the_cap() -> None:
    open_end = chat.split("<think>hm", THINKING)
    assert chat.finish_reason(open_end, stopped=True) == "stopped_in_thinking"
    assert chat.finish_reason(open_end, stopped=False) == "length"
    assert chat.finish_reason(chat.split("4", THINKING), stopped=True) == "stop"


def test_a_system_prompt_of_ones_own_wins() -> None:
    spec = PLAIN.model_copy(update={"system_prompt": "Be brief."})
    assert chat.with_system_prompt(ASKED, spec)[0] == {"role": "system", "content": "Be brief."}
    own = [{"role": "system", "content": "Rhyme."}, *ASKED]
    assert chat.with_system_prompt(own, spec) == own


def test_base_mode_is_raw_text_and_others_need_a_template() -> None:
    tokenizer = template_only(None)
    assert chat.render(tokenizer, ASKED, "base", PLAIN) == "2 + 2?"
    with pytest.raises(InputError, match="no chat template.*use --mode base"):
        chat.render(tokenizer, ASKED, "no_think", PLAIN)


def template_only(template: str | None) -> Any:
    """A real tokenizer that knows nothing but its chat template."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"?": 0}, unk_token="?")),
        bos_token="<｜begin▁of▁sentence｜>",
        unk_token="?",
    )
    tokenizer.chat_template = template
    return tokenizer


def rendered(shared_data: Path, folder: str, card_name: str, mode: Mode) -> str:
    card = find_model(card_name)
    if folder == "qwen3-tokenizer":
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(shared_data / "models" / folder, local_files_only=True)
    else:
        tokenizer = template_only((shared_data / "models" / folder / "chat_template.jinja").read_text())
    return chat.render(tokenizer, ASKED, mode, card.modes[mode])


@pytest.mark.parametrize(
    ("folder", "card", "mode", "tail"),
    [
        ("qwen3-tokenizer", "qwen3-0.6b", "think", "<|im_start|>assistant\n"),
        ("qwen3-tokenizer", "qwen3-0.6b", "no_think", "<|im_start|>assistant\n<think>\n\n</think>\n\n"),
        ("SmolLM3-3B", "smollm3-3b", "think", "<|im_start|>assistant\n"),
        ("SmolLM3-3B", "smollm3-3b", "no_think", "<|im_start|>assistant\n<think>\n\n</think>\n"),
        ("DeepSeek-R1-Distill-Qwen-1.5B", "deepseek-r1-distill-1.5b", "think", "<｜Assistant｜><think>\n"),
    ],
)
def test_the_switch_changes_the_tail(shared_data: Path, folder: str, card: str, mode: Mode, tail: str) -> None:
    prompt = rendered(shared_data, folder, card, mode)
    assert prompt.endswith(tail)
    assert "2 + 2?" in prompt


def test_smollm3_asks_the_same_question_every_day(shared_data: Path) -> None:
    prompt = rendered(shared_data, "SmolLM3-3B", "smollm3-3b", "think")
    assert "Today Date: 01 July 2025" in prompt
