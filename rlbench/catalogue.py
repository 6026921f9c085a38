"""Cards, GPUs and prices from files."""

import json
import tomllib
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from rlbench.core.card import Architecture, ModelCard
from rlbench.devices import find_gpu, find_price, gpus, prices
from rlbench.errors import InputError, UnknownName

__all__ = (
    "CANDIDATES", "cards", "find_gpu", "find_model", "find_price", "gpus", "package_file", "prices",
)  # fmt: skip

CANDIDATES = (
    "qwen3-4b",
    "smollm3-3b",
    "qwen3-1.7b",
    "olmo-1b",
    "qwen3-0.6b",
    "smollm2-360m",
    "deepseek-r1-distill-1.5b",
)

PACKAGE = Path(__file__).resolve().parent


def package_file(*parts: str) -> Path:
    """A file of the package's data."""
    at_top = {"model_cards": PACKAGE.parent / "model_cards", "reference": PACKAGE.parent / "results" / "reference"}
    if parts and parts[0] in at_top and at_top[parts[0]].is_dir():
        return at_top[parts[0]].joinpath(*parts[1:])
    if parts and parts[0] == "plans":
        return PACKAGE.joinpath(*parts)
    return PACKAGE.joinpath("data", *parts)


@cache
def cards() -> dict[str, ModelCard]:
    found = [_read(path) for path in sorted(package_file("model_cards").glob("*.toml"))]
    return {card.name: card for card in found}


def find_model(name: str) -> ModelCard:
    if Path(name).is_dir():
        return _from_folder(Path(name))
    for card in cards().values():
        if name.lower() in (card.name, card.hub_id.lower()):
            return card
    raise UnknownName("model", name, cards())


def _read(path: Path) -> ModelCard:
    try:
        return ModelCard.model_validate(tomllib.loads(path.read_text()))
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"the card {path}: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from None


def _from_folder(folder: Path) -> ModelCard:
    config = json.loads((folder / "config.json").read_text())
    from rlbench.core.card import Context, ModeSpec
    from rlbench.core.subject import Sampling

    return ModelCard(
        name=folder.name.lower(),
        hub_id=str(folder),
        license="unknown",
        architecture=Architecture.from_config(config, str(folder / "config.json")),
        context=Context(native=config.get("max_position_embeddings", 2048)),
        modes={"no_think": ModeSpec(sampling=Sampling())},
        default_mode="no_think",
    )
