"""Model cards from files: a card's own TOML, a model folder, or a model on the hub.

The catalogue chooses among them. A card made from a model's files knows what those say and nothing more:
its licence, sampling and scores are for people to check and add.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rlbench.core.card import Architecture, Context, ModelCard, ModeSpec
from rlbench.core.subject import Mode, Sampling
from rlbench.errors import HubError, InputError

HUB_TIMEOUT_SECONDS = 5.0
FILES = ("config.json", "generation_config.json", "tokenizer_config.json", "chat_template.jinja", "README.md")
"""What a card is made from; all but the first may be missing."""


def read_card(path: Path) -> ModelCard:
    """The card in a TOML file, which is named after the card.

    Raises:
        InputError: the file cannot be read, or a key of it is unknown, missing or contradicts another.
    """
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise InputError(f"the card {path} cannot be read: {error.strerror}.") from None


@cache
def _read(path: Path, _changed: int) -> ModelCard:
    try:
        card = ModelCard.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise InputError(f"the card {path} {_complaint(error)}") from None
    except ValueError as error:
        raise InputError(f"the card {path} is not TOML: {error}.") from None
    if card.name != path.stem:
        raise InputError(f"the card {path} has the 'name' {card.name!r}: call the file {card.name}.toml.")
    return card


def _complaint(error: ValidationError) -> str:
    """What is wrong with the card, as the rest of a sentence about it; an unknown key before all else."""
    found = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    first = found[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        lacking = [str(one["loc"][-1]) for one in found if one["type"] == "missing"]
        near = get_close_matches(str(first["loc"][-1]), [*lacking, *ModelCard.model_fields], n=1)
        return f"has the unknown key '{key}': " + (f"did you mean '{near[0]}'?" if near else "take it out.")
    if first["type"] == "missing":
        return f"lacks the key '{key}': add it."
    reason = str(first["msg"]).removeprefix("Value error, ")
    reason = reason[:1].lower() + reason[1:]
    return f"has an unusable '{key}': {reason}." if key else f"contradicts itself: {reason}."


def card_of_folder(folder: Path) -> ModelCard:
    """A card for the model in a local folder.

    Raises:
        InputError: it is no model's folder, or not one that rlbench can count.
    """
    if not (folder / "config.json").is_file():
        raise InputError(f"the folder {folder} has no config.json: name a folder that `save_pretrained` wrote.")
    # Without dashes at its ends: a command would take `-x` for a flag.
    name = re.sub(r"[^a-z0-9._-]+", "-", folder.resolve().name.lower()).strip("-") or "model"
    return _card(name, str(folder), {file: folder / file for file in FILES if (folder / file).is_file()})


def card_of_hub(hub_id: str, offline: bool = False, hint: str = "") -> ModelCard:
    """A card for a model on the hub, from its small files (those in the Hugging Face cache when `offline`).

    Args:
        hub_id: `owner/name`.
        offline: do not ask the hub.
        hint: what else the user may have meant, for the error.

    Raises:
        HubError: the hub does not have it, cannot be reached, or does not let this user in.
        InputError: it is not a model that rlbench can count.
    """
    files = dict(_fetched(hub_id, offline, hint))
    return _card(hub_id.rpartition("/")[2].lower(), hub_id, files)


def _fetched(hub_id: str, offline: bool, hint: str) -> Iterator[tuple[str, Path]]:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        HTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    # The hub's own client would try five more times, for half a minute.
    unreachable = "--offline was given" if offline else hub_unreachable()
    for file in FILES:
        try:
            path = hf_hub_download(hub_id, file, etag_timeout=HUB_TIMEOUT_SECONDS, local_files_only=bool(unreachable))
        except HFValidationError:
            raise InputError(f"'{hub_id}' is no hub id: write owner/name.") from None
        except GatedRepoError:
            raise HubError(f"{hub_id} is gated: ask for access on its page and set HF_TOKEN.") from None
        except RepositoryNotFoundError:
            raise HubError(f"the hub has no model {hub_id}: {hint or 'check its name, or set HF_TOKEN.'}") from None
        except LocalEntryNotFoundError:
            if file == FILES[0]:
                raise HubError(_out_of_reach(hub_id, unreachable, hint)) from None
            continue
        except EntryNotFoundError:
            if file == FILES[0]:
                raise HubError(f"{hub_id} has no config.json: name a model in transformers' format.") from None
            continue
        except (HfHubHTTPError, HTTPError, OSError) as error:
            raise HubError(f"{hub_id} could not be looked up ({str(error).splitlines()[0]}): try again.") from None
        yield file, Path(path)


@cache
def hub_unreachable() -> str | None:
    """Why the hub cannot be asked, found out once a process; `None` when it answers at all."""
    from huggingface_hub import constants, is_offline_mode
    from huggingface_hub.errors import HTTPError
    from huggingface_hub.utils import get_session

    if is_offline_mode():
        return "HF_HUB_OFFLINE is set"
    try:
        get_session().head(constants.ENDPOINT, timeout=HUB_TIMEOUT_SECONDS)
    except (HTTPError, OSError) as error:
        return f"{constants.ENDPOINT} cannot be reached: {str(error).splitlines()[0]}"
    return None


def _out_of_reach(hub_id: str, why: str | None, hint: str) -> str:
    step = hint or "check the network, set HF_ENDPOINT to a mirror, or name a local folder."
    return f"no card and no cached configuration for {hub_id} ({why or 'the hub did not answer'}): {step}"


def _card(name: str, hub_id: str, files: Mapping[str, Path]) -> ModelCard:
    config = _json(files["config.json"])
    generation = _json(files["generation_config.json"]) if "generation_config.json" in files else {}
    architecture = Architecture.from_config(config, hub_id)
    try:
        return _card_from(name, hub_id, files, config, generation, architecture)
    except ValidationError as error:
        raise InputError(f"the configuration of {hub_id} {_complaint(error)}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"the chat template of {hub_id} is not UTF-8 ({error}): save the model again.") from None


def _card_from(
    name: str,
    hub_id: str,
    files: Mapping[str, Path],
    config: Mapping[str, Any],
    generation: Mapping[str, Any],
    architecture: Architecture,
) -> ModelCard:
    modes = _modes(_template(files), _sampling(generation))
    return ModelCard(
        name=name,
        hub_id=hub_id,
        license=_license(files),
        architecture=architecture,
        shipped_dtype=config.get("torch_dtype") or config.get("dtype"),
        context=_context(config, hub_id),
        modes=modes,
        default_mode=next(iter(modes)),
        stop_token_ids=_stop_ids(generation) or _stop_ids(config),
        sources={"everything": f"the configuration, template and README of {hub_id}"},
        caveats=("Made from the model's own files by rlbench: nobody has checked its sampling, modes and licence.",),
    )


def _modes(template: str, sampling: Sampling) -> dict[Mode, ModeSpec]:
    """The modes that a chat template offers, the default one first."""
    if not template:
        return {"base": ModeSpec(how="raw text: there is no chat template", sampling=sampling)}
    if "enable_thinking" in template:
        think = ModeSpec(
            how="enable_thinking = true in the chat template",
            chat_template_kwargs={"enable_thinking": True},
            sampling=sampling,
            think_open="<think>",
            think_close="</think>",
        )
        off = ModeSpec(
            how="enable_thinking = false in the chat template",
            chat_template_kwargs={"enable_thinking": False},
            sampling=sampling,
        )
        return {"think": think, "no_think": off}
    if "<think>" in template.rpartition("add_generation_prompt")[2]:
        always = ModeSpec(
            how="always: the chat template opens <think> in the prompt",
            sampling=sampling,
            think_open="<think>",
            think_close="</think>",
            opened_in_prompt=True,
        )
        return {"think": always}
    return {"no_think": ModeSpec(how="the only one", sampling=sampling)}


def _template(files: Mapping[str, Path]) -> str:
    if "chat_template.jinja" in files:
        return files["chat_template.jinja"].read_text(encoding="utf-8")
    if "tokenizer_config.json" not in files:
        return ""
    found = _json(files["tokenizer_config.json"]).get("chat_template") or ""
    if isinstance(found, list):  # several templates by name
        return "".join(str(one.get("template", "")) for one in found if one.get("name") == "default")
    return str(found)


def _sampling(generation: Mapping[str, Any]) -> Sampling:
    """What generation_config.json recommends; what it leaves out is off."""
    keys = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
    return Sampling(**{key: generation[key] for key in keys if generation.get(key) is not None})


def _stop_ids(config: Mapping[str, Any]) -> tuple[int, ...]:
    found = config.get("eos_token_id")
    ids = found if isinstance(found, list) else [found]
    return tuple(one for one in ids if isinstance(one, int))


def _context(config: Mapping[str, Any], hub_id: str) -> Context:
    length = config.get("max_position_embeddings")
    if not isinstance(length, int) or length < 1:
        raise InputError(f"{hub_id} lacks 'max_position_embeddings': name a model with a complete config.json.")
    return Context(native=length, how="As configured.")


def _license(files: Mapping[str, Path]) -> str:
    """The licence in the front matter of the README; people write `license: mit` there."""
    if "README.md" not in files:
        return "unknown"
    front = files["README.md"].read_text(encoding="utf-8", errors="replace").split("\n---", 1)[0]
    found = re.search(r"^license:\s*(\S+)", front, re.MULTILINE)
    return found.group(1) if found else "unknown"


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not JSON ({error}): fetch or save the model again.") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a JSON object: fetch or save the model again.")
    return found
