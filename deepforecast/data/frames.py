"""The door: columns of pandas, polars and pyarrow frames to numpy arrays, and back in the same library."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from os import PathLike
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from deepforecast.data.native import Table, plain, unwrapped
from deepforecast.data.native import wrapped  # noqa: F401
from deepforecast.data.times import TEXT_TIME as TEXT_TIME
from deepforecast.data.times import TimeType as TimeType
from deepforecast.data.times import integer_dtype as integer_dtype
from deepforecast.data.times import stamps  # noqa: F401
from deepforecast.data.times import time_series as time_series
from deepforecast.data.times import time_values as time_values
from deepforecast.errors import DataError, shown, some

Frame = Any  # a pandas, polars or pyarrow frame: narwhals has no common base class for them
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LIBRARIES = ("pandas", "polars", "pyarrow")
EXACT = 2**53  # integers beyond are not exact in float64
LONG = frozenset(("i8", "u8"))
REAL = LONG | {"f8", "f4", "i1", "i2", "i4", "u1", "u2", "u4"}


def opened(frame: Frame, what: str = "frame") -> nw.DataFrame[Any]:
    """The frame behind one face, or a `DataError` that says what was found instead."""
    pandas = sys.modules.get("pandas")  # an object of its types cannot exist where nobody imported it
    if pandas is not None and isinstance(frame, pandas.Series):
        frame = _from_series(frame, what)
    try:
        table: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
        if table.implementation.value in LIBRARIES:
            return table
    except TypeError:
        pass
    except nw.exceptions.DuplicateError:
        raise _same_names(frame, what) from None
    raise _not_a_frame(frame, what)


def table(frame: Frame, what: str = "frame") -> Table:
    """The same without the face, which takes as long to put on as a small frame takes to read."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(frame, pandas.DataFrame) and frame.columns.is_unique:
        return Table(frame, "pandas", list(frame.columns))
    if polars is not None and isinstance(frame, polars.DataFrame):
        return Table(frame, "polars", frame.columns)
    found = opened(frame, what)
    return Table(found.to_native(), library(found), found.columns)


def library(frame: nw.DataFrame[Any]) -> str:
    """The name of the library the frame came from."""
    return str(frame.implementation.value)


def numbers(column: Any, name: str, or_else: str = "") -> Floats:
    """A real-valued column as float64, missing values as NaN; not writable, and without a copy where it already is that.

    `or_else` is added to the way out of the refusal of other columns.
    """
    values = plain(column)
    if not isinstance(values, np.ndarray) or values.dtype.str[1:] not in REAL:
        values = _numbers(wrapped(column), name, or_else)
    elif values.dtype.str[1:] in LONG and len(values):
        _refuse_inexact(int(values.min()), int(values.max()), name)
    values = np.ascontiguousarray(values, dtype=np.float64).view()
    values.flags.writeable = False  # it may be the caller's own memory
    return values


def categories(series: nw.Series[Any]) -> tuple[NDArray[Any], Ints]:
    """The categories of a categorical column and the code of each row, -1 where it is missing."""
    native = series.to_native()
    if series.implementation.is_pandas_like() and hasattr(native, "cat"):
        return native.cat.categories.to_numpy(), native.cat.codes.to_numpy().astype(np.int64)
    array = series.to_arrow()
    array = array.unify_dictionaries() if hasattr(array, "unify_dictionaries") else array
    array = array.combine_chunks() if hasattr(array, "combine_chunks") else array
    codes = array.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    names = array.dictionary
    if names.null_count:  # arrow may also say "missing" by a category that is null
        codes = np.where(np.append(np.asarray(names.is_null()), False)[codes], -1, codes)
    return np.asarray(names.to_numpy(zero_copy_only=False), dtype=object), codes


def categorical(name: str, labels: tuple[str, ...], codes: Ints, backend: str) -> nw.Series[Any]:
    """A categorical column of `backend`; code -1 is missing."""
    if backend == "pandas":
        import pandas as pd

        values = pd.Categorical.from_codes(codes, categories=pd.Index(labels, dtype=object))
        return nw.from_native(pd.Series(values, name=name), series_only=True)
    import pyarrow as pa

    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    array = pa.chunked_array([pa.DictionaryArray.from_arrays(indices, pa.array(list(labels), type=pa.string()))])
    if backend == "pyarrow":
        return nw.from_native(array, series_only=True)
    import polars as pl

    return nw.from_native(pl.Series(name, array), series_only=True)


def build(backend: str, columns: Mapping[str, Any]) -> Frame:
    """A native frame of `backend` from columns of equal length (numpy arrays or wrapped series), in this order."""
    native: dict[str, Any] = {}
    for name, values in columns.items():
        native[name] = values.to_native() if isinstance(values, nw.Series) else values
        if hasattr(native[name], "reset_index"):
            native[name] = native[name].reset_index(drop=True)
    if backend == "polars":
        import polars as pl

        return pl.DataFrame(native)
    if backend == "pyarrow":
        import pyarrow as pa

        return pa.table(native)
    import pandas as pd

    return pd.DataFrame(native)


def taken(series: nw.Series[Any], index: Ints) -> nw.Series[Any]:
    """The rows `index` of a column, in the dtype it came in; those of pandas numbered from 0."""
    return nw.maybe_reset_index(wrapped(rows_of(series, index)))


def rows_of(column: Any, index: Ints) -> Any:
    """The rows `index` of a column as a native one, in the dtype it came in."""
    native = takeable(column)
    return native.take(index) if hasattr(native, "take") else native[index]


def values_of(column: Any, index: Ints) -> Any:
    """The rows `index` of a native column to build a frame of: for pandas without an index, which would be looked at."""
    array = getattr(column, "array", None)
    return rows_of(column, index) if array is None or array.dtype == "object" else array.take(index)


def listed(column: Any) -> list[Any]:
    """The values of a column, as Python has them."""
    native = unwrapped(column)
    found: list[Any] = native.to_pylist() if hasattr(native, "to_pylist") else native.to_list()
    return found


def taken_or_missing(series: nw.Series[Any], index: Ints) -> Any:
    """The rows `index` of a column as a native one, missing where it is -1."""
    native = takeable(series)
    if series.implementation.is_pandas_like():
        return native.reset_index(drop=True).reindex(index).reset_index(drop=True)
    import pyarrow as pa

    rows = pa.array(index, mask=index < 0)
    if series.implementation.is_pyarrow():
        return native.take(rows)
    import polars as pl

    return native.gather(pl.Series(rows))


def takeable(column: Any) -> Any:
    """The column as a native one; text of a type that arrow cannot take rows of as text of one that it can."""
    native = unwrapped(column)
    if not str(getattr(native, "dtype", None) or getattr(native, "type", "")).startswith("string_view"):
        return native
    series = wrapped(native)
    if not series.implementation.is_pandas_like():
        return native.cast("large_string")
    import pandas as pd

    text = series.to_arrow().cast("large_string")
    return pd.Series(pd.arrays.ArrowExtensionArray(text), name=series.name)


def _from_series(series: Any, what: str) -> Any:
    """A pandas Series with a DatetimeIndex as a frame of one series."""
    import pandas as pd

    if not isinstance(series.index, pd.DatetimeIndex):
        raise DataError(
            f"A Series needs a DatetimeIndex to be the {what}; its index is a {type(series.index).__name__}. Give it one, "
            "or use a DataFrame with the columns ds and y."
        )
    return pd.DataFrame({"ds": series.index, "y": series.array})


def _same_names(frame: Frame, what: str) -> DataError:
    names = frame.column_names if hasattr(type(frame), "column_names") else list(frame.columns)
    twice = [name for name, count in Counter(names).items() if count > 1]
    return DataError(f"Column names of the {what} are unique; {some(twice)} is there more than once. Drop or rename one.")


def _not_a_frame(frame: Frame, what: str) -> DataError:
    kind = type(frame)
    found = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    return DataError(
        f"The {what} must be a pandas, polars or pyarrow DataFrame, or a pandas Series with a DatetimeIndex, got {found}. "
        f"{_way_to_a_frame(frame)}"
    )


def _way_to_a_frame(given: Any) -> str:
    """What turns the usual slips into a frame: a file's name, values without dates, a query that was not run."""
    if type(given).__name__ == "LazyFrame":
        return "Call .collect() first."
    if isinstance(given, (str, PathLike)):
        return "Read the file first, e.g. with pandas.read_csv(path)."
    plain = isinstance(given, (list, tuple)) and not any(isinstance(one, (list, tuple, Mapping)) for one in given[:1])
    if plain or getattr(given, "ndim", 0) == 1:
        return 'Say when each value was: pandas.Series(values, index=pandas.date_range("2024-01-01", periods=len(values))).'
    return "Convert it, e.g. with pandas.DataFrame(...)."


def _not_numbers(series: nw.Series[Any], name: str, or_else: str) -> DataError:
    native = series.to_native()
    found = shown(str(getattr(native, "dtype", None) or getattr(native, "type", "")))
    way_out = "Convert it to 0 and 1" if series.dtype == nw.Boolean else "Convert it to a numeric dtype such as float64"
    return DataError(f"Column {shown(name)} holds real numbers; its dtype is {found}. {way_out}{or_else}.")


def _numbers(series: nw.Series[Any], name: str, or_else: str) -> Any:
    """`numbers` of a column that is no array of numpy's, or may lack values."""
    kind, native = series.dtype, series.to_native()
    if not (kind.is_integer() or kind.is_float()):
        raise _not_numbers(series, name, or_else)
    large = kind.is_integer() and kind not in (nw.Int8, nw.Int16, nw.Int32, nw.UInt8, nw.UInt16, nw.UInt32)
    if large and series.null_count() < len(series):
        _refuse_inexact(int(series.min()), int(series.max()), name)
    if isinstance(getattr(native, "dtype", None), np.dtype):
        return native.to_numpy()
    if series.implementation.is_pandas_like():
        return native.to_numpy(dtype="float64", na_value=np.nan)
    return series.cast(nw.Float64).to_numpy()


def _refuse_inexact(low: int, high: int, name: str) -> None:
    if high > EXACT or low < -EXACT:
        worst = high if high > EXACT else low
        raise DataError(
            f"Column {shown(name)} holds numbers that float64 holds exactly; {worst} lies beyond 2^53. Convert it to float64 "
            "yourself if rounding is all right, or rescale it."
        )
