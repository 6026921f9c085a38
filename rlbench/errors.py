"""Every error a user can meet, as one sentence that says what to do next.

RlbenchError            1   something that was asked for failed
├── InputError          2   the command line, a card, a plan or a data file is not usable
│   ├── UnknownName     2   no such model, GPU, task, workload or plan; near names are offered
│   └── MissingPackage  2   a library of an extra is not installed; the command that brings it
├── StoreError          2   the results folder cannot be read or written
├── HubError            1   a model or data set could not be fetched
├── DoesNotFit          3   the model does not fit the GPU
├── CapReached          4   the spending cap leaves nothing more to run
└── CheckFailed         5   a claim was checked and does not hold
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar


class RlbenchError(Exception):
    """What happened, to which input, and what to do next; shown on stderr without a traceback."""

    exit_code: ClassVar[int] = 1


class InputError(RlbenchError):
    exit_code = 2


class UnknownName(InputError):
    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        """Say that there is no `kind` called `name`, and which known names come near it."""
        names = sorted(known)
        near = get_close_matches(name.lower(), names, n=3, cutoff=0.5)
        offer = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(names)}."
        super().__init__(" ".join(part for part in (f"unknown {kind} '{name}':", offer, hint) if part))


class MissingPackage(InputError):
    def __init__(self, package: str, extra: str) -> None:
        """Say that `package` is not installed and which extra of rlbench brings it."""
        super().__init__(f"{package} is not installed: run `pip install 'rlbench[{extra}]'`.")


class StoreError(RlbenchError):
    exit_code = 2


class HubError(RlbenchError):
    exit_code = 1


class DoesNotFit(RlbenchError):
    exit_code = 3


class CapReached(RlbenchError):
    exit_code = 4


class CheckFailed(RlbenchError):
    exit_code = 5
