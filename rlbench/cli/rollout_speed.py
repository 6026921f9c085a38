"""`rlbench rollout-speed`: how fast a GRPO step's completions are generated, and what they cost."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlbench.cli.app import app
from rlbench.cli.common import Session, comma_list, command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.core.record import Record, RolloutValues


@command(app, "rollout-speed", "tokens a second, dollars a rollout")
def rollout_speed(
    session: Session,
    models: Annotated[
        list[str] | None, typer.Argument(metavar="MODEL", help="Card names, hub ids or folders; none: the seven.")
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            help="Measured when it is this machine's (or cpu), else estimated.", show_default="this machine's"
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="transformers or vllm.", show_default="transformers measured, vllm estimated"),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(help="grpo-short, open-rs, aime-think or cpu-demo.", show_default="grpo-short; cpu-demo on a CPU"),
    ] = None,
    prompts: Annotated[int | None, typer.Option(min=1)] = None,
    group_size: Annotated[int | None, typer.Option(help="Samples of each prompt.", min=1)] = None,
    prompt_len: Annotated[int | None, typer.Option(help="Tokens of a prompt.", min=1)] = None,
    max_new_tokens: Annotated[int | None, typer.Option(help="Cap of a completion.", min=1)] = None,
    mean_new_tokens: Annotated[
        float | None, typer.Option(help="Mean completion length, for estimates and forced lengths.", min=1)
    ] = None,
    lengths: Annotated[
        str, typer.Option(help="natural (real end of sequence), or forced: fixed, lognormal.")
    ] = "natural",
    concurrency: Annotated[
        int | None, typer.Option(help="Sequences generated at once.", min=1, show_default="all")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Timed passes; asking for more later adds to them.", min=1)] = 3,
    mode: Annotated[
        str | None, typer.Option(help="think, no_think or base.", show_default="the card's default")
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    price: Annotated[
        float | None,
        typer.Option(metavar="USD", help="Dollars per device-hour.", min=0, show_default="the catalogue's"),
    ] = None,
) -> None:
    """Measure generation speed on this device, or estimate that of another GPU."""
    from rlbench.cli.measured import answer, fail_if_any_failed, request_of, result
    from rlbench.core.record import RolloutValues
    from rlbench.plans.base import Surroundings
    from rlbench.plans.rollout import RolloutRequest

    asked: dict[str, Any] = {
        "models": comma_list(models or ()), "gpu": gpu, "engine": engine, "workload": workload, "prompts": prompts,
        "group_size": group_size, "prompt_len": prompt_len, "max_new_tokens": max_new_tokens,
        "mean_new_tokens": mean_new_tokens, "lengths": lengths, "concurrency": concurrency, "repeats": repeats,
        "mode": mode, "seed": seed,
    }  # fmt: skip
    request = request_of(RolloutRequest, asked, "rollout-speed")
    around = Surroundings(offline=session.offline, usd_per_hour=price)
    here = request.is_here()
    records = answer(session, request.plan(around)) if here else request.estimates(around)
    if session.json:
        session.emit({"results": [result(record, RolloutValues) for record in records]})
    else:
        _show(session, records, price)
    if here:
        fail_if_any_failed(records)


def _show(session: Session, records: "Sequence[Record]", stated_price: float | None) -> None:
    from rich.table import Table

    from rlbench.core.record import RolloutValues

    table = Table(title=_title(records), box=None, pad_edge=False, padding=(0, 1, 0, 0), title_justify="left")
    table.add_column("model, mode", overflow="fold", min_width=20)
    for column in ("tokens/s", "low – high", "rollouts/h", "idle", "$/M tok", "$/1,000"):
        table.add_column(column, justify="right", no_wrap=True)
    for record in records:
        name = f"{record.subject.name} {(record.subject.mode or '').replace('_', '-')}"
        if isinstance(record.values, RolloutValues):
            table.add_row(name, *_cells(record.values))
        else:
            table.add_row(name, record.status)
    session.out.print(table)
    for sentence in (*_legend(records, stated_price), *_remarks(records)):
        session.out.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _title(records: "Sequence[Record]") -> str:
    from rlbench.core.record import RolloutValues

    values = next((r.values for r in records if isinstance(r.values, RolloutValues)), None)
    if values is None:
        return "Rollouts"
    w = values.workload
    return (
        f"Rollouts, {records[0].provenance}: {values.gpu}, {values.engine}, {w.prompts} prompts × {w.group_size}, "
        f"at most {w.max_new_tokens} new tokens"
    )


def _cells(values: "RolloutValues") -> list[str]:
    low, high = values.output_tokens_per_second_low, values.output_tokens_per_second_high
    return [
        f"{values.output_tokens_per_second:,.0f}",
        "" if low is None or high is None else f"{low:,.0f} – {high:,.0f}",
        _number(values.rollouts_per_hour, ",.0f"),
        _number(values.straggler_share, ".0%"),
        _number(values.usd_per_million_output_tokens, ",.3f"),
        _number(values.usd_per_thousand_rollouts, ",.4f"),
    ]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _legend(records: "Sequence[Record]", stated_price: float | None) -> list[str]:
    """What the short headings mean, and at what price the dollars are counted."""
    from rlbench.core.record import RolloutValues
    from rlbench.devices import find_price
    from rlbench.report.formats import hourly

    shown = next((record for record in records if isinstance(record.values, RolloutValues)), None)
    if shown is None or not isinstance(shown.values, RolloutValues):
        return []
    price = shown.cost.price if shown.cost else find_price(shown.values.gpu, stated_price)
    sentence = "$/1,000: a thousand rollouts. idle: share of the time lost to waiting for the longest answers."
    return [sentence, *([f"Dollars: {shown.values.gpu} at {hourly(price)}."] if price else [])]


def _remarks(records: "Sequence[Record]") -> list[str]:
    """How the figures came about, each way once, and what went wrong."""
    from rlbench.core.record import RolloutValues

    ways = {r.values.how for r in records if isinstance(r.values, RolloutValues) and r.values.how}
    troubles = [f"{r.subject.name}: {r.detail}" for r in records if r.detail]
    cut_off = [
        f"{r.subject.name}: {r.values.truncated_share:.0%} of the completions ran into the cap."
        for r in records
        if isinstance(r.values, RolloutValues) and r.provenance == "measured" and r.values.truncated_share
    ]
    estimated = [f"Estimated by {records[0].source}."] if records and records[0].provenance == "estimated" else []
    return [*estimated, *sorted(f"How: {way}" for way in ways), *troubles, *cut_off]
