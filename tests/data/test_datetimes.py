from __future__ import annotations

import datetime
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast.data.key_columns import TimeType, integer_dtype, read_timestamps, time_column
from deepforecast.errors import DataError
from tests.frames import ZONES, converted

DAYS = ["2024-01-31", "1969-12-30", "2024-07-01"]


def wrapped(native: Any) -> nw.Series[Any]:
    return nw.from_native(native, series_only=True)


def columns() -> list[Any]:
    """DAYS in every form a time column can have."""
    found: list[Any] = []
    for tz in ZONES:
        index = pd.DatetimeIndex(DAYS, tz=tz)
        found += [pd.Series(index.as_unit(unit), index=[7, 7, 7]) for unit in ("s", "ms", "us", "ns")]
        for unit in ("s", "ms", "us", "ns"):
            array = pa.array(index.as_unit(unit)).cast(pa.timestamp(unit, tz=tz))
            found += [pa.chunked_array([array[:1], array[1:]]), pd.Series(pd.arrays.ArrowExtensionArray(array))]
            if unit != "s" and not (tz or "").startswith("+"):
                found.append(pl.Series(array))
    dates = pa.array([datetime.date.fromisoformat(day) for day in DAYS])
    found += [pa.chunked_array([dates]), pl.Series(dates), pd.Series(pd.arrays.ArrowExtensionArray(dates))]
    found.append(pd.Series(dates.to_pylist()))
    for kind in ("int8", "uint8", "int64", "Int16", "UInt64", "int32[pyarrow]"):
        found.append(pd.Series([3, 1, 2], dtype=kind))
    return [
        *found,
        pl.Series([3, 1, 2]),
        pl.Series([3, 1, 2], dtype=pl.UInt16),
        pa.chunked_array([pa.array([3, 1, 2], pa.int16())]),
    ]


@pytest.mark.parametrize(
    "native", columns(), ids=lambda native: f"{type(native).__module__} {getattr(native, 'dtype', '') or native.type}"
)
def test_there_and_back_in_the_very_type(native: Any) -> None:
    series = wrapped(native)
    raw, time = read_timestamps(series, "ds")
    assert raw.dtype == np.int64
    back = time_column("ds", raw, time, series.implementation.value).to_native()
    if isinstance(native, pd.Series):
        pd.testing.assert_series_equal(back, native.reset_index(drop=True), check_names=False)
    elif isinstance(native, pl.Series):
        assert back.dtype == native.dtype
        assert back.to_list() == native.to_list()
    else:
        assert back.type == native.type
        assert back.to_pylist() == native.to_pylist()


def test_stamps_of_pandas_are_not_copied() -> None:
    values = np.array(DAYS, dtype="M8[ns]")
    raw, time = read_timestamps(wrapped(pd.Series(values, copy=False)), "ds")
    assert np.shares_memory(raw, values)
    assert time == TimeType("ns", None, "datetime64[ns]")


@given(st.sampled_from(ZONES), st.sampled_from(["s", "ms", "us", "ns"]), st.integers(-(10**9), 10**9))
def test_any_stamp_comes_back(tz: str | None, unit: str, raw: int) -> None:
    time = read_timestamps(wrapped(pd.Series(pd.DatetimeIndex(DAYS, tz=tz).as_unit(unit))), "ds")[1]
    column = time_column("ds", np.array([raw]), time, "pandas")
    again, same = read_timestamps(column, "ds")
    assert (again[0], same) == (raw, time)


@pytest.mark.parametrize(
    ("text", "stamp"),
    [
        ("2024-01-31", "2024-01-31"),
        ("2024-01-31T12:30", "2024-01-31 12:30"),
        ("2024-01-31 12:30:15.25", "2024-01-31 12:30:15.25"),
        ("2024-01-31T12:30:00Z", "2024-01-31 12:30+00:00"),
        ("2024-01-31T12:30+02:00", "2024-01-31 12:30+02:00"),
    ],
)
def test_iso_text(text: str, stamp: str) -> None:
    for native in (
        pd.Series([text] * 2),
        pd.Series([text] * 2, dtype=object),
        pl.Series([text] * 2),
        pa.chunked_array([[text] * 2]),
    ):
        raw, time = read_timestamps(wrapped(native), "ds")
        back = time_column("ds", raw, time, "pandas").to_native()
        assert back[0] == pd.Timestamp(stamp)


@pytest.mark.parametrize(
    "text", ["01/02/2024", "1.2.2024", "2024-1-2", "20240102", "2024-02-30", "2024-01-31\n", "2024-W01", "", "now", "3"]
)
def test_other_text(text: str) -> None:
    with pytest.raises(DataError, match=r"time column day must be .*ISO 8601"):
        read_timestamps(wrapped(pd.Series(["2024-01-01", text])), "day")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_code_of_pandas_is_advised_for_text_of_pandas_only(library: str) -> None:
    frame = converted(pd.DataFrame({"day": ["31/01/2024"]}), library)
    with pytest.raises(DataError, match="or convert the column to datetimes") as caught:
        read_timestamps(nw.from_native(frame)["day"], "day")
    assert ("pandas.to_datetime" in caught.value.hint) == (library == "pandas")


def test_text_of_several_zones_says_so() -> None:
    text = ["2024-01-01T00:00+01:00", "2024-01-02T00:00+02:00"]
    with pytest.raises(DataError, match=r"day must have one time zone, got several\. Convert all times to UTC\.$"):
        read_timestamps(wrapped(pd.Series(text)), "day")


def test_text_of_several_zones() -> None:
    with pytest.raises(DataError, match=r"(?i)day.*(time zone|timezone)"):
        read_timestamps(wrapped(pd.Series(["2024-01-01T00:00+01:00", "2024-01-02T00:00+02:00"])), "day")


REFUSED = [
    (pd.Series([1.5]), "got dtype float64.*Convert it to one of these types"),
    (pd.Series([True]), "bool"),
    (pd.Series(pd.period_range("2024", periods=2, freq="D")), "to_timestamp"),
    (pd.Series([datetime.datetime(2024, 1, 1), pd.Timestamp("2024-01-02", tz="UTC")], dtype=object), "one time zone"),
    (pd.Series(pd.date_range("2024", periods=2, tz=datetime.timezone(datetime.timedelta(hours=2), "here"))), "tz_convert"),
    (pd.Series(pd.to_timedelta([1])), "timedelta64.*Convert it to one of these types"),
    (pd.Series(pd.to_datetime(["2024-01-01"])).astype("category"), "category"),
    (pl.Series([1.5]), "Float64"),
    (pl.Series([datetime.time(1)]), "Time"),
    (pd.Series([2**62 + 1]), r"±2\^62"),
    (pd.Series([2**63 + 1], dtype="uint64"), r"±2\^62"),
    (pl.Series([1], dtype=pl.Int128), "Int128"),
    (pd.Series([1, "2024-01-01"]), "values of type int, str"),
]


@pytest.mark.parametrize(("native", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_other_columns_are_no_stamps(native: Any, words: str) -> None:
    with pytest.raises(DataError, match=rf"column day.*{words}"):
        read_timestamps(wrapped(native), "day")


def test_integer_dtypes_by_any_name() -> None:
    for name in ("Int32", "int32", "int32[pyarrow]"):
        assert integer_dtype(TimeType("", None, name)) == np.int32
