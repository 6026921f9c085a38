"""Every figure of a comparison in one flat table: what it is, its interval, and where it comes from."""

from collections.abc import Iterable, Iterator

from rlbench.core.ranking import Ranking
from rlbench.core.record import AccuracyValues, MemoryValues, ProbeValues, Record, RolloutValues
from rlbench.core.value import Value


class Figure(Value):
    """One number. The unit stands in `unit`; `None` means that the record does not say."""

    model: str
    mode: str | None
    kind: str
    quantity: str
    value: float
    low: float | None = None
    high: float | None = None
    unit: str
    task: str | None = None
    max_new_tokens: int | None = None
    device: str | None = None
    provenance: str
    status: str
    source: str


Number = tuple[str, float | None, float | None, float | None, str]
"""Quantity, value, low, high, unit."""


def figures(records: Iterable[Record], ranking: Ranking) -> list[Figure]:
    """The figures of the ranking, then those of every record."""
    found = [figure for record in records for figure in _of_record(record)]
    return [*_of_ranking(ranking), *found]


def _of_ranking(ranking: Ranking) -> Iterator[Figure]:
    for entry in ranking.ranked:
        rows: tuple[Number, ...] = (
            ("rank", entry.rank_low, entry.rank_low, entry.rank_high, "rank"),
            ("p_best", entry.p_best, None, None, "probability"),
            (
                "points_per_usd", entry.points_per_usd, entry.points_per_usd_low, entry.points_per_usd_high,
                "points per USD",
            ),
        )  # fmt: skip
        for quantity, value, low, high, unit in rows:
            if value is not None:
                yield Figure(
                    model=entry.model,
                    mode=entry.mode,
                    kind="ranking",
                    quantity=quantity,
                    value=value,
                    low=low,
                    high=high,
                    unit=unit,
                    task=entry.group.task,
                    max_new_tokens=entry.group.max_new_tokens,
                    device=entry.device,
                    provenance=entry.provenance,
                    status=entry.status,
                    source=entry.source,
                )


def _of_record(record: Record) -> Iterator[Figure]:
    device = record.cost.device if record.cost else getattr(record.values, "gpu", None)
    for quantity, value, low, high, unit in _numbers(record):
        if value is not None:
            yield Figure(
                model=record.subject.name,
                mode=record.subject.mode,
                kind=record.kind,
                quantity=quantity,
                value=value,
                low=low,
                high=high,
                unit=unit,
                task=record.subject.task,
                max_new_tokens=record.subject.max_new_tokens,
                device=device,
                provenance=record.provenance,
                status=record.status,
                source=record.source,
            )


def _numbers(record: Record) -> tuple[Number, ...]:
    values = record.values
    if isinstance(values, MemoryValues):
        return _memory(values)
    if isinstance(values, RolloutValues):
        return _rollout(values)
    if isinstance(values, AccuracyValues):
        return _accuracy(values)
    return _probe(values) if isinstance(values, ProbeValues) else ()


def _memory(values: MemoryValues) -> tuple[Number, ...]:
    return (
        (f"bytes per parameter ({values.regime})", values.bytes_per_parameter, None, None, "bytes"),
        (f"states ({values.regime})", values.states_bytes, None, None, "bytes"),
        (f"peak ({values.regime})", values.peak_bytes, values.peak_bytes_low, values.peak_bytes_high, "bytes"),
    )


def _rollout(values: RolloutValues) -> tuple[Number, ...]:
    return (
        (
            "output_tokens_per_second", values.output_tokens_per_second, values.output_tokens_per_second_low,
            values.output_tokens_per_second_high, "tokens per second",
        ),
        ("usd_per_thousand_rollouts", values.usd_per_thousand_rollouts, None, None, "USD"),
        ("usd_per_million_output_tokens", values.usd_per_million_output_tokens, None, None, "USD"),
        ("truncated_share", values.truncated_share, None, None, "share"),
    )  # fmt: skip


def _accuracy(values: AccuracyValues) -> tuple[Number, ...]:
    return (
        ("accuracy", values.accuracy, values.ci_low, values.ci_high, "share"),
        ("truncated_share", values.truncated_share, None, None, "share"),
        ("mean_output_tokens", values.mean_output_tokens, None, None, "tokens"),
        ("usd_per_correct", values.usd_per_correct, None, None, "USD"),
        *((f"pass@{k}", share, None, None, "share") for k, share in values.pass_at_k.items()),
        *((name, share, None, None, "share") for name, share in values.metrics.items()),
    )


def _probe(values: ProbeValues) -> tuple[Number, ...]:
    return (
        ("before", values.before, None, None, "share"),
        ("after", values.after, None, None, "share"),
        ("gain", values.gain, values.ci_low, values.ci_high, "points"),
        ("usd", values.usd, None, None, "USD"),
        ("gpu_seconds", values.gpu_seconds, None, None, "seconds"),
    )
