"""Pages of the site as Markdown, and the folders used by the builder."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = ROOT / "docs" / "pages"  # handwritten pages
BUILD = ROOT / "build"
CACHE = BUILD / "tutorials"  # output and figures of the tutorials

MAX_WIDTH = 100  # characters of a printed line that fit
OUTPUT_BLOCK = re.compile(r"^```text\n(.*?)^```\n", flags=re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A page of the site.

    Parameters
    ----------
    path : str
        Path of the Markdown file relative to the site.
    title : str
        Title in the navigation.
    text : str
        Markdown with formulas in TeX.
    pictures : tuple of Path
        Files to copy to the folder of the page, where the text refers to them by name.
    """

    path: str
    title: str
    text: str
    pictures: tuple[Path, ...] = ()

    @property
    def summary(self) -> str:
        """Return the first sentence of the first paragraph, without links."""
        for block in re.sub(r"^```.*?^```$", "", self.text, flags=re.DOTALL | re.MULTILINE).split("\n\n"):
            if re.match(r"\w|`(?!``)|[\"*](?=\w)", block):
                line = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(block.split()))
                first = re.split(r"(?<=[.?!])\s(?=[A-Z\"`*])", line)[0].rstrip(".:")
                return first if first[-1] in "?!" else first + "."
        return ""


class BuildError(Exception):
    """Raised if the site cannot be built; the message names the file and the fix."""


def folded(markdown: str) -> str:
    """Mark output blocks with long lines, so that the lines are wrapped; others, such as tables, are not wrapped."""
    return OUTPUT_BLOCK.sub(
        lambda match: f"``` {{ .text .wrapped }}\n{match[1]}```\n" if _is_too_long(match[1]) else match[0], markdown
    )


def _is_too_long(printed: str) -> bool:
    return max(map(len, printed.splitlines()), default=0) > MAX_WIDTH


def relative(target: str, page: str) -> str:
    """Return the relative link from a page to a target.

    Examples
    --------
    >>> relative("models/LSTM.md", "reference/data.md"), relative("index.md#top", "guide.md")
    ('../models/LSTM.md', 'index.md#top')
    """
    path, mark, anchor = target.partition("#")
    return posixpath.relpath(path, posixpath.dirname(page) or ".") + mark + anchor


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; bars and line breaks in cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in line) + " |" for line in lines)
