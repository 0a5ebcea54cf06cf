"""One HTML page that needs nothing else: sections of text, tables and plots, opened offline, on a phone, in light and dark.

Whatever comes from the data (ids, names of models and columns, messages of errors) is escaped where it is written, and the
page's own policy lets a browser run the one script written here and nothing else, and reach no network.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, TypeVar

from deepforecast.errors import ParameterTypeError, SaveError, format_value
from deepforecast.io.atomic import replace_file

T = TypeVar("T")


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it, as HTML."""

    anchor: str
    title: str
    body: str

    def html(self) -> str:
        """The section as it stands in the page."""
        return f'<section id="{self.anchor}">\n<h2>{escape(self.title)}</h2>\n{self.body}\n</section>'


@dataclass(frozen=True)
class Page:
    """What stands on a page, all but the sections as plain text; sections without a body are left out."""

    kicker: str
    title: str
    lead: str
    note: str
    sections: Sequence[Section]
    created: str

    def html(self) -> str:
        """The whole page; the same contents give the same text."""
        script = _read_asset("report.js")
        shown_sections = [section for section in self.sections if section.body]
        return Template(_read_asset("report.html")).substitute(
            policy=_security_policy(script),
            kicker=escape(self.kicker),
            title=escape(self.title),
            style=_read_asset("report.css"),
            lead=escape(self.lead),
            note=escape(self.note),
            links=" ".join(f'<a href="#{section.anchor}">{escape(section.title)}</a>' for section in shown_sections),
            sections="\n".join(section.html() for section in shown_sections),
            made=escape(self.created),
            script=script,
        )


# Every section a page may have, in the order they are read.
SECTION_TITLES = {
    "leaderboard": "Leaderboard",
    "scores": "Scores and how sure they are",
    "cost": "Accuracy and time",
    "differ": "Which models differ",
    "pairs": "Every pair of models",
    "coverage": "Coverage of the intervals",
    "tasks": "Every task",
    "growth": "How time and memory grow",
    "forecasts": "Forecasts of the best model",
    "failures": "Failures and what was left out",
    "settings": "Settings",
}


def make_sections(subject: T, makers: Mapping[str, Callable[[T], str]]) -> list[Section]:
    """The sections of a page about a subject, each made by its maker."""
    return [Section(anchor, title, makers[anchor](subject)) for anchor, title in SECTION_TITLES.items() if anchor in makers]


def definition_list(rows: Sequence[tuple[str, str]]) -> str:
    """Words and what they mean, or settings and their values."""
    return "<dl>" + "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in rows) + "</dl>"


def validate_path(path: Any) -> str | os.PathLike[str]:
    """A path that a report can be written to, by its type."""
    if not isinstance(path, str | os.PathLike):
        raise ParameterTypeError(f"path is text or a pathlib.Path; got {format_value(path)} ({type(path).__name__}).")
    return path


def write_page(text: str, path: str | os.PathLike[str]) -> None:
    """Write a report to `path`, whole or not at all; a missing folder is made. `SaveError` names the path if it cannot be."""
    try:
        replace_file(path, [text.encode("utf-8", errors="backslashreplace")])
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise SaveError(
            f"A report is written whole or not at all; {format_value(os.fspath(path), 500)} could not be: {error}. Make room there or "
            "choose another path."
        ) from error


def _security_policy(script: str) -> str:
    """Only this very script runs, nothing is fetched from anywhere."""
    digest = b64encode(sha256(script.encode()).digest()).decode()
    nowhere = "default-src 'none'; base-uri 'none'; form-action 'none'"
    return f"{nowhere}; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:"


def _read_asset(name: str) -> str:
    """A file of the page with the ends of lines that a browser hashes."""
    text = files("deepforecast.evaluation").joinpath(name).read_text("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")
