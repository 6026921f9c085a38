"""The training between the two evaluations: taken up from its last checkpoint, and left as a folder of weights."""

import gc
import shutil
from pathlib import Path

from rlbench.core.job import Job
from rlbench.measure.context import Context
from rlbench.measure.probe.ledger import Ledger
from rlbench.measure.probe.prompts import mode_spec, training_prompts
from rlbench.measure.probe.weights import save_trained

COMPLETE = "complete"
"""A file in a checkpoint that is wholly written; one without it was cut off by a kill."""


def trained_folder(scratch: Path, steps: int) -> Path:
    """Where the weights after `steps` steps lie once the training is done."""
    return scratch / f"trained-{steps}"


def last_checkpoint(scratch: Path, steps: int) -> tuple[int, Path] | None:
    """The step and folder of the last whole checkpoint that is not beyond `steps`."""
    found = [
        (int(marker.parent.name.removeprefix("checkpoint-")), marker.parent)
        for marker in (scratch / "checkpoints").glob(f"checkpoint-*/{COMPLETE}")
    ]
    return max(((step, folder) for step, folder in found if step <= steps), default=None)


def steps_kept(scratch: Path, steps: int) -> int:
    """How many training steps of earlier attempts will not be done again."""
    if trained_folder(scratch, steps).is_dir():
        return steps
    checkpoint = last_checkpoint(scratch, steps)
    return checkpoint[0] if checkpoint else 0


def train(job: Job, context: Context, ledger: Ledger, steps: int) -> Path:
    """Train for `steps` steps, or what of them is left, and give the folder of the trained weights.

    Raises:
        DeadlineReached: the time was up first; a checkpoint is kept.
        RlbenchError: the training changed nothing.
    """
    target = trained_folder(context.scratch, steps)
    if not target.is_dir():
        _train(job, context, ledger, steps, target)
    shutil.rmtree(context.scratch / "checkpoints", ignore_errors=True)
    for other in context.scratch.glob("trained-*"):
        if other != target:
            shutil.rmtree(other)
    return target


def _train(job: Job, context: Context, ledger: Ledger, steps: int, target: Path) -> None:
    from rlbench.measure.probe.trainer_adapter import StepWatch, make_trainer

    checkpoint = last_checkpoint(context.scratch, steps)
    context.progress("training: loading", checkpoint[0] if checkpoint else 0, steps)
    with ledger.phase("load"):
        watch = StepWatch(job, context, ledger, mode_spec(job, context.attempt), training_prompts(job))
        trainer = make_trainer(job, context.attempt, watch, steps, context.scratch / "checkpoints")
    trainer.train(resume_from_checkpoint=str(checkpoint[1]) if checkpoint else None)
    context.deadline.check()
    with ledger.phase("save"):
        save_trained(trainer.accelerator.unwrap_model(trainer.model), context.attempt.model_path, target)
    del trainer, watch
    gc.collect()
