"""`rlbench probe`: what a short GRPO run gains, and what that costs."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlbench.cli.app import app
from rlbench.cli.common import Session, comma_list, command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.core.record import ProbeValues, Record


@command(app, "probe", "what a short GRPO run gains, and what it costs")
def probe(
    session: Session,
    models: Annotated[
        list[str] | None, typer.Argument(metavar="MODEL", help="Card names, hub ids or folders; none: the seven.")
    ] = None,
    task: Annotated[
        str, typer.Option(help="A generated task: short-answer, lowercase, keyword, sums.")
    ] = "short-answer",
    mode: Annotated[
        str | None, typer.Option(help="think, no_think or base.", show_default="no_think where there is one")
    ] = None,
    steps: Annotated[int, typer.Option(help="Optimizer steps; more of them later keep stage 0.", min=1)] = 8,
    group_size: Annotated[int, typer.Option(help="Completions of a prompt in a step.", min=2)] = 8,
    prompts_per_step: Annotated[int, typer.Option(min=1)] = 4,
    training_prompts: Annotated[
        int | None, typer.Option(help="Size of the fixed pool trained on.", min=1, show_default="64, or all there are")
    ] = None,
    held_out: Annotated[int, typer.Option(help="Prompts of the paired evaluation.", min=2)] = 40,
    samples: Annotated[int, typer.Option(help="Samples of each held-out prompt, before and after.", min=1)] = 4,
    max_new_tokens: Annotated[
        int | None, typer.Option(help="Cap of a completion.", min=1, show_default="the task's")
    ] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate, constant.", show_default="the card's")] = None,
    method: Annotated[str, typer.Option(help="full or lora.")] = "full",
    train_anyway: Annotated[
        bool, typer.Option("--train-anyway", help="Train even without signal or headroom.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    price: Annotated[
        float | None,
        typer.Option(metavar="USD", help="Dollars per device-hour.", min=0, show_default="the catalogue's"),
    ] = None,
) -> None:
    """Train a little by GRPO and report the gain on held-out prompts, its interval and its cost."""
    from rlbench.cli.measured import answer, fail_if_any_failed, request_of, result
    from rlbench.core.record import ProbeValues
    from rlbench.plans.base import Surroundings
    from rlbench.plans.probe import ProbeRequest

    asked: dict[str, Any] = {
        "models": comma_list(models or ()), "task": task, "mode": mode, "steps": steps, "group_size": group_size,
        "prompts_per_step": prompts_per_step, "training_prompts": training_prompts, "held_out": held_out,
        "samples": samples, "max_new_tokens": max_new_tokens, "lr": lr, "method": method,
        "train_anyway": train_anyway, "seed": seed,
    }  # fmt: skip
    request = request_of(ProbeRequest, asked, "probe")
    plan = request.plan(Surroundings(offline=session.offline, usd_per_hour=price))
    records = answer(session, plan)
    if session.json:
        session.emit({"results": [result(record, ProbeValues) for record in records]})
    else:
        _show(session, records)
    fail_if_any_failed(records)


def _show(session: Session, records: "Sequence[Record]") -> None:
    from rich.table import Table

    from rlbench.core.record import ProbeValues

    table = Table(title="GRPO probes: held-out success before and after")
    for column in ("model", "task", "success", "gain in points, 95%", "USD", "state"):
        table.add_column(column)
    for record in records:
        name, task = record.subject.name, record.subject.task or ""
        if isinstance(record.values, ProbeValues):
            state = record.values.state if record.status == "ok" else record.status
            table.add_row(name, task, *_cells(record.values), state)
        else:
            table.add_row(name, task, "", "", "", record.status)
    session.out.print(table)
    for record in records:
        for sentence in _remarks(record):
            session.out.print(f"{record.subject.name}: {sentence}", markup=False, highlight=False, soft_wrap=True)


def _cells(values: "ProbeValues") -> list[str]:
    success = f"{values.before:.2f}" if values.after is None else f"{values.before:.2f} → {values.after:.2f}"
    gain = "" if values.gain is None else f"{values.gain:+.1f} [{values.ci_low:+.1f}, {values.ci_high:+.1f}]"
    return [success, gain, "" if values.usd is None else f"{values.usd:.4f}"]


def _remarks(record: "Record") -> list[str]:
    """What a reader must know beside the figures: the gates that fired, and why it ended."""
    from rlbench.core.record import ProbeValues

    remarks = [record.detail.rstrip(".") + "."] if record.detail else []
    values = record.values
    if not isinstance(values, ProbeValues):
        return remarks
    if values.lenient is not None:
        lenient, cap = values.lenient, record.subject.max_new_tokens
        remarks.append(
            f"{values.steps} steps, {values.rollouts} rollouts of at most {cap} tokens, "
            f"{values.gpu_seconds / 60:.1f} minutes; by the lenient verifier {lenient.gain:+.1f} points "
            f"[{lenient.ci_low:+.1f}, {lenient.ci_high:+.1f}]; the intervals cover prompts, not training seeds."
        )
    base = values.base
    sentences = {
        "truncated": f"{base.truncated_share:.0%} of the base model's answers ran into the cap.",
        "no_signal": f"only {base.mixed_share:.0%} of the prompts gave mixed outcomes: hardly any gradient.",
        "saturated": f"the base model already scores {base.pass_at_1:.2f}: choose a harder task.",
        "format_gain_expected": "the lenient score is far above the strict one: expect a gain in form first.",
    }
    return remarks + [sentences[name] for name, fired in values.gates.items() if fired]
