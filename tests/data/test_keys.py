from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.data.calendar import Calendar
from deepforecast.data.columns import Columns
from deepforecast.data.frames import read_table, to_list
from deepforecast.data.frequency import parse_frequency
from deepforecast.data.keys import Keys, read_keys
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError
from tests.frames import LIBRARIES, D, P, converted, joined


def keys_of(frame: Any, what: str = "frame") -> Keys:
    found = read_table(frame)
    return read_keys(found, Columns(id="unique_id" if "unique_id" in found.columns else None), what)


def calendar_of(frame: pd.DataFrame, freq: Any = None) -> Calendar:
    return keys_of(frame).place_on_calendar(freq, None)[0]


@pytest.mark.parametrize("library", LIBRARIES)
def test_sorted_keys(library: str) -> None:
    frame = P(3, 4)
    keys = keys_of(converted(frame, library))
    assert keys.order is None
    assert keys.indptr.tolist() == [0, 4, 8, 12]
    assert keys.library == library
    shuffled = keys_of(converted(frame.sample(frac=1, random_state=0), library))
    np.testing.assert_array_equal(shuffled.timestamps, keys.timestamps)
    assert shuffled.ids is not None
    assert to_list(shuffled.ids) == ["s001", "s002", "s003"]


def test_rows_are_named_as_the_caller_sees_them() -> None:
    keys = keys_of(P(2, 3).iloc[::-1])
    assert (keys.describe_row(0), keys.caller_row(0)) == ("series s001 at 2024-01-01", 5)
    assert keys.labels_of_rows(np.array([4, 5])) == "s002"
    assert keys_of(D("A", 3).drop(columns="unique_id")).describe_row(1) == "2024-01-02"
    numbered = keys_of(D("A", 3).assign(unique_id=np.int64(7)))
    assert numbered.describe_row(0) == "series 7 at 2024-01-01"


def test_control_characters_of_ids_are_escaped() -> None:
    keys = keys_of(D("\x1b[31mred", 3))
    assert keys.describe_row(0) == "series \\x1b[31mred at 2024-01-01"


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (
            joined(P(7, 3), P(7, 3)),
            r"Pairs of unique_id and ds must be unique in the actual frame.*s001, s002, s003, s004, s005 … \(7 in all\).*row 21",
        ),
        (
            joined(D("A", 3), D("A", 3)).drop(columns="unique_id"),
            r"without an id column.*2024-01-01.*3 duplicate rows",
        ),
        (
            D("A", 3).assign(ds=pd.to_datetime(["2024-01-01", None, None])),
            r"actual frame.*2 rows, first in row 1, of series A",
        ),
        (D("A", 2).drop(columns="unique_id").assign(ds=pd.NaT), r"actual frame.*2 rows, first in row 0\. "),
    ],
)
def test_keys_refused(frame: pd.DataFrame, words: str) -> None:
    with pytest.raises(DataError, match=words):
        keys_of(frame, "actual frame")


def test_neighbours_of_two_series_may_share_a_stamp() -> None:
    frame = joined(D("A", 3), D("B", 3, start="2024-01-03"), D("C", 1, start="2024-01-05"))
    assert keys_of(frame).indptr.tolist() == [0, 3, 6, 7]


@pytest.mark.parametrize(
    ("frame", "freq", "words"),
    [
        (D("A", 9, "ME"), "MS", r"grid of freq='MS', but series A at 2024-01-31 is not \(9 timestamps.*look like freq='ME'"),
        (D("A", 9, "W-WED"), "W", r"freq='W-SUN'.*look like freq='W-WED'"),
        (D("A", 9, "h"), "D", r"freq='D', but series A at 2024-01-01 01:00:00.*8 timestamps.*look like freq='h'"),
        (D("A", 9, "D"), "B", r"freq='B', but series A at 2024-01-06 .*2 timestamps.*look like freq='D'"),
        (D("A", 9, "QS-FEB"), "QS", r"freq='QS-JAN'.*look like freq='QS-FEB'"),
        (D("A", 9, "2D"), "D", r"frequency, 'D' as passed, but series A, .* looks like freq='2D'"),
        (D("A", 9).assign(ds=np.arange(9) * 3), 2, r"freq=2, but series A at 3 .*look like freq=3"),
        (
            joined(D("A", 9, "MS"), D("B", 9, "MS", start="2024-01-01 12:00")),
            "MS",
            r"'MS' at 00:00:00, as the first timestamp, but series B at .*12:00",
        ),
        (
            joined(D("A", 9, "MS", start="2024-01-01 06:30"), D("B", 9, "MS")),
            None,
            r"'MS' at 06:30:00, as the first timestamp, but series B at 2024",
        ),
        (joined(D("A", 1), D("B", 9, "ME")), "ME", r"freq='ME', but series A at 2024-01-01 is not \(1 timestamp"),
        (
            joined(D("A", 30), D("B", 30, "W-MON")),
            None,
            r"frequency, 'D' as in the other series, but series B, .* looks like freq='W-MON'",
        ),
    ],
)
def test_stamps_off_the_grid(frame: pd.DataFrame, freq: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        keys_of(frame).place_on_calendar(freq, None)


def test_another_time_of_day_is_told_in_local_time() -> None:
    frame = joined(D("A", 9, "MS", tz="Europe/Berlin"), D("B", 9, "MS", start="2024-01-01 12:00", tz="Europe/Berlin"))
    with pytest.raises(
        DataError, match=r"'MS' at 00:00:00, as the first timestamp, but series B at 2024-01-01 12:00:00\+01:00"
    ):
        keys_of(frame).place_on_calendar("MS", None)


def test_the_stamp_beside_the_grid_is_named() -> None:
    frame = joined(D("A", 30), D("B", 30)).reset_index(drop=True)
    frame["ds"] = frame["ds"].where(np.arange(60) != 40, frame["ds"] + pd.Timedelta("3h"))
    said = r"nearly all follow freq='D', but series B at 2024-01-11 03:00:00 does not "
    said += r"\(1 timestamp in all, in series B\)\. Correct"
    with pytest.raises(DataError, match=said):
        keys_of(frame).place_on_calendar(None, None)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (P(9, 1), r"fewer than 2 rows.*all 9 series \(s001.*\(9 in all\)\) have 1"),
        (D("A", 1), r"fewer than 2 rows; series A has 1\."),
        (D("A", 1).drop(columns="unique_id"), r"fewer than 2 rows; the frame has 1"),
        (
            D("A", 5).assign(ds=pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-09", "2024-01-23", "2024-02-27"])),
            r"those of series A are 2024-01-01, 2024-01-02, 2024-01-09.*Pass freq",
        ),
    ],
)
def test_not_inferred(frame: pd.DataFrame, words: str) -> None:
    with pytest.raises(DataError, match=words):
        keys_of(frame).place_on_calendar(None, None)


def test_two_rows_are_no_frequency_of_their_own() -> None:
    frame = joined(D("A", 30), D("B", 30).iloc[[3, 9]])
    assert keys_of(frame).place_on_calendar(None, None)[0].freq == "D"
    with pytest.raises(DataError, match=r"those of series A are 2024-01-03, 2024-01-10\."):
        keys_of(joined(D("A", 2, "W-WED"), D("B", 2, "W-THU"))).place_on_calendar(None, None)


def test_stamps_too_far_apart_to_subtract() -> None:
    ends = pd.to_datetime(["1680-01-01", "2260-01-01"]).astype("datetime64[ns]")
    with pytest.raises(DataError, match=r"series A at 2260-01-01"):
        keys_of(D("A", 2).assign(ds=ends)).place_on_calendar("D", None)


def test_an_earlier_calendar_counts_on() -> None:
    frame = P(2, 10)
    calendar, position = keys_of(frame).place_on_calendar(None, None)
    later = P(2, 14).groupby("unique_id").tail(4)
    again, after = keys_of(later.astype({"ds": "datetime64[s]"})).place_on_calendar(None, calendar)
    assert again is calendar
    np.testing.assert_array_equal(after.reshape(2, 4)[:, 0], position.reshape(2, 10)[:, -1] + calendar.step)
    assert position.dtype == after.dtype


@pytest.mark.parametrize(
    ("own", "wanted", "words"),
    [
        (D("A", 5), D("A", 5, tz="UTC"), r"later frame.*time zone \(tz\) seen in fit.*UTC"),
        (D("A", 5).assign(ds=np.arange(5)), D("A", 5), r"datetime64.*got int64"),
        (D("A", 5, "h"), D("A", 5).assign(ds=D("A", 5).ds.astype("datetime64[s]")), None),
        (
            D("A", 5, "100ms"),
            D("A", 5).assign(ds=D("A", 5).ds.astype("datetime64[s]")),
            r"series A at 2024-01-01 00:00:00.1 is not \(4 timestamps",
        ),
        (
            D("A", 5).assign(ds=pd.date_range("3024-01-01", periods=5, unit="s")),
            D("A", 5).astype({"ds": "datetime64[ns]"}),
            r"3024-01-01 is not",
        ),
    ],
)
def test_stamps_of_another_type_or_unit(own: pd.DataFrame, wanted: pd.DataFrame, words: str | None) -> None:
    calendar = calendar_of(wanted)
    keys = keys_of(own, "later frame")
    if words is None:
        with pytest.raises(DataError, match="grid of freq='D'"):  # read right, but hours
            keys.place_on_calendar(None, calendar)
        return
    with pytest.raises(DataError, match=words):
        keys.place_on_calendar(None, calendar)


def test_gaps_on_an_earlier_calendar_are_just_gaps() -> None:
    calendar = calendar_of(D("A", 9))
    assert keys_of(D("A", 5, "2D")).place_on_calendar(None, calendar)[0] == calendar


@pytest.mark.parametrize("tz", [None, "Europe/Berlin"])
def test_calendars_keep_the_time_of_day(tz: str | None) -> None:
    calendar = calendar_of(D("A", 9, "ME", start="2024-01-31 06:30", tz=tz))
    assert calendar.frequency == parse_frequency("ME")
    assert calendar.format(
        int(calendar.positions(keys_of(D("A", 1, "ME", start="2024-05-31 06:30", tz=tz)).timestamps)[0])
    ).startswith("2024-05-31 06:30:00")


@pytest.mark.parametrize(("form", "freq"), [("%Y%m%d", "D"), ("%Y%m", "MS")])
def test_whole_numbers_that_look_like_dates_are_refused_unless_they_are_said_to_count(form: str, freq: str) -> None:
    stamps = pd.date_range("2024-01-01", periods=9, freq=freq).strftime(form).astype(int)
    frame = pd.DataFrame({"ds": stamps, "y": 1.0})
    with pytest.raises(DataError, match=f"written as {form}"):
        Panel.from_frame(frame)
    assert len(Panel.from_frame(frame, freq=1)) == 1
    assert len(Panel.from_frame(frame.assign(ds=range(1990, 1999)))) == 1
