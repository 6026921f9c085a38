"""What the task files name with `!function`: a document and one answer (its thinking removed) in, figures out."""

from typing import Any

from rlbench.grading.generated import GeneratedPrompt, score
from rlbench.grading.instructions import score_instructions
from rlbench.grading.math import Question
from rlbench.grading.pool import shared_pool


def mathematics(document: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Whether the answer is right: in its final form (strict), or anywhere at the end (lenient)."""
    judgement = shared_pool().judge(Question(results[0], document["answer"]))
    return {
        "strict": judgement.strict,
        "lenient": judgement.lenient,
        "timeout": float(judgement.verdict == "timeout"),
        "unparsable": float(judgement.verdict == "unparsable"),
    }


def instructions(document: dict[str, Any], results: list[str]) -> dict[str, Any]:
    """lm-eval's four figures of IFEval for one response."""
    scores = score_instructions(document, results[0])
    return {
        "prompt_level_strict_acc": all(scores.strict),
        "inst_level_strict_acc": list(scores.strict),
        "prompt_level_loose_acc": all(scores.loose),
        "inst_level_loose_acc": list(scores.loose),
    }


def generated(document: dict[str, Any], results: list[str]) -> dict[str, float]:
    """The generated task's own verifier."""
    prompt = GeneratedPrompt.model_validate({name: document[name] for name in GeneratedPrompt.model_fields})
    scores = score(prompt, results[0])
    return {"strict": scores.strict, "lenient": scores.lenient}


def mean_over_instructions(verdicts: list[list[bool]]) -> float:
    """The share of all instructions, of whatever prompt, that were followed."""
    flat = [verdict for of_prompt in verdicts for verdict in of_prompt]
    return sum(flat) / len(flat)
