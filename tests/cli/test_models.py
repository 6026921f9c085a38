"""`rlbench models`: the list, one model, and a card for a new one."""

import json
from pathlib import Path
from typing import Any

import pytest

from rlbench.catalogue import CANDIDATES
from rlbench.cli.app import run


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def documents(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert run(["models", *arguments, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["models"]
    return found


def test_the_json_has_the_exact_counts_and_the_keys_others_rely_on(capsys: pytest.CaptureFixture[str]) -> None:
    found = {model["name"]: model for model in documents(capsys)}
    assert tuple(found)[:7] == CANDIDATES
    qwen = found["qwen3-4b"]
    assert {key: qwen[key] for key in ("hub_id", "revision", "license", "context_length")} == {
        "hub_id": "Qwen/Qwen3-4B", "revision": "main", "license": "Apache-2.0", "context_length": 32768,
    }  # fmt: skip
    assert (qwen["parameters"], qwen["non_embedding_parameters"]) == (4_022_468_096, 3_633_511_936)
    assert (qwen["kv_bytes_per_token"], qwen["modes"]) == (147_456, ["think", "no_think"])
    assert found["open-rs1"]["candidate"] is False


def test_one_model_alone_with_verdicts_on_what_is_said_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    (card,) = documents(capsys, "OLMo-1B")
    verdicts = {claim["quantity"]: claim["verdict"] for claim in card["claims"]}
    assert verdicts["tied_embeddings"] == "holds"
    assert verdicts["parameters"] == "holds"
    assert verdicts["measure"] == "open"


def test_the_table_shows_every_model_whole(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["models"]) == 0
    shown = capsys.readouterr().out
    for words in ("deepseek-r1-distill-1.5b", "4,022,468,096", "147,456", "131,072", "Apache-2.0", "no-think"):
        assert words in shown
    assert "…" not in shown


def test_one_model_is_told_with_scores_sources_claims_and_caveats(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "deepseek-r1-distill-1.5b"]) == 0
    shown = capsys.readouterr().out
    for words in (
        "1,777,088,000", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "copied from DeepScaleR README",
        "the set of 83 problems", "claims", "beware", "There is no switch".lower(), "sources",
    ):  # fmt: skip
        assert words in shown


def test_a_caveat_of_a_whole_table_is_written_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "smollm3-3b"]) == 0
    assert "as above" in capsys.readouterr().out


def test_add_writes_a_card_that_counts_from_then_on(capsys: pytest.CaptureFixture[str], tiny_model: Path) -> None:
    assert run(["models", "add", str(tiny_model)]) == 0
    written = next(Path("model_cards").glob("*.toml"))
    capsys.readouterr()
    (card,) = documents(capsys, written.stem)
    assert card["hub_id"] == str(tiny_model)
    assert card["architecture"]["layers"] == 2
    assert any("nobody has checked" in caveat for caveat in card["caveats"])


def test_add_overwrites_nothing(capsys: pytest.CaptureFixture[str], tiny_model: Path) -> None:
    assert run(["models", "add", str(tiny_model)]) == 0
    written = next(Path("model_cards").glob("*.toml"))
    written.write_text(written.read_text().replace('"unknown"', '"MIT"'))
    assert run(["models", "add", str(tiny_model)]) == 2
    assert "already" in capsys.readouterr().err
    assert '"MIT"' in written.read_text()
    assert run(["models", "add", "qwen3-4b"]) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["qwen4"], 2, "did you mean qwen3-4b"),
        (["add"], 2, "takes one model"),
        (["qwen3-4b", "smollm3-3b"], 2, "tells about one model, not 2"),
        (["some/model"], 1, "name a local folder"),
        (["add", "some/model"], 1, "name a local folder"),
        (["./nowhere"], 2, "no model folder ./nowhere"),
    ],
)
def test_bad_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert run(["models", *arguments]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert words in said.err
    assert said.err.count("\n") == 1


def test_a_cards_typo_is_named_with_its_file(capsys: pytest.CaptureFixture[str], tiny_model: Path) -> None:
    assert run(["models", "add", str(tiny_model)]) == 0
    written = next(Path("model_cards").glob("*.toml"))
    written.write_text(written.read_text().replace("license =", "licence ="))
    capsys.readouterr()
    assert run(["models"]) == 2
    assert f"the card {written} has the unknown key 'licence': did you mean 'license'?" in capsys.readouterr().err
