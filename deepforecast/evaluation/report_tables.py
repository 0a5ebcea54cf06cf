"""The tables of a report: the leaderboard, sortable, and every pair of models. All text is escaped here."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.errors import shown
from deepforecast.evaluation import html_table
from deepforecast.evaluation.html_table import cell, head, named, smallest, words
from deepforecast.evaluation.leaderboard import direction
from deepforecast.evaluation.verdict import SURE, name, number, p_text, percent, seconds

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard

COSTS = (("fit_seconds", "fit s"), ("predict_seconds", "predict s"), ("peak_mb", "peak MB"))
MOST_PAIRED = 40  # models in the table of pairs: it grows with their square


def leaderboard(board: Leaderboard) -> str:
    """The table of all models: a click on a heading sorts, the best of each column is bold."""
    table = board.table
    columns = [_ranks(board), *(_score(board, column) for column in [*board.metrics, *_besides(board)])]
    columns += [_cost(board, *cost) for cost in COSTS]
    for key, label in (("unused", "covariates not used"), ("error", "error")):
        if (table[key] != "").any():
            columns.append((head(label, ""), [words(one) for one in table[key]]))
    columns = [column for column in columns if column[1]]
    rows = []
    for row, model in enumerate(table["model"]):
        failed = ' class="failed"' if table["error"].iloc[row] else ""
        rows.append(f'<tr{failed}>{named("row", name(model))}{"".join(cells[row] for _, cells in columns)}</tr>')
    note = (
        '<p class="quiet">Each score is the mean over series, with its 95 % bootstrap interval over series; the best of a '
        "column is bold. A score that is best at 0 or at a level is judged by how far the series are away from there, since "
        "too high and too low cancel in its mean. A click on a heading sorts.</p>"
    )
    return f"{html_table.table([head('model'), *(top for top, _ in columns)], rows)}\n{note}"


def pairs(board: Leaderboard) -> str:
    """For each pair of models the share of series the one in the row wins; nothing where there is no pair or one series."""
    models = board.table.loc[board.table["error"] == "", "model"].tolist()[:MOST_PAIRED]
    if len(models) < 2 or board.significance["series"].max() < 2:
        return ""
    held = {(row.model, row.against): row for row in board.significance.itertuples()}
    heads = ['<th scope="col"></th>', *(named("col", name(one)) for one in models)]
    rows = [f"<tr>{named('row', name(one))}{''.join(_pair(held.get((one, other))) for other in models)}</tr>" for one in models]
    note = (
        f"<p>How often the model in the row beats the one in the column by {escape(shown(board.metrics[0], 60))}, as a share "
        "of the series both have a score for. Coloured: more than chance (Wilcoxon's signed-rank test with Holm's correction "
        f"for the number of pairs, p below {SURE:g}).</p>"
    )
    return note + html_table.table(heads, rows)


def _pair(row: Any) -> str:
    if row is None:
        return "<td>–</td>"
    side = "" if not row.p_value < SURE else ' class="for"' if row.wins > 0.5 else ' class="against"' if row.wins < 0.5 else ""
    return f"<td{side}>{percent(row.wins)}<small>p {escape(p_text(row.p_value))}</small></td>"


def _besides(board: Leaderboard) -> list[str]:
    return [name for name in board.criteria if name not in board.metrics]


def _ranks(board: Leaderboard) -> tuple[str, list[str]]:
    table = board.table
    cells = [
        cell(mean, "failed" if error else number(mean, 3), f"median {number(median, 3)}" if np.isfinite(median) else "", best)
        for mean, median, error, best in zip(
            table["rank"], table["rank-median"], table["error"], smallest(table["rank"].to_numpy()), strict=True
        )
    ]
    return head("rank", "Mean over series of the place among all models; ties share theirs."), cells


def _score(board: Leaderboard, column: str) -> tuple[str, list[str]]:
    """A score with its interval. Sorting goes by the distance from good, so that the best comes first."""
    table, criterion = board.table, board.criteria[column]
    values = table[column].to_numpy()
    distance = table[criterion.judged_by].to_numpy() if criterion.best is not None else criterion.distance(values)
    share = criterion.metric.better == "level"
    told = percent if share else number
    cells = []
    ends = table[f"{column}-low"], table[f"{column}-high"]
    for value, low, high, away, best in zip(values, *ends, distance, smallest(distance), strict=True):
        interval = f"{told(low)} to {told(high)}" if np.isfinite(low) else ""
        if criterion.best is not None and np.isfinite(away):
            interval += f"{'; ' if interval else ''}{told(away)} away"
        cells.append(cell(away, told(value), interval, best))
    return head(shown(column, 40), f"{criterion.metric.rewards} ({direction(criterion)})"), cells


def _cost(board: Leaderboard, column: str, label: str) -> tuple[str, list[str]]:
    """Seconds or memory; nothing where none was measured."""
    values = board.table[column].to_numpy()
    if np.isnan(values).all():
        return "", []
    told = seconds if column.endswith("seconds") else (lambda value: "" if np.isnan(value) else f"{value:,.0f}")
    said = "Wall-clock seconds over all windows." if column.endswith("seconds") else "Memory beyond what was held before."
    return head(label, said), [cell(value, told(value), "", False) for value in values]
