import pytest

from rlbench.core.job import AccuracyTask, Attempt, EngineSpec, Job, Targets
from rlbench.core.record import AccuracyValues, Outcome
from rlbench.core.sample import FinishReason, Sample
from rlbench.core.subject import Sampling, Subject
from rlbench.measure.accuracy.room import graded
from rlbench.measure.accuracy.summary import summary

JOB = Job(
    subject=Subject(model="m", task="aime24", mode="think", max_new_tokens=9, sampling=Sampling()),
    settings=AccuracyTask(),
    engine=EngineSpec(),
    versions={},
    device="cpu",
)


def attempt(limit: int | None, samples: int) -> Attempt:
    targets = Targets(limit=limit, samples_per_prompt=samples)
    return Attempt(number=1, targets=targets, model_path=".", command="", started="")  # type: ignore[arg-type]


def sample(problem: str, index: int, strict: float, reason: FinishReason = "stop") -> Sample:
    return Sample(
        prompt_id=problem, index=index, seed=0, prompt_tokens=3, answer_tokens=4, thinking_tokens=2,
        finish_reason=reason, text="", strict=strict, lenient=strict, verdict="right" if strict else "wrong",
    )  # fmt: skip


def values(outcome: Outcome) -> AccuracyValues:
    assert isinstance(outcome.values, AccuracyValues)
    return outcome.values


def test_the_figures() -> None:
    samples = [
        sample("a", 0, 1), sample("a", 1, 0), sample("b", 0, 0, "length"), sample("b", 1, 0, "stopped_in_thinking"),
        sample("b", 2, 1),  # more than was asked now
    ]  # fmt: skip
    outcome = summary(JOB, attempt(2, 2), samples)
    found = values(outcome)
    assert outcome.status == "ok"
    assert (found.n_prompts, found.samples_per_prompt) == (2, 2)
    assert found.accuracy == 0.25
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert 0 <= found.ci_low < 0.25 < found.ci_high <= 1
    assert found.accuracy_if_truncated_right == 0.5
    assert found.truncated_share == found.stopped_in_thinking_share == 0.25
    assert found.pass_at_k == {"1": 0.25, "2": 0.5}
    assert found.mean_output_tokens == 6
    assert found.limited


def test_missing_samples_make_it_partial() -> None:
    outcome = summary(JOB, attempt(2, 2), [sample("a", 0, 1), sample("a", 1, 1), sample("b", 0, 1)])
    assert (outcome.status, outcome.detail) == ("partial", "3 of 4 samples are there")
    assert values(outcome).accuracy == 1
    assert summary(JOB, attempt(None, 1), []).values is None


def test_the_whole_set_is_not_limited() -> None:
    outcome = summary(JOB, attempt(None, 1), [sample(str(n), 0, 1) for n in range(30)])
    assert outcome.status == "ok"
    assert not values(outcome).limited


def test_a_truncated_answer_is_strictly_wrong_whatever_it_holds() -> None:
    score = {"strict": 1.0, "lenient": 1.0, "timeout": 0.0, "unparsable": 0.0}
    cut = graded(sample("a", 0, 0, "length"), score)
    assert (cut.strict, cut.lenient, cut.verdict) == (0, 1, "wrong")
    whole = graded(sample("a", 0, 0), score)
    assert (whole.strict, whole.verdict) == (1, "right")


def test_grader_timeouts_are_counted_apart() -> None:
    late = graded(sample("a", 0, 0), {"strict": 0.0, "lenient": 0.0, "timeout": 1.0, "unparsable": 0.0})
    assert late.verdict == "timeout"
    assert values(summary(JOB, attempt(1, 1), [late])).grader_timeouts == 1


def test_no_answer_is_wrong() -> None:
    assert graded(sample("a", 0, 1, "stopped_in_thinking"), None).verdict == "wrong"


def test_instructions_have_lm_evals_figures() -> None:
    score = {
        "prompt_level_strict_acc": False, "inst_level_strict_acc": [True, False],
        "prompt_level_loose_acc": True, "inst_level_loose_acc": [True, True],
    }  # fmt: skip
    found = values(summary(JOB, attempt(1, 1), [graded(sample("a", 0, 0), score)]))
    assert found.metrics == pytest.approx(
        {"prompt_level_strict_acc": 0, "inst_level_strict_acc": 0.5, "prompt_level_loose_acc": 1,
         "inst_level_loose_acc": 1}
    )  # fmt: skip
