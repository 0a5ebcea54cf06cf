"""Access to native columns without narwhals, whose overhead dominates for small frames."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

NUMPY_TYPES = frozenset(
    ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "Date", "Datetime")
)  # polars types with a numpy equivalent


class Table(NamedTuple):
    """A native frame, its library and column names."""

    native: Any
    library: str
    columns: list[str]


def to_array(column: Any) -> Any:
    """The column as an array without conversion, else None.

    A numpy array for numpy dtypes and for polars numbers and datetimes without missing values; an
    arrow array for pandas and polars strings.
    """
    native = column.to_native() if isinstance(column, nw.Series) else column
    dtype: Any = getattr(native, "dtype", None)
    if isinstance(dtype, np.dtype):
        return native.to_numpy()
    # a column cannot be of a library that is not imported
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
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
    """Unwrap a narwhals series."""
    return column.to_native() if isinstance(column, nw.Series) else column


def to_narwhals_series(column: Any) -> nw.Series[Any]:
    """Wrap a native column as a narwhals series."""
    return column if isinstance(column, nw.Series) else nw.from_native(column, series_only=True)
