"""The sections of a report."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from deepforecast.errors import format_list, format_value
from deepforecast.evaluation import page, report_figures, report_forecasts, report_tables
from deepforecast.evaluation.page import Section, definitions
from deepforecast.evaluation.verdict import left_out, name

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard

APART = ("models", "versions", "machine")
LONGEST = 2_000  # characters of a setting or an error that are shown


def sections(board: Leaderboard) -> list[Section]:
    """All sections; those that have nothing to say about this board are empty."""
    return page.sections(board, {
        "leaderboard": report_tables.leaderboard, "scores": report_figures.scores, "cost": report_figures.cost,
        "pairs": report_tables.pairs, "coverage": report_figures.coverage, "forecasts": report_forecasts.forecasts,
        "failures": _failures, "settings": _settings,
    })  # fmt: skip


def _failures(board: Leaderboard) -> str:
    """Models that failed with their errors, then what did not count."""
    rows = [(name(row.model), format_value(row.error, LONGEST)) for row in board.table.itertuples() if row.error]
    listed = f"<p>These models failed; the others went on without them.</p>{definitions(rows)}"
    failed = listed if rows else "<p>No model failed.</p>"
    told = left_out(board)
    if board.settings.get("undeclared"):
        told.append(f"Columns without a role were not used: {format_list(board.settings['undeclared'], max_shown=20)}.")
    besides = "".join(f"<li>{escape(one)}</li>" for one in told)
    none = "<p>Nothing was left out: every point forecast counts in every score.</p>"
    return failed + (f"<ul>{besides}</ul>" if told else none)


def _settings(board: Leaderboard) -> str:
    """All that was set, the models as they can be built again, versions and machine."""
    models, versions, machine = (dict(board.settings.get(key, {})) for key in APART)
    rest = {key.replace("_", " "): value for key, value in board.settings.items() if key not in APART}
    metrics = {one.column: one.metric.rewards for one in board.criteria.values()}
    return (
        definitions(_rows(rest))
        + "<h3>Models</h3>" + definitions(_rows(models))
        + "<h3>What the scores reward</h3>" + definitions(_rows(metrics))
        + "<h3>Versions and machine</h3>" + definitions(_rows({**versions, **machine}))
    )  # fmt: skip


def _rows(held: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(format_value(key, 80), told_setting(value)) for key, value in held.items()]


def told_setting(value: Any) -> str:
    """A setting as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{format_value(key, 80)}: {told_setting(one)}" for key, one in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(told_setting(one) for one in value) or "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "not set" if value is None else format_value(str(value), LONGEST) or "none"
