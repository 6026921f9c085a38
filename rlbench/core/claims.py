"""Verdicts on what cards, papers and guides say of a model: from its architecture, from records, or open."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from rlbench.core.card import Claim, ModelCard
from rlbench.core.memory import STATES
from rlbench.core.record import AccuracyValues, Record
from rlbench.core.value import Value

Finding = Literal["holds", "does not hold", "corrected", "open"]

NEARLY = 0.10
"""A figure off by less than this is nearly right: it is corrected rather than refused."""


class Verdict(Value):
    """One claim, judged."""

    model: str
    claim: str
    claim_source: str
    verdict: Finding
    evidence: str
    command: str | None = None
    """What would decide an open claim."""


def judge(card: ModelCard, records: Sequence[Record]) -> list[Verdict]:
    """The verdict on each claim of the card."""
    return [_judge(card, claim, records) for claim in card.claims]


def _judge(card: ModelCard, claim: Claim, records: Sequence[Record]) -> Verdict:
    verdict, evidence = _finding(card, claim, records)
    return Verdict(
        model=card.name,
        claim=claim.claim,
        claim_source=claim.source,
        verdict=verdict,
        evidence=evidence,
        command=claim.command if verdict == "open" else None,
    )


def _finding(card: ModelCard, claim: Claim, records: Sequence[Record]) -> tuple[Finding, str]:
    if claim.quantity == "published_score":
        return _score(card, claim, records)
    if claim.quantity == "measure":
        return "open", "Only a measurement, or the reader, can decide it."
    if claim.quantity == "states_bytes":
        per_parameter = next(states.total for regime, states in STATES.items() if regime == (claim.regime or "mixed"))
        how = f"{card.parameters:,} parameters × {per_parameter} bytes ({claim.regime})"
        return _figure(claim, card.parameters * per_parameter, f"{how} are {{}} bytes.")
    return _fact(claim, _FACTS[claim.quantity](card))


_FACTS: dict[str, Callable[[ModelCard], float | str | bool | None]] = {
    "parameters": lambda card: card.parameters,
    "non_embedding_parameters": lambda card: card.non_embedding_parameters,
    "context_native": lambda card: card.context.native,
    "context_extended": lambda card: card.context.extended,
    "license": lambda card: card.license,
    "layers": lambda card: card.architecture.layers,
    "hidden_size": lambda card: card.architecture.hidden_size,
    "vocab_size": lambda card: card.architecture.vocab_size,
    "tied_embeddings": lambda card: card.architecture.tied_embeddings,
}
"""What the card's architecture says of each quantity."""


def _fact(claim: Claim, found: float | str | bool | None) -> tuple[Finding, str]:
    what = claim.quantity.replace("_", " ")
    if found is None or claim.expected is None:
        return "open", f"The card does not say the {what}."
    if isinstance(found, bool | str):
        holds = str(found).lower() == str(claim.expected).lower()
        said = (
            f"The {what} is {found}."
            if isinstance(found, str)
            else f"Input and output are {'' if found else 'not '}tied."
        )
        return ("holds" if holds else "does not hold"), said
    return _figure(claim, found, _SENTENCES[claim.quantity])


_SENTENCES = {
    "parameters": "{} parameters, computed from the architecture.",
    "non_embedding_parameters": "{} parameters outside the embeddings, computed from the architecture.",
    "context_native": "A native context of {} tokens, as the card has it from the configuration.",
    "context_extended": "A context of {} tokens when extended, as the card has it from its makers.",
    "layers": "{} layers in the configuration.",
    "hidden_size": "A width of {} in the configuration.",
    "vocab_size": "{} words of vocabulary in the configuration.",
}
"""Each with a place for the figure found."""


def _figure(claim: Claim, found: float, sentence: str) -> tuple[Finding, str]:
    """Compare a number with the claimed one; `sentence` has a place for it."""
    expected = float(claim.expected) if isinstance(claim.expected, int | float) else 0.0
    off = abs(found - expected) / abs(expected) if expected else float("inf")
    evidence = sentence.format(f"{found:,.0f}")
    if off <= claim.relative_tolerance:
        return "holds", evidence
    wrong = f"{evidence[:-1]}; the claim of {expected:,.0f} is {100 * off:.1f}% off."
    return ("corrected" if off <= NEARLY else "does not hold"), wrong


def _score(card: ModelCard, claim: Claim, records: Iterable[Record]) -> tuple[Finding, str]:
    """A score: decided by a measurement on the whole task; a published figure alone leaves it open."""
    expected = float(claim.expected) if isinstance(claim.expected, int | float) else None
    scores = [
        record
        for record in records
        if isinstance(record.values, AccuracyValues)
        and (record.subject.name, record.subject.task) == (card.name, claim.task)
        and claim.mode in (None, record.subject.mode)
    ]
    for record in scores:
        values = record.values
        assert isinstance(values, AccuracyValues)
        whole = record.status == "ok" and not values.limited
        if record.provenance == "measured" and whole and values.ci_low is not None and values.ci_high is not None:
            cap = record.subject.max_new_tokens
            said = (
                f"Measured here: {100 * values.accuracy:.1f}% "
                f"(95% interval {100 * values.ci_low:.1f} to {100 * values.ci_high:.1f}) at a cap of {cap:,} tokens."
            )
            within = expected is not None and values.ci_low <= expected <= values.ci_high
            return ("holds" if within else "does not hold"), said
    return "open", _published(claim, scores)


def _published(claim: Claim, scores: Sequence[Record]) -> str:
    others = [r for r in scores if r.provenance == "published" and isinstance(r.values, AccuracyValues)]
    if not others:
        return f"No measurement of {claim.task} here, and no source that could be traced."
    listed = "; ".join(
        f"{100 * r.values.accuracy:.1f} ({r.source})" for r in others if isinstance(r.values, AccuracyValues)
    )
    return f"Published: {listed}; not measured here on the whole task."
