"""When each sequence of a batch ends, and at which moment: `generate` itself only knows when all have."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from rlbench.engines.base import Request

_SPARE_TOKENS = 4
"""Looked at beyond the length of the longest stop string: special tokens decode to nothing."""


class End(NamedTuple):
    """How one sequence ended."""

    tokens: int
    """Generated tokens, the end-of-sequence token included: it took a step like the others."""
    stopped: bool
    """By end-of-sequence or a stop string, not by its cap or forced length."""
    moment: float
    """`time.perf_counter()` after the step that ended it."""


class BatchEnding:
    """A stopping criterion of transformers, one row a request: caps, forced lengths, stop ids and stop strings.

    The bookkeeping stays on the device, so that the host does not wait for it at every step; only stop
    strings need the tokens on the host.
    """

    def __init__(
        self, batch: Sequence[Request], prompt_width: int, stop_ids: Sequence[int], tokenizer: Any, device: str
    ) -> None:
        """Watch a batch whose padded prompts are `prompt_width` tokens wide."""
        import torch

        self.eos_token_id = list(stop_ids)  # `generate` pads finished rows only if a criterion has this attribute
        self._torch = torch
        self._batch = batch
        self._width = prompt_width
        self._tokenizer = tokenizer
        self._stop_ids = torch.tensor(self.eos_token_id, device=device)
        self._caps = torch.tensor([request.forced_tokens or request.max_new_tokens for request in batch], device=device)
        self._natural = torch.tensor([request.forced_tokens is None for request in batch], device=device)
        self._ended_at = torch.zeros(len(batch), dtype=torch.long, device=device)
        self._stopped = torch.zeros(len(batch), dtype=torch.bool, device=device)
        self._moments: list[float] = []

    def __call__(self, input_ids: Any, *_: Any) -> Any:
        """Which rows are done after this step."""
        step = input_ids.shape[1] - self._width
        self._moments.append(time.perf_counter())
        running = self._ended_at == 0
        stopping = self._torch.isin(input_ids[:, -1], self._stop_ids) & self._natural
        if any(request.stop and request.forced_tokens is None for request in self._batch):
            stopping = stopping | self._said_stop_string(input_ids[:, self._width :], running)
        ending = running & (stopping | (self._caps <= step))
        self._stopped |= ending & stopping
        self._ended_at = self._torch.where(ending, step, self._ended_at)
        return self._ended_at > 0

    def ends(self, finished: float) -> list[End]:
        """How each row ended; `finished` is the moment at which the whole batch was back on the host."""
        last = len(self._moments)
        found = []
        for tokens, stopped in zip(self._ended_at.tolist(), self._stopped.tolist(), strict=True):
            found.append(End(tokens, stopped, finished if tokens == last else self._moments[tokens - 1]))
        return found

    def _said_stop_string(self, generated: Any, running: Any) -> Any:
        said = [
            bool(request.stop) and request.forced_tokens is None and still and self._tail_has(row, request.stop)
            for row, request, still in zip(generated, self._batch, running.tolist(), strict=True)
        ]
        return self._torch.tensor(said, device=generated.device)

    def _tail_has(self, row: Any, stop: tuple[str, ...]) -> bool:
        window = max(len(string.encode()) for string in stop) + _SPARE_TOKENS
        tail = self._tokenizer.decode(row[-window:].tolist(), skip_special_tokens=True)
        return any(string in tail for string in stop)


def cut_at_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the first stop string in it."""
    places = [place for string in stop if (place := text.find(string)) >= 0]
    return text[: min(places)] if places else text
