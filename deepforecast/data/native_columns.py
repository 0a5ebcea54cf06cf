"""Columns as the caller's library has them, without narwhals' face: what is an array is taken as one.

It spares small frames most of what reading them costs: a look through narwhals takes as long as many rows.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

NUMPY_TYPES = frozenset(
    ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "Date", "Datetime")
)  # types of polars' that numpy has too


class Table(NamedTuple):
    """A frame as the caller's library has it."""

    native: Any
    library: str
    columns: list[str]


def to_array(column: Any) -> Any:
    """The array behind a column that is one, else None: of numpy's for its dtypes, and for numbers and stamps of polars', none
    missing; of arrow's for text of pandas and polars."""
    native = column.to_native() if isinstance(column, nw.Series) else column
    dtype: Any = getattr(native, "dtype", None)
    if isinstance(dtype, np.dtype):
        return native.to_numpy()
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")  # without them there is nothing of their types
    if polars is not None and isinstance(native, polars.Series):
        type_name = dtype.base_type().__name__
        if type_name == "String":
            return native.to_arrow()
        return native.to_numpy() if type_name in NUMPY_TYPES and not native.null_count() else None
    if pandas is None or not isinstance(dtype, pandas.StringDtype):
        return None
    import pyarrow as pa

    return pa.Array.from_pandas(native)


def to_native(column: Any) -> Any:
    """A column without narwhals' face."""
    return column.to_native() if isinstance(column, nw.Series) else column


def to_narwhals_series(column: Any) -> nw.Series[Any]:
    """A column behind narwhals' face."""
    return column if isinstance(column, nw.Series) else nw.from_native(column, series_only=True)
