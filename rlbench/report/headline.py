"""The verdict in a sentence that somebody can act on, and what to do next."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rlbench.core.ranking import Ranked, rank_anew
from rlbench.report.comparison import Comparison, affordable
from rlbench.report.formats import certainty, dollars, number, points, span


@dataclass(frozen=True)
class Headline:
    """The verdict, what it rests on, and the command that would make it firmer."""

    verdict: str
    because: str
    next_step: str
    command: str

    @property
    def text(self) -> str:
        """The verdict with its reason."""
        return f"{self.verdict} {self.because}".strip()


def headline(comparison: Comparison) -> Headline:
    """What the largest group of comparable probes says."""
    groups = comparison.ranking.groups
    if not groups:
        return _nothing_probed(comparison)
    entries = rank_anew(affordable(groups[0]))
    if not entries:
        budget = comparison.question.budget_usd
        cheapest = min(groups[0], key=lambda entry: entry.usd)
        return Headline(
            verdict=f"No probe stayed within the budget of {dollars(budget)}.",
            because=f"The cheapest, {cheapest.name}, cost {dollars(cheapest.usd)}.",
            next_step="A shorter probe costs less:",
            command=_steps(cheapest, max(cheapest.steps // 2, 1)),
        )
    if len(entries) == 1:
        return _single(entries[0], comparison)
    return _several(entries)


def _nothing_probed(comparison: Comparison) -> Headline:
    if not comparison.unprobed:
        return Headline("There is nothing to compare.", "", "Name a model:", "rlbench models")
    first = comparison.unprobed[0]
    known = (
        f"By estimate {first.model} has the cheapest rollouts "
        f"({dollars(first.usd_per_thousand_rollouts)} per thousand on {comparison.question.gpu}), "
        "which says nothing yet of what they teach it."
        if first.usd_per_thousand_rollouts is not None
        else "What is known of the models stands below."
    )
    return Headline(
        verdict="No model can be recommended yet: none has been probed.",
        because=known,
        next_step="Measure what a dollar of training buys:",
        command=first.command,
    )


def _single(entry: Ranked, comparison: Comparison) -> Headline:
    others = [row for row in comparison.unprobed if row.model != entry.model]
    command = others[0].command if others else _longer(entry)
    if entry.ci_low > 0:
        return Headline(
            verdict=f"GRPO raises {entry.name} on {entry.group.task}: {_gain(entry)} for {_cost(entry)}.",
            because=f"That is {_rate(entry)}. No other model was probed, so this is not yet a choice between models.",
            next_step="Probe another on the same task:",
            command=command,
        )
    what = "lost reward" if entry.ci_high < 0 else "shows no gain that can be told from zero"
    return Headline(
        verdict=f"{entry.name} {what} on {entry.group.task}: {_gain(entry)} for {_cost(entry)}.",
        because="It is the only model probed so far; nothing can be recommended on this.",
        next_step="A longer run is the start of this one continued:",
        command=_longer(entry),
    )


def _several(entries: Sequence[Ranked]) -> Headline:
    best, task = entries[0], entries[0].group.task
    names = {entry.name for entry in entries}
    top = [entry for entry in entries if entry.rank_low == 1] or [best]
    if best.ci_high < 0 or best.ci_low <= 0:
        return Headline(
            verdict=f"Nothing can be recommended on {task}: not even the best, {best.name}, has a gain above zero.",
            because=f"It moved by {_gain(best)} for {_cost(best)}.",
            next_step="Give it more steps:",
            command=_longer(best),
        )
    if len(top) == 1:
        second = entries[1]
        return Headline(
            verdict=(
                f"Take {best.name}: it gives the most reward per dollar of {len(names)} models on {task}, "
                f"with a probability of {certainty(best.p_best)}."
            ),
            because=(
                f"It gained {_gain(best)} for {_cost(best)}, {_rate(best)}; "
                f"next comes {second.name} with {_rate(second)}."
            ),
            next_step="Look at it on the task that you mean to train on:",
            command=f"rlbench probe {best.model} --task TASK",
        )
    models = " ".join(dict.fromkeys(entry.model for entry in top))
    listed = ", ".join(entry.name for entry in top[:-1]) + f" and {top[-1].name}"
    return Headline(
        verdict=f"{listed} cannot be told apart on {task}; any of them may give the most reward per dollar.",
        because=(
            f"The best estimate is {best.name} with {_rate(best)}, "
            f"and it is the best with a probability of only {certainty(best.p_best)}."
        ),
        next_step="More held-out prompts would separate them:",
        command=_asking(models, top[0], "--held-out", 2 * top[0].held_out),
    )


def _gain(entry: Ranked) -> str:
    return f"{points(entry.gain)} points (95% interval {span(points(entry.ci_low), points(entry.ci_high))})"


def _cost(entry: Ranked) -> str:
    device = "a CPU" if entry.device == "cpu" else entry.device
    return f"{dollars(entry.usd)} on {device}" if device else dollars(entry.usd)


def _rate(entry: Ranked) -> str:
    limits = span(number(entry.points_per_usd_low), number(entry.points_per_usd_high))
    return f"{number(entry.points_per_usd)} points per dollar ({limits})"


def _longer(entry: Ranked) -> str:
    return _steps(entry, 2 * entry.steps)


def _steps(entry: Ranked, steps: int) -> str:
    return _asking(entry.model, entry, "--steps", steps)


def _asking(models: str, entry: Ranked, flag: str, value: int) -> str:
    """The probe's command with one of its numbers changed."""
    flags = re.sub(rf"{flag} \d+", f"{flag} {value}", entry.group.flags)
    return f"rlbench probe {models} {flags}"
