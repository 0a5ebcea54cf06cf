"""Columns as the caller's library has them, without narwhals' face: what is an array of numpy's is taken as one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

OF_NUMPY = frozenset(
    ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "Date", "Datetime")
)  # types of polars' that numpy has too

@dataclass(frozen=True)
class Table:
    """A frame as the caller's library has it; where a column is asked for by its name, it is behind narwhals' face."""

    native: Any
    library: str
    columns: list[str]

    def __len__(self) -> int:
        return len(self.native)

    def __getitem__(self, name: str) -> nw.Series[Any]:
        return wrapped(self.native[name])

    def to_native(self) -> Any:
        """The frame."""
        return self.native


def plain(column: Any) -> NDArray[Any] | None:
    """The array behind a column of numpy's dtypes, or of numbers or stamps of polars' none of which is missing; else None.

    It spares small frames most of what reading them costs: a look through narwhals takes as long as many rows.
    """
    native = unwrapped(column)
    dtype: Any = getattr(native, "dtype", None)
    like_numpy = isinstance(dtype, np.dtype)
    if not like_numpy and is_polars(native):
        like_numpy = dtype.base_type().__name__ in OF_NUMPY and not native.null_count()
    found: NDArray[Any] | None = native.to_numpy() if like_numpy else None
    return found


def text(column: Any) -> Any:
    """The array of arrow's behind a column of text in pandas or polars; None of another column."""
    native = unwrapped(column)
    if is_polars(native):
        return native.to_arrow() if native.dtype == sys.modules["polars"].String else None
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(getattr(native, "dtype", None), pandas.StringDtype):
        return None
    import pyarrow as pa

    return pa.Array.from_pandas(native)


def is_polars(native: Any) -> bool:
    """Whether a column is of polars'."""
    polars = sys.modules.get("polars")  # an object of its types cannot exist where nobody imported it
    return polars is not None and isinstance(native, polars.Series)


def unwrapped(column: Any) -> Any:
    """A column without narwhals' face."""
    return column.to_native() if isinstance(column, nw.Series) else column


def wrapped(column: Any) -> nw.Series[Any]:
    """A column behind narwhals' face."""
    return column if isinstance(column, nw.Series) else nw.from_native(column, series_only=True)
