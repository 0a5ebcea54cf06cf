"""A leaderboard as one HTML page that needs nothing else: opens offline, on a phone, in light and dark.

Whatever comes from the data (ids, names of models and columns, messages of errors) is escaped where it is written, and the
page's own policy lets a browser run the two scripts written here and nothing else, and reach no network.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from deepforecast.errors import ParameterTypeError, SaveError, shown
from deepforecast.io.atomic import replace_file

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard


def write(board: Leaderboard, path: str | os.PathLike[str]) -> None:
    """Write the page to `path`, whole or not at all; a missing folder is made. `SaveError` names the path if it cannot be."""
    if not isinstance(path, str | os.PathLike):
        raise ParameterTypeError(f"path is text or a pathlib.Path; got {shown(path)} ({type(path).__name__}).")
    content = page(board).encode("utf-8", errors="backslashreplace")
    try:
        replace_file(path, [content])
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise SaveError(
            f"A report is written whole or not at all; {shown(os.fspath(path), 500)} could not be: {error}. Make room there or "
            "choose another path."
        ) from error


def page(board: Leaderboard) -> str:
    """The page as text; the same board gives the same text."""
    from deepforecast.evaluation.report_sections import sections
    from deepforecast.evaluation.verdict import headline, title, verdict
    from deepforecast.plotting.backends import own_filters

    with own_filters():
        from plotly.offline import get_plotlyjs

        plotly, script = _one_kind_of_line(get_plotlyjs()), _part("report.js")
        held = sections(board)
    return Template(_part("report.html")).substitute(
        policy=_policy([plotly, script]),
        title=escape(title(board)),
        style=_part("report.css"),
        verdict=escape(verdict(board)),
        headline=escape(headline(board)),
        links=" ".join(f'<a href="#{one.anchor}">{escape(one.title)}</a>' for one in held),
        sections="\n".join(one.html() for one in held),
        made=escape(_made(board)),
        megabytes=f"{len(plotly.encode()) / 1e6:.1f}",
        plotly=plotly,
        script=script,
    )


def _made(board: Leaderboard) -> str:
    stamp = str(board.settings.get("made", ""))[:16].replace("T", " ")
    version = board.settings.get("versions", {}).get("deepforecast", "")
    return f"Made by deepforecast {version} on {stamp} UTC." if stamp else f"Made by deepforecast {version}."


def _policy(scripts: Sequence[str]) -> str:
    """Only these very scripts run, nothing is fetched from anywhere."""
    hashes = " ".join(f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in scripts)
    nowhere = "default-src 'none'; base-uri 'none'; form-action 'none'"
    return f"{nowhere}; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:"


def _part(name: str) -> str:
    return _one_kind_of_line(files("deepforecast.evaluation").joinpath(name).read_text("utf-8"))


def _one_kind_of_line(text: Any) -> str:
    """Browsers read every end of line as one, and hash what they read."""
    return str(text).replace("\r\n", "\n").replace("\r", "\n")
