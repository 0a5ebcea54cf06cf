"""The built site as readers see it, in a headless Chromium: python tests/docs/browse.py [build/site] [FOLDER for pictures]

Every page is opened as a file, wide and light and as a dark phone: nothing may be said on the console, nothing may be wider
than the screen, no picture may be missing. Then a query is typed into the search, key by key.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.docs.webdriver import Browser, missing

SHAPES = {
    "desktop-light": Browser(1280, 900),
    "phone-dark": Browser(390, 844, dark=True, phone=True),
}
DRAWN = "return document.querySelectorAll('.main-svg').length"  # by plotly
WIDER = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
LOST = "return [...document.images].filter(one => one.complete && !one.naturalWidth).map(one => one.src)"
SCHEME = "return document.body.getAttribute('data-md-color-scheme')"
QUERY = "transformer"
INSIDE = """
const roots = [...document.querySelectorAll('*')].map(one => one.shadowRoot);
const inside = roots.find(one => one?.querySelector('input'));
"""
FOCUS = f"{INSIDE} inside?.querySelector('input').focus(); return Boolean(inside)"
FIELD = f"{INSIDE} return inside.querySelector('input').value"
HITS = f"{INSIDE} return [...inside.querySelectorAll('a')].map(one => one.href)"


def browse(site: Path, pictures: Path | None = None) -> list[str]:
    """Everything that is wrong with the site."""
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")  # shown by servers, in place of any page
    found = [] if pages else [f"{site} has no pages"]
    for shape, window in SHAPES.items():
        with window as browser:
            for page in pages:
                found += [f"{page.relative_to(site)}, {shape}: {one}" for one in _wrong(browser, page, shape)]
                if pictures:
                    pictures.mkdir(parents=True, exist_ok=True)
                    browser.picture(pictures / f"{'-'.join(page.relative_to(site).with_suffix('').parts)}-{shape}.png")
            found += [f"search, {shape}: {one}" for one in search(browser, site, QUERY, "models/Transformer.html")]
    return found


def _wrong(browser: Browser, page: Path, shape: str) -> list[str]:
    browser.open(page)
    if page.name.endswith(".plotly.html"):  # an interactive picture, which another page shows
        return [*browser.complaints(), *([] if browser.run(DRAWN) else ["draws nothing"])]
    wider, scheme = browser.run(WIDER), browser.run(SCHEME)
    found = [*browser.complaints(), *(f"{one} is not drawn" for one in browser.run(LOST))]
    if wider > 0:
        found.append(f"{wider} pixels wider than the screen")
    if scheme != ("slate" if shape.endswith("dark") else "default"):
        found.append(f"its colours are {scheme}")
    return found


def search(browser: Browser, site: Path, query: str, expected: str) -> list[str]:
    """Type `query` on the first page; its field must show it, and the page `expected` must be among the hits."""
    browser.open(site / "index.html")
    browser.run("document.querySelector('.md-search__button').click()")
    wait(lambda: browser.run(FOCUS))
    browser.type(query)
    wait(lambda: browser.run(FIELD) == query and any(expected in hit for hit in browser.run(HITS)))
    field, hits = browser.run(FIELD), browser.run(HITS)
    wrong = [f"typed {query!r}, the field shows {field!r}"] if field != query else []
    if not any(expected in hit for hit in hits):
        wrong.append(f"{expected} is not among the {len(hits)} hits for {query!r}")
    return [*wrong, *browser.complaints()]


def wait(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Return when the condition holds, or after `seconds`; what is checked afterwards tells which."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)


def main(site: str = "build/site", pictures: str = "") -> int:
    if lacking := missing():
        print(f"browse: {lacking} is not installed", file=sys.stderr)
        return 2
    found = browse(Path(site), Path(pictures) if pictures else None)
    print("\n".join(found) or "browse: all well")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
