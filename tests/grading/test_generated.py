"""Generated tasks: training and held-out prompts never meet, and no empty trick earns a reward."""

import pytest

from rlbench.errors import InputError, UnknownName
from rlbench.grading.generated import (
    GeneratedPrompt,
    available,
    generate,
    generated_task,
    generated_tasks,
    score,
    task_hash,
)


def prompt_of(task: str, thing: str) -> GeneratedPrompt:
    everything = [p for split in ("training", "held-out") for p in generate(task, 0, available(task, split), split)]
    return next(p for p in everything if p.id == f"{task}/{thing}")


@pytest.mark.parametrize("task", generated_tasks())
def test_no_held_out_prompt_is_ever_trained_on(task: str) -> None:
    training = {p.prompt for seed in range(3) for p in generate(task, seed, 30, "training")}
    held_out = {p.prompt for p in generate(task, 0, available(task, "held-out"))}
    assert not training & held_out
    assert len(held_out) == available(task, "held-out") >= 60


def test_a_sum_and_its_mirror_image_stay_on_one_side() -> None:
    training = {p.id.removeprefix("sums/") for p in generate("sums", 0, available("sums", "training"), "training")}
    assert {"+".join(reversed(pair.split("+"))) for pair in training} == training


@pytest.mark.parametrize("task", generated_tasks())
def test_ids_are_unique_and_a_larger_count_only_adds(task: str) -> None:
    many = generate(task, 7, 50)
    assert len({p.id for p in many}) == 50
    assert generate(task, 7, 20) == many[:20]
    assert generate(task, 8, 20) != many[:20]


def test_prompts_are_the_same_on_every_machine() -> None:
    assert [p.id for p in generate("sums", 0, 3)] == ["sums/4+0", "sums/4+2", "sums/3+1"]
    assert len({task_hash(task) for task in generated_tasks()}) == len(generated_tasks())


def test_too_many_prompts_are_refused_with_the_number_there_is() -> None:
    with pytest.raises(InputError, match=r"'sums' has 67 held-out prompts, not 128: ask for at most 67"):
        generate("sums", 0, 128)


def test_an_unknown_task_is_met_with_a_near_name() -> None:
    with pytest.raises(UnknownName, match="did you mean short-answer"):
        generated_task("short_answer")


@pytest.mark.parametrize("task", generated_tasks())
@pytest.mark.parametrize("text", ["", "   ", "...", ". .", "a", "the the the the the", "x y", "the", "!!!!", "a a a a"])
def test_an_empty_trick_earns_nothing(task: str, text: str) -> None:
    for prompt in generate(task, 0, 20):
        assert score(prompt, text) == (0, 0)


@pytest.mark.parametrize("task", generated_tasks())
def test_an_echo_of_the_prompt_earns_nothing(task: str) -> None:
    for prompt in generate(task, 0, 20):
        assert score(prompt, prompt.prompt) == (0, 0)
        assert score(prompt, prompt.prompt.lower()) == (0, 0)


@pytest.mark.parametrize(
    ("task", "thing", "text", "strict", "lenient"),
    [
        ("short-answer", "ocean", "Vast blue water.", 1, 1),
        ("short-answer", "ocean", "A vast and deep body of salt water", 1, 1),
        ("short-answer", "ocean", "A vast and deep body of cold salt water", 0, 1),
        ("short-answer", "ocean", "Vast blue water.\n\nIt is home to many fish and covers most of Earth.", 0, 1),
        ("short-answer", "ocean", "A vast and deep body of cold salt water that covers most of Earth", 0, 0),
        ("short-answer", "ocean", "Describe an ocean", 0, 0),
        ("short-answer", "ocean", "The Ocean.", 0, 0),
        ("lowercase", "ocean", "the waves roll in all day.", 1, 1),
        ("lowercase", "ocean", "The waves roll in all day.", 0, 1),
        ("lowercase", "ocean", "The Atlantic Waves roll in all day.", 0, 0),
        ("keyword", "whistle", "Most people hear a whistle from far away.", 1, 1),
        ("keyword", "whistle", "People hear a whistle from far away.", 0, 1),
        ("keyword", "whistle", "Most people hear it. That is its purpose here.", 0, 1),
        ("keyword", "whistle", "people people people people", 0, 0),
        ("sums", "4+2", "6", 1, 1),
        ("sums", "4+2", "6.", 1, 1),
        ("sums", "4+2", "4 + 2 = 6", 0, 1),
        ("sums", "4+2", "The answer is 16", 0, 0),
        ("sums", "4+2", "six", 0, 0),
    ],
)
def test_verdicts(task: str, thing: str, text: str, strict: int, lenient: int) -> None:
    assert score(prompt_of(task, thing), text) == (strict, lenient)


def test_a_truncated_answer_is_strictly_wrong() -> None:
    prompt = prompt_of("short-answer", "ocean")
    assert score(prompt, "Vast blue water", truncated=True) == (0, 1)
