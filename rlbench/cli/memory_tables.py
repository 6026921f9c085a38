"""How `estimate-memory` shows an estimate on a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlbench.core.memory import GB, STATES, Estimate, Phase, Setting, as_trl_runs_it, estimate
from rlbench.core.memory_verdict import advise

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from rlbench.core.card import ModelCard

BAR_WIDTH = 72
LETTERS = {
    "weights": ("W", "blue"),
    "master copy": ("M", "cyan"),
    "gradients": ("G", "green"),
    "optimizer": ("O", "yellow"),
    "activations": ("A", "magenta"),
    "logits": ("L", "red"),
    "KV cache": ("K", "bright_blue"),
    "overhead": ("·", "white"),
}
"""Each part's letter and colour in the bar; the letters tell them apart without colour."""


def headline(card: "ModelCard", found: Estimate) -> str:
    """Which model, in which setting."""
    setting = found.setting
    shape = f"{setting.micro_batch} × {setting.seq_len:,} tokens, checkpointing {setting.checkpointing}"
    if setting.method == "inference":
        shape = f"{max(setting.concurrency, 1)} × {setting.seq_len:,} tokens"
        how = f"generation with transformers, {setting.weight_bytes} bytes a weight"
    elif setting.method == "lora":
        how = f"LoRA rank {setting.lora_rank} on {setting.weight_bytes}-byte weights ({setting.regime})"
    else:
        how = f"{setting.regime}: {STATES[setting.regime].formula}"
    return f"{card.name}, {found.parameters:,} parameters; {how}; {shape}"


def parts_table(found: Estimate) -> "Table":
    """What is held at the peak, part by part, each with its formula."""
    from rich.table import Table

    table = Table(title=f"states {found.bytes_per_parameter:.2f} bytes a parameter, {found.states_bytes / GB:.2f} GB")
    table.add_column("at the peak")
    table.add_column("GB", justify="right")
    table.add_column("bytes a parameter", justify="right")
    table.add_column("formula")
    for part in found.peak.parts:
        each = part.bytes / found.parameters
        table.add_row(part.name, f"{part.bytes / GB:.2f}", f"{each:.2f}", part.formula)
    peak = found.peak
    table.add_section()
    table.add_row(f"peak: {peak.name}", f"{peak.bytes / GB:.2f}", f"{peak.bytes / found.parameters:.2f}", "")
    return table


def bar(phase: Phase) -> "Text":
    """The parts of a phase as one bar, a letter a part."""
    from rich.text import Text

    text, legend = Text(), Text()
    for name, (letter, colour) in LETTERS.items():
        size = phase.part_bytes(name)
        if size:
            text.append(letter * max(round(BAR_WIDTH * size / phase.bytes), 1), style=colour)
            legend.append(f"{letter} {name}  ", style=colour)
    return text + "\n" + legend


def range_sentence(found: Estimate) -> str:
    """Low, high, and why they differ."""
    phases = ", ".join(f"{phase.name} {phase.bytes / GB:.1f}" for phase in found.phases)
    sentence = (
        f"peak {found.peak.bytes / GB:.1f} GB, between {found.low_bytes / GB:.1f} and {found.high_bytes / GB:.1f}: "
        f"{'; '.join(found.why_a_range)}."
    )
    return f"{sentence} Phases: {phases} GB." if len(found.phases) > 1 else sentence


def trl_sentence(card: "ModelCard", setting: Setting) -> str:
    """What the same step takes as TRL runs it."""
    if setting.method == "inference":
        return "TRL as `rlbench probe` runs it generates with fp32 weights: --regime fp32."
    found = estimate(card.architecture, as_trl_runs_it(setting))
    name = "fp32 with autocast, checkpointing full" if found.setting.autocast else "fp32"
    return (
        f"TRL as `rlbench probe` runs it ({name}): {found.bytes_per_parameter:.2f} bytes a parameter, "
        f"{found.states_bytes / GB:.2f} GB of states, peak {found.peak.bytes / GB:.1f} GB."
    )


def places_table(card: "ModelCard", setting: Setting, places: Sequence[tuple[str, int]], named: bool) -> "Table":
    """Where it fits, and the cheapest change where it does not; every change for a GPU that was named."""
    from rich.table import Table

    from rlbench.catalogue import gpus

    found = estimate(card.architecture, setting)
    table = Table()
    for column in ("GPU", "visible GB", "fits", "what would make it fit"):
        table.add_column(column, justify="right" if column == "visible GB" else "left")
    for name, visible in places:
        advice = advise(card.architecture, setting, visible, gpus().values())
        shown = advice if named else advice[:1]
        table.add_row(name, f"{visible / GB:.1f}", _fits(found, visible), "\n".join(shown))
    return table


def _fits(found: Estimate, visible: int) -> str:
    if found.peak.bytes > visible:
        return "no"
    return "yes" if found.high_bytes <= visible else "narrowly"
