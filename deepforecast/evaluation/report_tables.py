"""The tables of a report: the leaderboard, sortable, and every pair of models. All text is escaped here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.errors import format_value
from deepforecast.evaluation import html_table
from deepforecast.evaluation.criteria import ENDS
from deepforecast.evaluation.html_table import MOST_PAIRED, cell, first_of, head, named, smallest, spanning, words
from deepforecast.evaluation.leaderboard import direction
from deepforecast.evaluation.verdict import SURE, name, number, p_text, percent, seconds

if TYPE_CHECKING:
    from deepforecast.evaluation.criteria import Criterion
    from deepforecast.evaluation.leaderboard import Leaderboard

COSTS = (("fit_seconds", "fit s"), ("predict_seconds", "predict s"), ("peak_mb", "peak MB"))
MOST_LEVELS = 2  # coverages in the leaderboard, which is wide enough without; the section on coverage has all
OF_LEVEL = {"coverage": "Coverage", "width": "Width", "winkler": "Winkler score"}


def leaderboard(board: Leaderboard) -> str:
    """The table of all models: a click on a heading sorts, the best of each column is bold."""
    table, first = board.table, board.criteria[board.metrics[0]]
    columns = [_ranks(board)]
    if first.best is not None:
        columns.append(_distance(board, first))
    columns += [_score(board, column) for column in [*board.metrics, *_of_level(board, "coverage")[:MOST_LEVELS]]]
    columns += [_cost(board, *cost) for cost in COSTS]
    if (table["unused"] != "").any():
        columns.append((head("covariates not used"), [words(one) for one in table["unused"]]))
    note = (
        '<p class="quiet">Each score is the mean over series, with its 95 % bootstrap interval over series; the best of a '
        "column is bold: the lowest or highest, or the closest to 0 or to its level. A click on a heading sorts.</p>"
    )
    return f"{_table(board, columns)}\n{note}"


def intervals(board: Leaderboard) -> str:
    """The scores of the prediction intervals that are not in the leaderboard: a table of each by level."""
    tables = []
    for metric, title in OF_LEVEL.items():
        names = _of_level(board, metric)
        if metric == "coverage" and len(names) <= MOST_LEVELS:
            continue
        if names:
            tables.append(f"<h3>{title}</h3>{_table(board, [_score(board, name) for name in names])}")
    return "".join(tables)


def _table(board: Leaderboard, columns: Sequence[tuple[str, list[str]]]) -> str:
    """A row per model; one that failed has its error in place of all cells."""
    columns = [column for column in columns if column[1]]
    rows = []
    for row, (model, error) in enumerate(zip(board.table["model"], board.table["error"], strict=True)):
        if error:
            rows.append(f'<tr class="failed">{named("row", name(model))}{spanning(f"failed: {error}", len(columns))}</tr>')
        else:
            rows.append(f"<tr>{named('row', name(model))}{''.join(cells[row] for _, cells in columns)}</tr>")
    return html_table.table([head("model"), *(top for top, _ in columns)], rows)


def pairs(board: Leaderboard) -> str:
    """For each pair of models the share of series the one in the row wins; nothing where there is no pair or one series."""
    every = board.table.loc[board.table["error"] == "", "model"].tolist()
    models = every[:MOST_PAIRED]
    if len(models) < 2 or board.significance["series"].max() < 2:
        return ""
    held = {(row.model, row.against): row for row in board.significance.itertuples()}
    heads = ['<th scope="col"></th>', *(named("col", name(one)) for one in models)]
    rows = [f"<tr>{named('row', name(one))}{''.join(_pair(held.get((one, other))) for other in models)}</tr>" for one in models]
    note = (
        f"<p>How often the model in the row beats the one in the column by {escape(format_value(board.metrics[0], 60))}, as a share "
        "of the series both have a score for. Coloured: more than chance (Wilcoxon's signed-rank test with Holm's correction "
        f"for the number of pairs, p below {SURE:g}).{first_of(len(every))}</p>"
    )
    return note + html_table.table(heads, rows)


def _pair(row: Any) -> str:
    if row is None:
        return "<td>–</td>"
    side = "" if not row.p_value < SURE else ' class="for"' if row.wins > 0.5 else ' class="against"' if row.wins < 0.5 else ""
    return f"<td{side}>{percent(row.wins)}<small>p {escape(p_text(row.p_value))}</small></td>"


def _of_level(board: Leaderboard, metric: str) -> list[str]:
    """The columns of a metric of intervals that was not asked for as a metric, one per level."""
    return [name for name, one in board.criteria.items() if one.metric.name == metric and name not in board.metrics]


def _ranks(board: Leaderboard) -> tuple[str, list[str]]:
    table = board.table
    best = smallest(table["rank"].to_numpy())
    cells = [
        cell(mean, number(mean, 3), f"median {number(median, 3)}" if median != mean else "", least)
        for mean, median, least in zip(table["rank"], table["rank-median"], best, strict=True)
    ]
    return head("rank", "Mean over series of the place among all models; ties share theirs."), cells


def _score(board: Leaderboard, column: str) -> tuple[str, list[str]]:
    """A score with its interval; sorted, and best, by how far the value shown is from good."""
    criterion = board.criteria[column]
    text = percent if criterion.metric.better == "level" else number
    distance = criterion.distance(board.table[column].to_numpy())
    label = head(format_value(column, 40), f"{criterion.metric.rewards} ({direction(criterion)})")
    return label, _cells(board, column, text, distance)


def _distance(board: Leaderboard, criterion: Criterion) -> tuple[str, list[str]]:
    """The mean distance of the series from where a score is best, where that ranks the models."""
    label = head(f"{format_value(criterion.column, 40)}, {direction(criterion)}", "Mean over series; it ranks the models.")
    distance = board.table[criterion.judged_by].to_numpy()
    return label, _cells(board, criterion.judged_by, number, distance)


def _cells(board: Leaderboard, column: str, text: Callable[..., str], distance: Floats) -> list[str]:
    """Values with their intervals; all that read the same as the best one are bold."""
    texts = [text(value) for value in board.table[column]]
    best = {value for value, least in zip(texts, smallest(distance), strict=True) if least}
    low, high = ([_end(text, value) for value in board.table[f"{column}{end}"]] for end in ENDS[1:])
    return [
        cell(away, texts[row], f"{low[row]} to {high[row]}" if low[row] else "", texts[row] in best)
        for row, away in enumerate(distance)
    ]


def _end(text: Callable[..., str], value: float) -> str:
    """An end of an interval, numbers in three digits."""
    return number(value, 3) if text is number else text(value)


def _cost(board: Leaderboard, column: str, label: str) -> tuple[str, list[str]]:
    """Seconds or memory; nothing where none was measured."""
    values = board.table[column].to_numpy()
    if np.isnan(values).all():
        return "", []
    told = seconds if column.endswith("seconds") else (lambda value: "" if np.isnan(value) else f"{value:,.0f}")
    said = "Wall-clock seconds over all windows." if column.endswith("seconds") else "Memory beyond what was held before."
    return head(label, said), [cell(value, told(value), "", False) for value in values]
