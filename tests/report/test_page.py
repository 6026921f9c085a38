"""The page: complete in one file, every figure labelled, whatever a model wrote escaped."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rlbench.catalogue import find_model
from rlbench.report.comparison import Comparison, Question, compare
from rlbench.report.examples import examples
from rlbench.report.headline import headline
from rlbench.report.page import SECTIONS, html
from tests.report.made_up import SCRIPT, fill


class Reader(HTMLParser):
    """Tags that are open at the end, every attribute, and the text."""

    VOID = ("meta", "br", "link", "img", "input", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def comparison(folder: Path, budget_usd: float | None = None) -> Comparison:
    store = fill(folder / "store")
    question = Question(
        gpu="a40", gpu_visible_bytes=47_610_000_000, budget_usd=budget_usd, command="rlbench compare",
        created="2026-01-07T00:00:00+00:00", store="store", version="0.0",
    )  # fmt: skip
    card = find_model("smollm2-135m")
    records = [*store.records(pytest.fail), *card.published_records()]
    return compare(question, [card], records, examples(store.folders(), {}, pytest.fail))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, str]:
    found = comparison(tmp_path_factory.mktemp("page"))
    return found, html(found)


def test_the_page_is_whole_and_loads_nothing(made: tuple[Comparison, str]) -> None:
    reader = Reader()
    reader.feed(made[1])
    assert reader.open == []
    tags = {tag for tag, _ in reader.seen}
    assert not tags & {"script", "link", "img", "iframe", "object", "image", "use", "foreignobject"}
    references = [
        value for _, found in reader.seen for name, value in found.items() if name in ("src", "href", "xlink:href")
    ]
    assert all(value is not None and value.startswith("#") for value in references)
    assert not re.search(r"url\(|@import", made[1])
    assert not any(name.startswith("on") for _, found in reader.seen for name in found)


def test_every_section_is_there_and_linked(made: tuple[Comparison, str]) -> None:
    for identity, name in SECTIONS:
        assert f'<section id="{identity}">' in made[1]
        assert f'<a href="#{identity}">{name}</a>' in made[1]


def test_a_script_in_a_completion_is_shown_not_run(made: tuple[Comparison, str]) -> None:
    reader = Reader()
    reader.feed(made[1])
    assert SCRIPT in reader.text
    assert SCRIPT not in made[1]


def test_the_ranking_shows_ties_and_hides_a_price_of_nothing(made: tuple[Comparison, str]) -> None:
    text = " ".join(made[1].split())
    assert "smollm2-135m and qwen3-0.6b cannot be told apart on short-answer" in text
    assert "not shown: gain not distinguishable from zero" in text
    assert text.count('<td class="n">1–2</td>') == 2
    assert "olmo-1b" in text
    assert "out of memory" in text


def test_every_record_shows_its_provenance_in_words(made: tuple[Comparison, str]) -> None:
    labels = re.findall(r'<span class="tag (\w+)">(\w+)</span>', made[1])
    assert all(kind == word for kind, word in labels)
    assert len([word for _, word in labels if word == "measured"]) >= 9


def test_charts_have_titles_and_follow_the_page_into_dark_mode(made: tuple[Comparison, str]) -> None:
    drawings = re.findall(r"<svg.*?</svg>", made[1], flags=re.DOTALL)
    assert len(drawings) >= 4
    for drawing in drawings:
        assert 'role="img"' in drawing
        assert drawing.count("<title>") >= 1
        assert "<desc>" in drawing
        assert "var(--ink)" in drawing or "var(--muted)" in drawing
        assert not re.search(r'"#0[0-9a-f]{5}"', drawing)  # no placeholder was left


def test_a_budget_changes_what_is_recommended(tmp_path: Path) -> None:
    assert "Nothing" not in headline(comparison(tmp_path / "a")).verdict
    found = headline(comparison(tmp_path / "b", budget_usd=0.0095))
    assert found.verdict.startswith("GRPO raises smollm2-135m on short-answer: +31.0 points")
    assert headline(comparison(tmp_path / "c", budget_usd=0.001)).verdict.startswith("No probe stayed within")


def test_the_json_document_has_the_contract_s_keys(made: tuple[Comparison, str]) -> None:
    document = json.loads(json.dumps(made[0].document("x"), allow_nan=False))
    assert {"ranking", "ties", "claims", "missing"} <= set(document)
    assert {"model", "rank_low", "rank_high", "p_best", "key", "provenance", "status", "source"} <= set(
        document["ranking"][0]
    )
    assert document["ties"][0]["models"] == ["smollm2-135m", "qwen3-0.6b"]
    assert {"what", "command"} <= set(document["missing"][0])
    assert all({"provenance", "status", "source"} <= set(figure) for figure in document["figures"])
