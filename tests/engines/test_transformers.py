"""The transformers engine on a tiny real model: what is asked is what comes back, and again when asked again."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rlbench.core.card import ModeSpec
from rlbench.core.job import EngineSpec
from rlbench.core.sample import Sample, SampleKey
from rlbench.core.subject import Sampling
from rlbench.engines.base import Request
from rlbench.engines.transformers import TransformersEngine, batches
from rlbench.errors import InputError

GREEDY = Sampling(temperature=0)
SPEC = ModeSpec(sampling=Sampling())


@pytest.fixture(scope="module")
def engine(tiny_model: Path) -> Iterator[TransformersEngine]:
    opened = TransformersEngine(tiny_model, EngineSpec(batch_size=4), "cpu", "no_think", SPEC, stop_ids=())
    yield opened
    opened.close()


def requests(*prompts: str, samples: int = 1, sampling: Sampling = Sampling(), **rest: object) -> list[Request]:  # noqa: B008
    settings = {"max_new_tokens": 12, **rest}
    return [
        Request(SampleKey("p", f"{number}", index, 7), prompt, sampling=sampling, **settings)  # type: ignore[arg-type]
        for number, prompt in enumerate(prompts)
        for index in range(samples)
    ]


def without_time(samples: Iterator[Sample]) -> list[Sample]:
    return [sample.model_copy(update={"finished_seconds": None}) for sample in samples]


def test_left_padding_changes_nothing(engine: TransformersEngine) -> None:
    asked = requests("a", "a much longer prompt than the first", "mid length", sampling=GREEDY)
    together = without_time(engine.generate(asked))
    alone = [sample for request in asked for sample in without_time(engine.generate([request]))]
    assert together == alone


def test_a_pass_taken_up_again_gives_the_same_samples(engine: TransformersEngine) -> None:
    asked = requests("one", "two", "three", samples=4)
    whole = without_time(engine.generate(asked))
    for kept in (1, 4, 6, 11):
        done = {sample.key for sample in whole[:kept]}
        assert without_time(engine.generate(asked, done)) == whole[kept:]
    assert without_time(engine.generate(asked, {sample.key for sample in whole})) == []


def test_samples_of_a_prompt_differ_and_a_phase_has_its_own(engine: TransformersEngine) -> None:
    asked = requests("one", samples=4)
    texts = [sample.text for sample in engine.generate(asked)]
    assert len(set(texts)) > 1
    again = [Request(replace(request.key, phase="other"), request.prompt, 12, request.sampling) for request in asked]
    assert [sample.text for sample in engine.generate(again)] != texts


def test_the_callers_random_numbers_are_left_alone(engine: TransformersEngine) -> None:
    import torch

    torch.manual_seed(1)
    expected = torch.rand(1).item()
    torch.manual_seed(1)
    list(engine.generate(requests("one")))
    assert torch.rand(1).item() == expected


def test_the_cap_is_a_length_and_forced_lengths_are_exact(engine: TransformersEngine) -> None:
    capped = list(engine.generate(requests("one", "two", sampling=GREEDY, max_new_tokens=3)))
    assert {(s.output_tokens, s.finish_reason) for s in capped if s.output_tokens == 3} <= {(3, "length"), (3, "stop")}
    forced = [
        Request(SampleKey("f", str(n), 0, 0), "one", max_new_tokens=30, sampling=Sampling(), forced_tokens=n)
        for n in (1, 5, 9, 30)
    ]
    samples = list(engine.generate(forced))
    assert [s.output_tokens for s in samples] == [1, 5, 9, 30]
    assert {s.finish_reason for s in samples} == {"stop"}
    moments = [s.finished_seconds or 0.0 for s in samples]
    assert moments == sorted(moments)
    assert moments[0] < moments[-1]


def late_letter(text: str) -> str:
    """An ASCII letter that first comes up after the text's beginning: it is one token of the tiny tokenizer."""
    return next(c for c in text if c.isascii() and c.isalnum() and text.index(c) > 4)


def test_real_end_of_sequence(tiny_model: Path, engine: TransformersEngine) -> None:
    asked = requests("one", samples=4, max_new_tokens=60)
    first = next(engine.generate(asked))
    assert first.finish_reason == "length"
    letter = late_letter(first.text)
    stop = engine._tokenizer.convert_tokens_to_ids(letter)
    stopping = TransformersEngine(tiny_model, EngineSpec(batch_size=4), "cpu", "no_think", SPEC, stop_ids=(stop,))
    ended = next(stopping.generate(asked))
    assert ended.finish_reason == "stop"
    assert ended.text == first.text[: first.text.index(letter) + 1]
    assert ended.output_tokens < first.output_tokens


def test_stop_strings_end_a_completion_and_are_cut(engine: TransformersEngine) -> None:
    asked = requests("one", samples=4, max_new_tokens=60)
    whole = next(engine.generate(asked))
    stop = late_letter(whole.text)
    stopped = next(engine.generate([replace(request, stop=("never", stop)) for request in asked]))
    assert stopped.text == whole.text[: whole.text.index(stop)]
    assert stopped.finish_reason == "stop"
    assert stopped.output_tokens < whole.output_tokens


def test_presence_penalty_keeps_greedy_from_repeating(engine: TransformersEngine) -> None:
    strict = GREEDY.model_copy(update={"presence_penalty": 1e6})
    sample = next(engine.generate(requests("one", sampling=strict, max_new_tokens=40)))
    letters = [c for c in sample.text if c.isascii()]
    assert len(letters) > 5
    assert len(letters) == len(set(letters))


def test_a_prompt_longer_than_the_context_is_refused(engine: TransformersEngine) -> None:
    with pytest.raises(InputError, match=r"more than the model's context of 512: lower --max-new-tokens"):
        list(engine.generate(requests("word " * 110)))


def test_batches_keep_order_and_never_mix_sampling() -> None:
    asked = [*requests("a", "b", "c"), *requests("d", "e", sampling=GREEDY)]
    split = list(batches(asked, 2))
    assert [len(batch) for batch in split] == [2, 1, 2]
    assert [request for batch in split for request in batch] == asked


def test_random_weights_need_no_weights_on_disk(tiny_model: Path, tmp_path: Path) -> None:
    for file in tiny_model.iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    opened = TransformersEngine(tmp_path, EngineSpec(random_weights=True), "cpu", "no_think", SPEC, stop_ids=())
    asked = [Request(SampleKey("f", "", 0, 0), "one", 5, Sampling(), forced_tokens=5)]
    assert next(opened.generate(asked)).output_tokens == 5
    assert opened.start_up_seconds > 0
    assert (opened.peak_memory_bytes() or 0) > 1_000_000


def test_thinking_and_answer_are_counted_apart(tiny_model: Path, engine: TransformersEngine) -> None:
    asked = requests("one", samples=4, max_new_tokens=60)
    whole = next(engine.generate(asked))
    close = late_letter(whole.text)
    spec = ModeSpec(sampling=Sampling(), think_open="<t>", think_close=close, opened_in_prompt=True)
    thinker = TransformersEngine(tiny_model, EngineSpec(batch_size=4), "cpu", "think", spec, stop_ids=())
    sample = next(thinker.generate(asked))
    assert sample.text == whole.text
    assert sample.output_tokens == whole.output_tokens
    assert 4 < sample.thinking_tokens < sample.output_tokens
