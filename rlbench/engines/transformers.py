"""The transformers engine: batched `generate`, as TRL's trainer without vLLM would run it.

A batch runs until its longest sequence ends, and its samples are yielded then; `finished_seconds` of each
is the moment at which its own sequence ended.
"""

import gc
import hashlib
import json
import sys
import time
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import astuple
from itertools import groupby
from pathlib import Path
from typing import Any

from rlbench.core.card import ModeSpec
from rlbench.core.job import EngineSpec
from rlbench.core.sample import Sample, SampleKey
from rlbench.core.subject import Mode, Sampling
from rlbench.engines import chat
from rlbench.engines.base import Request
from rlbench.engines.ending import BatchEnding, End, cut_at_stop
from rlbench.errors import InputError, RlbenchError

Batch = Sequence[Request]


class TransformersEngine:
    """Implements `rlbench.engines.base.Engine`."""

    def __init__(
        self, model_path: Path, engine: EngineSpec, device: str, mode: Mode, spec: ModeSpec, stop_ids: Sequence[int]
    ) -> None:
        """Load the folder's model onto `device` (`cpu` or `cuda`) and run one step, so that it is warm.

        Raises:
            RlbenchError: there is no such device.
        """
        start = time.perf_counter()
        self._device = device
        self._mode: Mode = mode
        self._mode_spec = spec
        self._batch_size = engine.batch_size
        self._tokenizer = load_tokenizer(model_path)
        self._model = _load_model(model_path, engine, device)
        self._stop_ids = all_stop_ids(stop_ids, self._tokenizer, self._model)
        self._forget_generation_defaults()
        self._warm_up()
        self.start_up_seconds = time.perf_counter() - start

    def generate(self, requests: Sequence[Request], done: Collection[SampleKey] = ()) -> Iterator[Sample]:
        """Yield the samples batch by batch, in the order of `requests`; see `Engine.generate`.

        Raises:
            InputError: a prompt and its cap are longer than the model's context.
        """
        known = frozenset(done)
        started = time.perf_counter()
        for batch in batches(requests, self._batch_size):
            if not all(request.key in known for request in batch):
                for sample in self._run(batch, started):
                    if sample.key not in known:
                        yield sample

    def count_tokens(self, text: str) -> int:
        """Tokens of `text`, without special tokens."""
        return len(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def render(self, messages: Sequence[dict[str, str]]) -> str:
        """The prompt as the model must see it; see `rlbench.engines.chat.render`."""
        return chat.render(self._tokenizer, messages, self._mode, self._mode_spec)

    def peak_memory_bytes(self) -> int | None:
        """Peak bytes that torch reserved on the GPU, or this process's peak resident set on the CPU."""
        if self._device == "cuda":
            import torch

            return int(torch.cuda.max_memory_reserved())
        return _peak_resident_bytes()

    def close(self) -> None:
        """Free the device."""
        self._model = None
        gc.collect()
        if self._device == "cuda":
            import torch

            torch.cuda.empty_cache()

    def _run(self, batch: Batch, started: float) -> Iterator[Sample]:
        import torch

        inputs = self._tokenise(batch)
        width = inputs["input_ids"].shape[1]
        ending = BatchEnding(batch, width, self._stop_ids, self._tokenizer, self._device)
        gpus = [torch.cuda.current_device()] if self._device == "cuda" else []
        with torch.random.fork_rng(devices=gpus), torch.inference_mode():
            torch.manual_seed(batch_seed(batch))
            output = self._model.generate(
                **inputs,
                generation_config=self._generation_config(batch),
                stopping_criteria=[ending],
                logits_processor=_penalties(batch[0].sampling, width),
            )
            rows = output[:, width:].tolist()
        ends = ending.ends(time.perf_counter())
        prompt_tokens = inputs["attention_mask"].sum(dim=1).tolist()
        for request, row, end, length in zip(batch, rows, ends, prompt_tokens, strict=True):
            yield self._sample(request, row[: end.tokens], end, length, started)

    def _tokenise(self, batch: Batch) -> dict[str, Any]:
        inputs = self._tokenizer(
            [request.prompt for request in batch],
            add_special_tokens=False,
            padding=True,
            return_tensors="pt",
            return_token_type_ids=False,
        )
        context = self._model.config.max_position_embeddings
        for request, mask in zip(batch, inputs["attention_mask"], strict=True):
            cap = request.forced_tokens or request.max_new_tokens
            length = int(mask.sum())
            if length + cap > context:
                raise InputError(
                    f"prompt '{request.key.prompt_id}' has {length} tokens, which with {cap} new tokens is more than "
                    f"the model's context of {context}: lower --max-new-tokens."
                )
        return {name: inputs[name].to(self._device) for name in ("input_ids", "attention_mask")}

    def _generation_config(self, batch: Batch) -> Any:
        """Every sampling parameter in full; `generate` fills what is missing with defaults of its own (top_k 50)."""
        from transformers import GenerationConfig

        sampling = batch[0].sampling
        chosen: dict[str, Any] = {"do_sample": False}
        if sampling.temperature > 0:
            chosen = {
                "do_sample": True,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "top_k": sampling.top_k,
                "min_p": sampling.min_p or None,
            }
        return GenerationConfig(
            max_new_tokens=max(request.forced_tokens or request.max_new_tokens for request in batch),
            repetition_penalty=sampling.repetition_penalty,
            pad_token_id=self._tokenizer.pad_token_id,
            **chosen,
        )

    def _sample(self, request: Request, tokens: list[int], end: End, prompt_tokens: int, started: float) -> Sample:
        text = self._tokenizer.decode(tokens, skip_special_tokens=True)
        if end.stopped:
            text = cut_at_stop(text, request.stop)
        parts = chat.split(text, self._mode_spec)
        thinking = self._tokens_spelling(parts.thinking, tokens) if parts.thinking else 0
        return Sample(
            phase=request.key.phase,
            prompt_id=request.key.prompt_id,
            index=request.key.index,
            seed=request.key.seed,
            prompt_tokens=prompt_tokens,
            thinking_tokens=thinking,
            answer_tokens=len(tokens) - thinking,
            finish_reason="stop" if request.forced_tokens else chat.finish_reason(parts, end.stopped),
            text=text,
            finished_seconds=max(end.moment - started, 0.0),
        )

    def _tokens_spelling(self, prefix: str, tokens: list[int]) -> int:
        """How many of `tokens` it took to write the first `len(prefix)` characters."""
        counts = range(len(tokens) + 1)
        return bisect_left(
            counts,
            len(prefix),
            key=lambda count: len(self._tokenizer.decode(tokens[:count], skip_special_tokens=True)),
            hi=len(tokens),
        )

    def _forget_generation_defaults(self) -> None:
        """Replace the checkpoint's generation_config, which `generate` would mix into ours unseen."""
        from transformers import GenerationConfig

        self._model.generation_config = GenerationConfig()

    def _warm_up(self) -> None:
        key = SampleKey("warm-up", "", 0, 0)
        for _ in self.generate([Request(key, "The", max_new_tokens=2, sampling=Sampling(), forced_tokens=2)]):
            pass


def batches(requests: Sequence[Request], size: int) -> Iterator[Batch]:
    """`requests` in their order, in batches of at most `size` that share their sampling."""
    for _, run in groupby(requests, key=lambda request: request.sampling):
        same = list(run)
        for first in range(0, len(same), size):
            yield same[first : first + size]


def batch_seed(batch: Batch) -> int:
    """A seed that depends on the keys of the batch alone, so that the batch gives the same samples again."""
    keys = json.dumps([astuple(request.key) for request in batch])
    return int.from_bytes(hashlib.sha256(keys.encode()).digest()[:8], "big") >> 1


class _PresencePenalty:
    """Subtracts `penalty` from the score of every token generated so far (OpenAI's and vLLM's definition)."""

    def __init__(self, penalty: float, prompt_width: int) -> None:
        self._penalty = penalty
        self._width = prompt_width

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        present = torch.zeros_like(scores).scatter_(1, input_ids[:, self._width :], self._penalty)
        return scores - present


def _penalties(sampling: Sampling, prompt_width: int) -> list[Any]:
    if sampling.presence_penalty == 0:
        return []
    return [_PresencePenalty(sampling.presence_penalty, prompt_width)]


def load_tokenizer(model_path: Path) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_path, local_files_only=True, padding_side="left")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _load_model(model_path: Path, engine: EngineSpec, device: str) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    if device == "cuda" and not torch.cuda.is_available():
        raise RlbenchError(f"torch {torch.__version__} finds no CUDA device here: install a CUDA build of torch.")
    dtype = getattr(torch, engine.dtype)
    if engine.random_weights:
        torch.manual_seed(0)
        config = AutoConfig.from_pretrained(model_path, local_files_only=True)
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    else:
        model = AutoModelForCausalLM.from_pretrained(
            model_path, dtype=dtype, use_safetensors=True, local_files_only=True
        )
    return model.to(device).eval()


def all_stop_ids(of_card: Sequence[int], tokenizer: Any, model: Any) -> list[int]:
    """The card's, the tokenizer's and the checkpoint's: Qwen3 needs two, and no single file always has them all."""
    of_model = model.generation_config.eos_token_id
    found = {*of_card, *(of_model if isinstance(of_model, list) else [of_model]), tokenizer.eos_token_id}
    return sorted(token for token in found if token is not None)


def _peak_resident_bytes() -> int:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
