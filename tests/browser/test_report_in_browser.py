"""The report in a real browser, without a network: nothing runs, nothing is fetched, nothing sticks out."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rlbench.cli.app import run
from tests.report.made_up import fill

pytestmark = pytest.mark.browser

PROBE = """<script>
addEventListener('load', () => {
  const wide = [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') &&
    e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName);
  document.body.dataset.layout = [innerWidth, document.documentElement.scrollWidth, wide.join(' ')].join(';');
});
</script></body>"""
"""Measures the layout. It is added to a copy of the page from which the page's own ban on scripts is taken."""


@pytest.fixture(scope="module")
def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("needs Chromium: `apt-get install chromium`")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    fill(folder / "store")
    assert run(["compare", "--store", str(folder / "store"), "--out", str(folder / "report.html")]) == 0
    return folder / "report.html"


def dump_dom(chromium: str, page: Path, width: int = 1280) -> str:
    """The page as the browser holds it once it has loaded; every name look-up fails."""
    answer = subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--no-first-run",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={page.parent / 'profile'}",
            f"--window-size={width},900", "--virtual-time-budget=3000", "--dump-dom", page.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return answer.stdout


def test_no_script_of_a_completion_runs_and_nothing_is_fetched(chromium: str, report: Path) -> None:
    dom = dump_dom(chromium, report)
    assert re.search(r"<title>rlbench: reward per dollar of \d+ models</title>", dom)
    assert "&lt;script&gt;document.title=" in dom
    assert not re.search(r"<(script|link|img|iframe|object|embed)\b", dom)
    assert not re.search(r"""(src|href)=["'](?!#)""", dom)


def test_a_script_in_a_completion_stays_text_even_without_the_page_s_ban(chromium: str, report: Path) -> None:
    page = report.with_name("without-ban.html")
    page.write_text(_without_ban(report.read_text()))
    assert "<title>rlbench: reward per dollar" in dump_dom(chromium, page)


@pytest.mark.parametrize("width", [500, 1280])
def test_nothing_sticks_out_of_the_page(chromium: str, report: Path, width: int) -> None:
    shown, scroll, wide = _layout(chromium, report, width)
    assert shown == width
    assert scroll <= width
    assert wide == ""


def test_nothing_sticks_out_of_a_phone_s_page(chromium: str, report: Path) -> None:
    # A window of headless Chromium is at least 500 pixels wide; a frame can be as narrow as a phone.
    framed = report.with_name("measured-390.html")
    framed.write_text(_without_ban(report.read_text()).replace("</body>", PROBE))
    outer = report.with_name("phone.html")
    outer.write_text(
        f"<body><iframe id=f src={framed.name} width=390 height=800 style='border:0'></iframe><script>"
        "addEventListener('load',()=>{document.body.dataset.layout=f.contentDocument.body.dataset.layout})"
        "</script></body>"
    )
    shown, scroll, wide = _read(_dump_with_files(chromium, outer))
    assert shown == 390
    assert scroll <= 390
    assert wide == ""


def _layout(chromium: str, report: Path, width: int) -> tuple[int, int, str]:
    page = report.with_name(f"measured-{width}.html")
    page.write_text(_without_ban(report.read_text()).replace("</body>", PROBE))
    return _read(dump_dom(chromium, page, width))


def _read(dom: str) -> tuple[int, int, str]:
    found = re.search(r'data-layout="(\d+);(\d+);([^"]*)"', dom)
    assert found, "the layout was not measured"
    return int(found[1]), int(found[2]), found[3]


def _without_ban(page: str) -> str:
    found, count = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    assert count == 1
    return found


def _dump_with_files(chromium: str, page: Path) -> str:
    answer = subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--allow-file-access-from-files",
            f"--user-data-dir={page.parent / 'profile'}", "--virtual-time-budget=3000", "--dump-dom", page.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return answer.stdout
