"""Names in backticks become links to their place in the reference; what is built is searched for links that lead nowhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from builder.mathematics import CODE
from builder.page import relative

SPAN = re.compile(r"^`(?:deepforecast\.)?((?:[A-Za-z]\w*\.)*[A-Za-z]\w*|deepforecast [a-z-]+)(?:\([^`]*\))?`$")
ROOMS = re.compile(r"^(?:plotting|errors|evaluation|tuning)\.")  # whose public names are known without it
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src"}
NOT_LOADED = {"canonical", "alternate", "next", "prev", "edit"}  # of <link>: where else a page is, not what it needs


def linked(markdown: str, page: str, places: Mapping[str, str]) -> str:
    """Each public name in backticks leads to its place, but for headings, link texts, and the page that is that place.

    >>> linked("Use `LSTM` or `x`.", "guide.md", {"LSTM": "models/LSTM.md"})
    'Use [`LSTM`](models/LSTM.md) or `x`.'
    """
    parts = CODE.split(markdown)
    for at in range(1, len(parts), 2):
        found = SPAN.match(parts[at])
        target = places.get(found[1]) or places.get(ROOMS.sub("", found[1])) if found else None
        line = "".join(parts[max(0, at - 20) : at]).rpartition("\n")[2]  # a line has not more names before this one
        if target and target.partition("#")[0] != page and not line.startswith("#") and line.rfind("[") <= line.rfind("]"):
            parts[at] = f"[{parts[at]}]({relative(target, page)})"
    return "".join(parts)


class _Found(HTMLParser):
    """What a page refers to, what it loads, and the places in it that may be referred to."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = {""}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag in LOADED and LOADED[tag] in given:
            self.loads.append(given[LOADED[tag]])
        if tag == "link" and given.get("rel") not in NOT_LOADED and "href" in given:
            self.loads.append(given["href"])
        if tag == "a" and "href" in given:
            self.references.append(given["href"])


def broken(site: Path) -> list[str]:
    """Every link of a built site that leads nowhere, every anchor that is not there, and everything loaded from elsewhere."""
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    complaints = []
    for path, page in pages.items():
        if path.name == "404.html":  # stands for any address, so its links begin at the root of a server
            continue
        name = path.relative_to(site)
        complaints += [f"{name} loads {one} from elsewhere" for one in page.loads if urlsplit(one).scheme not in ("", "data")]
        every = (*page.references, *page.loads)
        complaints += [f"{name} leads to {one}: {why}" for one in every if (why := _lost(one, path, pages))]
    return complaints


def _read(path: Path) -> _Found:
    found = _Found()
    found.feed(path.read_text("utf-8"))
    return found


def _lost(link: str, page: Path, pages: Mapping[Path, _Found]) -> str:
    """Why a link within the site leads nowhere; empty if it leads somewhere."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return ""
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        return "no such file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "no such place on that page"
    return ""
