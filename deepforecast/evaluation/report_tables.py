"""Tables of a report: the sortable leaderboard and pairs of models. Texts are escaped here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.errors import format_value
from deepforecast.evaluation import html_table
from deepforecast.evaluation.criteria import INTERVAL_SUFFIXES
from deepforecast.evaluation.html_table import (
    MAX_PAIRED_MODELS,
    is_smallest,
    name_heading,
    number_cell,
    sortable_heading,
    spanning_cell,
    text_cell,
    truncation_note,
)
from deepforecast.evaluation.leaderboard import describe_direction
from deepforecast.evaluation.leaderboard_summary import (
    SIGNIFICANCE_LEVEL,
    format_model_name,
    format_p_value,
    format_percent,
    format_rounded,
    format_seconds,
)

if TYPE_CHECKING:
    from deepforecast.evaluation.criteria import Criterion
    from deepforecast.evaluation.leaderboard import Leaderboard

COST_COLUMNS = (("fit_seconds", "fit s"), ("predict_seconds", "predict s"), ("peak_mb", "peak MB"))
MAX_LEVELS = 2  # levels of coverage in the leaderboard; the section on coverage has all
INTERVAL_TITLES = {"coverage": "Coverage", "width": "Width", "winkler": "Winkler score"}


def leaderboard_table(board: Leaderboard) -> str:
    """HTML table of all models, sortable by column; the best value of each column is bold."""
    table = board.table
    main_criterion = board.criteria[board.metrics[0]]
    columns = [_rank_column(board)]
    if main_criterion.target_value is not None:
        columns.append(_distance_to_target_column(board, main_criterion))
    columns += [_score_column(board, column) for column in [*board.metrics, *_interval_columns(board, "coverage")[:MAX_LEVELS]]]
    columns += [_cost_column(board, column, heading) for column, heading in COST_COLUMNS]
    if table["failed_series"].any():
        columns.append((sortable_heading("series not fitted"), [text_cell(str(number)) for number in table["failed_series"]]))
    if (table["unused"] != "").any():
        columns.append((sortable_heading("covariates not used"), [text_cell(unused) for unused in table["unused"]]))
    note = (
        '<p class="quiet">Each score is the mean over series with its 95 % bootstrap interval. Bold marks the best value of '
        "each column: the lowest, the highest, or (bias, coverage) the closest to its target. Click on a heading to sort.</p>"
    )
    return f"{_model_table(board, columns)}\n{note}"


def interval_tables(board: Leaderboard) -> str:
    """A table by level for each interval metric that is not in the leaderboard."""
    tables = []
    for metric, title in INTERVAL_TITLES.items():
        names = _interval_columns(board, metric)
        if metric == "coverage" and len(names) <= MAX_LEVELS:
            continue
        if names:
            tables.append(f"<h3>{title}</h3>{_model_table(board, [_score_column(board, name) for name in names])}")
    return "".join(tables)


def _model_table(board: Leaderboard, columns: Sequence[tuple[str, list[str]]]) -> str:
    """HTML table with a row per model, with the error in place of the scores if it failed.

    `columns`: heading and cells of each column, one cell per model; those without cells are left out.
    """
    columns = [column for column in columns if column[1]]
    rows = []
    for row, (model, error) in enumerate(zip(board.table["model"], board.table["error"], strict=True)):
        if error:
            rows.append(
                f'<tr class="failed">{name_heading("row", format_model_name(model))}'
                f"{spanning_cell(f'failed: {error}', len(columns))}</tr>"
            )
        else:
            rows.append(
                f"<tr>{name_heading('row', format_model_name(model))}{''.join(cells[row] for _, cells in columns)}</tr>"
            )
    return html_table.table_html([sortable_heading("model"), *(heading for heading, _ in columns)], rows)


def pairs_table(board: Leaderboard) -> str:
    """For each pair of models the share of series that the row model wins; empty without a pair or
    several series."""
    all_models = board.table.loc[board.table["error"] == "", "model"].tolist()
    models = all_models[:MAX_PAIRED_MODELS]
    if len(models) < 2 or board.significance["series"].max() < 2:
        return ""
    pair_rows = {(row.model, row.against): row for row in board.significance.itertuples()}
    headings = ['<th scope="col"></th>', *(name_heading("col", format_model_name(model)) for model in models)]
    rows = []
    for model in models:
        cells = "".join(_pair_cell(pair_rows.get((model, opponent))) for opponent in models)
        rows.append(f"<tr>{name_heading('row', format_model_name(model))}{cells}</tr>")
    note = (
        f"<p>Share of series in which the row model has a better {escape(format_value(board.metrics[0], 60))} than the column "
        "model. Coloured: significant (Wilcoxon signed-rank test with Holm's correction for the number of pairs, p below "
        f"{SIGNIFICANCE_LEVEL:g}).{truncation_note(len(all_models))}</p>"
    )
    return note + html_table.table_html(headings, rows)


def _pair_cell(row: Any) -> str:
    """The share of wins and the p-value, coloured if significant; a dash for a model and itself."""
    if row is None:
        return "<td>–</td>"
    class_attribute = ""
    if row.p_value < SIGNIFICANCE_LEVEL and row.wins != 0.5:
        class_attribute = ' class="for"' if row.wins > 0.5 else ' class="against"'
    return f"<td{class_attribute}>{format_percent(row.wins)}<small>p {escape(format_p_value(row.p_value))}</small></td>"


def _interval_columns(board: Leaderboard, metric: str) -> list[str]:
    """The columns of an interval metric that is not among the requested metrics, one per level."""
    return [name for name, criterion in board.criteria.items() if criterion.metric.name == metric and name not in board.metrics]


def _rank_column(board: Leaderboard) -> tuple[str, list[str]]:
    """Heading and cells of the mean rank, with the median rank where it differs."""
    table = board.table
    is_best_rank = is_smallest(table["rank"].to_numpy())
    cells = [
        number_cell(mean, format_rounded(mean, 3), f"median {format_rounded(median, 3)}" if median != mean else "", is_best)
        for mean, median, is_best in zip(table["rank"], table["rank-median"], is_best_rank, strict=True)
    ]
    return sortable_heading("rank", "Mean rank among all models over series; ties share the mean rank."), cells


def _score_column(board: Leaderboard, column: str) -> tuple[str, list[str]]:
    """Heading and cells of a score with its interval, sorted by the distance from the best value."""
    criterion = board.criteria[column]
    format_score = format_percent if criterion.metric.better == "level" else format_rounded
    distance = criterion.distance(board.table[column].to_numpy())
    heading = sortable_heading(format_value(column, 40), f"{criterion.metric.rewards} ({describe_direction(criterion)})")
    return heading, _score_cells(board, column, format_score, distance)


def _distance_to_target_column(board: Leaderboard, criterion: Criterion) -> tuple[str, list[str]]:
    """Heading and cells of the mean distance from the target value, for metrics that rank by it."""
    heading = sortable_heading(
        f"{format_value(criterion.column, 40)}, {describe_direction(criterion)}", "Mean over series; ranks the models."
    )
    distance = board.table[criterion.ranking_column].to_numpy()
    return heading, _score_cells(board, criterion.ranking_column, format_rounded, distance)


def _score_cells(board: Leaderboard, column: str, format_score: Callable[..., str], distance: Floats) -> list[str]:
    """Cells of values with their intervals; all whose text equals that of the best value are bold.

    `distance`: the distance of each value from the best one, by which the column is sorted.
    """
    texts = [format_score(value) for value in board.table[column]]
    best_texts = {value for value, is_best in zip(texts, is_smallest(distance), strict=True) if is_best}
    low, high = (
        [_format_bound(format_score, value) for value in board.table[f"{column}{end}"]] for end in INTERVAL_SUFFIXES[1:]
    )
    return [
        number_cell(sort_key, texts[row], f"{low[row]} to {high[row]}" if low[row] else "", texts[row] in best_texts)
        for row, sort_key in enumerate(distance)
    ]


def _format_bound(format_score: Callable[..., str], bound: float) -> str:
    """An interval bound, with three digits."""
    return format_rounded(bound, 3) if format_score is format_rounded else format_score(bound)


def _cost_column(board: Leaderboard, column: str, label: str) -> tuple[str, list[str]]:
    """Heading and cells of seconds or memory; an empty heading and no cells if not measured."""
    values = board.table[column].to_numpy()
    if np.isnan(values).all():
        return "", []
    format_cost = format_seconds if column.endswith("seconds") else (lambda value: "" if np.isnan(value) else f"{value:,.0f}")
    tooltip = "Wall-clock seconds over all windows." if column.endswith("seconds") else "Peak memory above that at the start."
    return sortable_heading(label, tooltip), [number_cell(value, format_cost(value), "", False) for value in values]
