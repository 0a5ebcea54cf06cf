"""The sections of a report, in the order they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from deepforecast.errors import shown, some
from deepforecast.evaluation import report_figures, report_forecasts, report_tables
from deepforecast.evaluation.verdict import left_out, name

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard

APART = ("models", "versions", "machine")
LONGEST = 2_000  # characters of a setting or an error that are shown


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it, as HTML."""

    anchor: str
    title: str
    body: str

    def html(self) -> str:
        """The section as it stands in the page."""
        return f'<section id="{self.anchor}">\n<h2>{escape(self.title)}</h2>\n{self.body}\n</section>'


def sections(board: Leaderboard) -> list[Section]:
    """All sections that have something to say about this board."""
    makers: list[tuple[str, str, Callable[[Leaderboard], str]]] = [
        ("leaderboard", "Leaderboard", report_tables.leaderboard),
        ("scores", "Scores and how sure they are", report_figures.scores),
        ("cost", "Accuracy and time", report_figures.cost),
        ("coverage", "Coverage of the intervals", report_figures.coverage),
        ("pairs", "Every pair of models", report_tables.pairs),
        ("forecasts", "Forecasts of the best model", report_forecasts.forecasts),
        ("left-out", "Failures and what was left out", _failures),
        ("settings", "Settings", _settings),
    ]
    held = [Section(anchor, title, make(board)) for anchor, title, make in makers]
    return [one for one in held if one.body]


def _failures(board: Leaderboard) -> str:
    """Models that failed with their errors, then what did not count."""
    rows = [(name(row.model), shown(row.error, LONGEST)) for row in board.table.itertuples() if row.error]
    failed = f"<p>These models failed; the others went on without them.</p>{_list(rows)}" if rows else "<p>No model failed.</p>"
    told = left_out(board)
    if board.settings.get("undeclared"):
        told.append(f"Columns without a role were not used: {some(board.settings['undeclared'], most=20)}.")
    besides = "".join(f"<li>{escape(one)}</li>" for one in told)
    none = "<p>Nothing was left out: every point forecast counts in every score.</p>"
    return failed + (f"<ul>{besides}</ul>" if told else none)


def _settings(board: Leaderboard) -> str:
    """All that was set, the models as they can be built again, versions and machine."""
    models, versions, machine = (dict(board.settings.get(key, {})) for key in APART)
    rest = {key.replace("_", " "): value for key, value in board.settings.items() if key not in APART}
    metrics = {one.column: one.metric.rewards for one in board.criteria.values()}
    return (
        _list(_rows(rest))
        + "<h3>Models</h3>" + _list(_rows(models))
        + "<h3>What the scores reward</h3>" + _list(_rows(metrics))
        + "<h3>Versions and machine</h3>" + _list(_rows({**versions, **machine}))
    )  # fmt: skip


def _rows(held: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(shown(key, 80), _told(value)) for key, value in held.items()]


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{shown(key, 80)}: {_told(one)}" for key, one in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(_told(one) for one in value) or "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "not set" if value is None else shown(str(value), LONGEST) or "none"


def _list(rows: list[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in rows) + "</dl>"
