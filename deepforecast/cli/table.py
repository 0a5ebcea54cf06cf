"""Tables for people: short numbers, nothing that moves the cursor, no line longer than the terminal."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from deepforecast.cli.streams import paint
from deepforecast.errors import format_value

LONGEST = 60  # signs of a cell
GAP = 2


def frame_text(frame: Any, most: int = 40, hint: str = "--output FILE writes all") -> str:
    """The rows of a frame; of a long one the first and the last, and how many lie between."""
    from deepforecast.cli.writing import as_pandas

    pandas = as_pandas(frame)
    rows = len(pandas)
    cut = rows > most
    if cut:
        import pandas as pd

        pandas = pd.concat([pandas.iloc[: most // 2], pandas.iloc[-(most // 2) :]])
    columns = {str(name): _cells(pandas[name]) for name in pandas.columns}
    if cut:
        columns = {name: [*cells[: most // 2], "...", *cells[most // 2 :]] for name, cells in columns.items()}
    keys = next((at for at, name in enumerate(pandas.columns) if pandas[name].dtype.kind == "f"), 1)
    lines = table_lines(columns, keys=max(1, keys))
    return "\n".join([*lines, f"({rows - most:,} of {rows:,} rows left out in the middle; {hint})"] if cut else lines)


def table_lines(
    columns: Mapping[str, Sequence[str]], keys: int = 1, left: Sequence[str] | None = None, width: int | None = None
) -> list[str]:
    """Cells under their names. Numbers stand to the right; columns that do not fit go below, with the first `keys` again.

    `left`: columns of words (default: the first). `width`: columns there are (default: those of the terminal).
    """
    names = list(columns)
    words = names[:1] if left is None else list(left)
    cells = {name: [format_value(cell, LONGEST) for cell in columns[name]] for name in names}
    widths = {name: max(map(_width, [format_value(name, LONGEST), *cells[name]])) for name in names}
    lines: list[str] = []
    for block in _blocks(names, widths, keys, width or room()):
        lines += [""] if lines else []

        def line(texts: Mapping[str, str], block: Sequence[str] = block) -> str:
            parts = [_padded(texts[n], widths[n], n in words) for n in block]
            return (" " * GAP).join(parts).rstrip()

        lines.append(paint(line({name: format_value(name, LONGEST) for name in block}), "bold"))
        rows = range(max(map(len, cells.values()), default=0))
        lines += [line({name: cells[name][row] for name in block}) for row in rows]
    return lines


def folded(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """`text` in lines that fit the terminal, cut between words; `first` and `rest` go before the first line and the others."""
    following = " " * len(first) if rest is None else rest
    return textwrap.wrap(text, room(), initial_indent=first, subsequent_indent=following, break_on_hyphens=False) or [first]


def room() -> int:
    """Columns of the terminal; 100 where there is none."""
    return shutil.get_terminal_size((100, 24)).columns


def short(value: Any, digits: int = 4) -> str:
    """A number with few digits; a dash for none.

    >>> short(1234.567), short(0.00012345), short(None), short(3)
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


def seconds(value: float) -> str:
    """A duration.

    >>> seconds(0.0004), seconds(2.34), seconds(75)
    ('0.00 s', '2.3 s', '1 min 15 s')
    """
    if value < 1:
        return f"{value:.2f} s"
    return f"{value:.1f} s" if value < 60 else f"{value // 60:.0f} min {value % 60:.0f} s"


def size(count: int) -> str:
    """A number of bytes.

    >>> size(812), size(1_250_000)
    ('812 B', '1.2 MB')
    """
    scale = next((power for power in range(4) if count < 1000 ** (power + 1)), 3)
    return f"{count} B" if scale == 0 else f"{count / 1000**scale:.1f} {' kMG'[scale]}B"


def _cells(values: Any) -> list[str]:
    """A column of one precision: five digits of its largest number."""
    if values.dtype.kind != "f":
        return ["-" if missing else str(value) for value, missing in zip(values.astype(str), values.isna(), strict=True)]
    largest = max((abs(value) for value in values.tolist() if math.isfinite(value)), default=0.0)
    if largest and not 1e-5 <= largest < 1e15:
        return ["-" if math.isnan(value) else f"{value:.5g}" for value in values.tolist()]
    decimals = max(0, min(6, 4 - math.floor(math.log10(largest)))) if largest else 1
    return ["-" if math.isnan(value) else f"{value:.{decimals}f}" for value in values.tolist()]


def _blocks(names: Sequence[str], widths: Mapping[str, int], keys: int, room: int) -> list[list[str]]:
    """The columns of each table below the other."""
    first = list(names[:keys])
    blocks = [list(first)]
    for name in names[keys:]:
        block = [*blocks[-1], name]
        if len(blocks[-1]) > len(first) and sum(widths[n] + GAP for n in block) - GAP > room:
            blocks.append([*first, name])
        else:
            blocks[-1] = block
    return blocks


def _padded(text: str, width: int, left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text


def _width(text: str) -> int:
    """Columns of a terminal that `text` takes: two for each East Asian sign, none for an accent."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(sign) else 1 + (east_asian_width(sign) in "WF") for sign in text)
