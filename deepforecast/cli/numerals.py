"""Parsing of numbers; an invalid cell raises an error instead of becoming a missing value."""

from __future__ import annotations

from typing import Any

from deepforecast.data.frames import MAX_EXACT_INTEGER
from deepforecast.errors import DataError, format_value

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^(?i:[+-]?inf(inity)?)$"
MISSING = ("", "na", "n/a", "nan", "null", "none")


def parse_numbers(text: Any, name: str, decimal: str = ".") -> Any:
    """Parse a column of numbers, as integers if all are integers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cleaned = normalize_text(text, decimal)
    is_invalid = pc.invert(pc.match_substring_regex(cleaned, NUMBER))
    if pc.any(is_invalid).as_py():
        raise DataError(
            f"Column {name} must be numeric; {describe_cells(is_invalid, text)}. {_decimal_hint(text, is_invalid, decimal)}"
            "Correct these cells, or leave them empty for missing values."
        )
    if len(cleaned) > cleaned.null_count and pc.all(pc.match_substring_regex(cleaned, r"^-?\d+$")).as_py():
        return _parse_integers(cleaned, name)
    return pc.cast(cleaned, pa.float64())


def describe_cells(is_marked: Any, text: Any) -> str:
    """Describe the first marked row, its value, and the number of further rows."""
    import pyarrow.compute as pc

    first = pc.index(is_marked, True).as_py()
    value = text[first].as_py()
    n_others = pc.sum(is_marked).as_py() - 1
    more = f" (and {n_others:,} more such row{'s' * (n_others > 1)})" if n_others else ""
    return f"data row {first + 1} {f'holds {format_value(value)!r}' if value else 'is empty'}{more}"


def normalize_text(text: Any, decimal: str) -> Any:
    """Strip spaces, mark missing values, and use a decimal point."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(text)
    is_missing = pc.is_in(pc.utf8_lower(trimmed), value_set=pa.array(MISSING))
    trimmed = pc.if_else(is_missing, pa.scalar(None, trimmed.type), trimmed)
    return trimmed if decimal == "." else pc.replace_substring(trimmed, ",", ".")


def _parse_integers(text: Any, name: str) -> Any:
    """Parse integers that float64 represents exactly."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        integers = pc.cast(text, pa.int64())
        largest = max(map(abs, pc.min_max(integers).as_py().values()))
    except pa.ArrowInvalid:
        largest = MAX_EXACT_INTEGER + 1
    if largest > MAX_EXACT_INTEGER:
        raise DataError(
            f"Column {name} cannot contain integers beyond 2^53, which float64 cannot represent exactly.",
            hint="Rescale or round them.",
        )
    return integers


def _decimal_hint(text: Any, is_invalid: Any, decimal: str) -> str:
    import pyarrow.compute as pc

    first = text[pc.index(is_invalid, True).as_py()].as_py()
    return "Pass --decimal , if that is the decimal separator. " if decimal == "." and "," in first else ""
