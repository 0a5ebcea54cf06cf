"""A leaderboard as one HTML page."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from deepforecast.evaluation import page as pages

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard


def write(board: Leaderboard, path: str | os.PathLike[str]) -> None:
    """Write the page to `path`, whole or not at all; a missing folder is made. `SaveError` names the path if it cannot be."""
    path = pages.checked(path)
    pages.write(page(board), path)


def page(board: Leaderboard) -> str:
    """The page as text; the same board gives the same text."""
    from deepforecast.evaluation.report_sections import sections
    from deepforecast.evaluation.verdict import headline, title, verdict

    made = _made(board)
    held = sections(board)
    return pages.Page("Comparison of forecasts", title(board), verdict(board), headline(board), held, made).html()


def _made(board: Leaderboard) -> str:
    stamp = str(board.settings.get("made", ""))[:16].replace("T", " ")
    version = board.settings.get("versions", {}).get("deepforecast", "")
    return f"Made by deepforecast {version} on {stamp} UTC." if stamp else f"Made by deepforecast {version}."
