"""Self-contained HTML pages with sections of text, tables and plots.

Texts from the data (ids, names of models and columns, error messages) are escaped, and the content
security policy of the page allows only its own script and no network access.
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

from deepforecast.core.atomic import replace_file
from deepforecast.errors import ParameterTypeError, SaveError, format_value

T = TypeVar("T")


@dataclass(frozen=True)
class Section:
    """A heading and an HTML body."""

    anchor: str
    title: str
    body: str

    def html(self) -> str:
        """The section as HTML."""
        return f'<section id="{self.anchor}">\n<h2>{escape(self.title)}</h2>\n{self.body}\n</section>'


@dataclass(frozen=True)
class Page:
    """The contents of a page, plain text except for the sections; sections without a body are
    omitted."""

    kicker: str
    title: str
    lead: str
    note: str
    sections: Sequence[Section]
    created: str

    def html(self) -> str:
        """The page as deterministic HTML."""
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


# all sections in the order of the page
SECTION_TITLES = {
    "leaderboard": "Leaderboard",
    "scores": "Scores and their uncertainty",
    "cost": "Accuracy and time",
    "differ": "Which models differ",
    "pairs": "Every pair of models",
    "coverage": "Coverage of the intervals",
    "tasks": "Every task",
    "growth": "How time and memory grow",
    "forecasts": "Forecasts of the best model",
    "failures": "Failures and points left out",
    "settings": "Settings",
}


def make_sections(subject: T, makers: Mapping[str, Callable[[T], str]]) -> list[Section]:
    """The sections of a page; `makers` maps anchors to functions that create the body."""
    return [Section(anchor, title, makers[anchor](subject)) for anchor, title in SECTION_TITLES.items() if anchor in makers]


def definition_list(rows: Sequence[tuple[str, str]]) -> str:
    """An HTML list of terms with definitions, or settings with values."""
    return "<dl>" + "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in rows) + "</dl>"


def validate_path(path: Any) -> str | os.PathLike[str]:
    """Refuse anything but a str or path-like object."""
    if not isinstance(path, str | os.PathLike):
        raise ParameterTypeError(
            f"`path` must be a str or pathlib.Path, got {format_value(path)} ({type(path).__name__}).",
            parameter="path",
            value=path,
        )
    return path


def write_page(text: str, path: str | os.PathLike[str]) -> None:
    """Write a report atomically and create missing folders; `SaveError` if it cannot be written."""
    try:
        replace_file(path, [text.encode("utf-8", errors="backslashreplace")])
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise SaveError(
            f"The report cannot be written to {format_value(os.fspath(path), 500)}: {error}.",
            hint="Free disk space or pass another path.",
        ) from error


def _security_policy(script: str) -> str:
    """Allow only this script and no network access."""
    digest = b64encode(sha256(script.encode()).digest()).decode()
    nowhere = "default-src 'none'; base-uri 'none'; form-action 'none'"
    return f"{nowhere}; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:"


def _read_asset(name: str) -> str:
    """A file of the package with \\n line endings, which browsers hash."""
    text = files("deepforecast.evaluation").joinpath(name).read_text("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")
