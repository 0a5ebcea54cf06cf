"""A leaderboard as text for a terminal of any width, and as a table for notebooks. Nothing of the caller's is interpreted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.errors import format_value
from deepforecast.evaluation.criteria import ENDS
from deepforecast.evaluation.verdict import headline, notes, number, percent, seconds, verdict

if TYPE_CHECKING:
    from deepforecast.evaluation.leaderboard import Leaderboard

NARROWEST = 40
LONGEST_NAMES = (40, 28, 20, 14)  # of models, the longest that leaves room for the numbers


@dataclass(frozen=True)
class Column:
    """A column of short texts; the ones with the largest `rank` are given up first, those of rank 0 never."""

    name: str
    cells: list[str]
    rank: int

    @property
    def width(self) -> int:
        """Characters of its longest line."""
        return max(len(self.name), *map(len, self.cells))


def text(board: Leaderboard, width: int) -> str:
    """The board in lines of at most `width` characters."""
    from textwrap import wrap

    width = max(width, NARROWEST)
    shown_columns, gone = fitted(board, width)
    said = [verdict(board), *notes(board)]
    if gone:
        said.append(f"For want of room not shown: {', '.join(gone)}. They are in .table and .report(path).")
    lines = [*wrap(headline(board), width), *_lines(shown_columns, width)]
    return "\n".join([*lines, *(line for one in said for line in wrap(one, width, subsequent_indent="  "))])


def html(board: Leaderboard) -> str:
    """The board for a notebook: everything escaped."""
    from html import escape

    held = columns(board, LONGEST_NAMES[0])
    head = "".join(f"<th{_side(place)}>{escape(one.name)}</th>" for place, one in enumerate(held))
    body = "".join(
        "<tr>" + "".join(f"<td{_side(place)}>{escape(one.cells[row])}</td>" for place, one in enumerate(held)) + "</tr>"
        for row in range(len(board.table))
    )
    said = "".join(f"<p>{escape(one)}</p>" for one in (verdict(board), *notes(board)))
    return f"<p>{escape(headline(board))}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{said}"


def columns(board: Leaderboard, longest_name: int) -> list[Column]:
    """The table for reading: the interval beside the metric that decides, short numbers, no column that says nothing."""
    table = board.table
    fine = (table["error"] == "").tolist()
    names = [_short(name, longest_name) for name in table["model"]]
    ranks = [number(value, 3) if ok else "failed" for value, ok in zip(table["rank"], fine, strict=True)]
    held = [Column("model", names, 0), Column("rank", ranks, 0)]
    first = board.criteria[board.metrics[0]]
    label, cells = _short(first.judged_by, 24), [number(value) for value in table[first.judged_by]]
    if table[f"{first.judged_by}-low"].notna().any():
        label, cells = f"{label} [95 %]", _with_interval(*(table[f"{first.judged_by}{end}"] for end in ENDS))
    held.append(Column(label, cells, 0))
    for place, name in enumerate(board.metrics):
        if name != first.judged_by:
            held.append(Column(_short(name, 24), [number(value) for value in table[name]], 10 + place))
    for place, name in enumerate(one for one in board.criteria if one.startswith("coverage-") and one not in board.metrics):
        held.append(Column(name, [percent(value) for value in table[name]], 11 + place))
    held.append(Column("fit s", [seconds(value) for value in table["fit_seconds"]], 9))
    held.append(Column("predict s", [seconds(value) for value in table["predict_seconds"]], 30))
    if table["peak_mb"].notna().any():
        held.append(Column("peak MB", ["" if np.isnan(value) else f"{value:,.0f}" for value in table["peak_mb"]], 31))
    return held


def fitted(board: Leaderboard, width: int) -> tuple[list[Column], list[str]]:
    """The columns there is room for, and the names of the others."""
    held = columns(board, LONGEST_NAMES[0])
    gone: list[str] = []
    for longest in LONGEST_NAMES:
        held = columns(board, longest)
        if _total(held) <= width:
            return held, gone
    while _total(held) > width and max(one.rank for one in held):
        last = max(held, key=lambda one: one.rank)
        held = [one for one in held if one is not last]
        gone.insert(0, last.name)
    for longest in LONGEST_NAMES:  # names may be longer again where a column went
        wider = [columns(board, longest)[0], *held[1:]]
        if _total(wider) <= width:
            return wider, gone
    return held, gone


def _lines(held: list[Column], width: int) -> list[str]:
    """A text table: names to the left, numbers to the right."""
    rows = zip(*([one.name, *one.cells] for one in held), strict=True)
    widths = [one.width for one in held]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(wide) for cell, wide in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    return [line.rstrip()[:width] for line in lines]


def _total(held: list[Column]) -> int:
    return sum(one.width for one in held) + 2 * (len(held) - 1)


def _with_interval(*sides: object) -> list[str]:
    return [
        f"{number(value)} [{number(low)}, {number(high)}]" if np.isfinite(low) else number(value)
        for value, low, high in zip(*sides, strict=True)
    ]


def _side(place: int) -> str:
    return ' style="text-align:left"' if place == 0 else ' style="text-align:right"'


def _short(name: object, longest: int) -> str:
    """A name in at most `longest` characters: the middle goes, for names mostly differ at their ends.

    >>> _short("transformer_wide_seed_1", 14)
    'transfo…seed_1'
    """
    text = format_value(str(name), 10_000)
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[-tail:]}"
