"""Sections of a report."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from deepforecast.errors import format_list, format_value
from deepforecast.evaluation import html_page, report_figures, report_forecasts, report_tables
from deepforecast.evaluation.html_page import Section, definition_list
from deepforecast.evaluation.leaderboard_summary import format_model_name, left_out_notes

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard

SEPARATE_SETTINGS = ("models", "versions", "machine")
MAX_TEXT_LENGTH = 2_000  # characters of a setting or an error that are shown


def board_sections(board: Leaderboard) -> list[Section]:
    """All sections; those without contents are empty."""
    return html_page.make_sections(
        board,
        {
            "leaderboard": report_tables.leaderboard_table,
            "scores": report_figures.score_figures,
            "cost": report_figures.cost_figure,
            "pairs": report_tables.pairs_table,
            "coverage": report_figures.coverage_section,
            "forecasts": report_forecasts.forecast_figures,
            "failures": _failures,
            "settings": _settings,
        },
    )


def _failures(board: Leaderboard) -> str:
    """Failed models with their errors, and points left out."""
    rows = [
        (format_model_name(row.model), format_value(row.error, MAX_TEXT_LENGTH))
        for row in board.table.itertuples()
        if row.error
    ]
    failed_list = f"<p>These models failed:</p>{definition_list(rows)}"
    failed = failed_list if rows else "<p>No model failed.</p>"
    notes = left_out_notes(board)
    if board.settings.get("undeclared"):
        notes.append(
            f"Columns without a declared role were not used: {format_list(board.settings['undeclared'], max_shown=20)}."
        )
    note_list = "".join(f"<li>{escape(note)}</li>" for note in notes)
    none = "<p>Nothing was left out: every point forecast counts in every score.</p>"
    return failed + (f"<ul>{note_list}</ul>" if notes else none)


def _settings(board: Leaderboard) -> str:
    """Arguments of the comparison, models, metrics, versions and machine."""
    models, versions, machine = (dict(board.settings.get(key, {})) for key in SEPARATE_SETTINGS)
    other_settings = {key.replace("_", " "): value for key, value in board.settings.items() if key not in SEPARATE_SETTINGS}
    metrics = {criterion.column: criterion.metric.rewards for criterion in board.criteria.values()}
    return (
        definition_list(_format_rows(other_settings))
        + "<h3>Models</h3>" + definition_list(_format_rows(models))
        + "<h3>What each score rewards</h3>" + definition_list(_format_rows(metrics))
        + "<h3>Versions and machine</h3>" + definition_list(_format_rows({**versions, **machine}))
    )  # fmt: skip


def _format_rows(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(format_value(key, 80), format_setting(value)) for key, value in settings.items()]


def format_setting(value: Any) -> str:
    """Format a setting as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{format_value(key, 80)}: {format_setting(element)}" for key, element in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(format_setting(element) for element in value) or "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "not set" if value is None else format_value(str(value), MAX_TEXT_LENGTH) or "none"
