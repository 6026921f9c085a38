"""What a comparison says, before it is put into a page, a table or JSON.

It is derived from records alone (measured, published, estimated) and from the cards' names, sizes and claims;
nothing here measures or estimates.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rlbench.core.card import ModelCard
from rlbench.core.claims import Verdict, judge
from rlbench.core.cost import Price, usd
from rlbench.core.ranking import Ranked, Ranking, is_rankable, rank
from rlbench.core.record import AccuracyValues, MemoryValues, ProbeValues, Record, RolloutValues
from rlbench.core.value import Value
from rlbench.report.examples import Example
from rlbench.report.figures import Figure, figures


class Unprobed(Value):
    """A model without a place in the ranking, by what is known of it."""

    model: str
    parameters: int | None
    training_peak_bytes: int | None = None
    training_regime: str | None = None
    fits: bool | None = None
    memory_provenance: str | None = None
    output_tokens_per_second: float | None = None
    usd_per_thousand_rollouts: float | None = None
    rollouts_within_budget: int | None = None
    speed_provenance: str | None = None
    score: float | None = None
    """The best-known score on `score_task`, the task that most models have a score on."""
    score_task: str | None = None
    score_mode: str | None = None
    score_provenance: str | None = None
    state: str
    """Why it is not ranked."""
    command: str
    """What would change that."""


class Missing(Value):
    """Something that nobody measured yet, and the command that would."""

    model: str
    what: str
    command: str


class Question(Value):
    """What was asked of this comparison."""

    gpu: str
    gpu_visible_bytes: int | None = None
    price: Price | None = None
    budget_usd: float | None = None
    command: str
    created: str
    store: str
    version: str


class Comparison(Value):
    """The whole answer."""

    question: Question
    models: tuple[str, ...]
    ranking: Ranking
    unprobed: tuple[Unprobed, ...]
    claims: tuple[Verdict, ...]
    missing: tuple[Missing, ...]
    records: tuple[Record, ...]
    examples: tuple[Example, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Files of the store that could not be read, each in a sentence."""

    @property
    def measured(self) -> list[Record]:
        return [record for record in self.records if record.provenance == "measured"]

    @property
    def failed(self) -> list[Record]:
        """Measurements that did not end well."""
        return [record for record in self.measured if record.status not in ("ok", "partial")]

    @property
    def figures(self) -> list[Figure]:
        return figures(self.records, self.ranking)

    def document(self, headline: str) -> dict[str, Any]:
        """The JSON document of `rlbench compare --json`."""
        question = self.question.to_json()
        return {
            "headline": headline,
            **question,
            "ranking": [{**entry.to_json(), "name": entry.name} for entry in self.ranking.ranked],
            "ties": [tie.to_json() for tie in self.ranking.ties],
            "unprobed": [row.to_json() for row in self.unprobed],
            "claims": [verdict.to_json() for verdict in self.claims],
            "missing": [row.to_json() for row in self.missing],
            "figures": [figure.to_json() for figure in self.figures],
            "unreadable": list(self.unreadable),
        }


def compare(
    question: Question,
    cards: Sequence[ModelCard],
    records: Sequence[Record],
    examples: Sequence[Example] = (),
    unreadable: Sequence[str] = (),
) -> Comparison:
    """Rank, judge and say what is missing; models come in the order of `cards`, then those without a card."""
    ranking = rank(records, question.budget_usd)
    names = list(dict.fromkeys([card.name for card in cards] + [record.subject.name for record in records]))
    ranked = {entry.model for entry in ranking.ranked}
    probe = ranking.ranked[0].group.flags if ranking.ranked else ""
    left_over = [_unprobed(name, question, cards, records, probe) for name in names if name not in ranked]
    return Comparison(
        question=question,
        models=tuple(names),
        ranking=ranking,
        unprobed=tuple(sorted(left_over, key=_cheapest_first)),
        claims=tuple(verdict for card in cards for verdict in judge(card, records)),
        missing=tuple(_missing(names, records, question.gpu, probe)),
        records=tuple(records),
        examples=tuple(examples),
        unreadable=tuple(unreadable),
    )


def reprice(record: Record, price: Price) -> Record:
    """The record with every dollar derived anew at `price`; its seconds stay as they were measured."""
    if record.cost is None:
        return record
    was = record.cost.price.usd_per_hour if record.cost.price else None
    factor = price.usd_per_hour / was if was else None
    cost = record.cost.model_copy(update={"price": price})
    values = record.values
    if isinstance(values, ProbeValues):
        values = values.model_copy(update=_probe_dollars(values, price, factor))
    elif isinstance(values, RolloutValues) and factor is not None:
        per_hour = values.rollouts_per_hour
        values = values.model_copy(
            update={
                "usd_per_million_output_tokens": usd(1e6 / values.output_tokens_per_second, price.usd_per_hour),
                "usd_per_thousand_rollouts": 1000 / per_hour * price.usd_per_hour if per_hour else None,
            }
        )
    elif isinstance(values, AccuracyValues):
        values = values.model_copy(update={"usd_per_correct": _times(values.usd_per_correct, factor)})
    return record.model_copy(update={"cost": cost, "values": values})


def _probe_dollars(values: ProbeValues, price: Price, factor: float | None) -> dict[str, float | None]:
    dollars = usd(values.gpu_seconds, price.usd_per_hour)

    def rate(points: float | None) -> float | None:
        return points / dollars if points is not None and dollars > 0 else None

    return {
        "usd": dollars,
        "training_usd": _times(values.training_usd, factor),
        "points_per_usd": rate(values.gain),
        "points_per_usd_low": rate(values.ci_low),
        "points_per_usd_high": rate(values.ci_high),
        "usd_per_point": dollars / values.gain if values.gain and (values.ci_low or 0) > 0 else None,
    }


def _times(value: float | None, factor: float | None) -> float | None:
    return value * factor if value is not None and factor is not None else None


def score_task(records: Iterable[Record]) -> str | None:
    """The task on which most models have a score: the one on which they can be set side by side."""
    models: dict[str, set[str]] = {}
    for record in records:
        if isinstance(record.values, AccuracyValues) and record.subject.task:
            models.setdefault(record.subject.task, set()).add(record.subject.name)
    return max(sorted(models), key=lambda task: len(models[task]), default=None)


def best_score(model: str, task: str | None, records: Iterable[Record]) -> Record | None:
    """The model's score on the task: a measured one before a published one, then the highest."""
    found = [
        (record.provenance == "measured", record.values.accuracy, record)
        for record in records
        if record.subject.name == model
        and record.subject.task == task
        and isinstance(record.values, AccuracyValues)
        and record.status in ("ok", "partial")
    ]
    return max(found, key=lambda item: item[:2])[2] if found else None


def memory_record(model: str, gpu: str, records: Iterable[Record]) -> Record | None:
    """The estimate of full fine-tuning for the GPU."""
    return _first(
        records, lambda r: isinstance(r.values, MemoryValues) and r.values.gpu == gpu and r.subject.name == model
    )


def rollout_record(model: str, gpu: str, records: Iterable[Record]) -> Record | None:
    """The model's speed on the GPU: measured where it is, else estimated."""
    on_gpu = [r for r in records if isinstance(r.values, RolloutValues) and r.values.gpu == gpu]
    by_trust = sorted(on_gpu, key=lambda r: r.provenance != "measured")
    return _first(by_trust, lambda r: r.subject.name == model)


def _first(records: Iterable[Record], wanted: Callable[[Record], bool]) -> Record | None:
    return next((record for record in records if wanted(record)), None)


def _unprobed(
    name: str, question: Question, cards: Sequence[ModelCard], records: Sequence[Record], flags: str
) -> Unprobed:
    card = next((card for card in cards if card.name == name), None)
    memory = memory_record(name, question.gpu, records)
    speed = rollout_record(name, question.gpu, records)
    score = best_score(name, score_task(records), records)
    facts: dict[str, Any] = {}
    if memory is not None and isinstance(memory.values, MemoryValues):
        facts |= {
            "training_peak_bytes": memory.values.peak_bytes,
            "training_regime": memory.values.regime,
            "fits": memory.values.fits,
            "memory_provenance": memory.provenance,
        }
    if speed is not None and isinstance(speed.values, RolloutValues):
        cost = speed.values.usd_per_thousand_rollouts
        facts |= {
            "output_tokens_per_second": speed.values.output_tokens_per_second,
            "usd_per_thousand_rollouts": cost,
            "rollouts_within_budget": _affordable(question.budget_usd, cost),
            "speed_provenance": speed.provenance,
        }
    if score is not None and isinstance(score.values, AccuracyValues):
        facts |= {
            "score": score.values.accuracy,
            "score_task": score.subject.task,
            "score_mode": score.subject.mode,
            "score_provenance": score.provenance,
        }
    return Unprobed(
        model=name,
        parameters=card.parameters if card else None,
        state=_why_unranked(name, records),
        command=f"rlbench probe {name} {flags}".strip(),
        **facts,
    )


def _affordable(budget_usd: float | None, usd_per_thousand: float | None) -> int | None:
    return int(1000 * budget_usd / usd_per_thousand) if budget_usd is not None and usd_per_thousand else None


def _why_unranked(name: str, records: Iterable[Record]) -> str:
    probes = [r for r in records if r.subject.name == name and r.kind == "probe"]
    if not probes:
        return "no probe yet"
    last = max(probes, key=lambda r: r.created or "")
    if last.status not in ("ok", "partial"):
        return f"its probe ended as {last.status.replace('_', ' ')}"
    if isinstance(last.values, ProbeValues) and last.values.gain is None:
        return f"its probe has no after-evaluation ({last.values.state})"
    return "its probe has no price"


def _cheapest_first(row: Unprobed) -> tuple[float, int]:
    return row.usd_per_thousand_rollouts or float("inf"), row.parameters or 0


def _missing(names: Sequence[str], records: Sequence[Record], gpu: str, flags: str) -> list[Missing]:
    found = []
    for name in names:
        own = [r for r in records if r.subject.name == name and r.provenance == "measured"]
        good = [r for r in own if r.status in ("ok", "partial") and r.values is not None]
        kinds = {r.kind for r in good}
        if not any(is_rankable(r) for r in good):
            command = f"rlbench probe {name} {flags}".strip()
            found.append(Missing(model=name, what="reward gained per dollar", command=command))
        if "accuracy" not in kinds:
            found.append(
                Missing(
                    model=name,
                    what="accuracy under one harness, by mode",
                    command=f"rlbench accuracy {name} --tasks math500,ifeval",
                )
            )
        if not any(isinstance(r.values, RolloutValues) and r.values.gpu == gpu for r in good):
            found.append(
                Missing(
                    model=name,
                    what=f"rollout speed measured on {gpu}",
                    command=f"rlbench rollout-speed {name} --gpu {gpu}",
                )
            )
        if "memory" not in kinds:
            found.append(
                Missing(
                    model=name,
                    what="training memory measured",
                    command=f"rlbench estimate-memory {name} --check",
                )
            )
    return found


def affordable(entries: Sequence[Ranked]) -> list[Ranked]:
    """The entries whose cost lies within the budget; all of them without one."""
    return [entry for entry in entries if entry.within_budget is not False]
