"""Which model gives the most points per dollar, and how sure that is.

Only probes of the same task, prompts, cap and protocol are ranked together. Two models between which the
data do not decide, P(A better than B) within [0.05, 0.95], are tied; a rank is a range that says so.
"""

from collections.abc import Iterable, Sequence

from rlbench.core.cost import usd
from rlbench.core.job import GrpoProbe
from rlbench.core.record import ProbeValues, Provenance, Record, Status
from rlbench.core.statistics import Interval, fieller, joint_draws, points_per_usd
from rlbench.core.subject import Mode
from rlbench.core.value import Value

UNDECIDED = 0.05
"""A pair is tied while either of the two has at least this probability of being the better one."""

NOT_SHOWN = "not shown: gain not distinguishable from zero"

_Z95 = 1.959964


class Group(Value):
    """What probes must share to be ranked together. `None` where a source does not say."""

    task: str
    task_hash: str | None
    max_new_tokens: int | None
    protocol: str
    """The settings of the GRPO run that change what a point or a dollar buys, in words."""
    flags: str
    """The same as options of `rlbench probe`, so that another model can join the group."""


class Ranked(Value):
    """One model's place in its group."""

    model: str
    mode: Mode | None
    seed: int = 0
    group: Group
    key: str = "points_per_usd"
    """By what it is ranked: the name of another field."""
    rank_low: int
    """The best rank that the data allow: one more than the models that are surely better."""
    rank_high: int
    """The worst rank that the data allow."""
    p_best: float
    """Probability of being the best of its group."""
    points_per_usd: float
    points_per_usd_low: float
    points_per_usd_high: float
    usd_per_point: float | None
    usd_per_point_low: float | None = None
    usd_per_point_high: float | None = None
    usd_per_point_note: str = ""
    """Why there is no `usd_per_point`, where there is none."""
    gain: float
    ci_low: float
    ci_high: float
    before: float
    after: float | None
    usd: float
    device: str
    device_seconds: float
    steps: int
    rollouts: int
    held_out: int
    """Prompts of the paired evaluation."""
    state: str
    within_budget: bool | None = None
    """Whether this run's cost lies within the user's budget; `None` when there is none."""
    provenance: Provenance
    status: Status
    source: str

    @property
    def interval(self) -> Interval:
        return Interval(self.points_per_usd, self.points_per_usd_low, self.points_per_usd_high)

    @property
    def name(self) -> str:
        """The model, with what tells this run apart from another of the same model."""
        apart = ["think"] * (self.mode == "think") + [f"seed {self.seed}"] * (self.seed != 0)
        return f"{self.model} ({', '.join(apart)})" if apart else self.model


class Tie(Value):
    """Models of one group between which the data do not decide."""

    models: tuple[str, ...]
    group: Group


class Ranking(Value):
    """All groups; the largest first, in each the best estimate first."""

    ranked: tuple[Ranked, ...] = ()
    ties: tuple[Tie, ...] = ()

    @property
    def groups(self) -> list[tuple[Ranked, ...]]:
        """The ranked models group by group."""
        found: dict[Group, list[Ranked]] = {}
        for entry in self.ranked:
            found.setdefault(entry.group, []).append(entry)
        return [tuple(entries) for entries in found.values()]


def rank(records: Iterable[Record], budget_usd: float | None = None) -> Ranking:
    """Rank the finished probes among `records` by points per dollar.

    A probe without an after-evaluation or without a price has no place here; of several records of one model,
    mode, seed and protocol the newest counts.
    """
    groups: dict[Group, dict[tuple[str, Mode | None, int], Ranked]] = {}
    for record in sorted(records, key=lambda r: r.created or ""):
        entry = _entry(record, budget_usd)
        if entry is not None:
            groups.setdefault(entry.group, {})[(entry.model, entry.mode, entry.seed)] = entry
    ranked: list[Ranked] = []
    ties: list[Tie] = []
    for group, entries in sorted(groups.items(), key=lambda item: (-len(item[1]), str(item[0]))):
        placed, better = _place(list(entries.values()))
        ranked += placed
        ties += [Tie(models=tuple(placed[i].name for i in members), group=group) for members in _tied(better)]
    return Ranking(ranked=tuple(ranked), ties=tuple(ties))


def rank_anew(entries: Sequence[Ranked]) -> list[Ranked]:
    """The places of some entries of a group among themselves, as when the others are not to be had."""
    return _place(entries)[0]


def is_rankable(record: Record) -> bool:
    """Whether a record is a probe that went to its end and has a price."""
    return _entry(record, None) is not None


def _entry(record: Record, budget_usd: float | None) -> Ranked | None:
    """The record as a ranking entry whose place is not known yet."""
    values = record.values
    if not isinstance(values, ProbeValues) or record.status not in ("ok", "partial"):
        return None
    cost = _usd(record, values)
    if values.gain is None or values.ci_low is None or values.ci_high is None or not cost:
        return None
    gain = Interval(values.gain, values.ci_low, values.ci_high)
    rate = points_per_usd(gain, cost)
    price = usd_per_point(gain, cost)
    return Ranked(
        model=record.subject.name,
        mode=record.subject.mode,
        seed=record.job.seed if record.job else 0,
        group=_group(record, values),
        rank_low=1,
        rank_high=1,
        p_best=1.0,
        points_per_usd=rate.estimate,
        points_per_usd_low=rate.low,
        points_per_usd_high=rate.high,
        usd_per_point=price.estimate if price else None,
        usd_per_point_low=price.low if price else None,
        usd_per_point_high=price.high if price else None,
        usd_per_point_note="" if price else _why_not_shown(gain),
        gain=gain.estimate,
        ci_low=gain.low,
        ci_high=gain.high,
        before=values.before,
        after=values.after,
        usd=cost,
        device=record.cost.device if record.cost else "",
        device_seconds=values.gpu_seconds,
        steps=values.steps,
        rollouts=values.rollouts,
        held_out=values.n_prompts,
        state=values.state,
        within_budget=None if budget_usd is None else cost <= budget_usd,
        provenance=record.provenance,
        status=record.status,
        source=record.source,
    )


def usd_per_point(gain: Interval, cost: float) -> Interval | None:
    """Dollars for one point by Fieller, where the gain's interval lies above zero; else `None`.

    The gain's own interval is used as it is (its t quantile over the normal one widens the standard error).
    """
    if gain.low <= 0:
        return None
    return fieller(cost, 0.0, gain.estimate, (gain.estimate - gain.low) / _Z95, quantile=_Z95)


def _why_not_shown(gain: Interval) -> str:
    return "not shown: the reward fell" if gain.high < 0 else NOT_SHOWN


def _usd(record: Record, values: ProbeValues) -> float | None:
    if record.cost is not None and record.cost.price is not None:
        return usd(values.gpu_seconds, record.cost.price.usd_per_hour)
    return values.usd


def _group(record: Record, values: ProbeValues) -> Group:
    settings = record.job.settings if record.job is not None else None
    protocol = f"{values.steps} steps, {values.rollouts:,} rollouts"
    flags = [f"--task {values.task}", f"--steps {values.steps}"]
    if isinstance(settings, GrpoProbe):
        protocol = (
            f"{settings.method} GRPO, {values.steps} steps of {settings.prompts_per_step} × {settings.group_size} "
            f"rollouts on {settings.training_prompts} prompts, {settings.loss_type} loss, β {settings.beta:g}; "
            f"{values.n_prompts} held-out prompts × {values.samples_per_prompt}"
        )
        flags += [f"--held-out {settings.held_out_prompts}", f"--samples {settings.samples_per_prompt}"]
        flags += [
            f"--{name.replace('_', '-')} {getattr(settings, name)}"
            for name in ("prompts_per_step", "group_size", "training_prompts", "method")
            if getattr(settings, name) != GrpoProbe.model_fields[name].default
        ]
    cap = record.subject.max_new_tokens
    return Group(
        task=values.task,
        task_hash=record.subject.task_hash,
        max_new_tokens=cap,
        protocol=protocol,
        flags=" ".join([*flags, f"--max-new-tokens {cap}"] if cap else flags),
    )


def _place(entries: Sequence[Ranked]) -> tuple[list[Ranked], list[list[float]]]:
    """The entries with their places, best estimate first, and P(row better than column)."""
    ordered = sorted(entries, key=lambda e: (-e.points_per_usd, -e.points_per_usd_low, e.model))
    draws = joint_draws([entry.interval for entry in ordered])
    better = [[_share(draws, i, j) for j in range(len(ordered))] for i in range(len(ordered))]
    best = [row.index(max(row)) for row in draws if row]
    placed = [
        entry.model_copy(
            update={
                "rank_low": 1 + sum(better[j][i] > 1 - UNDECIDED for j in range(len(ordered))),
                "rank_high": len(ordered) - sum(better[i][j] > 1 - UNDECIDED for j in range(len(ordered))),
                "p_best": best.count(i) / len(draws),
            }
        )
        for i, entry in enumerate(ordered)
    ]
    return placed, better


def _share(draws: Sequence[Sequence[float]], i: int, j: int) -> float:
    return sum(row[i] > row[j] for row in draws) / len(draws) if i != j else 0.0


def _tied(better: Sequence[Sequence[float]]) -> list[list[int]]:
    """The largest sets whose members are all tied with one another, of two members or more."""
    indices = range(len(better))
    neighbours = {i: {j for j in indices if i != j and UNDECIDED <= better[i][j] <= 1 - UNDECIDED} for i in indices}
    sets = [members for members in _cliques(set(indices), neighbours) if len(members) > 1]
    return sorted(sorted(members) for members in sets)


def _cliques(candidates: set[int], neighbours: dict[int, set[int]]) -> list[set[int]]:
    """Maximal cliques (Bron and Kerbosch 1973), for a handful of models."""
    found: list[set[int]] = []

    def extend(chosen: set[int], open_: set[int], closed: set[int]) -> None:
        if not open_ and not closed:
            found.append(chosen)
        for node in sorted(open_):
            extend(chosen | {node}, open_ & neighbours[node], closed & neighbours[node])
            open_ = open_ - {node}
            closed = closed | {node}

    extend(set(), candidates, set())
    return found


def tie_letters(entries: Sequence[Ranked], ties: Sequence[Tie]) -> dict[str, str]:
    """For each entry's name, the letters of the tie sets it is in; models that share one are tied."""
    letters = {entry.name: "" for entry in entries}
    for number, tie in enumerate(tie for tie in ties if entries and tie.group == entries[0].group):
        for name in tie.models:
            letters[name] += chr(ord("a") + number % 26)
    return letters
