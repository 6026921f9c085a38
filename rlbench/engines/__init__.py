"""What generates text. `open_engine` is the only door: it takes a job and gives a loaded, warm engine."""

from rlbench.core.card import ModelCard
from rlbench.core.job import Attempt, Job
from rlbench.engines.base import Engine
from rlbench.errors import InputError, UnknownName


def open_engine(job: Job, attempt: Attempt) -> Engine:
    """Load the attempt's model for the job's mode, on the job's device.

    Raises:
        InputError: the model has no such mode, or the engine cannot measure here yet.
        RlbenchError: the device is not there.
    """
    if job.engine.name != "transformers":
        raise InputError(f"rlbench cannot measure with the engine {job.engine.name} yet: use --engine transformers.")
    from rlbench.engines.transformers import TransformersEngine

    card = card_of(job, attempt)
    mode = job.subject.mode or card.default_mode
    if mode not in card.modes:
        raise UnknownName("mode", mode, card.modes, f"for {card.name}")
    device = "cpu" if job.device == "cpu" else "cuda"
    return TransformersEngine(attempt.model_path, job.engine, device, mode, card.modes[mode], card.stop_token_ids)


def card_of(job: Job, attempt: Attempt) -> ModelCard:
    """The card that says how the attempt's model is prompted and stopped."""
    from rlbench.catalogue import find_model

    try:
        return find_model(job.subject.card or str(attempt.model_path))
    except UnknownName:
        return find_model(str(attempt.model_path))
