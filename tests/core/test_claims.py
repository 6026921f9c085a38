"""Claims: what the architecture decides, what a measurement decides, what stays open."""

import pytest

from rlbench.catalogue import find_model
from rlbench.core.card import Claim
from rlbench.core.claims import Verdict, judge
from rlbench.core.record import AccuracyValues, Record
from rlbench.core.subject import Subject


def verdict(claim: Claim, *records: Record) -> Verdict:
    card = find_model("qwen3-4b").model_copy(update={"claims": (claim,)})
    (found,) = judge(card, records)
    return found


def claim(quantity: str, expected: float | str | bool | None, **changes: object) -> Claim:
    given = {"claim": "a claim", "source": "a test", "quantity": quantity, "expected": expected, **changes}
    return Claim.model_validate(given)


def score(accuracy: float, provenance: str = "measured", mode: str = "think", **changes: object) -> Record:
    values = {"accuracy": accuracy, "n_prompts": 30, "samples_per_prompt": 8, **changes}
    if provenance == "measured":
        values |= {"ci_low": accuracy - 0.05, "ci_high": accuracy + 0.05}
    return Record.model_validate(
        {
            "subject": Subject(
                model="Qwen/Qwen3-4B", card="qwen3-4b", task="aime25", mode=mode, max_new_tokens=1024
            ).to_json(),
            "provenance": provenance,
            "source": "a test's source",
            "values": AccuracyValues.model_validate(values).to_json(),
        }
    )


def test_a_figure_of_the_architecture_holds_within_its_tolerance() -> None:
    found = verdict(claim("parameters", 4.02e9, relative_tolerance=0.005))
    assert found.verdict == "holds"
    assert found.evidence == "4,022,468,096 parameters, computed from the architecture."
    assert found.command is None


@pytest.mark.parametrize(("expected", "finding"), [(4.2e9, "corrected"), (7e9, "does not hold")])
def test_a_figure_that_is_off_is_corrected_or_refused_with_the_right_one(expected: float, finding: str) -> None:
    found = verdict(claim("parameters", expected, relative_tolerance=0.005))
    assert found.verdict == finding
    assert "4,022,468,096 parameters" in found.evidence
    assert "% off" in found.evidence


def test_bytes_of_training_follow_from_the_regime() -> None:
    found = verdict(claim("states_bytes", 72.4e9, regime="mixed", relative_tolerance=0.01))
    assert found.verdict == "holds"
    assert "× 18 bytes (mixed) are 72,404,425,728 bytes" in found.evidence
    assert verdict(claim("states_bytes", 72.4e9, regime="bf16")).verdict == "does not hold"


def test_words_and_switches_hold_or_do_not() -> None:
    assert verdict(claim("license", "apache-2.0")).verdict == "holds"
    assert verdict(claim("license", "MIT")).verdict == "does not hold"
    assert verdict(claim("tied_embeddings", True)).verdict == "holds"
    assert verdict(claim("tied_embeddings", False)).verdict == "does not hold"
    assert verdict(claim("layers", 36)).verdict == "holds"


def test_a_score_is_open_until_it_is_measured_and_says_who_published_it() -> None:
    asked = claim("published_score", 0.588, task="aime25", mode="think", command="rlbench accuracy qwen3-4b")
    assert verdict(asked).evidence == "No measurement of aime25 here, and no source that could be traced."
    published = verdict(asked, score(0.588, "published"))
    assert (published.verdict, published.command) == ("open", "rlbench accuracy qwen3-4b")
    assert published.evidence == "Published: 58.8 (a test's source); not measured here on the whole task."


@pytest.mark.parametrize(("accuracy", "finding"), [(0.57, "holds"), (0.3, "does not hold")])
def test_a_measurement_of_the_whole_task_decides_a_score(accuracy: float, finding: str) -> None:
    found = verdict(claim("published_score", 0.588, task="aime25", mode="think"), score(accuracy))
    assert found.verdict == finding
    assert f"Measured here: {100 * accuracy:.1f}%" in found.evidence


def test_another_mode_or_a_part_of_the_task_decides_nothing() -> None:
    asked = claim("published_score", 0.588, task="aime25", mode="think")
    assert verdict(asked, score(0.1, mode="no_think"), score(0.1, limited=True)).verdict == "open"


def test_what_only_a_measurement_can_tell_is_open_with_its_command() -> None:
    found = verdict(claim("measure", None, command="rlbench probe qwen3-4b"))
    assert (found.verdict, found.command) == ("open", "rlbench probe qwen3-4b")
