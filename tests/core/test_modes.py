from rlbench.core.modes import mode_difference
from rlbench.core.sample import Sample


def samples(**scores: float) -> list[Sample]:
    return [
        Sample(prompt_id=name, index=0, seed=0, prompt_tokens=1, answer_tokens=1, finish_reason="stop", text="",
               strict=score)
        for name, score in scores.items()
    ]  # fmt: skip


def test_problems_are_paired_by_name() -> None:
    found = mode_difference("m", "t", samples(a=1, b=1, c=0, d=1), samples(d=1, c=0, b=0, a=0, only_here=1))
    assert found is not None
    assert (found.n_prompts, found.difference) == (4, 0.5)
    assert found.ci_low < 0.5 < found.ci_high
    assert 0.8 < found.p_think_better < 1


def test_nothing_in_common_is_no_difference() -> None:
    assert mode_difference("m", "t", samples(a=1), samples(b=1)) is None
