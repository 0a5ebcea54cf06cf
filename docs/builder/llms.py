"""`llms.txt`, an index of the site for language models, and the Markdown of each page."""

from __future__ import annotations

from pathlib import Path

import yaml

from builder.page import ROOT, Page


def index(sections: dict[str, list[Page]], site: Path) -> None:
    """Write `llms.txt`, and the Markdown of every page next to its HTML."""
    config = yaml.safe_load((ROOT / "docs" / "config.yml").read_text("utf-8"))
    (site / "llms.txt").write_text(text(config["site_name"], config["site_description"], sections), "utf-8")
    for page in (page for pages in sections.values() for page in pages):
        (site / page.path).write_text(page.text, "utf-8")


def text(name: str, about: str, sections: dict[str, list[Page]]) -> str:
    """Return the text of `llms.txt`.

    Parameters
    ----------
    name, about : str
        Name and description of the site.
    sections : dict of str to list of Page
        Pages by section; each is listed with its summary.
    """
    blocks = [f"# {name}", f"> {about}"]
    for section, pages in sections.items():
        lines = [f"- [{page.title}]({page.path})" + (f": {page.summary}" if page.summary else "") for page in pages]
        blocks += [f"## {section}", "\n".join(lines)] if lines else []
    return "\n\n".join(blocks) + "\n"
