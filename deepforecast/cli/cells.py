"""Text to values, column by column: what cannot be read in exactly one way is refused by column and row."""

from __future__ import annotations

from typing import Any

from deepforecast.cli.arguments import Reading
from deepforecast.cli.numerals import NUMBER, numbers, plain_text, where
from deepforecast.cli.stamps import stamps
from deepforecast.data.columns import Columns
from deepforecast.errors import DataError


def frame(table: Any, columns: Columns, reading: Reading) -> Any:
    """A pandas frame of an arrow table: text in the column of ids stays, in the others it becomes what their role needs."""
    import pyarrow as pa

    held: dict[str, Any] = {}
    for name in table.column_names:
        values = table[name]
        is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        if not is_text or name == columns.id:
            held[name] = values.to_pandas()
        elif name == columns.time:
            held[name] = stamps(values, name, reading)
        elif name == columns.target:
            held[name] = numbers(values, name, reading.decimal).to_pandas()
        else:
            held[name] = _covariate(values, name, reading)
    import pandas as pd

    return pd.DataFrame(held)


def _covariate(text: Any, name: str, reading: Reading) -> Any:
    """Numbers where all cells are, categories where none is or the user says so; a mixture is refused."""
    import pyarrow.compute as pc

    plain = plain_text(text, reading.decimal)
    if name not in reading.categorical:
        numeric = pc.match_substring_regex(plain, NUMBER)
        if pc.all(numeric).as_py() is not False:
            return numbers(text, name, reading.decimal).to_pandas()
        if pc.any(numeric).as_py():
            raise DataError(
                f"Column {name} holds numbers or categories, not both: {where(pc.invert(numeric), text)}, "
                f"{pc.sum(numeric).as_py():,} rows hold numbers. Repair it, or say --categorical {name}."
            )
    kept = pc.if_else(pc.is_null(plain), plain, text)
    return kept.dictionary_encode().to_pandas()
