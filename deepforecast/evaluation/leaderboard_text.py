"""A leaderboard as text for terminals and as HTML for notebooks; names and messages are escaped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.errors import format_value
from deepforecast.evaluation.criteria import INTERVAL_SUFFIXES
from deepforecast.evaluation.leaderboard_summary import format_percent, format_rounded, format_seconds, headline, notes, verdict

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard

MIN_WIDTH = 40
NAME_LENGTHS = (40, 28, 20, 14)  # lengths of model names, tried in this order
MAX_HEADING_LENGTH = 24  # characters of the name of a metric in the heading of a column


@dataclass(frozen=True)
class TextColumn:
    """A column of texts. Columns with the largest `priority` are dropped first, those with 0
    never."""

    name: str
    cells: list[str]
    priority: int

    @property
    def width(self) -> int:
        """Length of the longest cell."""
        return max(len(self.name), *map(len, self.cells))


def render_text(board: Leaderboard, width: int) -> str:
    """The board in lines of at most `width` characters."""
    from textwrap import wrap

    width = max(width, MIN_WIDTH)
    shown_columns, hidden_columns = fit_columns(board, width)
    paragraphs = [verdict(board), *notes(board)]
    if hidden_columns:
        paragraphs.append(f"Columns not shown: {', '.join(hidden_columns)}. Use .table or .report(path) to see them.")
    lines = [*wrap(headline(board), width), *_table_lines(shown_columns, width)]
    return "\n".join([*lines, *(line for paragraph in paragraphs for line in wrap(paragraph, width, subsequent_indent="  "))])


def render_html(board: Leaderboard) -> str:
    """The board as escaped HTML."""
    from html import escape

    text_columns = format_columns(board, NAME_LENGTHS[0])
    head = "".join(f"<th{_text_align(index)}>{escape(entry.name)}</th>" for index, entry in enumerate(text_columns))
    body = "".join(
        "<tr>"
        + "".join(f"<td{_text_align(index)}>{escape(entry.cells[row])}</td>" for index, entry in enumerate(text_columns))
        + "</tr>"
        for row in range(len(board.table))
    )
    paragraphs = "".join(f"<p>{escape(entry)}</p>" for entry in (verdict(board), *notes(board)))
    return f"<p>{escape(headline(board))}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{paragraphs}"


def format_columns(board: Leaderboard, max_name_length: int) -> list[TextColumn]:
    """The columns as texts, with the interval of the ranking metric and without empty columns."""
    table = board.table
    succeeded = (table["error"] == "").tolist()
    names = [_shorten(name, max_name_length) for name in table["model"]]
    ranks = [format_rounded(value, 3) if ok else "failed" for value, ok in zip(table["rank"], succeeded, strict=True)]
    text_columns = [TextColumn("model", names, 0), TextColumn("rank", ranks, 0)]
    criterion = board.criteria[board.metrics[0]]
    heading = _shorten(criterion.ranking_column, MAX_HEADING_LENGTH)
    cells = [format_rounded(value) for value in table[criterion.ranking_column]]
    if table[f"{criterion.ranking_column}-low"].notna().any():
        heading = f"{heading} [95 %]"
        cells = _format_intervals(*(table[f"{criterion.ranking_column}{end}"] for end in INTERVAL_SUFFIXES))
    text_columns.append(TextColumn(heading, cells, 0))
    for position, name in enumerate(board.metrics):
        if name != criterion.ranking_column:
            text_columns.append(
                TextColumn(_shorten(name, MAX_HEADING_LENGTH), [format_rounded(value) for value in table[name]], 10 + position)
            )
    for position, name in enumerate(
        column_name
        for column_name in board.criteria
        if column_name.startswith("coverage-") and column_name not in board.metrics
    ):
        text_columns.append(TextColumn(name, [format_percent(value) for value in table[name]], 11 + position))
    text_columns.append(TextColumn("fit s", [format_seconds(value) for value in table["fit_seconds"]], 9))
    text_columns.append(TextColumn("predict s", [format_seconds(value) for value in table["predict_seconds"]], 30))
    if table["peak_mb"].notna().any():
        text_columns.append(
            TextColumn("peak MB", ["" if np.isnan(value) else f"{value:,.0f}" for value in table["peak_mb"]], 31)
        )
    return text_columns


def fit_columns(board: Leaderboard, width: int) -> tuple[list[TextColumn], list[str]]:
    """The columns that fit into `width`, and the names of the others.

    Model names are shortened first; then columns are dropped in the order of their priority.
    """
    text_columns = format_columns(board, NAME_LENGTHS[0])
    hidden_columns: list[str] = []
    for name_length in NAME_LENGTHS:
        text_columns = format_columns(board, name_length)
        if _total_width(text_columns) <= width:
            return text_columns, hidden_columns
    while _total_width(text_columns) > width and max(column.priority for column in text_columns):
        dropped = max(text_columns, key=lambda column: column.priority)
        text_columns = [column for column in text_columns if column is not dropped]
        hidden_columns.insert(0, dropped.name)
    for name_length in NAME_LENGTHS:  # names may be longer again after columns were dropped
        wider = [format_columns(board, name_length)[0], *text_columns[1:]]
        if _total_width(wider) <= width:
            return wider, hidden_columns
    return text_columns, hidden_columns


def _table_lines(text_columns: list[TextColumn], width: int) -> list[str]:
    """A text table with names left-aligned and numbers right-aligned."""
    rows = zip(*([column.name, *column.cells] for column in text_columns), strict=True)
    widths = [column.width for column in text_columns]
    lines = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(column_width) for cell, column_width in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]
    return [line.rstrip()[:width] for line in lines]


def _total_width(text_columns: list[TextColumn]) -> int:
    return sum(column.width for column in text_columns) + 2 * (len(text_columns) - 1)


def _format_intervals(*bounds: object) -> list[str]:
    """Texts such as "1.2 [1.1, 1.3]" from the values, lower and upper bounds of a column."""
    return [
        f"{format_rounded(value)} [{format_rounded(low)}, {format_rounded(high)}]"
        if np.isfinite(low)
        else format_rounded(value)
        for value, low, high in zip(*bounds, strict=True)
    ]


def _text_align(index: int) -> str:
    return ' style="text-align:left"' if index == 0 else ' style="text-align:right"'


def _shorten(name: object, max_length: int) -> str:
    """Shorten a name in the middle, because names often differ at their ends.

    >>> _shorten("transformer_wide_seed_1", 14)
    'transfo…seed_1'
    """
    text = format_value(str(name), 10_000)
    if len(text) <= max_length:
        return text
    end_length = (max_length - 1) // 2
    return f"{text[: max_length - 1 - end_length]}…{text[-end_length:]}"
