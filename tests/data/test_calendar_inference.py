from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast.data.calendar import find_off_grid, infer_frequency, make_calendar, unique_times
from deepforecast.data.frequency import parse_frequency
from deepforecast.data.key_columns import TimeType
from tests.frames import FREQUENCIES, ZONES


def panel_of(freq: str, lengths: list[int], starts: list[str], holes: float, tz: str | None, seed: int) -> tuple:
    """Sorted stamps, bounds and type of series with that share of their inner rows left out."""
    rng = np.random.default_rng(seed)
    parts = []
    for length, start in zip(lengths, starts, strict=True):
        index = pd.date_range(start, periods=length, freq=freq, unit="us")
        if tz is not None:
            index = index.tz_localize(tz, ambiguous=np.ones(length, dtype=bool), nonexistent="shift_forward")
        keep = np.ones(length, dtype=bool)
        inner = np.arange(2, length - 1)
        keep[rng.choice(inner, int(holes * len(inner)), replace=False)] = False
        parts.append(np.array(index.asi8)[keep])
    indptr = np.append(0, np.cumsum([len(part) for part in parts]))
    return np.concatenate(parts), indptr, TimeType("us", tz)


@pytest.mark.parametrize("freq", FREQUENCIES)
@pytest.mark.parametrize("tz", ZONES)
def test_finds_every_frequency(freq: str, tz: str | None) -> None:
    if tz is not None and parse_frequency(freq).base in ("h", "min", "s", "ms"):
        index = pd.date_range("2024-03-30", periods=80, freq=freq, tz=tz, unit="us")
        raw, indptr, time = np.array(index.asi8), np.array([0, 80]), TimeType("us", tz)
    else:
        raw, indptr, time = panel_of(freq, [80], ["2018-01-30"], 0.0, tz, 0)
    assert str(infer_frequency(raw, indptr, time)) == freq


@given(
    st.sampled_from([freq for freq in FREQUENCIES if freq not in ("2B", "3B")]),  # with holes they look like days
    st.sampled_from([None, "UTC"]),
    st.floats(0, 0.2),
    st.integers(0, 2**31),
)
def test_finds_it_with_holes_and_several_series(freq: str, tz: str | None, holes: float, seed: int) -> None:
    # series of one frequency; where the frequency has phases (2D, 2MS) each may have its own
    anchored = parse_frequency(freq).base in ("ms", "s", "min", "h", "D", "MS", "ME", "BMS")
    starts = ["2020-01-06", "2020-02-02" if anchored else "2020-01-06", "2021-03-01"]
    raw, indptr, time = panel_of(freq, [50, 41, 60], starts, holes, tz, seed)
    assert str(infer_frequency(raw, indptr, time)) == freq


@pytest.mark.parametrize("freq", ["D", "B", "W-WED", "MS", "ME", "QS-JAN", "YE-DEC"])
@pytest.mark.parametrize("tz", ZONES[2:])
def test_finds_it_with_holes_over_changes_of_clocks(freq: str, tz: str) -> None:
    raw, indptr, time = panel_of(freq, [120, 80], ["2018-01-30", "2019-02-25"], 0.2, tz, 3)
    assert str(infer_frequency(raw, indptr, time)) == freq


@pytest.mark.parametrize("freq", ["24h", "48h"])
def test_a_day_of_absolute_time_is_24_hours(freq: str) -> None:
    index = pd.date_range("2024-03-01", periods=60, freq=freq, tz="Europe/Berlin", unit="us")
    assert str(infer_frequency(np.array(index.asi8), np.array([0, 60]), TimeType("us", "Europe/Berlin"))) == freq


@pytest.mark.parametrize("freq", ["B", "W-WED", "MS", "BME", "QE-NOV", "D"])
@pytest.mark.parametrize("tz", [None, "Europe/Berlin"])
def test_stamps_that_repeat_from_series_to_series(freq: str, tz: str | None) -> None:
    raw, indptr, time = panel_of(freq, [60] * 200, ["2018-01-30"] * 200, 0.1, tz, 5)
    assert len(unique_times(raw)[0]) == 60
    assert str(infer_frequency(raw, indptr, time)) == freq
    calendar = make_calendar(parse_frequency(freq), time, raw[:2])
    np.testing.assert_array_equal(calendar.timestamps(calendar.positions(raw)), raw)
    assert len(unique_times(np.arange(20_000))[0]) == 20_000


def test_weekdays_are_business_days_and_days_with_holes_are_days() -> None:
    days = pd.date_range("2024-01-01", periods=70, freq="D")
    weekdays = np.array(days[days.day_of_week < 5].as_unit("us").asi8)
    time = TimeType("us")
    assert str(infer_frequency(weekdays, np.array([0, 50]), time)) == "B"
    assert str(infer_frequency(np.delete(weekdays, [7, 19, 30]), np.array([0, 47]), time)) == "B"
    every = np.array(days.as_unit("us").asi8)
    assert str(infer_frequency(np.delete(every, [7, 19, 30]), np.array([0, 67]), time)) == "D"
    assert str(infer_frequency(weekdays[:5], np.array([0, 5]), time)) == "D"  # Monday to Friday: nobody could tell
    assert str(infer_frequency(weekdays[:5:2], np.array([0, 3]), TimeType("us", "Asia/Tokyo"))) == "2D"
    assert str(infer_frequency(weekdays[[0, 1, 4, 8, 9]], np.array([0, 5]), time)) == "B"  # as many steps of one kind as of the other


def test_integers() -> None:
    time = TimeType("")
    assert infer_frequency(np.array([0, 5, 10, 20]), np.array([0, 4]), time) == parse_frequency(5)
    assert infer_frequency(np.array([3, 5, 7, 100, 102, 104]), np.array([0, 3, 6]), time) == parse_frequency(2)
    assert infer_frequency(np.array([0, 5, 11, 13, 20]), np.array([0, 5]), time) is None


@pytest.mark.parametrize(
    ("stamps", "lengths"),
    [
        (["2024-01-01"], [1]),
        (["2024-01-01", "2024-01-05"], [1, 1]),
        (["2024-01-01", "2024-01-02", "2024-01-05", "2024-01-11", "2024-01-15"], [5]),  # one gap of four is a day
        (["2024-01-03", "2024-01-10", "2024-01-18", "2024-01-25"], [2, 2]),  # Wednesdays and Thursdays
        (["2024-01-15", "2024-02-15", "2024-03-15", "2024-04-15"], [4]),
        (["2024-01-01 00:00", "2024-01-02 00:00", "2024-01-03 05:00"], [3]),
    ],
)
def test_none_where_it_cannot_tell(stamps: list[str], lengths: list[int]) -> None:
    raw = np.array(pd.DatetimeIndex(stamps).as_unit("us").asi8)
    found = infer_frequency(raw, np.append(0, np.cumsum(lengths)), TimeType("us"))
    assert found is None, found


def test_series_of_one_row_beside_longer_ones() -> None:
    raw = np.array(pd.DatetimeIndex(["2024-01-01", "2024-01-01", "2024-01-02", "2024-01-03", "2020-05-05"]).as_unit("us").asi8)
    assert str(infer_frequency(raw, np.array([0, 1, 4, 5]), TimeType("us"))) == "D"


def test_stamps_are_not_written_to() -> None:
    for freq in ("D", "B", "MS", "W-MON"):
        raw, indptr, time = panel_of(freq, [30, 30], ["2024-01-01", "2024-01-01"], 0.1, "Europe/Berlin", 0)
        raw.flags.writeable = False
        assert str(infer_frequency(raw, indptr, time)) == freq


@pytest.mark.parametrize("freq", ["D", "h", "15min", "W-SUN", "B", "MS", "BME", "QS-JAN", "YE-DEC"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "Asia/Tehran"])  # clocks change at midnight there
def test_a_stamp_beside_the_grid_is_found(freq: str, zone: str | None) -> None:
    raw, indptr, time = panel_of(freq, [60, 40], ["2020-01-06", "2020-02-02"], 0.0, zone, 0)
    raw[[7, 83]] += 60_000_000  # a minute late
    assert infer_frequency(raw, indptr, time) is None
    found = find_off_grid(raw, indptr, time)
    assert found is not None
    assert found[1].tolist() == [7, 83]
    assert str(found[0]) == freq


def test_a_series_whose_grid_begins_elsewhere_is_not_beside_it() -> None:
    raw, indptr, time = panel_of("h", [10, *[60] * 5], ["2024-01-01"] * 6, 0.0, None, 0)
    minutes = np.repeat([5, 0, 10, 20, 30, 40], np.diff(indptr))
    raw = raw + minutes * 60_000_000
    assert str(infer_frequency(raw, indptr, time)) == "h"
    raw[43] += 180_000_000
    found = find_off_grid(raw, indptr, time)
    assert found is not None
    assert (str(found[0]), found[1].tolist()) == ("h", [43])


def test_a_month_on_another_day_is_beside_the_first_days() -> None:
    days = [*pd.date_range("2023-01-01", periods=20, freq="MS"), pd.Timestamp("2024-01-15")]
    raw = np.array(pd.DatetimeIndex(days).as_unit("us").asi8)
    found = find_off_grid(raw, np.array([0, 20, 21]), TimeType("us"))  # the second series is nothing else
    assert found is not None
    assert (str(found[0]), found[1].tolist()) == ("MS", [20])


def test_numbers_beside_the_grid_are_found() -> None:
    raw = np.array([0, 10, 20, 33, 40, 50, 60, 70, 80, 90, 100])
    found = find_off_grid(raw, np.array([0, 11]), TimeType(""))
    assert found is not None
    assert (str(found[0]), found[1].tolist()) == ("10", [3])


@pytest.mark.parametrize("raw", [[0, 1, 3, 6, 10, 15, 21], [0, 10, 23, 30, 47, 50, 69, 70, 80], [0], [5, 5, 5]])
def test_where_no_step_is_usual_none_strays(raw: list[int]) -> None:
    assert find_off_grid(np.array(raw), np.array([0, len(raw)]), TimeType("")) is None
