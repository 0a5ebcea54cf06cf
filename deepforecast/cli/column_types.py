"""Conversion of text columns to typed columns; an ambiguous cell raises an error with its column and row."""

from __future__ import annotations

from typing import Any

from deepforecast.cli.arguments import TextFormat
from deepforecast.cli.numerals import NUMBER, describe_cells, normalize_text, parse_numbers
from deepforecast.cli.timestamps import parse_timestamps
from deepforecast.data.columns import Columns
from deepforecast.errors import DataError


def convert_columns(table: Any, columns: Columns, text_format: TextFormat) -> Any:
    """Convert an arrow table to a pandas frame; ids stay text, other text columns get the type of their role."""
    import pyarrow as pa

    converted: dict[str, Any] = {}
    for name in table.column_names:
        values = table[name]
        is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        if not is_text or name == columns.id:
            converted[name] = values.to_pandas()
        elif name == columns.time:
            converted[name] = parse_timestamps(values, name, text_format)
        elif name in (columns.target, columns.weight):
            converted[name] = parse_numbers(values, name, text_format.decimal).to_pandas()
        else:
            converted[name] = _convert_covariate(values, name, text_format)
    import pandas as pd

    return pd.DataFrame(converted)


def _convert_covariate(text: Any, name: str, text_format: TextFormat) -> Any:
    """Convert to numbers if all cells are numbers, to categories if none is or if declared categorical."""
    import pyarrow.compute as pc

    cleaned = normalize_text(text, text_format.decimal)
    if name not in text_format.categorical:
        numeric = pc.match_substring_regex(cleaned, NUMBER)
        if pc.all(numeric).as_py() is not False:
            return parse_numbers(text, name, text_format.decimal).to_pandas()
        if pc.any(numeric).as_py():
            raise DataError(
                f"Column {name} must contain either numbers or categories: {describe_cells(pc.invert(numeric), text)}, and "
                f"{pc.sum(numeric).as_py():,} rows contain numbers.",
                hint=f"Correct these rows, or pass --categorical {name}.",
            )
    categories = pc.if_else(pc.is_null(cleaned), cleaned, text)
    return categories.dictionary_encode().to_pandas()
