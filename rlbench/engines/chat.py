"""From messages to the prompt a model must see, and from its completion to thinking and answer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rlbench.core.card import ModeSpec
from rlbench.core.sample import FinishReason
from rlbench.core.subject import Mode
from rlbench.errors import InputError

PINNED_DATE = {"%d": "01", "%B": "July", "%b": "Jul", "%m": "07", "%Y": "2025"}
"""What a template that asks for today gets (SmolLM3's does): with the real date, no two days would ask the same."""


class Split(NamedTuple):
    """A completion in its two parts."""

    thinking: str
    answer: str
    closed: bool
    """False when the completion ended before its thinking did."""


def render(tokenizer: Any, messages: Sequence[dict[str, str]], mode: Mode, spec: ModeSpec) -> str:
    """The prompt for `messages`: the model's own template with the mode's switches, or raw text in base mode.

    The template writes the special tokens itself: tokenise the result with `add_special_tokens=False`.

    Raises:
        InputError: the model has no chat template and the mode needs one.
    """
    if mode == "base":
        return "\n".join(message["content"] for message in messages)
    if not tokenizer.chat_template:
        raise InputError(f"the model has no chat template, which mode '{mode}' needs: use --mode base.")
    rendered: str = tokenizer.apply_chat_template(
        with_system_prompt(messages, spec),
        chat_template=pinned(tokenizer.chat_template),
        tokenize=False,
        add_generation_prompt=True,
        **spec.chat_template_kwargs,
    )
    return rendered


def pinned(template: str) -> str:
    """The template, with a macro of its own in place of `strftime_now` when it asks for the date."""
    if "strftime_now" not in template:
        return template
    replacing = "".join(f" | replace('{code}', '{text}')" for code, text in PINNED_DATE.items())
    return f"{{% macro strftime_now(format) %}}{{{{ format{replacing} }}}}{{% endmacro %}}{template}"


def with_system_prompt(messages: Sequence[dict[str, str]], spec: ModeSpec) -> list[dict[str, str]]:
    """The messages, after the mode's system prompt when they bring none of their own."""
    given = list(messages)
    if not spec.system_prompt or (given and given[0]["role"] == "system"):
        return given
    return [{"role": "system", "content": spec.system_prompt}, *given]


def split(text: str, spec: ModeSpec) -> Split:
    """Thinking (its closing tag included) and answer. The answer begins after the last closing tag.

    Without a closing tag everything is thinking if it was opened, by the prompt or by the model, and
    everything is answer if it was not.
    """
    if not spec.think_close:
        return Split("", text, closed=True)
    before, close, answer = text.rpartition(spec.think_close)
    if close:
        return Split(before + close, answer, closed=True)
    opened = spec.opened_in_prompt or (spec.think_open is not None and text.lstrip().startswith(spec.think_open))
    return Split(text, "", closed=False) if opened else Split("", text, closed=True)


def finish_reason(parts: Split, stopped: bool) -> FinishReason:
    """How a completion ended; `stopped` is whether it ended by itself, before its cap."""
    if not stopped:
        return "length"
    return "stop" if parts.closed else "stopped_in_thinking"
