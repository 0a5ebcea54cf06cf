"""The door: columns of pandas, polars and pyarrow frames to numpy arrays, and back in the same library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from deepforecast.errors import DataError, some

Frame = Any  # a pandas, polars or pyarrow frame: narwhals has no common base class for them
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

EXACT = 2**53  # integers beyond are not exact in float64
TEXT_TIME = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$"


@dataclass(frozen=True)
class TimeType:
    """How the time column came: `unit` is a numpy unit ("D" for dates) or "" for integers."""

    unit: str
    tz: str | None = None
    dtype: str = "int64"


def opened(frame: Frame, what: str = "frame") -> nw.DataFrame[Any]:
    """The frame behind one face, or a `DataError` that says what was found instead."""
    pandas = _loaded("pandas")
    if pandas is not None and isinstance(frame, pandas.Series):
        frame = _from_series(frame)
    if pandas is not None and isinstance(frame, pandas.DataFrame) and not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()].unique()
        raise DataError(f"Column names of the {what} are unique; {some(twice)} is there twice. Drop or rename one.")
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        hint = " Call .collect() first." if type(frame).__name__ == "LazyFrame" else ""
        raise DataError(
            f"The {what} is a pandas, polars or pyarrow DataFrame; got {type(frame).__module__.split('.')[0]}."
            f"{type(frame).__name__}.{hint}"
        ) from None


def library(frame: nw.DataFrame[Any]) -> str:
    """The name of the library the frame came from."""
    return str(frame.implementation.value)


def numbers(series: nw.Series[Any], name: str) -> Floats:
    """A real-valued column as float64, missing values as NaN; without a copy where it already is that."""
    kind = series.dtype
    if not (kind.is_integer() or kind.is_float()):
        hint = "make it 0/1" if kind == nw.Boolean else "make it numeric, or categorical if it is a covariate"
        raise DataError(f"Column {name} holds real numbers; its dtype is {_native_dtype(series)}. Convert it first: {hint}.")
    if kind in (nw.Int64, nw.UInt64, nw.Int128, nw.UInt128) and len(series) > series.null_count():
        if int(series.max()) > EXACT or int(series.min()) < -EXACT:
            raise DataError(f"Column {name} holds integers beyond 2^53, which float64 cannot hold exactly. Rescale or round them.")
    if not series.null_count():
        return np.asarray(series.to_numpy(), dtype=np.float64)
    values = series.cast(nw.Float64)
    native = values.to_native()
    if hasattr(native, "to_numpy") and values.implementation.is_pandas_like():
        return np.asarray(native.to_numpy(dtype="float64", na_value=np.nan))
    return np.asarray(values.to_numpy(), dtype=np.float64)


def stamps(series: nw.Series[Any], name: str) -> tuple[Ints, TimeType]:
    """A time column as int64 (absolute time where there is a time zone) and how it came; missing is refused by the caller."""
    kind = series.dtype
    if kind.is_integer():
        return np.asarray(series.fill_null(0).to_numpy()).astype(np.int64, copy=False), TimeType("", None, _native_dtype(series))
    if kind == nw.Datetime:
        unit, tz = kind.time_unit, kind.time_zone  # type: ignore[attr-defined]
        return _physical(series), TimeType(unit, tz, _native_dtype(series))
    if kind == nw.Date:
        return _physical(series), TimeType("D", None, _native_dtype(series))
    if kind == nw.String or (kind == nw.Object and _all_text(series)):
        return _parsed(series, name)
    found = "dates with different time zones or of different types" if kind == nw.Object else "values"
    raise DataError(
        f"Column {name} holds one kind of date-times or integers; found {found} of dtype {_native_dtype(series)}. "
        f"Convert it first, e.g. with pandas.to_datetime(frame[{name!r}], utc=True)."
    )


def build(backend: str, columns: Mapping[str, Any]) -> Frame:
    """A native frame of `backend` from columns of equal length (numpy arrays or wrapped series), in this order."""
    native = {name: values.to_native() if isinstance(values, nw.Series) else values for name, values in columns.items()}
    if backend == "polars":
        import polars as pl

        return pl.DataFrame(native)
    if backend == "pyarrow":
        import pyarrow as pa

        return pa.table(native)
    import pandas as pd

    return pd.DataFrame({n: v.reset_index(drop=True) if isinstance(v, pd.Series) else v for n, v in native.items()}, copy=False)


def taken(series: nw.Series[Any], index: Ints) -> nw.Series[Any]:
    """The rows `index` of a column, in the dtype it came in."""
    native = series.to_native()
    if series.implementation.is_pandas_like():
        return nw.from_native(native.take(index).reset_index(drop=True), series_only=True)
    return nw.from_native(native[index] if series.implementation.is_polars() else native.take(index), series_only=True)


def time_series(name: str, raw: Ints, time: TimeType, backend: str) -> nw.Series[Any]:
    """int64 stamps as a column of the type they came in."""
    if not time.unit:
        series = nw.new_series(name, raw.astype(integer_dtype(time)), backend=backend)
        return _pandas_cast(series, time.dtype)
    if backend == "pandas":
        return _pandas_time(name, raw, time)
    import pyarrow as pa

    kind = pa.date32() if time.unit == "D" else pa.timestamp(time.unit, tz=time.tz)
    array = pa.chunked_array([pa.array(raw.astype(np.int32) if time.unit == "D" else raw).cast(kind)])
    return nw.from_native(array, series_only=True) if backend == "pyarrow" else _polars_from_arrow(name, array)


def integer_dtype(time: TimeType) -> np.dtype[Any]:
    """The numpy type of integer time, whatever the library called it (`Int32`, `int32[pyarrow]`)."""
    return np.dtype(time.dtype.lower().removesuffix("[pyarrow]"))


def _loaded(module: str) -> Any:
    """The module if somebody imported it: an object of its types cannot exist otherwise."""
    import sys

    return sys.modules.get(module)


def _from_series(series: Any) -> Any:
    """A pandas Series with a DatetimeIndex as a frame of one series."""
    import pandas as pd

    if not isinstance(series.index, pd.DatetimeIndex):
        raise DataError(f"A Series needs a DatetimeIndex; got {type(series.index).__name__}. Use a DataFrame with ds and y.")
    return pd.DataFrame({"ds": series.index, "y": series.array})


def _native_dtype(series: nw.Series[Any]) -> str:
    native = series.to_native()
    return str(getattr(native, "dtype", None) or getattr(native, "type", ""))


def _physical(series: nw.Series[Any]) -> Ints:
    """The integers behind dates; pandas' own arrays without a copy, the others through arrow."""
    native = series.to_native()
    if series.implementation.is_pandas_like() and str(native.dtype).startswith("datetime64"):
        values = native.dt.tz_localize(None) if str(getattr(native.dtype, "tz", None)) == "UTC" else native
        values = values.dt.tz_convert("UTC").dt.tz_localize(None) if getattr(values.dtype, "tz", None) is not None else values
        return np.asarray(values.to_numpy()).view(np.int64)
    import pyarrow as pa

    array = series.to_arrow()
    width = pa.int32() if pa.types.is_date32(array.type) else pa.int64()
    return np.asarray(array.cast(width).fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)


def _all_text(series: nw.Series[Any]) -> bool:
    import pandas as pd

    return bool(pd.api.types.infer_dtype(series.to_native(), skipna=True) == "string")


def _parsed(series: nw.Series[Any], name: str) -> tuple[Ints, TimeType]:
    """Text in ISO-8601 only: day-first and month-first forms cannot be told apart."""
    import pandas as pd

    text = pd.Series(series.to_list(), dtype=object)
    bad = text[~text.astype(str).str.match(TEXT_TIME)]
    if len(bad):
        raise DataError(
            f"Column {name} holds text that is not ISO-8601 (2024-01-31): {some(bad.unique())}. "
            f"Convert it yourself, e.g. pandas.to_datetime(frame[{name!r}], dayfirst=...)."
        )
    try:
        parsed = pd.Series(pd.to_datetime(text, format="ISO8601"))
    except (ValueError, TypeError) as error:
        raise DataError(f"Column {name}: text could not be read as ISO-8601 date-times: {error}") from error
    if parsed.dtype == object:
        raise DataError(f"Column {name} mixes time zones. Convert it with pandas.to_datetime(frame[{name!r}], utc=True).")
    return stamps(nw.from_native(parsed, series_only=True), name)


def _pandas_time(name: str, raw: Ints, time: TimeType) -> nw.Series[Any]:
    import pandas as pd

    index = pd.DatetimeIndex(raw.view(f"M8[{time.unit}]")) if time.unit != "D" else pd.DatetimeIndex(raw.view("M8[D]"))
    if time.tz is not None:
        index = index.tz_localize("UTC").tz_convert(time.tz)
    series = pd.Series(index, name=name)
    return _pandas_cast(nw.from_native(series, series_only=True), time.dtype)


def _pandas_cast(series: nw.Series[Any], dtype: str) -> nw.Series[Any]:
    """To the very dtype that came in (arrow-backed, nullable), where it differs."""
    native = series.to_native()
    if not series.implementation.is_pandas_like() or str(native.dtype) == dtype:
        return series
    return nw.from_native(native.astype(dtype), series_only=True)


def _polars_from_arrow(name: str, array: Any) -> nw.Series[Any]:
    import polars as pl

    return nw.from_native(pl.Series(name, array), series_only=True)
