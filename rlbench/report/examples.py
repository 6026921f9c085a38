"""A few completions as they were generated: always the first prompts, so that nobody picked them."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from rlbench.core.sample import Sample
from rlbench.core.value import Value
from rlbench.errors import StoreError
from rlbench.store import JobFolder

PROMPTS = 2
"""Prompts shown of each job, one completion a phase."""

MOST_CHARACTERS = 1200


class Example(Value):
    """One completion. `text` is whatever the model wrote, and must be escaped wherever it is shown."""

    model: str
    task: str | None
    mode: str | None
    kind: str
    phase: str
    prompt_id: str
    prompt: str | None
    text: str
    cut: bool
    """Whether `text` is only the beginning."""
    score: float | None
    finish_reason: str
    output_tokens: int


def examples(
    folders: Iterable[JobFolder], prompts: Mapping[str, str], on_error: Callable[[StoreError], None]
) -> list[Example]:
    """The first completions of every accuracy and probe job; a job that cannot be read goes to `on_error`.

    `prompts` gives a prompt's text by its id.
    """
    found = []
    for folder in folders:
        try:
            found += _of_folder(folder, prompts)
        except StoreError as error:
            on_error(error)
    return found


def _of_folder(folder: JobFolder, prompts: Mapping[str, str]) -> list[Example]:
    job = folder.job()
    if job.kind not in ("accuracy", "probe"):
        return []
    chosen: dict[str, dict[str, Sample]] = {}
    for sample in folder.samples():
        if sample.index == 0 and not sample.phase.startswith("train"):
            chosen.setdefault(sample.prompt_id, {})[sample.phase] = sample
    # A prompt that was sampled after the training as well says more than one that was not.
    order = sorted(chosen, key=lambda prompt: (-len(chosen[prompt]), prompt))
    return [
        Example(
            model=job.subject.name,
            task=job.subject.task,
            mode=job.subject.mode,
            kind=job.kind,
            phase=phase,
            prompt_id=prompt,
            prompt=prompts.get(prompt),
            text=sample.text[:MOST_CHARACTERS],
            cut=len(sample.text) > MOST_CHARACTERS,
            score=sample.strict,
            finish_reason=sample.finish_reason,
            output_tokens=sample.output_tokens,
        )
        for prompt in islice(order, PROMPTS)
        for phase, sample in chosen[prompt].items()
    ]
