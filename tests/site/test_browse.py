"""The site in a browser, opened as a file: a small one of four pages, built by the same generator with the same assets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.site.browse import SHAPES, browse, search
from tests.site.webdriver import missing

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tutorials" / "site"))

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
