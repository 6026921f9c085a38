"""What generates text: the protocol every engine keeps, and the request it is given."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rlbench.core.sample import Sample, SampleKey
from rlbench.core.subject import Sampling


@dataclass(frozen=True)
class Request:
    """One completion wanted: its key, the rendered prompt, the cap and the sampling in full."""

    key: SampleKey
    prompt: str
    """As rendered, template and all; tokenised without adding special tokens."""
    max_new_tokens: int
    sampling: Sampling
    stop: tuple[str, ...] = ()
    """Strings that end the completion; they are cut from its text."""
    forced_tokens: int | None = None
    """Generate exactly so many tokens, ignoring end-of-sequence (random weights, comparisons)."""


class Engine(Protocol):
    """An engine is made loaded and warm; `close` gives its memory back."""

    start_up_seconds: float

    def generate(self, requests: Sequence[Request], done: Collection[SampleKey] = ()) -> Iterator[Sample]:
        """Yield one ungraded sample a request, as each finishes, in any order; keys in `done` are left out.

        The split into batches and each batch's random seed depend on `requests` alone, not on `done`:
        an interrupted pass that is taken up again gives the samples that it would have given.
        """
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of `text`, without special tokens."""
        ...

    def render(self, messages: Sequence[dict[str, str]]) -> str:
        """The prompt as the model must see it: the card's template, mode and switches applied."""
        ...

    def peak_memory_bytes(self) -> int | None:
        """Peak memory of the device (reserved), or of this process on the CPU."""
        ...

    def close(self) -> None:
        """Free the device."""
        ...
