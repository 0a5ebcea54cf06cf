"""Conversion of columns of pandas, polars and pyarrow frames to numpy arrays and back."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from numbers import Number
from os import PathLike
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from deepforecast.errors import DataError, format_list, format_value

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
        return native.values  # of pandas: the same array as `to_numpy()`, for datetimes in a fifth of the time
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

    return pa.array(native.array)


def to_native(column: Any) -> Any:
    """Unwrap a narwhals series."""
    return column.to_native() if isinstance(column, nw.Series) else column


def to_narwhals_series(column: Any) -> nw.Series[Any]:
    """Wrap a native column as a narwhals series."""
    series: nw.Series[Any] = nw.from_native(column, series_only=True)
    return series


Frame = Any  # a pandas, polars or pyarrow frame: narwhals has no common base class for them
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LIBRARIES = ("pandas", "polars", "pyarrow")
MAX_EXACT_INTEGER = 2**53  # integers beyond are not exact in float64
DATES = 'index=pandas.date_range("2024-01-01", periods=len(frame), name="ds")'
MELT_INDEX = 'melt(ignore_index=False, var_name="unique_id", value_name="y").reset_index()'
CONVERSIONS = {  # attribute of a type: code that converts its objects; the first one counts
    "modin": "frame.modin.to_pandas()",
    "to_dataframe": "frame.to_dataframe().reset_index()",  # xarray
    "to_table": "frame.to_table()",  # a dataset of pyarrow
    "to_pandas": "frame.to_pandas()",
    "toPandas": "frame.toPandas()",  # Spark
    "compute": "frame.compute()",  # Dask
}


def materialize(frame: Frame) -> Frame:
    """The pyarrow table of an object with the Arrow C stream interface, a collected lazy frame, else `frame` itself.

    Streams may be readable only once: code that opens a frame several times materializes it first.
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(frame, pandas.DataFrame):  # the check of narwhals takes ten times as long
        return frame
    frame = frame.to_native() if hasattr(type(frame), "to_native") else frame  # of any version of narwhals
    if type(frame).__name__ == "LazyFrame":
        return frame.collect()
    if not hasattr(type(frame), "__arrow_c_stream__") or nw.dependencies.is_into_dataframe(frame):
        return frame
    import pyarrow as pa

    try:
        reader = pa.RecordBatchReader.from_stream(frame)
    except pa.ArrowInvalid:  # the stream of a single column, such as a Series
        return frame
    return reader.read_all()


def to_narwhals(frame: Frame, what: str = "frame") -> nw.DataFrame[Any]:
    """Any frame, or a pandas Series, as a narwhals DataFrame of pandas, polars or pyarrow; other types raise `DataError`.

    `what` names the frame in messages.
    """
    frame = materialize(frame)
    pandas = sys.modules.get("pandas")  # if it is not imported, `frame` cannot be a pandas object
    if pandas is not None and isinstance(frame, pandas.Series):
        frame = _from_series(frame, what)
    try:
        table = nw.from_native(frame, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = frame.column_names if hasattr(type(frame), "column_names") else list(frame.columns)
        duplicates = [name for name, count in Counter(names).items() if count > 1]
        raise DataError(
            f"Column names of the {what} must be unique, but these are repeated: {format_list(duplicates)}.",
            hint="Drop or rename the duplicates.",
        ) from None
    if isinstance(table, nw.DataFrame) and table.implementation.value in LIBRARIES:
        return table
    package, type_name = type(frame).__module__.partition(".")[0], type(frame).__name__
    raise DataError(
        f"The {what} must be a pandas, polars or pyarrow DataFrame, a pandas Series with a DatetimeIndex, or have the Arrow C "
        f"stream interface, got {type_name if package == 'builtins' else f'{package}.{type_name}'}.",
        hint=_conversion_hint(frame, what),
    )


def read_table(frame: Frame, what: str = "frame") -> Table:
    """The frame as a `Table`, without narwhals, whose overhead dominates for small frames."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(frame, pandas.DataFrame) and frame.columns.is_unique:
        return Table(frame, "pandas", list(frame.columns))
    if polars is not None and isinstance(frame, polars.DataFrame):
        return Table(frame, "polars", frame.columns)
    narwhals_frame = to_narwhals(frame, what)
    return Table(narwhals_frame.to_native(), library_name(narwhals_frame), narwhals_frame.columns)


def library_name(frame: nw.DataFrame[Any]) -> str:
    """The name of the frame's library."""
    return str(frame.implementation.value)


def read_numbers(column: Any, name: str, extra_hint: str = "") -> Floats:
    """Read a numeric column as read-only float64 with NaN for missing values; raise `DataError` for other dtypes.

    Integers that are not exact in float64 raise, too. `extra_hint` is appended to the message for other dtypes.
    """
    values = to_array(column)
    if not isinstance(values, np.ndarray) or not (values.dtype.kind in "iu" or values.dtype.str[1:] in ("f4", "f8")):
        values = _convert_numbers(to_narwhals_series(column), name, extra_hint)
    elif values.dtype.kind in "iu" and len(values):
        _refuse_inexact(values, name)
    values = np.ascontiguousarray(values, dtype=np.float64).view()
    values.flags.writeable = False  # it may be the memory of the caller
    return values


def _convert_numbers(series: nw.Series[Any], name: str, extra_hint: str) -> Any:
    """The numbers of a column that is not a numpy array or may have missing values, as an array with NaN for these."""
    native = series.to_native()
    if not series.dtype.is_numeric():  # decimals are numeric, except for Python objects
        import pandas as pd

        if not series.implementation.is_pandas_like() or pd.api.types.infer_dtype(native) != "decimal":
            dtype_text = str(getattr(native, "dtype", None) or getattr(native, "type", ""))
            suggestion = "Convert it to 0 and 1" if series.dtype == nw.Boolean else "Convert it to a numeric dtype such as float64"
            raise DataError(
                f"Column {format_value(name)} must be numeric, got dtype {format_value(dtype_text)}.",
                hint=f"{suggestion}{extra_hint}.",
            )
    if series.dtype.is_integer() and series.null_count() < len(series):
        _refuse_inexact(series, name)
    if series.implementation.is_pandas_like():
        return native.to_numpy(dtype="float64", na_value=np.nan)
    return series.cast(nw.Float64).to_numpy()


def _refuse_inexact(integers: Any, name: str) -> None:
    """Raise if the smallest or the largest integer of a column is not exact in float64."""
    extremes = (int(integers.max()), int(integers.min()))
    inexact = [value for value in extremes if abs(value) > MAX_EXACT_INTEGER]
    if inexact:
        raise DataError(
            f"Integers of column {format_value(name)} must be within ±2^53, to be exact in float64, got {inexact[0]}.",
            hint="Convert the column to float64 if rounding is acceptable, or rescale it.",
        )


def read_categories(series: nw.Series[Any]) -> tuple[NDArray[Any], Ints]:
    """The categories of a categorical column and the code of each row, -1 for missing values.

    Categories that do not occur are included.
    """
    native = series.to_native()
    if series.implementation.is_pandas_like() and hasattr(native, "cat"):
        return native.cat.categories.to_numpy(), native.cat.codes.to_numpy().astype(np.int64)
    array: Any = series.to_arrow()
    array = array.combine_chunks() if hasattr(array, "combine_chunks") else array
    codes = array.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    names = array.dictionary
    if names.null_count:  # in arrow, missing values may also be a null category
        codes = np.where(np.append(names.is_null(), True)[codes], -1, codes)
    return np.asarray(names.to_numpy(zero_copy_only=False), dtype=object), codes


def make_categorical(name: str, labels: tuple[str, ...], codes: Ints, backend: str) -> Any:
    """Create a native categorical column of `backend`; code -1 is missing."""
    if backend == "pandas":
        import pandas as pd

        return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(labels, dtype=object)), name=name)
    import pyarrow as pa

    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    array = pa.chunked_array([pa.DictionaryArray.from_arrays(indices, pa.array(list(labels), type=pa.string()))])
    if backend == "pyarrow":
        return array
    import polars as pl

    return pl.Series(name, array)


def build(backend: str, columns: Mapping[str, Any]) -> Frame:
    """Create a native frame of `backend` from columns of equal length; the index of a pandas column is ignored."""
    native: dict[str, Any] = {}
    for name, values in columns.items():
        native[name] = values.to_native() if isinstance(values, nw.Series) else values
        if hasattr(native[name], "reset_index"):
            native[name] = native[name].reset_index(drop=True)
    library = import_module(backend)
    return library.table(native) if backend == "pyarrow" else library.DataFrame(native)


def take_rows(series: nw.Series[Any], index: Ints) -> nw.Series[Any]:
    """The rows `index` of a column in its dtype; a pandas index is reset."""
    return nw.maybe_reset_index(to_narwhals_series(take_native_rows(series, index)))


def take_native_rows(column: Any, index: Ints) -> Any:
    """The rows `index` of a column as a native column of its dtype."""
    native = _to_takeable(column)
    array = getattr(native, "array", None)
    if array is not None and array.dtype != "object":  # of pandas; a new series of objects would be of another dtype
        return type(native)(array.take(index), name=native.name, copy=False)
    return native.take(index) if hasattr(native, "take") else native[index]


def take_native_values(column: Any, index: Ints) -> Any:
    """The rows `index` of a native column, to build a frame from.

    For pandas, an array without an index is returned.
    """
    array = getattr(column, "array", None)
    return take_native_rows(column, index) if array is None or array.dtype == "object" else array.take(index)


def to_list(column: Any) -> list[Any]:
    """The values of a column as Python objects, without the overhead of narwhals."""
    native = to_native(column)
    array = to_array(native)
    if hasattr(array, "to_pylist") and not array.null_count:  # text of pandas in a tenth of the time
        native = array
    values: list[Any] = native.to_pylist() if hasattr(native, "to_pylist") else native.to_list()
    return values


def take_rows_or_missing(series: nw.Series[Any], index: Ints) -> Any:
    """The rows `index` of a column as a native column, missing where `index` is -1."""
    native = _to_takeable(series)
    if series.implementation.is_pandas_like():
        return native.reset_index(drop=True).reindex(index)
    import pyarrow as pa

    rows = pa.array(index, mask=index < 0)
    if series.implementation.is_pyarrow():
        return native.take(rows)
    import polars as pl

    return native.gather(pl.Series(rows))


def _to_takeable(column: Any) -> Any:
    """The native column; `string_view` is cast, since arrow cannot take rows of it."""
    native = to_native(column)
    dtype = getattr(native, "dtype", None) or getattr(native, "type", "")
    if isinstance(dtype, np.dtype) or not str(dtype).startswith("string_view"):
        return native
    series = to_narwhals_series(native)
    if not series.implementation.is_pandas_like():
        return native.cast("large_string")
    import pandas as pd

    return pd.Series(pd.arrays.ArrowExtensionArray(series.to_arrow().cast("large_string")), name=series.name)


def _from_series(series: Any, what: str) -> Any:
    """A pandas Series with a DatetimeIndex as a frame with the columns ds and y; another index raises `DataError`."""
    import pandas as pd

    if not isinstance(series.index, pd.DatetimeIndex):
        if isinstance(series.index, pd.MultiIndex):
            code = 'frame.reset_index(name="y")'
        elif isinstance(series.index, pd.PeriodIndex):
            code = "frame.to_timestamp()"
        else:
            is_text = not pd.api.types.is_numeric_dtype(series.index)
            code = "frame.set_axis(pandas.to_datetime(frame.index))" if is_text else f"pandas.Series(frame.array, {DATES})"
        raise DataError(
            f"A Series passed as the {what} must have a DatetimeIndex, got {type(series.index).__name__}.",
            hint=f"Pass {code}.",
        )
    return pd.DataFrame({"ds": series.index, "y": series.array})


def _conversion_hint(value: Any, what: str) -> str:
    """The fix for an object that is not a frame: code that converts it, in which the object is `frame`."""
    if isinstance(value, (str, PathLike)):
        return "Read the file: pass pandas.read_csv(frame) or pandas.read_parquet(frame)."
    is_series = nw.dependencies.is_into_series(value) or hasattr(type(value), "to_pylist")  # a pyarrow array
    code = next((code for name, code in CONVERSIONS.items() if hasattr(type(value), name)), "")
    if code and not is_series:
        return f"Pass {code}."
    is_sequence = isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim)
    first = value[0] if is_sequence and len(value) else None
    if isinstance(value, Mapping | Iterator) or isinstance(first, Mapping):
        return "Pass pandas.DataFrame(frame)."
    if what != "frame":
        return "Pass a DataFrame."
    if type(first).__name__ == "RecordBatch":
        return "Pass pyarrow.Table.from_batches(frame)."
    if isinstance(first, Sequence | np.ndarray) and not isinstance(first, str):
        if all(isinstance(element, Number) for element in first):  # a column per series
            return f"Pass the dates too: pandas.DataFrame(frame, {DATES}).{MELT_INDEX}."
        names = ["ds", "y"] if len(first) == 2 else ["unique_id", "ds", "y"]
        return f"Pass pandas.DataFrame(frame, columns={names}).infer_objects()."
    if isinstance(first, Number) or is_series:
        return f"Pass the dates too: pandas.Series(frame, {DATES})."
    return 'Pass a DataFrame, such as deepforecast.datasets.load("air_passengers").'
