"""Cards: what they hold, and that they agree with themselves."""

import tomllib
from typing import Any

import pytest
from pydantic import ValidationError

from rlbench.catalogue import CANDIDATES, cards
from rlbench.core.card import ModelCard
from rlbench.core.record import AccuracyValues

CARD = """
name = "small"
hub_id = "somebody/small"
license = "MIT"
default_mode = "think"

[architecture]
model_type = "llama"
hidden_size = 64
layers = 2
query_heads = 4
kv_heads = 2
head_dim = 16
intermediate_size = 128
vocab_size = 300
tied_embeddings = true

[context]
native = 512

[modes.think]
sampling = { temperature = 0.6 }

[[publications]]
source = "a paper, Table 1"
mode = "think"
harness = "lighteval"
samples = 4
caveat = "one lab's"
copied_from = "an older paper"
scores = { math500 = 0.5, aime24 = { score = 0.25, samples = 64, n_prompts = 30 } }
"""


def card(**changes: Any) -> ModelCard:
    return ModelCard.model_validate(tomllib.loads(CARD) | changes)


def test_scores_of_one_publication_share_its_settings_unless_they_say_otherwise() -> None:
    scores = {score.task: score for score in card().published}
    assert (scores["math500"].score, scores["math500"].samples, scores["math500"].n_prompts) == (0.5, 4, None)
    assert (scores["aime24"].score, scores["aime24"].samples, scores["aime24"].n_prompts) == (0.25, 64, 30)
    assert {score.harness for score in scores.values()} == {"lighteval"}


def test_published_scores_become_records_that_name_their_source() -> None:
    record = next(r for r in card().published_records() if r.subject.task == "aime24")
    assert (record.provenance, record.source) == ("published", "a paper, Table 1")
    assert record.detail == "one lab's; copied from an older paper"
    assert (record.subject.name, record.subject.mode) == ("small", "think")
    assert isinstance(record.values, AccuracyValues)
    assert (record.values.accuracy, record.values.samples_per_prompt, record.values.n_prompts) == (0.25, 64, 30)
    assert record.values.ci_low is None, "nobody published an interval"


def test_a_card_comes_back_from_its_own_json() -> None:
    assert ModelCard.model_validate(card().to_json()) == card()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"default_mode": "no_think"}, "'default_mode' is no_think, which is not in 'modes'"),
        ({"stated_parameters": 5}, "'stated_parameters' is 5, but the architecture has"),
        ({"context": {"native": 512, "extended": 256}}, "less than 'native'"),
        ({"learning_rate": 0}, "greater than 0"),
        ({"publications": [{"source": "a paper", "mode": "think"}]}, "needs a table 'scores'"),
        ({"publications": [{"source": "a", "mode": "think", "scores": {"aime24": 46.7}}]}, "less than or equal to 1"),
        ({"claims": [{"claim": "big", "source": "a page", "quantity": "parameters"}]}, "needs 'expected'"),
        (
            {"claims": [{"claim": "good", "source": "a page", "quantity": "published_score", "expected": 0.5}]},
            "needs 'task'",
        ),
    ],
)
def test_a_card_that_contradicts_itself_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        card(**changes)


def test_the_candidates_are_the_seven_and_come_first() -> None:
    assert tuple(cards())[: len(CANDIDATES)] == CANDIDATES
    assert len(CANDIDATES) == 7


@pytest.mark.parametrize("name", cards())
def test_every_figure_of_a_packaged_card_has_a_source(name: str) -> None:
    found = cards()[name]
    assert {"architecture", "license", "context", "modes"} <= set(found.sources)
    assert all(score.source for score in found.published)
    assert found.published, "somebody published something about it"
    assert all(spec.how for spec in found.modes.values())


def test_modes_are_switched_as_the_makers_built_them() -> None:
    for name in ("qwen3-4b", "qwen3-1.7b", "qwen3-0.6b", "smollm3-3b"):
        modes = cards()[name].modes
        assert modes["think"].chat_template_kwargs == {"enable_thinking": True}
        assert modes["no_think"].chat_template_kwargs == {"enable_thinking": False}
        assert modes["think"].think_close == "</think>"
    for name in ("deepseek-r1-distill-1.5b", "open-rs1", "open-rs2", "open-rs3"):
        modes = cards()[name].modes
        assert list(modes) == ["think"]
        assert modes["think"].opened_in_prompt
        assert modes["think"].system_prompt is None
    assert list(cards()["olmo-1b"].modes) == ["base"]


def test_the_two_amc_sets_are_told_apart() -> None:
    base = {(s.source, s.n_prompts) for s in cards()["deepseek-r1-distill-1.5b"].published if s.task == "amc23"}
    assert ("DeepScaleR README, table of results", 83) in base
    tuned = next(s for s in cards()["open-rs2"].published if s.task == "amc23" and s.samples == 1)
    assert tuned.n_prompts == 40
    assert "best-looking of 21" in tuned.caveat
