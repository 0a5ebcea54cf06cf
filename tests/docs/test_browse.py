"""The site in a browser, opened as a file: a small one of four pages, built by the same generator with the same assets."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.docs.browse import SHAPES, browse, search, wait
from tests.docs.webdriver import missing

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

from builder.__main__ import generate, write
from builder.page import Page

pytestmark = pytest.mark.slow
PAGES = {
    "index.md": ("Start", "Forecasts of time series."),
    "models/LSTM.md": ("LSTM", "A recurrent network with an input, a forget and an output gate."),
    "models/Transformer.md": ("Transformer", "An encoder and a decoder of attention layers: the transformer."),
    "events.md": ("Events", "Effects of holidays are declared with `holidays`. Series s1 and s2 have some."),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if lacking := missing():
        pytest.skip(f"needs a browser: {lacking} is not installed (apt-get install chromium chromium-driver)")
    folder = tmp_path_factory.mktemp("site")
    pages = [Page(path, title, f"# {title}\n\n{text}\n") for path, (title, text) in PAGES.items()]
    write({"Start": pages}, folder / "source")
    generate(folder / "source", folder / "site")
    return folder / "site"


def test_pages_are_right_in_each_shape(site: Path) -> None:
    assert browse(site) == []


@pytest.mark.parametrize("shape", SHAPES)
def test_search_reads_every_key_of_a_query(site: Path, shape: str) -> None:
    with SHAPES[shape] as browser:
        assert search(browser, site, "holidays", "events.html") == []


def test_messages_to_and_from_the_stand_in_worker_are_copies(site: Path, tmp_path: Path) -> None:
    shutil.copy(site / "assets" / "iframe-worker.js", tmp_path)
    (tmp_path / "worker.js").write_text("onmessage = ({ data }) => { data.n += 1; postMessage(data); data.n = 9; };")
    (tmp_path / "page.html").write_text(
        "<script src='iframe-worker.js'></script><script>const sent = { n: 1 }, worker = new Worker('worker.js');"
        "worker.onmessage = ({ data }) => { document.title = `sent ${sent.n}, received ${data.n}`; };"
        "worker.postMessage(sent);</script>"
    )
    with SHAPES["desktop-light"] as browser:
        browser.open(tmp_path / "page.html")
        wait(lambda: bool(browser.run("return document.title")))
        assert browser.run("return document.title") == "sent 1, received 2"
