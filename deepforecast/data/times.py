"""Time columns to integers and back in the very type they came in."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data.native import plain, unwrapped, wrapped
from deepforecast.errors import DataError, shown, some

if TYPE_CHECKING:
    from deepforecast.data.frames import Ints

FURTHEST = 2**62  # integer stamps beyond could not be subtracted from each other
TEXT_TIME = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$"


@dataclass(frozen=True)
class TimeType:
    """How the time column came: `unit` is a numpy unit ("D" for dates) or "" for integers."""

    unit: str
    tz: str | None = None
    dtype: str = "int64"


time_type = lru_cache(maxsize=64)(TimeType)  # there are but a few


def stamps(column: Any, name: str) -> tuple[Ints, TimeType]:
    """A time column as int64 (absolute time where there is a time zone) and how it came; the caller sees to missing ones."""
    values = plain(column)
    native = unwrapped(column) if isinstance(column, nw.Series) else column
    dtype: Any = getattr(native, "dtype", None)
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        zone = getattr(dtype, "time_zone", None)  # of polars'
        return np.ascontiguousarray(values).view(np.int64), time_type(np.datetime_data(values.dtype)[0], zone, str(dtype))
    series = wrapped(column)
    kind: Any = series.dtype
    found = str(dtype if dtype is not None else getattr(native, "type", ""))
    if kind.is_integer():
        return _integers(series, name, found), time_type("", None, found)
    if kind == nw.String:
        return _parsed(series, name)
    if kind == nw.Date:
        return _physical(series), time_type("D", None, found)
    if hasattr(dtype, "tz"):
        return _physical(series), time_type(dtype.unit, _zone_of(dtype, name), found)
    if kind == nw.Datetime or "timestamp[" in found:  # narwhals does not know every name of a zone
        arrow = getattr(dtype, "pyarrow_dtype", getattr(native, "type", kind))
        if not hasattr(arrow, "unit"):
            return _physical(series), time_type(arrow.time_unit, arrow.time_zone, found)
        return _physical(series), time_type(arrow.unit, arrow.tz, found)
    raise _no_stamps(native, kind, name, found)


def time_series(name: str, raw: Ints, time: TimeType, backend: str) -> nw.Series[Any]:
    """int64 stamps as a column of the type they came in."""
    found = time_values(name, raw, time, backend)
    if isinstance(found, np.ndarray):
        import pandas as pd

        found = pd.Series(found, name=name)
    return wrapped(found)


def time_values(name: str, raw: Ints, time: TimeType, backend: str) -> Any:
    """The same to build a frame of: a native column, or an array of numpy's where pandas has one."""
    if backend == "pandas":
        if time.dtype in (f"datetime64[{time.unit}]", "int64"):
            return raw.view(time.dtype)
        import pandas as pd

        found: Any = raw
        if time.unit:
            found = pd.DatetimeIndex(raw.view(f"M8[{time.unit}]"))
            found = found if time.tz is None else found.tz_localize("UTC").tz_convert(time.tz)
        column: Any = pd.Series(found, name=name)
        return column if str(column.dtype) == time.dtype else column.astype(time.dtype)
    values: Any = raw.astype(integer_dtype(time) if not time.unit else np.int32 if time.unit == "D" else np.int64)
    if backend == "polars":
        import polars as pl

        series = pl.Series(name, values)
        if not time.unit:
            return series
        unit: Any = time.unit
        return series.cast(pl.Date if unit == "D" else pl.Datetime(unit, time.tz))
    import pyarrow as pa

    array = pa.array(values)
    if time.unit:
        array = array.cast(pa.date32() if time.unit == "D" else pa.timestamp(time.unit, tz=time.tz))
    return pa.chunked_array([array])


def integer_dtype(time: TimeType) -> np.dtype[Any]:
    """The numpy type of integer time, whatever the library called it (`Int32`, `int32[pyarrow]`)."""
    return np.dtype(time.dtype.lower().removesuffix("[pyarrow]"))


def _integers(series: nw.Series[Any], name: str, found: str) -> Ints:
    values = plain(series)
    values = series if values is None else values
    low, high = (values.min(), values.max()) if len(series) else (0, 0)
    if series.dtype in (nw.Int128, nw.UInt128) or not -FURTHEST <= int(low) <= int(high) <= FURTHEST:
        raise DataError(
            f"Integer stamps of column {shown(name)} fit int64 and lie within ±2^62; its dtype is {found} and it runs from "
            f"{low} to {high}. Shift or convert them."
        )
    return np.ascontiguousarray(series.to_numpy(), dtype=np.int64)


def _zone_of(dtype: Any, name: str) -> str:
    """The name of the time zone of a zoned dtype of pandas, if it leads back to it."""
    import pandas as pd

    key = getattr(dtype.tz, "key", None)  # of zoneinfo, which pandas 2 does not make of a name
    if isinstance(key, str):
        return key
    try:
        if pd.DatetimeTZDtype(dtype.unit, str(dtype.tz)) == dtype:
            return str(dtype.tz)
    except (TypeError, KeyError, ValueError):
        pass
    raise DataError(
        f"The time zone of column {shown(name)} has a name by which it is found again; its dtype is {shown(str(dtype))}. "
        f"Give one: frame[{name!r}].dt.tz_convert('Europe/Berlin')."
    )


def _physical(series: nw.Series[Any]) -> Ints:
    """The integers behind dates, without a copy where the library has them so."""
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


def _parsed(series: nw.Series[Any], name: str) -> tuple[Ints, TimeType]:
    """Text in ISO-8601 only: day-first and month-first forms cannot be told apart."""
    import pandas as pd

    text = pd.Series(series.to_list(), dtype=object)
    bad = text[~text.str.fullmatch(TEXT_TIME)]
    if len(bad):
        raise DataError(
            f"Text in the time column {shown(name)} is ISO-8601, as in 2024-01-31 or 2024-01-31T12:00; found "
            f"{some(bad.unique())}, first in row {bad.index[0]}. Convert it yourself, e.g. "
            f"pandas.to_datetime(frame[{name!r}], dayfirst=...)."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of several zones pandas 2 but warns; they are refused below
            parsed = pd.Series(pd.to_datetime(text, format="ISO8601"))
    except (ValueError, TypeError) as error:
        if "timezones" in str(error):
            raise _several_zones(name) from None
        raise DataError(f"Text in the time column {shown(name)} is ISO-8601: {shown(str(error), 200)}. Repair it.") from None
    if parsed.dtype == object:
        raise _several_zones(name)
    return stamps(nw.from_native(parsed, series_only=True), name)


def _no_stamps(native: Any, kind: Any, name: str, found: str) -> DataError:
    """What the column holds instead of stamps, and the way out for just that."""
    frame = f"frame[{name!r}]"
    if kind == nw.Object or found == "object":
        return _objects(native, name)
    if kind.is_float():
        way_out = f"Convert it, e.g. {frame}.astype('int64')"
    elif found.startswith("period"):
        way_out = f"Convert it: {frame}.dt.to_timestamp()"
    else:
        way_out = f"Convert it first, e.g. pandas.to_datetime({frame})"
    return DataError(
        f"The time column {shown(name)} holds date-times, dates or integers; its dtype is {shown(found)}. {way_out}."
    )


def _objects(native: Any, name: str) -> DataError:
    zones = {str(getattr(value, "tzinfo", None)) for value in native}
    if len(zones) > 1:
        return _several_zones(name)
    kinds = sorted({type(value).__name__ for value in native})
    return DataError(
        f"The time column {shown(name)} holds date-times, dates or integers in a dtype of their own; its dtype is object, "
        f"holding {some(kinds)}. Convert it first, e.g. pandas.to_datetime(frame[{name!r}])."
    )


def _several_zones(name: str) -> DataError:
    return DataError(
        f"The time column {shown(name)} has one time zone; it mixes several. Convert it: "
        f"pandas.to_datetime(frame[{name!r}], utc=True)."
    )
