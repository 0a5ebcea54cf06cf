"""Text to numbers: a cell that is not one is named, never made missing."""

from __future__ import annotations

from typing import Any

from deepforecast.data.frames import MAX_EXACT_INTEGER
from deepforecast.errors import DataError, format_value

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^(?i:[+-]?inf(inity)?)$"
MISSING = ("", "na", "n/a", "nan", "null", "none")


def numbers(text: Any, name: str, decimal: str = ".") -> Any:
    """A column of numbers; whole ones as integers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = plain_text(text, decimal)
    wrong = pc.invert(pc.match_substring_regex(plain, NUMBER))
    if pc.any(wrong).as_py():
        raise DataError(
            f"Column {name} holds numbers; {where(wrong, text)}. {_comma(text, wrong, decimal)}"
            "Repair these cells, or leave them empty where a value is missing."
        )
    if len(plain) > plain.null_count and pc.all(pc.match_substring_regex(plain, r"^-?\d+$")).as_py():
        return _whole(plain, name)
    return pc.cast(plain, pa.float64())


def where(wrong: Any, text: Any) -> str:
    """The first row of those marked, what it holds, and how many there are."""
    import pyarrow.compute as pc

    first = pc.index(wrong, True).as_py()
    value = text[first].as_py()
    others = pc.sum(wrong).as_py() - 1
    more = f" (and {others:,} more such row{'s' * (others > 1)})" if others else ""
    return f"data row {first + 1} {f'holds {format_value(value)!r}' if value else 'is empty'}{more}"


def plain_text(text: Any, decimal: str) -> Any:
    """Without spaces around, missing values as such, a point where the decimals begin."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(text)
    absent = pc.is_in(pc.utf8_lower(trimmed), value_set=pa.array(MISSING))
    trimmed = pc.if_else(absent, pa.scalar(None, trimmed.type), trimmed)
    return trimmed if decimal == "." else pc.replace_substring(trimmed, ",", ".")


def _whole(text: Any, name: str) -> Any:
    """Integers, none of which a float would round."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        whole = pc.cast(text, pa.int64())
        largest = max(map(abs, pc.min_max(whole).as_py().values()))
    except pa.ArrowInvalid:
        largest = MAX_EXACT_INTEGER + 1
    if largest > MAX_EXACT_INTEGER:
        raise DataError(
            f"Column {name} holds integers beyond 2^53, which cannot be computed with exactly. Rescale or round them."
        )
    return whole


def _comma(text: Any, wrong: Any, decimal: str) -> str:
    import pyarrow.compute as pc

    first = text[pc.index(wrong, True).as_py()].as_py()
    return "Say --decimal , if that is the decimal sign. " if decimal == "." and "," in first else ""
