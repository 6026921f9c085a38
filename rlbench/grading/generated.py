"""Tasks that need no data set: prompts made from word lists, and verifiers that a program can be sure of.

Each task has one fixed list of prompts. It is cut once, by content hash, into a training part and a held-out
part, so that no seed can mix them; a seed only chooses the order in which a part is used. Hashes rather than
a random generator decide, so the prompts are the same with every version of Python.

Every prompt is scored twice. *Strict* is the instruction as written, and an answer that ran into the token cap
is wrong. *Lenient* forgives the form (a capital at the start, text after the answer, two words too many) and
is never below strict; a gain in strict alone is a gain in form. Both ask for a real answer: an empty one, an
echo of the prompt or one repeated word earns nothing. They check the instruction, not the truth of the answer.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

from rlbench.core.value import Value
from rlbench.errors import InputError, UnknownName

Split = Literal["training", "held-out"]

TRAINING_SHARE = 1 / 3
"""Of each task's prompts; the rest is held out, because an interval needs many prompts and a short run few."""

_WORD_LIMIT = 8

_THINGS = """
airport anchor ant apple apron artist attic avocado bakery balloon banjo barn basket bat beach bear bee bell
bench bicycle bird blanket boat book bottle bowl bridge broom brush bucket bus butterfly button cabin cactus
cafe cake calendar camel camera candle canoe canyon carpet carrot castle cat cave chair cheese chef cherry
circus city clarinet cliff clock cloud clown coat coffee-shop compass computer cookie cow crab crane crown
cup curtain dancer deer dentist desert desk diamond dictionary doctor dog doll dolphin donkey door dragon
dream dress drum duck eagle elephant elevator engine envelope factory farm feather fence ferry festival
field fire fish flag flower flute forest fork fountain fox frog garage garden gate ghost giraffe glacier
glove goat grape guitar hammer harbor harp hat hedgehog helicopter hill horse hospital hotel house hurricane
iceberg island jacket jungle kangaroo kettle key king kitchen kite kitten knife ladder lake lamp lantern
leaf lemon letter library lighthouse lion lizard lobster magnet map market mask melon mirror monkey moon
mosque mosquito motorcycle mountain mouse museum mushroom necklace needle nest newspaper notebook nurse oak
ocean octopus office olive onion orange orchestra orchid oven owl painting palace pancake panda parachute
park parrot peach peacock pencil penguin piano pig pillow pilot pine pirate pizza planet plum pond pony
potato puppet puppy pyramid queen rabbit radio railway rainbow raincoat refrigerator restaurant ring river
robot rocket roof rope rose ruler sailor salad sandwich scarf school scientist sculpture shark sheep ship
shoe shower skirt snail snake snowman sofa soldier soup spider spoon squirrel stadium staircase star statue
storm strawberry submarine suitcase swan sweater swing sword table tailor taxi teacher teapot telescope
temple tent theater tiger toaster tomato tower tractor train treasure tree truck trumpet tulip tunnel turtle
umbrella university valley vase village violin volcano waiter wallet watch waterfall whale wheel whistle
windmill window wizard wolf zebra zoo
"""

_KEYWORDS = """
always because before between bright different every friendly green important inside large little morning
never old often people quiet simple small sometimes strong summer today together under warm water without
"""


_FUNCTION_WORDS = """
all and are but can for from had has have her his how its not one our she that the their them they this was were
what when which who will with you your
"""
"""Words of three letters and more that say nothing by themselves."""


class Scores(NamedTuple):
    strict: float
    lenient: float


class GeneratedPrompt(Value):
    """One prompt of a generated task; `answer` is what a right completion must hold, where there is such a thing."""

    id: str
    task: str
    prompt: str
    answer: str | None = None


@dataclass(frozen=True)
class GeneratedTask:
    """A generated task: what it asks, a cap that leaves room for any right answer, its prompts and verifier."""

    name: str
    about: str
    max_new_tokens: int
    verifier_version: int
    """Raised whenever a verdict can change: it is part of the task's hash."""
    prompts: Callable[[], Sequence[GeneratedPrompt]]
    families: Callable[[GeneratedPrompt], str]
    """Prompts of one family stay on one side of the cut."""
    strict: Callable[[GeneratedPrompt, str], bool]
    lenient: Callable[[GeneratedPrompt, str], bool]


def generated_tasks() -> tuple[str, ...]:
    """The names of the generated tasks, easiest first."""
    return tuple(_TASKS)


def generated_task(name: str) -> GeneratedTask:
    """The generated task of that name.

    Raises:
        UnknownName: there is none.
    """
    try:
        return _TASKS[name]
    except KeyError:
        raise UnknownName("generated task", name, _TASKS) from None


def count_prompts(task: str, split: Split = "held-out") -> int:
    """How many prompts a part of the task has."""
    return len(_part(task, split))


def generate(task: str, seed: int, count: int, split: Split = "held-out") -> list[GeneratedPrompt]:
    """The first `count` prompts of a part of the task in the order of `seed`; a larger count only adds to them.

    Raises:
        UnknownName: there is no such task.
        InputError: the part has fewer prompts.
    """
    part = _part(task, split)
    if count > len(part):
        raise InputError(
            f"the generated task '{task}' has {len(part)} {split} prompts, not {count}: ask for at most {len(part)}."
        )
    return sorted(part, key=lambda prompt: _digest(f"{seed}:{prompt.id}"))[:count]


def available(task: str, split: Split) -> int:
    """How many prompts that part of the task has."""
    return len(_part(task, split))


def score(prompt: GeneratedPrompt, completion: str, truncated: bool = False) -> Scores:
    """Strict and lenient score, each 0 or 1, of a completion without its thinking.

    Args:
        prompt: what was asked.
        completion: the answer, special tokens removed.
        truncated: it ran into the cap; strictly, an unfinished answer is no answer.
    """
    task = generated_task(prompt.task)
    text = completion.strip()
    strict = not truncated and task.strict(prompt, text)
    return Scores(float(strict), float(strict or task.lenient(prompt, text)))


@cache
def task_hash(name: str) -> str:
    """Content hash of the task: its prompts, how they are cut, its answers and the version of its verifier."""
    task = generated_task(name)
    held_out = [prompt.model_dump_json() for prompt in _part(name, "held-out")]
    training = [prompt.model_dump_json() for prompt in _part(name, "training")]
    return _digest("\n".join([name, str(task.verifier_version), *held_out, "", *training]))[:16]


@cache
def _part(name: str, split: Split) -> tuple[GeneratedPrompt, ...]:
    task = generated_task(name)
    prompts = task.prompts()
    families = sorted({task.families(prompt) for prompt in prompts}, key=lambda f: _digest(f"{name}:{f}"))
    training = set(families[: round(len(families) * TRAINING_SHARE)])
    return tuple(p for p in prompts if (task.families(p) in training) == (split == "training"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _about_things(task: str, wording: str) -> list[GeneratedPrompt]:
    return [
        GeneratedPrompt(id=f"{task}/{thing}", task=task, prompt=wording.format(_with_article(thing)))
        for thing in _THINGS.split()
    ]


def _with_article(thing: str) -> str:
    article = "an" if thing[0] in "aeiou" and not thing.startswith("uni") else "a"
    return f"{article} {thing.replace('-', ' ')}"


def _keyword_prompts() -> list[GeneratedPrompt]:
    prompts, keywords = [], _KEYWORDS.split()
    for thing in _THINGS.split():
        keyword = keywords[int(_digest(f"keyword:{thing}"), 16) % len(keywords)]
        prompt = f'Write one sentence about {_with_article(thing)} that contains the word "{keyword}".'
        prompts.append(GeneratedPrompt(id=f"keyword/{thing}", task="keyword", prompt=prompt, answer=keyword))
    return prompts


def _sum_prompts() -> list[GeneratedPrompt]:
    return [
        GeneratedPrompt(
            id=f"sums/{a}+{b}", task="sums", prompt=f"{a} + {b} = ? Answer with the number only.", answer=str(a + b)
        )
        for a in range(10)
        for b in range(10)
    ]


def _sum_family(prompt: GeneratedPrompt) -> str:
    """3 + 4 and 4 + 3 are one problem."""
    return "+".join(sorted(prompt.id.removeprefix("sums/").split("+")))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d+", text)


def _says_something(prompt: GeneratedPrompt, text: str, at_least: int) -> bool:
    """Whether `text` has enough words, is not one word over and over, and adds a real word to the prompt's."""
    words = [word.lower() for word in _words(text)]
    asked = {word.lower() for word in _words(prompt.prompt)}
    new = (
        {word for word in words if len(word) >= 3 and re.search("[aeiouy]", word)}
        - asked
        - set(_FUNCTION_WORDS.split())
    )
    distinct = len(set(words))
    return len(words) >= at_least and distinct >= 2 and 2 * distinct > len(words) and bool(new)


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if _words(line)), "")


def _is_short(prompt: GeneratedPrompt, text: str) -> bool:
    return len(_words(text)) <= _WORD_LIMIT and _says_something(prompt, text, at_least=2)


def _is_shortish(prompt: GeneratedPrompt, text: str) -> bool:
    line = _first_line(text)
    return len(_words(line)) <= _WORD_LIMIT + 2 and _says_something(prompt, line, at_least=2)


def _is_lowercase(prompt: GeneratedPrompt, text: str) -> bool:
    return text == text.lower() and _says_something(prompt, text, at_least=4)


def _is_nearly_lowercase(prompt: GeneratedPrompt, text: str) -> bool:
    """As by keyboard habit: the capital at the start and the pronoun I are forgiven, on the first line."""
    line = re.sub(r"\bI\b", "i", _first_line(text)).lstrip(" \"'*")
    return _is_lowercase(prompt, line[:1].lower() + line[1:])


def _has_keyword(prompt: GeneratedPrompt, text: str) -> bool:
    """The keyword stands in one sentence of at least four words; a pile of keywords does not count."""
    words = _words(text)
    sentences = [part for part in re.split(r"[.!?]+(?:\s|$)", text) if _words(part)]
    return (
        len(sentences) == 1 and 1 <= words.count(prompt.answer or "") <= 2 and _says_something(prompt, text, at_least=4)
    )


def _mentions_keyword(prompt: GeneratedPrompt, text: str) -> bool:
    words = _words(text.lower())
    return (prompt.answer or "") in words and _says_something(prompt, text, at_least=4)


def _is_the_number(prompt: GeneratedPrompt, text: str) -> bool:
    return text.rstrip(".") == prompt.answer


def _ends_with_number(prompt: GeneratedPrompt, text: str) -> bool:
    """`4 + 3 = 7` and `The answer is 7.`: the last number of the text, the sum's own two numbers set aside."""
    numbers = re.findall(r"-?\d+(?:\.\d+)?", re.sub(r"\d+\s*\+\s*\d+", "", text))
    return bool(numbers) and numbers[-1] == prompt.answer


_TASKS = {
    task.name: task
    for task in (
        GeneratedTask(
            name="short-answer",
            about="describe a thing in at most eight words",
            max_new_tokens=24,
            verifier_version=1,
            prompts=lambda: _about_things("short-answer", "Describe {} in at most eight words."),
            families=lambda prompt: prompt.id,
            strict=_is_short,
            lenient=_is_shortish,
        ),
        GeneratedTask(
            name="lowercase",
            about="write one sentence in lowercase letters only",
            max_new_tokens=48,
            verifier_version=1,
            prompts=lambda: _about_things(
                "lowercase", "Write one short sentence about {}, using only lowercase letters."
            ),
            families=lambda prompt: prompt.id,
            strict=_is_lowercase,
            lenient=_is_nearly_lowercase,
        ),
        GeneratedTask(
            name="keyword",
            about="write one sentence that contains a given word",
            max_new_tokens=48,
            verifier_version=1,
            prompts=_keyword_prompts,
            families=lambda prompt: prompt.id,
            strict=_has_keyword,
            lenient=_mentions_keyword,
        ),
        GeneratedTask(
            name="sums",
            about="add two one-digit numbers and give the number only",
            max_new_tokens=16,
            verifier_version=1,
            prompts=_sum_prompts,
            families=_sum_family,
            strict=_is_the_number,
            lenient=_ends_with_number,
        ),
    )
}
