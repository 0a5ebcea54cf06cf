from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepforecast.data.calendar import Calendar, format_timestamp, make_calendar, nominal_local_time, to_absolute, to_local
from deepforecast.data.frequency import OFF_GRID, parse_frequency, point_days, point_numbers
from deepforecast.data.key_columns import TimeType
from deepforecast.errors import DataError
from tests.frames import FREQUENCIES, ZONES

GRID = [freq for freq in FREQUENCIES if parse_frequency(freq).base not in ("ms", "s", "min", "h", "D")]
CUSTOM = [
    pd.offsets.CustomBusinessDay(holidays=["2024-01-02", "1999-12-30"]),
    pd.offsets.CustomBusinessDay(weekmask="Sun Mon Tue Wed Thu"),
    2 * pd.offsets.CustomBusinessDay(holidays=["2024-01-02"]),
    pd.offsets.CustomBusinessMonthBegin(holidays=["2024-02-01"]),
    pd.offsets.CustomBusinessMonthEnd(holidays=["2024-01-31"]),
]


def stamps_of(freq: Any, start: str, periods: int, tz: str | None = None, unit: str = "ns") -> tuple[np.ndarray, TimeType]:
    """pandas' own stamps, as integers."""
    index = pd.date_range(start, periods=periods, freq=freq, unit=unit)
    if tz is not None:
        index = index.tz_localize(tz, ambiguous=np.ones(periods, dtype=bool), nonexistent="shift_forward")
    return np.array(index.asi8), TimeType(unit, tz)


@pytest.mark.parametrize("freq", [*FREQUENCIES, *CUSTOM], ids=str)
@pytest.mark.parametrize(
    ("start", "unit"), [("2023-11-27", "ns"), ("1969-12-01", "us"), ("1890-03-05 06:00", "s"), ("2199-12-31", "ms")]
)
def test_steps_are_those_of_pandas(freq: Any, start: str, unit: str) -> None:
    unit = "ms" if unit == "s" and freq == "ms" else "us" if freq == "5YS-JUL" else unit  # what can hold them
    raw, time = stamps_of(freq, start, 80, unit=unit)
    calendar = make_calendar(parse_frequency(freq), time, raw[:2])
    position = calendar.positions(raw)
    assert (np.diff(position) == calendar.step).all()
    np.testing.assert_array_equal(calendar.timestamps(position), raw)
    ahead = calendar.next_positions(position[39:40], 40)
    np.testing.assert_array_equal(calendar.timestamps(ahead)[0], raw[40:])


@pytest.mark.parametrize("freq", ["D", "2D", "B", "W-MON", "MS", "ME", "BMS", "QS-JAN", "YE-DEC"])
@pytest.mark.parametrize("tz", ZONES[1:])
@pytest.mark.parametrize("start", ["2018-02-10", "2018-10-28 00:00", "2024-03-28 02:30", "2024-11-01"])
def test_local_time_over_changes_of_clocks(freq: str, tz: str, start: str) -> None:
    raw, time = stamps_of(freq, start, 60, tz)
    calendar = make_calendar(parse_frequency(freq), time, raw[:2])
    position = calendar.positions(raw)
    assert (np.diff(position) == calendar.step).all()
    np.testing.assert_array_equal(calendar.timestamps(calendar.next_positions(position[:1], 59))[0], raw[1:])


@given(st.sampled_from(GRID), st.integers(-400_000, 400_000))
def test_grid_points_have_one_number_and_back(freq: str, number: int) -> None:
    frequency = parse_frequency(freq)
    days = point_days(frequency, np.array([number, number + 1]))
    assert days[1] > days[0]
    np.testing.assert_array_equal(point_numbers(frequency, days), [number, number + 1])
    between = np.arange(days[0] + 1, days[1])
    assert (point_numbers(frequency, between) == OFF_GRID).all()


@given(st.sampled_from(ZONES[1:]), st.integers(-2_000_000_000, 4_000_000_000))
def test_local_clock_is_undone(tz: str, second: int) -> None:
    time = TimeType("s", tz)
    raw = np.array([second])
    back = to_absolute(to_local(raw, time), time)
    assert back[0] == raw[0] or abs(back[0] - raw[0]) in (1800, 3600, 7200)  # the second of an hour that occurs twice


def test_a_midnight_that_does_not_exist_counts_as_one() -> None:
    raw, time = stamps_of("D", "2018-11-01", 6, "America/Sao_Paulo")
    assert pd.Timestamp(raw[3], tz="UTC").tz_convert(time.tz).hour == 1
    assert (to_local(raw, time) % 86_400_000_000_000 != 0).sum() == 1
    assert (nominal_local_time(raw, time, 0) % 86_400_000_000_000 == 0).all()


def test_caller_s_stamps_are_not_written_to() -> None:
    for freq, tz in (("MS", None), ("MS", "Europe/Berlin"), ("D", "America/Sao_Paulo"), ("D", None)):
        raw, time = stamps_of(freq, "2018-11-01", 9, tz)
        raw.flags.writeable = False
        calendar = make_calendar(parse_frequency(freq), time, raw[:2])
        calendar.timestamps(calendar.next_positions(calendar.positions(raw)[-1:], 3))


def test_off_the_grid() -> None:
    raw, time = stamps_of("MS", "2024-01-01", 4)
    calendar = make_calendar(parse_frequency("MS"), time, raw)
    hour = 3_600_000_000_000
    wrong = raw + np.array([0, hour, 24 * hour, -1])
    assert (calendar.positions(wrong) == OFF_GRID).tolist() == [False, True, True, True]
    assert calendar.positions(raw[:0]).tolist() == []


@pytest.mark.parametrize("freq", ["D", "h", "MS", "B", "W-MON", "YS-JAN"])
@pytest.mark.parametrize("tz", [None, "UTC", "Europe/Berlin"])
def test_time_that_cannot_be_held_is_refused(freq: str, tz: str | None) -> None:
    raw, time = stamps_of(freq, "2000-01-03", 3, tz)
    raw = raw if freq in ("D", "h") else stamps_of(freq, "2000-01-01", 3, tz)[0]
    calendar = make_calendar(parse_frequency(freq), time, raw)
    last = calendar.positions(raw)[-1:]
    with pytest.raises(DataError, match=r"coarser unit"):
        calendar.timestamps(calendar.next_positions(last, 3_000_000 if freq != "YS-JAN" else 300))


def test_refuses_what_does_not_go_together() -> None:
    with pytest.raises(DataError, match=r"`freq` must match the time column when.*int64"):
        make_calendar(parse_frequency("D"), TimeType(""), 0, "when")
    with pytest.raises(DataError, match=r"`freq` must match the time column when.*datetime64"):
        make_calendar(parse_frequency(1), TimeType("ns", None, "datetime64[ns]"), 0, "when")
    with pytest.raises(DataError, match=r"whole multiple of the unit.*finer"):
        make_calendar(parse_frequency("h"), TimeType("D", None, "date32"), 0)
    with pytest.raises(DataError, match=r"finer"):
        make_calendar(parse_frequency("1500us"), TimeType("ms"), 0)
    assert make_calendar(parse_frequency("2000us"), TimeType("ms"), 0).step == 2


@pytest.mark.parametrize(
    ("said", "day", "found"),
    [
        ("1mo", "2024-02-01", "MS"),
        ("1mo", "2024-02-29", "ME"),
        ("2q", "2024-02-01", "2QS-FEB"),
        ("q", "2024-05-31", "QE-MAY"),
        ("y", "2024-04-01", "YS-APR"),
        ("y", "2024-06-30", "YE-JUN"),
        ("w", "2024-02-29", "W-THU"),
        ("3w", "1960-01-03", "3W-SUN"),
    ],
)
def test_periods_as_the_data_lie(said: str, day: str, found: str) -> None:
    raw = int(np.datetime64(day, "s").astype(np.int64))
    assert make_calendar(parse_frequency(said), TimeType("s"), raw).freq == found


@pytest.mark.parametrize(
    ("raw", "time", "text"),
    [
        (7, TimeType(""), "7"),
        (0, TimeType("s"), "1970-01-01"),
        (3_600_000_000, TimeType("us"), "1970-01-01 01:00:00"),
        (1, TimeType("ns"), "1970-01-01 00:00:00.000000001"),
        (19_000, TimeType("D"), "2022-01-08"),
        (1_711_843_200, TimeType("s", "Europe/Berlin"), "2024-03-31 01:00:00+01:00"),
    ],
)
def test_stamps_as_text(raw: int, time: TimeType, text: str) -> None:
    assert format_timestamp(raw, time) == text


def test_text_of_a_position() -> None:
    raw, time = stamps_of("ME", "2024-01-31", 2)
    calendar = make_calendar(parse_frequency("ME"), time, raw)
    assert calendar.format(int(calendar.positions(raw)[1])) == "2024-02-29"
    assert calendar == Calendar(parse_frequency("ME"), time, 1)


@pytest.mark.parametrize(
    ("offset", "days", "off"),
    [
        (CUSTOM[0], ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-06"], [False, True, False, True]),
        (CUSTOM[1], ["2024-01-04", "2024-01-05", "2024-01-06", "2024-01-07"], [False, True, True, False]),
    ],
    ids=["a holiday and a Saturday", "Friday and Saturday"],
)
def test_days_off_of_a_calendar_of_the_callers_own(offset: Any, days: list[str], off: list[bool]) -> None:
    numbers = point_numbers(parse_frequency(offset), np.array(days, dtype="M8[D]").view(np.int64))
    assert (numbers == OFF_GRID).tolist() == off
    assert np.diff(numbers[~np.array(off)]).tolist() == [1]
