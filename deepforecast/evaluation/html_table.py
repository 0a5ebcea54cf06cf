"""Cells of the tables of a report; a click on a heading sorts by them. All text is escaped here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.errors import format_value

MOST_PAIRED = 12  # models in a table of pairs: one of more is wider than a page


def first_of(count: int) -> str:
    """The sentence that a table of pairs does not have all models; empty where it has."""
    return f" Shown are the first {MOST_PAIRED} of {count} models." if count > MOST_PAIRED else ""


def table(heads: Sequence[str], rows: Sequence[str]) -> str:
    """A table that scrolls sideways where the page is narrow; heads and rows are HTML."""
    body = "\n".join(rows)
    return f'<div class="scroll"><table><thead><tr>{"".join(heads)}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def head(label: str, said: str = "") -> str:
    """The heading of a column that can be sorted; `said` is told when the pointer rests on it."""
    told = f' title="{escape(format_value(said, 300))}"' if said else ""
    return f'<th scope="col"{told}><button type="button" class="sort">{_breakable(label)}</button></th>'


def named(scope: str, told: str, small: str = "") -> str:
    """The heading of a row, or of a column of names."""
    below = f"<small>{escape(small)}</small>" if small else ""
    return f'<th scope="{scope}"><span class="name">{escape(told)}</span>{below}</th>'


def cell(value: float, told: str, small: str = "", best: bool = False) -> str:
    """A number; `value` is what sorting goes by."""
    key = f"{value:.12g}" if np.isfinite(value) else ""
    mark = ' class="best"' if best else ""
    return f'<td data-value="{key}"{mark}>{escape(told)}{f"<small>{escape(small)}</small>" if small else ""}</td>'


def words(told: str) -> str:
    """A cell of words."""
    return f'<td class="words">{escape(format_value(told, 200))}</td>'


def spanning(content: str, columns: int) -> str:
    """One cell of words in place of several."""
    return f'<td class="words" colspan="{columns}"><span>{escape(format_value(content, 300))}</span></td>'


def _breakable(label: str) -> str:
    """A label that may continue on the next line after an underscore, a hyphen or a comma."""
    return re.sub(r"([_,-])", r"\1<wbr>", escape(label))


def smallest(distance: Floats) -> list[bool]:
    """Which of the numbers are the smallest; those that are missing are not."""
    there = distance[np.isfinite(distance)]
    return [bool(len(there)) and bool(one == there.min()) for one in distance]
