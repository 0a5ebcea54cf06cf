"""A page of the site as Markdown, and the places all parts of the builder agree on."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = ROOT / "docs" / "pages"  # pages written by hand
BUILD = ROOT / "build"
CACHE = BUILD / "tutorials"  # what tutorials printed and drew

MAX_WIDTH = 100  # characters of a printed line that fit
OUTPUT_BLOCK = re.compile(r"^```text\n(.*?)^```\n", flags=re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """`path` below the site, `title` in the navigation, `text` in Markdown with mathematics in TeX; pictures by their names."""

    path: str
    title: str
    text: str
    pictures: tuple[Path, ...] = ()

    @property
    def summary(self) -> str:
        """The first sentence of its first paragraph, without links."""
        for block in re.sub(r"^```.*?^```$", "", self.text, flags=re.DOTALL | re.MULTILINE).split("\n\n"):
            if re.match(r"\w|`(?!``)|[\"*](?=\w)", block):
                line = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(block.split()))
                first = re.split(r"(?<=[.?!])\s(?=[A-Z\"`*])", line)[0].rstrip(".:")
                return first if first[-1] in "?!" else first + "."
        return ""


class BuildError(Exception):
    """The site cannot be made: says which file, and what to do."""


def folded(markdown: str) -> str:
    """Printed lines longer than a page is wide, messages above all, are folded in place of being cut off; tables are not."""
    return OUTPUT_BLOCK.sub(
        lambda match: f"``` {{ .text .said }}\n{match[1]}```\n" if _is_too_long(match[1]) else match[0], markdown
    )


def _is_too_long(printed: str) -> bool:
    return max(map(len, printed.splitlines()), default=0) > MAX_WIDTH


def relative(target: str, page: str) -> str:
    """The link from one page to another.

    >>> relative("models/LSTM.md", "reference/data.md"), relative("index.md#top", "guide.md")
    ('../models/LSTM.md', 'index.md#top')
    """
    path, mark, anchor = target.partition("#")
    return posixpath.relpath(path, posixpath.dirname(page) or ".") + mark + anchor


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; bars and line ends in cells are made harmless."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in line) + " |" for line in lines)
