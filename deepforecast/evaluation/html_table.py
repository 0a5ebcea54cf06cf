"""Cells of the sortable tables of a report. Texts are escaped here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.errors import format_value

MAX_PAIRED_MODELS = 12  # models in a table of pairs: with more it is wider than a page


def truncation_note(n_models: int) -> str:
    """A sentence if a table of pairs does not show all models, otherwise empty."""
    return f" Shown are the first {MAX_PAIRED_MODELS} of {n_models} models." if n_models > MAX_PAIRED_MODELS else ""


def table_html(heads: Sequence[str], rows: Sequence[str]) -> str:
    """A table that scrolls horizontally on narrow pages; heads and rows are HTML."""
    body = "\n".join(rows)
    return f'<div class="scroll"><table><thead><tr>{"".join(heads)}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def sortable_heading(label: str, tooltip: str = "") -> str:
    """The heading of a sortable column."""
    title = f' title="{escape(format_value(tooltip, 300))}"' if tooltip else ""
    return f'<th scope="col"{title}><button type="button" class="sort">{_with_line_breaks(label)}</button></th>'


def name_heading(scope: str, text: str, subtitle: str = "") -> str:
    """The heading of a row, or of a column of names."""
    caption = f"<small>{escape(subtitle)}</small>" if subtitle else ""
    return f'<th scope="{scope}"><span class="name">{escape(text)}</span>{caption}</th>'


def number_cell(sort_value: float, text: str, subtitle: str = "", is_best: bool = False) -> str:
    """A cell with the text of a number; `sort_value` is its key when the table is sorted, NaN last."""
    data_value = f"{sort_value:.12g}" if np.isfinite(sort_value) else ""
    class_attribute = ' class="best"' if is_best else ""
    caption = f"<small>{escape(subtitle)}</small>" if subtitle else ""
    return f'<td data-value="{data_value}"{class_attribute}>{escape(text)}{caption}</td>'


def text_cell(text: str) -> str:
    """A cell of text."""
    return f'<td class="words">{escape(format_value(text, 200))}</td>'


def spanning_cell(content: str, n_columns: int) -> str:
    """A cell of text that spans `n_columns` columns."""
    return f'<td class="words" colspan="{n_columns}"><span>{escape(format_value(content, 300))}</span></td>'


def _with_line_breaks(label: str) -> str:
    """A label with optional line breaks after underscores, hyphens and commas."""
    return re.sub(r"([_,-])", r"\1<wbr>", escape(label))


def is_smallest(distances: Floats) -> list[bool]:
    """Whether each distance is the smallest, ties included; False for NaN."""
    finite_distances = distances[np.isfinite(distances)]
    return [bool(len(finite_distances)) and bool(distance == finite_distances.min()) for distance in distances]
