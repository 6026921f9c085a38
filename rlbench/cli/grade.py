"""`rlbench grade FILE`: grade answers from anywhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlbench.cli.app import app
from rlbench.cli.common import Session, command

if TYPE_CHECKING:
    from rlbench.grading.math import Question


@command(app, "grade", "grade the answers in a JSONL file")
def grade(
    session: Session,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="JSONL with `gold` and `prediction` or `prediction_text`."),
    ],
    deadline: Annotated[float, typer.Option(metavar="SECONDS", help="For one answer.", min=0.1)] = 5.0,
) -> None:
    """Grade mathematical answers: right wherever the answer stands, a hostile one costs at most its deadline."""
    from rlbench.grading.pool import GradingPool

    rows = read(file)
    with GradingPool(deadline_seconds=deadline) as pool:
        judgements = list(pool.judge_all(question for _, question in rows))
    verdicts = [judgement.verdict for judgement in judgements]
    document = {
        "n": len(rows),
        "correct": verdicts.count("right"),
        "timeouts": verdicts.count("timeout"),
        "unparsable": verdicts.count("unparsable"),
        "results": [
            {"id": identity, "correct": j.verdict == "right", "in_final_form": j.in_final_form, "reason": j.reason}
            for (identity, _), j in zip(rows, judgements, strict=True)
        ],
    }
    if session.json:
        session.emit(document)
    else:
        session.out.print(
            f"{document['correct']} of {document['n']} right, {document['timeouts']} not graded in time, "
            f"{document['unparsable']} without an answer.",
            highlight=False,
        )


def read(file: Path) -> "list[tuple[str, Question]]":
    """The rows of a JSONL file as an id and a question.

    Raises:
        InputError: the file cannot be read, or a line of it lacks what grading needs.
    """
    import json

    from rlbench.errors import InputError

    try:
        # Not `splitlines`: a JSON string may hold U+2028 and its kind, which end no line of JSONL.
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    rows = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                rows.append(_row(json.loads(line), number))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise InputError(
                    f"line {number} of {file} cannot be graded: it needs `gold` and `prediction` or "
                    "`prediction_text`, all strings, and `kind` can only be answer or text."
                ) from None
    return rows


def _row(row: dict[str, Any], number: int) -> "tuple[str, Question]":
    from rlbench.grading.math import Question

    text = row.get("prediction", row.get("prediction_text"))
    kind = row.get("kind") or ("answer" if "prediction" in row else "text")
    if not isinstance(text, str) or not isinstance(row["gold"], str) or not kind.startswith(("answer", "text")):
        raise ValueError(number)
    identity = row.get("id")
    return str(number if identity is None else identity), Question(
        text, row["gold"], "answer" if kind == "answer" else "text"
    )
