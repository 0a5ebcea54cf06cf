"""The HTML report of a leaderboard."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from deepforecast.evaluation import html_page as pages

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard


def write_report(board: Leaderboard, path: str | os.PathLike[str]) -> None:
    """Write the report atomically to `path` and create missing folders; `SaveError` if it cannot be
    written."""
    path = pages.validate_path(path)
    pages.write_page(render_page(board), path)


def render_page(board: Leaderboard) -> str:
    """The report as deterministic HTML."""
    from deepforecast.evaluation.leaderboard_summary import headline, title, verdict
    from deepforecast.evaluation.report_sections import board_sections

    created = _created_text(board)
    page_sections = board_sections(board)
    return pages.Page("Comparison of forecasts", title(board), verdict(board), headline(board), page_sections, created).html()


def _created_text(board: Leaderboard) -> str:
    stamp = str(board.settings.get("made", ""))[:16].replace("T", " ")
    version = board.settings.get("versions", {}).get("deepforecast", "")
    return f"Created by deepforecast {version} on {stamp} UTC." if stamp else f"Created by deepforecast {version}."
