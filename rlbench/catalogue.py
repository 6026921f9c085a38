"""Cards, GPUs and prices from files."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from rlbench.cards import card_of_folder, card_of_hub, read_card
from rlbench.core.card import ModelCard
from rlbench.devices import find_gpu, find_price, gpus, prices
from rlbench.errors import InputError, UnknownName

__all__ = (
    "CANDIDATES", "card_folders", "cards", "find_gpu", "find_model", "find_price", "gpus", "package_file", "prices",
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
"""The seven that rlbench compares when nobody names a model."""

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")

PACKAGE = Path(__file__).resolve().parent


def package_file(*parts: str) -> Path:
    """A file of the package's data: `plans`, or `model_cards`, which in a checkout lie at its top."""
    at_top = PACKAGE.parent / "model_cards"
    if parts[0] == "model_cards":
        return (at_top if at_top.is_dir() else PACKAGE / "data" / "model_cards").joinpath(*parts[1:])
    return PACKAGE.joinpath(*parts)


def card_folders() -> tuple[Path, ...]:
    """Where cards lie; of two with one name, that of the later folder counts.

    The package's own, then the user's: `model_cards/` in the configuration folder (`~/.config/rlbench` on Linux)
    and `model_cards/` in the current directory.
    """
    from platformdirs import user_config_path

    return package_file("model_cards"), user_config_path("rlbench") / "model_cards", Path("model_cards")


def cards() -> dict[str, ModelCard]:
    """Every card by name.

    Raises:
        InputError: a card has an unknown key, lacks one, or contradicts itself.
    """
    return {name: read_card(path) for name, path in _card_files().items()}


def find_model(name: str, offline: bool = False) -> ModelCard:
    """The card called `name`, or one made for the model that `name` says.

    In this order: a card's name; a local folder; a card's hub id (both names in any case); another hub id, whose
    configuration is fetched.

    Args:
        name: what the user typed.
        offline: do not ask the hub.

    Raises:
        UnknownName: nothing is called so; near names are offered.
        InputError: the folder is no model, or the card is unusable.
        HubError: it looks like a hub id and the hub does not give its configuration.
    """
    files = _card_files()
    by_name = {known.lower(): path for known, path in files.items()}
    if name.lower() in by_name:
        return read_card(by_name[name.lower()])
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _named_apart(card_of_folder(folder), files)
    if folder.is_file() or name.startswith((".", "/", "~")):
        raise InputError(f"there is no model folder {name}: name a folder with config.json, or a card.")
    if "/" not in name:
        raise UnknownName("model", name, files)
    by_hub_id = {card.hub_id.lower(): card for card in cards().values()}
    if name.lower() in by_hub_id:
        return by_hub_id[name.lower()]
    if _HUB_ID.fullmatch(name):
        near = get_close_matches(name.lower(), by_hub_id, n=1, cutoff=0.8)
        hint = f"did you mean {by_hub_id[near[0]].hub_id}?" if near else ""
        return _named_apart(card_of_hub(name, offline, hint), files)
    raise UnknownName("model", name, files)


def _card_files() -> dict[str, Path]:
    """Every card's file by the card's name, the candidates first, without reading any."""
    found = {path.stem: path for folder in card_folders() for path in sorted(folder.glob("*.toml"))}
    ordered = [name for name in CANDIDATES if name in found]
    return {name: found[name] for name in [*ordered, *(name for name in found if name not in ordered)]}


def _named_apart(card: ModelCard, known: Mapping[str, Path]) -> ModelCard:
    """The card under a name that no other card has, so that their results are not taken for each other's."""
    return card.model_copy(update={"name": f"{card.name}-other"}) if card.name in known else card
