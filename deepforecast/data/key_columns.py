"""The id and the time column of a frame: conversion to integers and back, and the permutation that sorts by (id, time)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from deepforecast.data.frames import Ints, read_categories, to_array, to_narwhals_series
from deepforecast.errors import DataError, format_list, format_value, pluralize

MAX_TIMESTAMP = 2**62  # differences of larger integers could overflow
TEXT_TIME = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$"
# integers whose range is at most this multiple of their number are sorted by counting rather than comparing
MAX_SPARSITY = 2
MAX_KEY = 2**62  # sums of two smaller keys do not overflow int64
SINGLE_RUN = np.zeros(1, np.int64)  # start and rank of a single run
CHUNK_ROWS = 1_000_000  # rows processed at once to limit the size of copies


@dataclass(frozen=True)
class TimeType:
    """The type of the time column; `unit` is a numpy unit ("D" for dates) or "" for integers."""

    unit: str
    tz: str | None = None
    dtype: str = "int64"


def read_timestamps(column: Any, name: str) -> tuple[Ints, TimeType]:
    """Read a time column as int64 (UTC if there is a time zone) and its type.

    Missing values are the smallest int64 for numpy datetimes; for others the caller must refuse them
    before. Text is parsed; unsupported dtypes raise `DataError`.
    """
    values = to_array(column)
    native = column.to_native() if isinstance(column, nw.Series) else column
    dtype: Any = getattr(native, "dtype", None)  # None for pyarrow, whose columns have a `type`
    dtype_text = str(dtype if dtype is not None else getattr(native, "type", ""))
    # datetimes with a numpy representation: of pandas without a time zone, and of polars, whose dtype has the zone
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        time = TimeType(np.datetime_data(values.dtype)[0], getattr(dtype, "time_zone", None), dtype_text)
        return np.ascontiguousarray(values).view(np.int64), time
    series = to_narwhals_series(column)
    unit, zone = "D", None
    integers: Any
    if series.dtype.is_integer():
        unit, integers = "", _read_integers(series, name, dtype_text)
    elif hasattr(dtype, "tz"):  # datetimes of pandas with a time zone
        import pandas as pd

        unit, zone, integers = dtype.unit, _zone_name(dtype, name), pd.DatetimeIndex(native).asi8
    elif dtype_text == "object" and {type(value) for value in native} == {date}:
        integers = native.to_numpy().astype("M8[D]").view(np.int64)
    elif series.dtype == nw.String or (dtype_text == "object" and all(isinstance(value, date) for value in native)):
        return _parse_text(series, name)
    # of pyarrow, of pandas with a pyarrow dtype, or of polars with missing values;
    # the dtype text is tested too, as narwhals does not support date64 and all time zone names
    elif series.dtype in (nw.Date, nw.Datetime) or "timestamp[" in dtype_text or "date64" in dtype_text:
        import pyarrow as pa

        array = series.to_arrow()
        if pa.types.is_date(array.type):
            dtype_text = dtype_text.replace("date64[ms]", "date32[day]")
            array = array.cast(pa.date32()).cast(pa.int32())
        else:
            unit, zone = array.type.unit, array.type.tz
            array = array.cast(pa.int64())
        integers = array.to_numpy(zero_copy_only=False)
    else:
        raise _time_type_error(series, name, dtype_text)
    return np.ascontiguousarray(integers, dtype=np.int64), TimeType(unit, zone, dtype_text)


def time_column(name: str, timestamps: Ints, time: TimeType, backend: str) -> nw.Series[Any]:
    """int64 timestamps as a narwhals series of the original type."""
    column = time_values(name, timestamps, time, backend)
    if isinstance(column, np.ndarray):
        import pandas as pd

        column = pd.Series(column, name=name)
    return to_narwhals_series(column)


def time_values(name: str, timestamps: Ints, time: TimeType, backend: str) -> Any:
    """int64 timestamps as a native column of the original type, or as a numpy array."""
    values: Any = timestamps.view(f"M8[{time.unit}]") if time.unit else timestamps.astype(integer_dtype(time), copy=False)
    if backend == "pandas":
        if str(values.dtype) == time.dtype:
            return values
        if time.dtype == "object":
            return values.astype(object)  # datetime.date objects
        import pandas as pd

        column: Any = pd.Series(values, name=name)
        if time.tz is not None:
            column = column.dt.tz_localize("UTC").dt.tz_convert(time.tz)
        return column if str(column.dtype) == time.dtype else column.astype(time.dtype)
    import pyarrow as pa

    array = pa.array(values)
    array = array if time.tz is None else array.cast(pa.timestamp(time.unit, time.tz))
    if backend == "polars":
        import polars as pl

        return pl.Series(name, array)
    return pa.chunked_array([array])


def integer_dtype(time: TimeType) -> np.dtype[Any]:
    """The numpy dtype of integer time, for any library's spelling (`Int32`, `int32[pyarrow]`)."""
    return np.dtype(time.dtype.lower().removesuffix("[pyarrow]"))


def _read_integers(series: nw.Series[Any], name: str, dtype_text: str) -> Ints:
    """Integer time as int64; raises `DataError` if a value is beyond `MAX_TIMESTAMP`."""
    low, high = (series.min(), series.max()) if len(series) else (0, 0)
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


def _parse_text(series: nw.Series[Any], name: str) -> tuple[Ints, TimeType]:
    """Parse ISO 8601 text or datetime objects; other formats raise `DataError`, as the order of day and month may be ambiguous."""
    import pandas as pd

    text = pd.Series(series.to_list(), dtype=object)
    iso_text = text.where(text.map(str).str.fullmatch(TEXT_TIME))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas 2 only warns of mixed time zones, and returns objects
            parsed = pd.to_datetime(iso_text, format="ISO8601", errors="coerce")
    except ValueError:
        raise _mixed_zones_error(name) from None
    if parsed.dtype == object:
        raise _mixed_zones_error(name)
    invalid = text[parsed.isna()]
    if len(invalid):
        code = f": pandas.to_datetime(frame[{name!r}], dayfirst=...)" if series.implementation.is_pandas_like() else ""
        if len({str(getattr(value, "tzinfo", None)) for value in text}) > 1:
            raise _mixed_zones_error(name)
        raise DataError(
            f"Text in the time column {format_value(name)} must be ISO 8601, as in 2024-01-31 or "
            f"2024-01-31T12:00, got {format_list(invalid.unique())}, first in row {invalid.index[0]}.",
            hint=f"Correct these values, or convert the column to datetimes{code}.",
        )
    return read_timestamps(parsed, name)


def _time_type_error(series: nw.Series[Any], name: str, dtype_text: str) -> DataError:
    """The error for a column of an unsupported dtype, or of Python objects, with a fix that fits it."""
    found, hint = format_value(dtype_text), "Convert it to one of these types."
    if series.dtype == nw.Object or dtype_text == "object":
        values = series.to_list()
        found = f"object with values of type {format_list(sorted({type(value).__name__ for value in values}))}"
    elif dtype_text.startswith("period"):
        hint = f"Convert it: frame[{name!r}].dt.to_timestamp()."
    return DataError(
        f"The time column {format_value(name)} must have datetimes, dates or an integer dtype, got dtype {found}.", hint=hint
    )


def _mixed_zones_error(name: str) -> DataError:
    return DataError(
        f"The time column {format_value(name)} must have one time zone, got several.",
        hint="Convert all times to UTC.",
    )


class Runs(NamedTuple):
    """Runs of equal ids in consecutive rows: the first row of each and the rank of its id among `count` sorted ids."""

    starts: Ints
    rank: Ints
    count: int  # type: ignore[assignment]

    def layout(self, timestamps: Ints) -> tuple[Ints | None, Ints]:
        """The permutation that sorts rows by id and time (None if sorted), and series bounds."""
        if len(self.starts) == 1 and (timestamps[1:] >= timestamps[:-1]).all():  # one sorted series
            return None, np.array([0, len(timestamps)], dtype=np.int64)
        lengths: Any = np.diff(np.append(self.starts, self.starts.dtype.type(len(timestamps))))
        indptr = np.append(0, np.cumsum(np.bincount(self.rank, weights=lengths, minlength=self.count))).astype(np.int64)
        ascending = timestamps[1:] >= timestamps[:-1]
        ascending[self.starts[1:] - 1] = True
        if len(self.starts) > self.count or not ascending.all():
            return _sort_order(self.rank, lengths, self.count, timestamps), indptr
        if (self.rank[1:] > self.rank[:-1]).all():
            return None, indptr
        block = np.argsort(self.rank)
        return np.arange(len(timestamps)) + np.repeat(self.starts[block] - indptr[:-1], lengths[block]), indptr


def find_runs(column: Any, name: str) -> Runs:
    """The runs of an id column; missing ids and ids of mixed types raise `DataError`."""
    import pyarrow.compute as pc

    values, labels = to_array(column), None
    is_other = values.dtype.kind not in "iu" if isinstance(values, np.ndarray) else values is None or values.null_count
    if is_other:
        values, labels = _comparable_ids(to_narwhals_series(column), name)
    in_arrow = not isinstance(values, np.ndarray)  # text is compared by arrow, without a copy
    values = values.cast("large_string") if in_arrow and str(values.type) == "string_view" else values
    if in_arrow and len(values) and values[1:].equals(values[:-1]):
        return Runs(SINGLE_RUN, SINGLE_RUN, 1)
    differs = np.asarray(pc.not_equal(values[1:], values[:-1])) if in_arrow else values[1:] != values[:-1]
    starts: Any = np.flatnonzero(np.append(True, differs))
    # there may be as many runs as rows
    starts = starts.astype(np.int32) if len(differs) < 2**31 - 1 else starts
    run_ids = values.take(starts) if len(starts) <= len(differs) else values
    label_index: Any = ...
    if labels is not None:
        import pandas as pd

        label_index, used = pd.factorize(run_ids)
        run_ids = labels[used]
    elif in_arrow or values.dtype != object:
        is_sorted = pc.all(pc.less(run_ids[:-1], run_ids[1:])).as_py() if in_arrow else (run_ids[1:] > run_ids[:-1]).all()
        if is_sorted:
            return Runs(starts, np.arange(len(starts)), len(starts))
    try:
        rank, count = _ranks(run_ids)
    except (UnicodeEncodeError, OverflowError):
        # text that is not valid Unicode, integers that fit no dtype
        raise _id_type_error(to_narwhals_series(column), name, run_ids) from None
    return Runs(starts, rank[label_index], count)


def _comparable_ids(series: nw.Series[Any], name: str) -> tuple[Any, NDArray[Any] | None]:
    """Ids as arrow text, integers, objects or category codes, and the labels of the codes (None for the others).

    Missing ids, and ids that are neither all text nor all integers, raise `DataError`.
    """
    if series.null_count():
        raise _missing_ids_error(series, name)
    dtype, native = series.dtype, series.to_native()
    is_object = str(getattr(native, "dtype", "")) == "object"
    if dtype == nw.String and not is_object:
        return series.to_arrow(), None
    if dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128):
        return np.asarray(series.to_numpy()), None
    labels: Any = native.to_numpy() if is_object else None
    codes: Ints | None = None
    if dtype in (nw.Categorical, nw.Enum):
        labels, codes = read_categories(series)
        if (codes < 0).any():
            raise _missing_ids_error(series, name)
    import pandas as pd

    # labels of mixed types cannot be sorted
    if labels is None or pd.api.types.infer_dtype(labels, skipna=False) not in ("string", "integer", "empty"):
        raise _id_type_error(series, name, labels)
    return (labels, None) if codes is None else (codes, labels)


def _ranks(labels: Any) -> tuple[Ints, int]:
    """The rank of each label (a numpy or arrow array) among the unique labels, and their number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    labels = pa.array(labels) if isinstance(labels, np.ndarray) else labels
    if pa.types.is_integer(labels.type):
        numbers = np.asarray(labels)
        low, high = int(numbers.min()), int(numbers.max())
        if high - low <= MAX_SPARSITY * len(numbers) and high <= np.iinfo(np.int64).max:
            from_low = numbers.astype(np.int64) - low
            occurs = np.zeros(high - low + 1, dtype=bool)
            occurs[from_low] = True
            rank_of_integer = np.cumsum(occurs) - 1
            return rank_of_integer[from_low], int(rank_of_integer[-1]) + 1
    # not pandas.factorize: before pandas 3.0, strings that differ only after a NUL are equal to it
    encoded = labels.dictionary_encode()
    encoded = encoded.combine_chunks() if hasattr(encoded, "combine_chunks") else encoded
    rank = np.asarray(pc.rank(encoded.dictionary, tiebreaker="dense")).astype(np.int64) - 1
    return rank[encoded.indices.to_numpy()], len(rank)


def _sort_order(rank: Ints, lengths: Ints, n_ids: int, timestamps: Ints) -> Ints:
    """The permutation that sorts rows by (rank of their run, timestamp), stable for duplicates.

    Both are combined into one integer key, rank * n_steps + step, if it fits into int64; the keys
    are sorted by counting if they are dense.
    """
    low, high = int(timestamps.min()), int(timestamps.max())
    unit = _common_unit(timestamps, low) if high - low < MAX_KEY else 1
    n_steps = (high - low) // unit + 1
    n_keys = n_ids * n_steps
    if n_keys >= MAX_KEY:
        return np.lexsort((timestamps, np.repeat(rank, lengths)))
    key_dtype = np.int32 if n_keys < 2**31 else np.int64
    key = np.repeat(np.multiply(rank, n_steps, dtype=key_dtype, casting="unsafe"), lengths)
    step = timestamps - low
    step //= unit
    key += step.astype(key_dtype, copy=False)
    del step
    if n_keys <= MAX_SPARSITY * len(key):  # counting sort: a slot per key, empty slots are removed
        row_at_key: Any = np.full(n_keys, -1, dtype=np.int32 if len(timestamps) < 2**31 else np.int64)
        row_at_key[key] = np.arange(len(timestamps), dtype=row_at_key.dtype)
        row_at_key = row_at_key[row_at_key >= 0]
        if len(row_at_key) == len(timestamps):  # otherwise keys are duplicated
            del key
            return np.asarray(row_at_key, dtype=np.int64)
    return np.argsort(key, kind="stable")


def _common_unit(timestamps: Ints, low: int) -> int:
    """A common divisor of all timestamps minus the lowest: the greatest one of the first 1000, else 1."""
    unit = int(np.gcd.reduce(timestamps[:1000] - low)) or 1
    chunks = (timestamps[start : start + CHUNK_ROWS] for start in range(0, len(timestamps), CHUNK_ROWS))
    return unit if unit > 1 and not any(((chunk - low) % unit).any() for chunk in chunks) else 1


def _missing_ids_error(series: nw.Series[Any], name: str) -> DataError:
    """The error for rows without an id, with their number and the first one."""
    missing = series.is_null().to_numpy() if series.null_count() else [value is None for value in series.to_list()]
    rows = np.flatnonzero(missing)
    return DataError(
        f"Column {format_value(name)} must have an id in every row, but ids are missing in "
        f"{pluralize(len(rows), 'row')}, first in row {rows[0]}.",
        hint="Fill in the ids or drop these rows.",
    )


def _id_type_error(series: nw.Series[Any], name: str, values: Any) -> DataError:
    """The error for ids of an unsupported type; `values` are some of them, or None."""
    native = series.to_native()
    dtype_text = str(getattr(native, "dtype", None) or getattr(native, "type", ""))
    type_names = (
        "" if values is None else f" with values of type {', '.join(sorted({type(value).__name__ for value in values}))}"
    )
    return DataError(
        f"The id column {format_value(name)} must contain strings, integers, or categories of one of "
        f"these types, got dtype {format_value(dtype_text)}{type_names}.",
        hint="Convert it to strings.",
    )
