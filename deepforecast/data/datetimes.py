"""Conversion of time columns to int64 and back to the original type."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data.frames import to_array, to_narwhals_series, to_native
from deepforecast.errors import DataError, format_list, format_value

if TYPE_CHECKING:
    from deepforecast.data.frames import Ints

MAX_TIMESTAMP = 2**62  # differences of larger integers could overflow
TEXT_TIME = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$"


@dataclass(frozen=True)
class TimeType:
    """The type of the time column; `unit` is a numpy unit ("D" for dates) or "" for integers."""

    unit: str
    tz: str | None = None
    dtype: str = "int64"


time_type = lru_cache(maxsize=64)(TimeType)


def read_timestamps(column: Any, name: str) -> tuple[Ints, TimeType]:
    """Read a time column as int64 (UTC if there is a time zone) and its type.

    Missing values are the smallest int64 for numpy datetimes; for others the caller must refuse them
    before. Text is parsed; unsupported dtypes raise `DataError`.
    """
    values = to_array(column)
    native = to_native(column) if isinstance(column, nw.Series) else column
    dtype: Any = getattr(native, "dtype", None)  # None for pyarrow, whose columns have a `type`
    # datetimes with a numpy representation: of pandas without a time zone, and of polars, whose dtype has the zone
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        zone = getattr(dtype, "time_zone", None)
        return np.ascontiguousarray(values).view(np.int64), time_type(np.datetime_data(values.dtype)[0], zone, str(dtype))
    series = to_narwhals_series(column)
    narwhals_dtype: Any = series.dtype
    dtype_text = str(dtype if dtype is not None else getattr(native, "type", ""))
    if narwhals_dtype.is_integer():
        return _read_integers(series, name, dtype_text), time_type("", None, dtype_text)
    if narwhals_dtype == nw.String:
        return _parse_text(series, name)
    if narwhals_dtype == nw.Date:
        return _to_integers(series), time_type("D", None, dtype_text)
    # datetimes of pandas with a time zone
    if hasattr(dtype, "tz"):
        return _to_integers(series), time_type(dtype.unit, _zone_name(dtype, name), dtype_text)
    # datetimes of pyarrow, of pandas with a pyarrow dtype, or of polars with missing values;
    # the dtype text is tested too, as narwhals does not support all time zone names
    if narwhals_dtype == nw.Datetime or "timestamp[" in dtype_text:
        timestamp_type = getattr(dtype, "pyarrow_dtype", getattr(native, "type", narwhals_dtype))
        if not hasattr(timestamp_type, "unit"):
            return _to_integers(series), time_type(timestamp_type.time_unit, timestamp_type.time_zone, dtype_text)
        return _to_integers(series), time_type(timestamp_type.unit, timestamp_type.tz, dtype_text)
    if dtype_text == "object" and {type(value) for value in native} == {date}:
        return native.to_numpy().astype("M8[D]").view(np.int64), time_type("D", None, dtype_text)
    raise _time_type_error(native, narwhals_dtype, name, dtype_text)


def time_series(name: str, timestamps: Ints, time: TimeType, backend: str) -> nw.Series[Any]:
    """int64 timestamps as a narwhals series of the original type."""
    column = time_values(name, timestamps, time, backend)
    if isinstance(column, np.ndarray):
        import pandas as pd

        column = pd.Series(column, name=name)
    return to_narwhals_series(column)


def time_values(name: str, timestamps: Ints, time: TimeType, backend: str) -> Any:
    """int64 timestamps as a native column of the original type, or as a numpy array."""
    if backend == "pandas":
        if time.dtype in (f"datetime64[{time.unit}]", "int64"):
            return timestamps.view(time.dtype)
        if time.dtype == "object":
            return timestamps.view("M8[D]").astype(object)  # datetime.date objects
        import pandas as pd

        values: Any = timestamps
        if time.unit:
            values = pd.DatetimeIndex(timestamps.view(f"M8[{time.unit}]"))
            values = values if time.tz is None else values.tz_localize("UTC").tz_convert(time.tz)
        column: Any = pd.Series(values, name=name)
        return column if str(column.dtype) == time.dtype else column.astype(time.dtype)
    integers: Any = timestamps.astype(integer_dtype(time) if not time.unit else np.int32 if time.unit == "D" else np.int64)
    if backend == "polars":
        import polars as pl

        series = pl.Series(name, integers)
        if not time.unit:
            return series
        unit: Any = time.unit
        return series.cast(pl.Date if unit == "D" else pl.Datetime(unit, time.tz))
    import pyarrow as pa

    array = pa.array(integers)
    if time.unit:
        array = array.cast(pa.date32() if time.unit == "D" else pa.timestamp(time.unit, tz=time.tz))
    return pa.chunked_array([array])


def integer_dtype(time: TimeType) -> np.dtype[Any]:
    """The numpy dtype of integer time, for any library's spelling (`Int32`, `int32[pyarrow]`)."""
    return np.dtype(time.dtype.lower().removesuffix("[pyarrow]"))


def _read_integers(series: nw.Series[Any], name: str, dtype_text: str) -> Ints:
    """Integer time as int64; raises `DataError` if a value is beyond `MAX_TIMESTAMP`."""
    values = to_array(series)
    values = series if values is None else values
    low, high = (values.min(), values.max()) if len(series) else (0, 0)
    if series.dtype in (nw.Int128, nw.UInt128) or not -MAX_TIMESTAMP <= int(low) <= int(high) <= MAX_TIMESTAMP:
        raise DataError(
            f"Integers of the time column {format_value(name)} must be within ±2^62, got dtype "
            f"{dtype_text} with values from {low} to {high}.",
            hint="Shift or convert the column.",
        )
    return np.ascontiguousarray(series.to_numpy(), dtype=np.int64)


def _zone_name(dtype: Any, name: str) -> str:
    """The time zone name of a pandas dtype.

    Raises `DataError` if the zone cannot be restored from a name.
    """
    import pandas as pd

    key = getattr(dtype.tz, "key", None)  # zoneinfo, which pandas 2 does not create from a name
    if isinstance(key, str):
        return key
    try:
        if pd.DatetimeTZDtype(dtype.unit, str(dtype.tz)) == dtype:
            return str(dtype.tz)
    except (TypeError, KeyError, ValueError):
        pass
    raise DataError(
        f"The time zone of column {format_value(name)} must have an IANA name, got dtype {format_value(str(dtype))}.",
        hint=f"Convert it, e.g. frame[{name!r}].dt.tz_convert('Europe/Berlin').",
    )


def _to_integers(series: nw.Series[Any]) -> Ints:
    """The int64 representation of datetimes, without a copy if possible."""
    native = series.to_native()
    if series.implementation.is_polars():
        return np.ascontiguousarray(native.to_physical().to_numpy(), dtype=np.int64)
    if series.implementation.is_pandas_like() and str(native.dtype).startswith("datetime64"):
        import pandas as pd

        return np.ascontiguousarray(pd.DatetimeIndex(native).asi8)
    import pyarrow as pa

    array = series.to_arrow()
    width = pa.int32() if pa.types.is_date32(array.type) else pa.int64()
    return np.ascontiguousarray(array.cast(width).to_numpy(zero_copy_only=False), dtype=np.int64)


def _parse_text(series: nw.Series[Any], name: str) -> tuple[Ints, TimeType]:
    """Parse ISO 8601 text; other formats raise `DataError`, as the order of day and month may be ambiguous."""
    import pandas as pd

    text = pd.Series(series.to_list(), dtype=object)
    invalid = text[~text.str.fullmatch(TEXT_TIME)]
    if len(invalid):
        raise DataError(
            f"Text in the time column {format_value(name)} must be ISO 8601, as in 2024-01-31 or "
            f"2024-01-31T12:00, got {format_list(invalid.unique())}, first in row "
            f"{invalid.index[0]}.",
            hint=f"Convert the column, e.g. pandas.to_datetime(frame[{name!r}], dayfirst=...).",
        )
    try:
        with warnings.catch_warnings():
            # pandas 2 only warns of mixed time zones, rejected below
            warnings.simplefilter("ignore")
            parsed = pd.Series(pd.to_datetime(text, format="ISO8601"))
    except (ValueError, TypeError) as error:
        if "timezones" in str(error):
            raise _mixed_zones_error(name) from None
        raise DataError(
            f"Text in the time column {format_value(name)} must be valid ISO 8601: {format_value(str(error), 200)}.",
            hint="Correct these values.",
        ) from None
    if parsed.dtype == object:
        raise _mixed_zones_error(name)
    return read_timestamps(nw.from_native(parsed, series_only=True), name)


def _time_type_error(native: Any, narwhals_dtype: Any, name: str, dtype_text: str) -> DataError:
    """The error for an unsupported dtype, with a fix that fits it."""
    frame = f"frame[{name!r}]"
    if narwhals_dtype == nw.Object or dtype_text == "object":
        return _object_dtype_error(native, name)
    if narwhals_dtype.is_float():
        suggestion = f"Convert it, e.g. {frame}.astype('int64')"
    elif dtype_text.startswith("period"):
        suggestion = f"Convert it: {frame}.dt.to_timestamp()"
    else:
        suggestion = f"Convert it, e.g. pandas.to_datetime({frame})"
    return DataError(
        f"The time column {format_value(name)} must contain datetimes, dates or integers, got dtype "
        f"{format_value(dtype_text)}.",
        hint=f"{suggestion}.",
    )


def _object_dtype_error(native: Any, name: str) -> DataError:
    """The error for a column of Python objects: several time zones, or other values."""
    zones = {str(getattr(value, "tzinfo", None)) for value in native}
    if len(zones) > 1:
        return _mixed_zones_error(name)
    type_names = sorted({type(value).__name__ for value in native})
    return DataError(
        f"The time column {format_value(name)} must have a datetime, date or integer dtype, got dtype "
        f"object with values of type {format_list(type_names)}.",
        hint=f"Convert it, e.g. pandas.to_datetime(frame[{name!r}]).",
    )


def _mixed_zones_error(name: str) -> DataError:
    return DataError(
        f"The time column {format_value(name)} must have one time zone, got several.",
        hint=f"Convert it: pandas.to_datetime(frame[{name!r}], utc=True).",
    )
