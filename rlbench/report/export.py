"""The comparison as a file: HTML, Markdown, CSV or JSON by the file's ending, put in place whole or not at all."""

import csv
import html as escaping
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from rlbench.core.ranking import tie_letters
from rlbench.errors import InputError
from rlbench.report.comparison import Comparison
from rlbench.report.figures import Figure
from rlbench.report.formats import (
    billions,
    certainty,
    dollars,
    gib,
    number,
    percent,
    points,
    ranks,
    span,
)
from rlbench.report.headline import headline
from rlbench.report.page import html


def check_path(path: Path) -> None:
    """Refuse a path that could not be written, before any work is done for it.

    Raises:
        InputError: its ending names no format, its folder does not exist, or it is a folder.
    """
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"the ending of {path} names no format: use {', '.join(FORMATS)}.")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} for the report: make it, or name another with --out.")
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file with --out.")


def write(comparison: Comparison, path: Path) -> None:
    """Write the comparison to `path`, in the format that its ending names.

    Raises:
        InputError: the path cannot be written.
    """
    check_path(path)
    text = FORMATS[path.suffix.lower()](comparison)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink()
        raise InputError(f"cannot write {path}: {error.strerror or error}: name another file with --out.") from error


def json_text(comparison: Comparison) -> str:
    """The same document that `--json` prints."""
    document = comparison.document(headline(comparison).text)
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def csv_text(comparison: Comparison) -> str:
    """One row a figure, with its unit, provenance and source."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(Figure.model_fields), lineterminator="\n")
    writer.writeheader()
    writer.writerows(figure.to_json() for figure in comparison.figures)
    return buffer.getvalue()


def markdown(comparison: Comparison) -> str:
    """The page's text and tables; charts and completions are left to the HTML."""
    says = headline(comparison)
    parts = [
        f"# {_cell(says.verdict)}",
        _cell(says.because),
        f"{says.next_step} `{says.command}`",
        *(f"**Left out:** {_cell(sentence)}" for sentence in comparison.unreadable),
        "## Ranking",
        *_ranking_tables(comparison),
        "### Not ranked: models without a probe",
        _unprobed_table(comparison),
        "## Claims and verdicts",
        _table(
            ("Model", "Claim", "Verdict", "Evidence"),
            ((row.model, row.claim, row.verdict, row.evidence) for row in comparison.claims),
        ),
        "## What is missing",
        _table(("Model", "What", "Command"), ((row.model, row.what, f"`{row.command}`") for row in comparison.missing)),
        "## Every figure",
        _table(
            ("Model", "Mode", "Task", "Cap", "Figure", "Value", "95% interval", "Unit", "Provenance", "Source"),
            (_figure_row(figure) for figure in comparison.figures if figure.kind != "ranking"),
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _ranking_tables(comparison: Comparison) -> list[str]:
    tables = []
    for entries in comparison.ranking.groups:
        group, letters = entries[0].group, tie_letters(entries, comparison.ranking.ties)
        cap = f", at most {group.max_new_tokens:,} new tokens" if group.max_new_tokens else ""
        tables.append(f"Task {_cell(group.task)}{cap}; {_cell(group.protocol)}. Models that share a letter are tied.")
        tables.append(
            _table(
                ("Rank", "Model", "Tied", "Points per dollar", "P(best)", "Gain, points", "Cost", "Dollars per point"),
                (
                    (
                        ranks(entry.rank_low, entry.rank_high),
                        entry.name,
                        letters[entry.name] or "–",
                        f"{number(entry.points_per_usd)} "
                        f"({span(number(entry.points_per_usd_low), number(entry.points_per_usd_high))})",
                        certainty(entry.p_best) if len(entries) > 1 else "–",
                        f"{points(entry.gain)} ({span(points(entry.ci_low), points(entry.ci_high))})",
                        dollars(entry.usd),
                        dollars(entry.usd_per_point) if entry.usd_per_point is not None else entry.usd_per_point_note,
                    )
                    for entry in entries
                ),
            )
        )
    return tables or ["No finished probe is in the store, so no model has a place."]


def _unprobed_table(comparison: Comparison) -> str:
    gpu = comparison.question.gpu
    header = ("Model", "Parameters", f"1,000 rollouts on {gpu}", "Full fine-tuning", "Score", "Command")
    rows = (
        (
            row.model,
            billions(row.parameters),
            _labelled(dollars(row.usd_per_thousand_rollouts), row.speed_provenance),
            _labelled(gib(row.training_peak_bytes), row.memory_provenance),
            _labelled(f"{percent(row.score)} {row.score_task or ''} {row.score_mode or ''}", row.score_provenance),
            f"`{row.command}`",
        )
        for row in comparison.unprobed
    )
    return _table(header, rows)


def _labelled(text: str, provenance: str | None) -> str:
    return f"{text.strip()} ({provenance})" if provenance else text.strip()


def _figure_row(figure: Figure) -> Sequence[str]:
    limits = span(number(figure.low), number(figure.high)) if figure.low is not None else ""
    return (
        figure.model,
        figure.mode or "",
        figure.task or "",
        str(figure.max_new_tokens or ""),
        figure.quantity,
        number(figure.value),
        limits,
        figure.unit,
        figure.provenance if figure.status == "ok" else f"{figure.provenance}, {figure.status}",
        figure.source,
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(_cell(text) for text in row) + " |" for row in rows]
    if not lines:
        return "Nothing."
    return "\n".join(["| " + " | ".join(header) + " |", "|" + " --- |" * len(header), *lines])


def _cell(text: str) -> str:
    """Text that neither breaks a table nor becomes markup where Markdown is shown as HTML."""
    return escaping.escape(" ".join(text.split()), quote=False).replace("|", "\\|")


FORMATS: dict[str, Callable[[Comparison], str]] = {
    ".html": html,
    ".md": markdown,
    ".csv": csv_text,
    ".json": json_text,
}
"""By the ending of the file."""
