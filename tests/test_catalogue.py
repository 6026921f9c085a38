"""How a name becomes a card: the package's, the user's own, a folder, the hub."""

import json
import os
from pathlib import Path

import pytest

from rlbench.catalogue import cards, find_model, package_file
from rlbench.errors import HubError, InputError, UnknownName

QWEN3_TEMPLATE = (
    "{% if add_generation_prompt %}{% if enable_thinking is false %}<think>\n\n</think>{% endif %}{% endif %}"
)
R1_TEMPLATE = "{{ messages }}{% if add_generation_prompt %}<|Assistant|><think>\n{% endif %}"


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No card of the person who runs the tests, and a current directory without any."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def write_card(folder: Path, name: str, **replaced: str) -> Path:
    """A copy of smollm2-135m's card under another name, with parts of its text replaced."""
    text = (package_file("model_cards") / "smollm2-135m.toml").read_text()
    text = text.replace('name = "smollm2-135m"', f'name = "{name}"', 1)
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new, 1)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def model_folder(folder: Path, template: str | None = None, **changes: object) -> Path:
    """A folder with a small model's configuration and no weights."""
    folder.mkdir(parents=True)
    config = {
        "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 128, "vocab_size": 300, "max_position_embeddings": 512, "eos_token_id": 2,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config | changes))
    if template is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    return folder


@pytest.mark.parametrize("name", ["qwen3-4b", "Qwen3-4B", "Qwen/Qwen3-4B", "qwen/qwen3-4b"])
def test_a_card_is_found_by_its_name_and_its_hub_id_in_any_case(name: str) -> None:
    assert find_model(name).hub_id == "Qwen/Qwen3-4B"


def test_asking_for_one_card_reads_no_other() -> None:
    write_card(Path("model_cards"), "broken", license="licence")
    assert find_model("qwen3-4b").name == "qwen3-4b"
    with pytest.raises(InputError, match="broken"):
        cards()


def test_a_near_miss_is_offered_what_it_missed() -> None:
    with pytest.raises(UnknownName, match="did you mean qwen3-4b"):
        find_model("qwen3-4")
    with pytest.raises(HubError, match="did you mean Qwen/Qwen3-4B"):
        find_model("Qwen/Qwen3-4")


def test_a_spoilt_card_stands_in_the_way_of_no_other_name() -> None:
    Path("model_cards").mkdir()
    Path("model_cards/spoilt.toml").write_text("name = 1")
    assert find_model("qwen3-4b").name == "qwen3-4b"
    with pytest.raises(UnknownName, match="did you mean qwen3-4b"):
        find_model("qwen3-4bb")


def test_the_users_cards_count_and_those_here_count_most(tmp_path: Path) -> None:
    at_home = tmp_path / "config" / "rlbench" / "model_cards"
    write_card(at_home, "mine")
    assert find_model("mine").license == "Apache-2.0"
    write_card(Path("model_cards"), "mine", **{"Apache-2.0": "MIT"})
    assert find_model("mine").license == "MIT"
    assert cards()["mine"].license == "MIT"


def test_a_changed_card_is_read_again() -> None:
    path = write_card(Path("model_cards"), "mine")
    assert find_model("mine").license == "Apache-2.0"
    path.write_text(path.read_text().replace("Apache-2.0", "MIT", 1))
    os.utime(path, ns=(1, 1))
    assert find_model("mine").license == "MIT"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("license =", "licence =", r"has the unknown key 'licence': did you mean 'license'\?"),
        ("hidden_size = 576", "", "lacks the key 'architecture.hidden_size'"),
        ("kv_heads = 3", "kv_heads = 2", "'query_heads' .9. is not a multiple of 'kv_heads' .2."),
        ('default_mode = "no_think"', 'default_mode = "think"', "'default_mode' is think, which is not in 'modes'"),
        ("layers = 30", "layers = 31", "'stated_parameters' is 134,515,008, but the architecture has"),
        ("native = 8192", "native = 8192\nextended = 4096", "'extended' .4096. is less than 'native' .8192."),
        ("temperature = 0.2", "temperatur = 0.2", "'modes.no_think.sampling.temperatur'"),
        ("layers = 30", "layers = ", "is not TOML"),
    ],
)
def test_a_card_with_a_mistake_is_refused_with_file_key_and_reason(old: str, new: str, reason: str) -> None:
    path = write_card(Path("model_cards"), "mine", **{old: new})
    with pytest.raises(InputError, match=reason) as caught:
        find_model("mine")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_card_lies_in_the_file_of_its_name() -> None:
    path = write_card(Path("model_cards"), "mine")
    path.rename(path.with_name("yours.toml"))
    with pytest.raises(InputError, match=r"call the file mine\.toml"):
        find_model("yours")


def test_a_local_folder_is_a_model(tiny_model: Path) -> None:
    card = find_model(str(tiny_model))
    config = json.loads((tiny_model / "config.json").read_text())
    assert (card.hub_id, card.default_mode, card.license) == (str(tiny_model), "no_think", "unknown")
    assert card.architecture.layers == config["num_hidden_layers"]
    assert card.context.native == 512
    assert card.stop_token_ids == (config["eos_token_id"],)


def test_the_chat_template_tells_the_modes() -> None:
    assert list(find_model(str(model_folder(Path("a")))).modes) == ["base"]
    assert list(find_model(str(model_folder(Path("b"), "{{ messages }}"))).modes) == ["no_think"]
    assert list(find_model(str(model_folder(Path("c"), QWEN3_TEMPLATE))).modes) == ["think", "no_think"]
    always = find_model(str(model_folder(Path("d"), R1_TEMPLATE)))
    assert list(always.modes) == ["think"]
    assert always.modes["think"].opened_in_prompt


def test_generation_config_gives_stop_ids_and_sampling() -> None:
    folder = model_folder(Path("model"), "{{ messages }}")
    (folder / "generation_config.json").write_text(
        json.dumps({"eos_token_id": [5, 6], "temperature": 0.6, "top_k": 20})
    )
    card = find_model("./model")
    assert card.stop_token_ids == (5, 6)
    assert (card.modes["no_think"].sampling.temperature, card.modes["no_think"].sampling.top_k) == (0.6, 20)


def test_a_folder_named_as_a_card_keeps_its_results_apart() -> None:
    assert find_model(str(model_folder(Path("elsewhere/qwen3-4b")))).name == "qwen3-4b-other"


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no config\.json"):
        find_model(str(tmp_path))
    with pytest.raises(InputError, match="no model folder"):
        find_model("./not-here")
    (model_folder(Path("torn")) / "config.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        find_model("torn")


def test_a_hub_id_without_a_card_needs_the_hub() -> None:
    with pytest.raises(HubError, match=r"no card and no cached configuration for some/model \(HF_HUB_OFFLINE is set\)"):
        find_model("some/model")
    with pytest.raises(HubError, match="--offline was given"):
        find_model("some/model", offline=True)


def test_the_hubs_cache_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    commit = "0123456789" * 4
    repository = tmp_path / "hub" / "models--some--model"
    model_folder(repository / "snapshots" / commit, QWEN3_TEMPLATE, model_type="qwen3")
    (repository / "snapshots" / commit / "README.md").write_text("---\nlicense: mit\n---\nA model.\n")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    card = find_model("some/model", offline=True)
    assert (card.name, card.hub_id, card.license) == ("model", "some/model", "mit")
    assert list(card.modes) == ["think", "no_think"]


def test_a_card_of_ones_own_may_have_capitals() -> None:
    write_card(Path("model_cards"), "Mine")
    assert find_model("mine").name == find_model("Mine").name == "Mine"


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("generation_config.json", b'{"temperature": "hot"}', "has an unusable 'temperature'"),
        ("chat_template.jinja", b"\xff", "chat template of odd is not UTF-8"),
    ],
)
def test_a_folder_with_an_unusable_file_is_refused(file: str, content: bytes, reason: str) -> None:
    folder = model_folder(Path("odd"))
    (folder / file).write_bytes(content)
    with pytest.raises(InputError, match=reason):
        find_model("odd/")


def test_a_folders_name_is_no_flag() -> None:
    assert find_model(str(model_folder(Path("-odd-").resolve()))).name == "odd"
