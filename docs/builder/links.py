"""Links from names in backticks to the reference, and a check of all links of the built site."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from builder.mathematics import CODE
from builder.page import relative

NAME_IN_BACKTICKS = re.compile(r"^`(?:deepforecast\.)?((?:[A-Za-z]\w*\.)*[A-Za-z]\w*|deepforecast [a-z-]+)(?:\([^`]*\))?`$")
PACKAGE_PREFIX = re.compile(r"^(?:plotting|errors|evaluation|tuning)\.")  # their public names are listed without prefix
LOADING_ATTRIBUTES = {"script": "src", "img": "src", "iframe": "src", "source": "src"}
UNLOADED_RELATIONS = {"canonical", "alternate", "next", "prev", "edit"}  # values of rel of <link> that load nothing


def linked(markdown: str, page: str, targets: Mapping[str, str]) -> str:
    """Turn public names in backticks into links.

    Names in headings and link texts, and links from a page to itself, are left unchanged.

    Parameters
    ----------
    markdown : str
        Text of a page.
    page : str
        Path of the page.
    targets : mapping of str to str
        Page and anchor by name.

    Examples
    --------
    >>> linked("Use `LSTM` or `x`.", "guide.md", {"LSTM": "models/LSTM.md"})
    'Use [`LSTM`](models/LSTM.md) or `x`.'
    """
    pieces = CODE.split(markdown)
    for position in range(1, len(pieces), 2):
        match = NAME_IN_BACKTICKS.match(pieces[position])
        target = targets.get(match[1]) or targets.get(PACKAGE_PREFIX.sub("", match[1])) if match else None
        # start of the current line; no line has more than 10 names before this one
        line = "".join(pieces[max(0, position - 20) : position]).rpartition("\n")[2]
        if target and target.partition("#")[0] != page and not line.startswith("#") and line.rfind("[") <= line.rfind("]"):
            pieces[position] = f"[{pieces[position]}]({relative(target, page)})"
    return "".join(pieces)


class _PageLinks(HTMLParser):
    """Collects the links of a page, the files it loads, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = {""}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag in LOADING_ATTRIBUTES and LOADING_ATTRIBUTES[tag] in attributes:
            self.loaded.append(attributes[LOADING_ATTRIBUTES[tag]])
        if tag == "link" and attributes.get("rel") not in UNLOADED_RELATIONS and "href" in attributes:
            self.loaded.append(attributes["href"])
        if tag == "a" and "href" in attributes:
            self.references.append(attributes["href"])


def broken(site: Path) -> list[str]:
    """Check all links of a built site.

    Parameters
    ----------
    site : Path
        Folder of the site.

    Returns
    -------
    list of str
        A message for each link to a missing file or anchor, and for each file loaded from
        another server.
    """
    pages = {path: _read_page(path) for path in sorted(site.rglob("*.html"))}
    complaints = []
    for path, page in pages.items():
        if path.name == "404.html":  # served for any address, so its links are relative to the root
            continue
        name = path.relative_to(site)
        complaints += [
            f"{name} loads {link} from another server" for link in page.loaded if urlsplit(link).scheme not in ("", "data")
        ]
        all_links = (*page.references, *page.loaded)
        complaints += [f"{name} links to {link}: {reason}" for link in all_links if (reason := _link_error(link, path, pages))]
    return complaints


def _read_page(path: Path) -> _PageLinks:
    page = _PageLinks()
    page.feed(path.read_text("utf-8"))
    return page


def _link_error(link: str, page: Path, pages: Mapping[Path, _PageLinks]) -> str:
    """Return why a link within the site is broken; empty if it is not."""
    split_url = urlsplit(link)
    if split_url.scheme or split_url.netloc:
        return ""
    target = (page.parent / unquote(split_url.path)).resolve() if split_url.path else page
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        return "no such file"
    if split_url.fragment and target in pages and unquote(split_url.fragment) not in pages[target].anchors:
        return "no such anchor on that page"
    return ""
