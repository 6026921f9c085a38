"""IFEval through lm-eval's scorer, with no network and no NLTK data."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlbench.grading.instructions import score_instructions

DOCUMENT = {
    "key": 1,
    "prompt": "Write two sentences about rain without commas.",
    "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_sentences"],
    "kwargs": [{}, {"relation": "less than", "num_sentences": 3}],
}


def test_each_instruction_has_its_verdict() -> None:
    scores = score_instructions(DOCUMENT, "Dr. Smith likes rain. It falls.")
    assert scores == ((True, True), (True, True))
    assert score_instructions(DOCUMENT, "Rain, rain. Rain. And rain.").strict == (False, False)
    assert score_instructions(DOCUMENT, "").strict == (False, False)


def test_the_same_response_gets_the_same_verdict_each_time() -> None:
    """lm-eval draws a random letter where the instruction names a character that is none."""
    letter = {"let_relation": "at least", "letter": "#", "let_frequency": 4}
    document = {**DOCUMENT, "instruction_id_list": ["keywords:letter_frequency"], "kwargs": [letter]}
    verdicts = {score_instructions(document, "aaaa eeee #### iiii tttt") for _ in range(30)}
    assert len(verdicts) == 1


def test_loose_forgives_a_first_line() -> None:
    document = {**DOCUMENT, "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    scores = score_instructions(document, "Sure, here it is:\nRain falls.")
    assert (scores.strict, scores.loose) == ((False,), (True,))


def test_the_sentence_parameters_need_no_download(tmp_path: Path) -> None:
    program = (
        "import nltk; nltk.data.path.clear()\n"
        "def refuse(*_, **__): raise SystemExit('NLTK wanted to download')\n"
        "nltk.download = refuse\n"
        "from rlbench.grading.instructions import score_instructions\n"
        f"print(score_instructions({DOCUMENT!r}, 'Dr. Smith likes rain. It falls.').strict)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    environment.pop("NLTK_DATA", None)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.splitlines()[-1:] == ["(True, True)"], done.stderr
    if sys.platform == "linux":
        assert (tmp_path / "rlbench" / "nltk_data" / "tokenizers" / "punkt_tab" / "english").is_dir()


@pytest.mark.slow
def test_published_responses_get_the_published_verdicts(shared_data: Path) -> None:
    """One differs: asked to count `#` (key 1122) the checker counts a letter that it draws at random."""
    folder = shared_data / "benchmarks"
    documents = _rows(folder / "ifeval_input_data.jsonl")
    responses = {row["prompt"]: row["response"] for row in _rows(folder / "ifeval_response_gpt4_20231107_145030.jsonl")}
    verdicts = {row["key"]: row for row in _rows(folder / "ifeval_gpt4_verdicts.jsonl")}
    differing = []
    for document in documents:
        if document["prompt"] in responses:
            scores = score_instructions(document, responses[document["prompt"]])
            verdict = verdicts[document["key"]]
            if [list(scores.strict), list(scores.loose)] != [verdict["strict"], verdict["loose"]]:
                differing.append(document["key"])
    assert differing in ([], [1122])


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
