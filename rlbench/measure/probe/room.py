"""A probe: what a short GRPO run gains on held-out prompts, and what it costs.

Stage 0 samples the held-out prompts from the untrained model; where that shows no signal or nothing left to gain,
it ends there. Then TRL trains, and an engine opened anew samples the same prompts from the saved weights.
"""

from collections.abc import Iterator

from rlbench.core.job import Attempt, Job
from rlbench.core.record import Outcome, ProbeValues
from rlbench.core.sample import Sample
from rlbench.measure.context import Context
from rlbench.measure.probe.evaluation import BEFORE, after_phase, evaluate
from rlbench.measure.probe.ledger import Ledger, read_ledger
from rlbench.measure.probe.summary import summarise_probe
from rlbench.measure.probe.training import steps_kept, train

DEFAULT_STEPS = 8


def run(job: Job, context: Context) -> Outcome:
    """Do what earlier attempts have left to do, and answer."""
    steps = context.attempt.targets.steps or DEFAULT_STEPS
    ledger = Ledger(context.scratch, context.clock, steps_kept(context.scratch, steps))
    peak = evaluate(job, context.attempt, context, ledger, BEFORE)
    first = summarise(job, context.attempt, context.stored())
    if isinstance(first.values, ProbeValues) and first.values.state in ("no signal", "saturated"):
        return _measured(first, peak, "the training was left out (--train-anyway forces it)")
    trained = train(job, context, ledger, steps)
    weights = context.attempt.model_copy(update={"model_path": trained})
    peak = evaluate(job, weights, context, ledger, after_phase(steps)) or peak
    return _measured(summarise(job, context.attempt, context.stored()), peak)


def summarise(job: Job, attempt: Attempt, samples: Iterator[Sample]) -> Outcome:
    """Answer from the stored samples, and from the seconds noted in the job's own folder."""
    asked = attempt.targets.model_copy(update={"steps": attempt.targets.steps or DEFAULT_STEPS})
    spent = read_ledger(attempt.scratch, asked.steps)
    values = summarise_probe(job, attempt.model_copy(update={"targets": asked}), samples, spent)
    return Outcome(values=values, phase_seconds=spent.total())


def _measured(outcome: Outcome, peak: int | None, detail: str = "") -> Outcome:
    assert outcome.values is not None, "an evaluation just ended"
    values = outcome.values.model_copy(update={"peak_memory_bytes": peak})
    return outcome.model_copy(update={"values": values, "detail": detail, "peak_memory_bytes": peak})
