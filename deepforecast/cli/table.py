"""Text tables with short numbers, escaped cells and lines that fit the terminal."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from deepforecast.cli.streams import paint
from deepforecast.errors import format_value

MAX_CELL_WIDTH = 60  # characters
COLUMN_GAP = 2


def format_frame(frame: Any, max_rows: int = 40, hint: str = "--output FILE writes all rows") -> str:
    """Format a frame; of more than `max_rows` rows, only the first and the last are shown."""
    from deepforecast.cli.output_files import to_pandas

    pandas = to_pandas(frame)
    rows = len(pandas)
    is_cut = rows > max_rows
    if is_cut:
        import pandas as pd

        pandas = pd.concat([pandas.iloc[: max_rows // 2], pandas.iloc[-(max_rows // 2) :]])
    columns = {str(name): _format_cells(pandas[name]) for name in pandas.columns}
    if is_cut:
        columns = {name: [*cells[: max_rows // 2], "...", *cells[max_rows // 2 :]] for name, cells in columns.items()}
    keys = next((position for position, name in enumerate(pandas.columns) if pandas[name].dtype.kind == "f"), 1)
    lines = format_table(columns, keys=max(1, keys))
    return "\n".join([*lines, f"({rows - max_rows:,} of {rows:,} rows omitted; {hint})"] if is_cut else lines)


def format_table(
    columns: Mapping[str, Sequence[str]], keys: int = 1, left_aligned: Sequence[str] | None = None, width: int | None = None
) -> list[str]:
    """Format columns of cells as lines; columns that do not fit continue below, with the first `keys` repeated.

    `left_aligned`: columns aligned left (default: the first). `width`: line width (default: that of the terminal).
    """
    names = list(columns)
    text_columns = names[:1] if left_aligned is None else list(left_aligned)
    cells = {name: [format_value(cell, MAX_CELL_WIDTH) for cell in columns[name]] for name in names}
    widths = {name: max(map(_display_width, [format_value(name, MAX_CELL_WIDTH), *cells[name]])) for name in names}
    lines: list[str] = []
    for block in _column_blocks(names, widths, keys, width or terminal_width()):
        lines += [""] if lines else []

        def line(texts: Mapping[str, str], block: Sequence[str] = block) -> str:
            padded = [_pad(texts[n], widths[n], n in text_columns) for n in block]
            return (" " * COLUMN_GAP).join(padded).rstrip()

        lines.append(paint(line({name: format_value(name, MAX_CELL_WIDTH) for name in block}), "bold"))
        rows = range(max(map(len, cells.values()), default=0))
        lines += [line({name: cells[name][row] for name in block}) for row in rows]
    return lines


def wrap_text(text: str, first_prefix: str = "", later_prefix: str | None = None) -> list[str]:
    """Wrap `text` to the terminal, with a prefix for the first line and one for the later lines."""
    indent = " " * len(first_prefix) if later_prefix is None else later_prefix
    return textwrap.wrap(
        text, terminal_width(), initial_indent=first_prefix, subsequent_indent=indent, break_on_hyphens=False
    ) or [first_prefix]


def terminal_width() -> int:
    """Return the width of the terminal, 100 without one."""
    return shutil.get_terminal_size((100, 24)).columns


def format_number(value: Any, digits: int = 4) -> str:
    """Format a number with few digits; a dash for None and NaN.

    Examples
    --------
    >>> format_number(1234.567), format_number(0.00012345), format_number(None), format_number(3)
    ('1,235', '0.0001234', '-', '3')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    number = float(value)
    if number == 0 or not 1e-5 <= abs(number) < 1e15:
        return f"{number:.{digits}g}"
    return f"{number:,.{max(0, digits - 1 - math.floor(math.log10(abs(number))))}f}"


def format_seconds(value: float) -> str:
    """Format a duration.

    Examples
    --------
    >>> format_seconds(0.0004), format_seconds(2.34), format_seconds(75)
    ('0.00 s', '2.3 s', '1 min 15 s')
    """
    if value < 1:
        return f"{value:.2f} s"
    return f"{value:.1f} s" if value < 60 else f"{value // 60:.0f} min {value % 60:.0f} s"


def format_size(count: int) -> str:
    """Format a number of bytes.

    Examples
    --------
    >>> format_size(812), format_size(1_250_000)
    ('812 B', '1.2 MB')
    """
    scale = next((power for power in range(4) if count < 1000 ** (power + 1)), 3)
    return f"{count} B" if scale == 0 else f"{count / 1000**scale:.1f} {' kMG'[scale]}B"


def _format_cells(values: Any) -> list[str]:
    """Format a column with the same decimals: five digits of its largest number."""
    if values.dtype.kind != "f":
        return ["-" if missing else str(value) for value, missing in zip(values.astype(str), values.isna(), strict=True)]
    largest = max((abs(value) for value in values.tolist() if math.isfinite(value)), default=0.0)
    if largest and not 1e-5 <= largest < 1e15:
        return ["-" if math.isnan(value) else f"{value:.5g}" for value in values.tolist()]
    decimals = max(0, min(6, 4 - math.floor(math.log10(largest)))) if largest else 1
    return ["-" if math.isnan(value) else f"{value:.{decimals}f}" for value in values.tolist()]


def _column_blocks(names: Sequence[str], widths: Mapping[str, int], keys: int, max_width: int) -> list[list[str]]:
    """Split the columns into tables that fit, each with the key columns first."""
    first = list(names[:keys])
    blocks = [list(first)]
    for name in names[keys:]:
        block = [*blocks[-1], name]
        if len(blocks[-1]) > len(first) and sum(widths[n] + COLUMN_GAP for n in block) - COLUMN_GAP > max_width:
            blocks.append([*first, name])
        else:
            blocks[-1] = block
    return blocks


def _pad(text: str, width: int, left: bool) -> str:
    space = " " * (width - _display_width(text))
    return text + space if left else space + text


def _display_width(text: str) -> int:
    """Return the width of `text` in a terminal; East Asian wide characters count 2, combining ones 0."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(sign) else 1 + (east_asian_width(sign) in "WF") for sign in text)
