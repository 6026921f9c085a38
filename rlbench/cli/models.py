"""`rlbench models`: which candidates there are, all that is known of one, and a card for a new one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlbench.cli.app import app
from rlbench.cli.common import Session, command

if TYPE_CHECKING:
    from rlbench.core.card import ModelCard, ModeSpec, PublishedScore
    from rlbench.core.claims import Verdict


@command(app, "models", "the models: facts, sources, claims")
def models(
    session: Session,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME | add HUB_ID_OR_PATH]",
            help="One model: a card name, hub id or folder. With `add`, write a card for it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """List the models that have a card, tell all about one, or write a card for a new one.

    `rlbench models add HUB_ID_OR_PATH` writes model_cards/NAME.toml here; correct it and it counts from then on.
    """
    from rlbench import catalogue
    from rlbench.errors import InputError

    asked = words or []
    if asked[:1] == ["add"]:
        _add(session, asked[1:])
        return
    if len(asked) > 1:
        raise InputError(f"'models' tells about one model, not {len(asked)}: name one, or none to list them all.")
    chosen = [catalogue.find_model(asked[0], session.offline)] if asked else list(catalogue.cards().values())
    if session.json:
        session.emit({"models": [_document(card) for card in chosen]})
    elif asked:
        _show_one(session, chosen[0])
    else:
        _show_table(session, chosen)


def _add(session: Session, names: list[str]) -> None:
    from rlbench import cards, catalogue
    from rlbench.errors import InputError

    if len(names) != 1:
        raise InputError("'models add' takes one model: a hub id or a local folder.")
    folder = Path(names[0]).expanduser()
    card = (
        cards.card_of_folder(folder.resolve()) if folder.is_dir() else catalogue.find_model(names[0], session.offline)
    )
    path = Path("model_cards") / f"{card.name}.toml"
    if card.name in catalogue.cards():
        raise InputError(f"there is a card {card.name} already: see `rlbench models {card.name}`; none was written.")
    _write(path, card)
    if session.json:
        session.emit({"models": [_document(card)], "written": str(path)})
    else:
        session.out.print(
            f"{path} written: check its licence, modes and sampling; `rlbench models {card.name}` shows it.",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def _write(path: Path, card: "ModelCard") -> None:
    import tomli_w

    from rlbench.errors import InputError

    text = tomli_w.dumps(card.model_dump(mode="json", exclude_none=True, exclude_defaults=True))
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} exists: correct it, or take it away to have it written anew.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): go to a folder that is yours.") from None


def _document(card: "ModelCard") -> dict[str, Any]:
    """The card as JSON, with what follows from its architecture and the verdicts on its claims."""
    from rlbench.catalogue import CANDIDATES

    architecture = card.architecture
    return card.to_json() | {
        "candidate": card.name in CANDIDATES,
        "parameters": card.parameters,
        "non_embedding_parameters": card.non_embedding_parameters,
        "decode_parameters": architecture.decode_parameters,
        "parameters_by_part": architecture.parameters_by_part,
        "kv_bytes_per_token": card.kv_bytes_per_token,
        "context_length": card.context.native,
        "modes": list(card.modes),
        "mode_details": {mode: spec.to_json() for mode, spec in card.modes.items()},
        "claims": [
            claim.to_json() | {"verdict": verdict.verdict, "evidence": verdict.evidence}
            for claim, verdict in zip(card.claims, _verdicts(card), strict=True)
        ],
    }


def _verdicts(card: "ModelCard") -> list["Verdict"]:
    from rlbench.core.claims import judge

    return judge(card, card.published_records())


def _show_table(session: Session, cards: list["ModelCard"]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("model", no_wrap=True)
    table.add_column("parameters", justify="right", min_width=13)
    table.add_column("KV bytes a token", justify="right", min_width=8)
    table.add_column("context", justify="right", min_width=7)
    table.add_column("licence", min_width=10)
    table.add_column("modes", min_width=9)
    for card in cards:
        table.add_row(
            card.name,
            f"{card.parameters:,}",
            f"{card.kv_bytes_per_token:,}",
            f"{card.context.native:,}",
            card.license,
            _modes(card),
        )
    session.out.print(table)
    session.out.print("\n`rlbench models NAME` tells all about one, with sources.", highlight=False, soft_wrap=True)


def _show_one(session: Session, card: "ModelCard") -> None:
    from rich.table import Table

    def write(text: str) -> None:
        session.out.print(text, markup=False, highlight=False, soft_wrap=True)

    facts = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for what, value in _facts(card).items():
        facts.add_row(what, value)
    write(f"{card.name} ({card.hub_id}, revision {card.revision})\n")
    session.out.print(facts)
    for mode, spec in card.modes.items():
        write(f"\nmode {_dashed(mode)}{' (default)' if mode == card.default_mode else ''}: {_mode_sentence(spec)}")
    if card.published:
        write("\npublished scores (percent)")
        for heading, scores in _by_source(card.published):
            write(f"\n  {heading}")
            session.out.print(_scores(scores))
    for title, lines in (
        ("claims", [_claim_line(verdict) for verdict in _verdicts(card)]),
        ("beware", list(card.caveats)),
        ("sources", [f"{part}: {source}" for part, source in card.sources.items()]),
    ):
        if lines:
            write(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines))


def _facts(card: "ModelCard") -> dict[str, str]:
    architecture = card.architecture
    parts = (f"{name.replace('_', ' ')} {n:,}" for name, n in architecture.parameters_by_part.items() if n)
    extended = f"; extended {card.context.extended:,}" if card.context.extended else ""
    stops = ", ".join(map(str, card.stop_token_ids)) or "those of the model's generation_config.json"
    facts = {
        "parameters": f"{card.parameters:,} ({', '.join(parts)})",
        "not embeddings": f"{card.non_embedding_parameters:,}",
        "KV cache": f"{card.kv_bytes_per_token:,} bytes a token in half precision",
        "architecture": _shape(card),
        "licence": card.license,
        "context": f"{card.context.native:,} tokens{extended}. {card.context.how}".strip(),
        "modes": _modes(card),
        "stop ids": stops,
        "weights on the hub": card.shipped_dtype or "dtype unknown",
        "learning rate": f"{card.learning_rate:g} ({card.learning_rate_source})",
    }
    if card.weights_package is not None:
        facts["without a hub"] = f"{card.weights_package.package} ({card.weights_package.note})"
    return facts


def _shape(card: "ModelCard") -> str:
    shape = card.architecture
    tied = "tied" if shape.tied_embeddings else "untied"
    return (
        f"{shape.model_type}, {shape.layers} layers, hidden {shape.hidden_size:,}, feed-forward "
        f"{shape.intermediate_size:,}, {shape.query_heads} query and {shape.kv_heads} key-value heads of "
        f"{shape.head_dim}, {shape.vocab_size:,} words, embeddings {tied}"
    )


def _mode_sentence(spec: "ModeSpec") -> str:
    sampling = spec.sampling
    asked = ", ".join(f"{key} {value:g}" for key, value in sampling.model_dump(exclude_defaults=True).items())
    cap = f"; up to {spec.max_new_tokens:,} new tokens" if spec.max_new_tokens else ""
    tags = f"; thinks from {spec.think_open} to {spec.think_close}" if spec.think_close else ""
    return f"{spec.how or 'no switch'}; sampling: {asked or 'neutral'}{cap}{tags}"


def _by_source(published: tuple["PublishedScore", ...]) -> list[tuple[str, list["PublishedScore"]]]:
    """The scores under a heading that says where they are from and how they were made."""
    groups: dict[str, list[PublishedScore]] = {}
    for score in published:
        copied = f"copied from {score.copied_from}" if score.copied_from else ""
        said = (_dashed(score.mode), score.source, score.harness, copied)
        groups.setdefault("; ".join(part for part in said if part), []).append(score)
    return list(groups.items())


def _scores(scores: list["PublishedScore"]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", padding=(0, 0, 0, 2))
    for title in ("task", "score", "samples", "prompts", "token cap", "caveat"):
        table.add_column(title, justify="left" if title in ("task", "caveat") else "right", min_width=len(title))
    before = ""
    for score in scores:
        caveat = "as above" if score.caveat and score.caveat == before else score.caveat
        numbers = (_number(number) for number in (score.samples, score.n_prompts, score.max_new_tokens))
        table.add_row(score.task, f"{100 * score.score:.1f}", *numbers, Text(caveat))
        before = score.caveat
    return table


def _claim_line(verdict: "Verdict") -> str:
    command = f" Try: {verdict.command}" if verdict.command else ""
    return f"{verdict.verdict}: {verdict.claim} ({verdict.claim_source}). {verdict.evidence}{command}"


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _modes(card: "ModelCard") -> str:
    return ", ".join(_dashed(mode) for mode in card.modes)


def _dashed(mode: str) -> str:
    return mode.replace("_", "-")
