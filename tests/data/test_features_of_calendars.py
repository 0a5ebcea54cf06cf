"""What stamps say by themselves, against pandas: over time zones, changes of clocks, and before 1970."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deepforecast.data.calendar import Calendar, make_calendar
from deepforecast.data.features import (
    FLAGS,
    NAMES,
    PERIODS,
    compute_features,
    default_features,
    encode_cyclic,
    holiday_features,
    validate_country,
    validate_features,
)
from deepforecast.data.frequency import parse_frequency
from deepforecast.data.key_columns import TimeType
from deepforecast.errors import DependencyError, ParameterError

Index = pd.DatetimeIndex
BY_PANDAS: dict[str, Callable[[Index], Any]] = {
    "minute": lambda index: index.minute,
    "hour": lambda index: index.hour,
    "day_of_week": lambda index: index.day_of_week,
    "day_of_month": lambda index: index.day - 1,
    "day_of_year": lambda index: index.day_of_year - 1,
    "week": lambda index: index.isocalendar().week - 1,
    "month": lambda index: index.month - 1,
    "quarter": lambda index: index.quarter - 1,
    "month_end": lambda index: index.day == index.days_in_month,
    "business_day": lambda index: index.day_of_week < 5,
}


def timed(start: str, periods: int, freq: str, tz: str | None = None, unit: str = "s") -> tuple[Index, Calendar, np.ndarray]:
    """pandas' stamps, the calendar they lie on, and their positions there."""
    index = pd.date_range(start, periods=periods, freq=freq, tz=tz, unit=unit)
    raw = np.array(index.asi8)
    calendar = make_calendar(parse_frequency(freq), TimeType(unit, tz), raw[:2])
    return index, calendar, calendar.positions(raw)


def test_every_feature_is_held_against_pandas() -> None:
    assert set(BY_PANDAS) == set(NAMES)


@pytest.mark.parametrize(("start", "unit"), [("2023-11-27 00:15", "ns"), ("1969-11-30 22:00", "us"), ("1890-02-27", "s")])
@pytest.mark.parametrize("tz", [None, "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland"])
@pytest.mark.parametrize("freq", ["15min", "h", "5h"])
def test_hours_and_days_are_those_of_the_wall_clock(freq: str, tz: str | None, start: str, unit: str) -> None:
    index, calendar, positions = timed(start, 900, freq, tz, unit)
    found = compute_features(calendar, positions, NAMES)
    for place, name in enumerate(NAMES):
        np.testing.assert_array_equal(found[:, place], np.asarray(BY_PANDAS[name](index), dtype=float), err_msg=name)


@pytest.mark.parametrize("freq", ["D", "B", "W-SUN", "MS", "ME", "QE-DEC", "YE-DEC"])
@pytest.mark.parametrize("tz", [None, "Europe/Berlin"])
@pytest.mark.parametrize("start", ["1965-12-20", "2019-12-20"])
def test_days_are_those_of_pandas_at_every_frequency(freq: str, tz: str | None, start: str) -> None:
    index, calendar, positions = timed(start, 60, freq, tz)
    found = compute_features(calendar, positions, NAMES)
    for place, name in enumerate(NAMES):
        np.testing.assert_array_equal(found[:, place], np.asarray(BY_PANDAS[name](index), dtype=float), err_msg=name)


def test_each_comes_round_below_its_period() -> None:
    _, calendar, positions = timed("2003-12-25", 24 * 400 * 3, "h")
    names = tuple(PERIODS)
    found = compute_features(calendar, positions, names)
    assert (found.min(axis=0) == 0).all()
    assert found.max(axis=0).tolist() == [PERIODS[name] - 1 if name != "minute" else 0 for name in names]


def test_positions_of_any_shape_and_order_give_a_row_each() -> None:
    _, calendar, positions = timed("2024-01-01", 6, "D")
    found = compute_features(calendar, positions[::-1].reshape(2, 3), ("day_of_week",))
    assert found[:, 0].tolist() == [5, 4, 3, 2, 1, 0]
    assert compute_features(calendar, positions, ()).shape == (6, 0)


def test_on_a_circle_the_last_lies_beside_the_first_and_flags_stay() -> None:
    sine, cosine = encode_cyclic(np.array([0.0, 3.0, 9.0]), "month")
    np.testing.assert_allclose(sine, [0, 1, -1], atol=1e-15)
    np.testing.assert_allclose(cosine, [1, 0, 0], atol=1e-15)
    for name in FLAGS:
        (kept,) = encode_cyclic(np.array([0.0, 1.0]), name)
        assert kept.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("freq", "wanted"),
    [
        ("h", ("hour", "day_of_week", "month")),
        ("15min", ("minute", "hour", "day_of_week", "month")),
        ("12h", ("hour", "day_of_week", "month")),
        ("D", ("day_of_week", "day_of_month", "month")),
        ("B", ("day_of_week", "day_of_month", "month")),
        ("W-MON", ("week",)),
        ("MS", ("month",)),
        ("BME", ("month",)),
        ("QS-JAN", ("quarter",)),
        ("YS-JAN", ()),
        ("BYE-DEC", ()),
    ],
)
def test_auto_takes_what_says_something_at_the_frequency(freq: str, wanted: tuple[str, ...]) -> None:
    _, calendar, _ = timed("2024-01-01", 4, freq)
    assert default_features(calendar) == validate_features("auto", calendar) == wanted


def test_names_that_are_none_and_dates_that_are_none_are_refused() -> None:
    _, calendar, _ = timed("2024-01-01", 4, "D")
    assert validate_features(["month", "week"], calendar) == ("month", "week")
    assert validate_features(None, calendar) == ()
    with pytest.raises(ParameterError, match=r"`calendar` must be .* a list of .*business_day.*, got weekday"):
        validate_features(["month", "weekday"], calendar)
    counted = make_calendar(parse_frequency(1), TimeType(""), np.array([0, 1]))
    assert validate_features("auto", counted) == ()
    with pytest.raises(ParameterError, match=r"cannot be used with integer time, got month\. Set calendar=None"):
        validate_features(["month"], counted)


def test_a_feature_named_twice_is_refused() -> None:
    _, calendar, _ = timed("2024-01-01", 4, "D")
    with pytest.raises(ParameterError, match=r"cannot contain a feature more than once, got duplicates of month"):
        validate_features(["month", "week", "month"], calendar)


@pytest.mark.parametrize("wrong", ["", "XX", "DE-ZZ", "-BY", "list_supported_countries", "__class__", "Germany"])
def test_what_is_no_country_is_refused(wrong: str) -> None:
    pytest.importorskip("holidays", reason="the package holidays is not installed")
    _, calendar, _ = timed("2024-01-01", 4, "D")
    with pytest.raises(ParameterError, match=rf"the code of a country .*'DE-BY'.*, got {wrong or 'an empty string'}\."):
        validate_country(wrong, calendar)
    assert [validate_country(one, calendar) for one in (None, "DE", "US-CA")] == [None, "DE", "US-CA"]


def test_holidays_of_integer_time_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"`holidays` cannot be used with integer time\. Set holidays=None"):
        validate_country("DE", make_calendar(parse_frequency(1), TimeType(""), np.array([0, 1])))


def test_a_part_of_a_country_has_more_holidays() -> None:
    pytest.importorskip("holidays", reason="the package holidays is not installed")
    _, calendar, positions = timed("2024-01-05", 3, "D")
    assert holiday_features(calendar, positions, "DE")[0].tolist() == [0, 0, 0]
    assert holiday_features(calendar, positions, "DE-BY")[0].tolist() == [0, 1, 0]  # Epiphany


def test_holidays_of_a_country_and_the_days_to_the_nearest() -> None:
    pytest.importorskip("holidays", reason="the package holidays is not installed")
    index, calendar, positions = timed("2023-12-20", 24, "D", "Europe/Berlin")
    flags, away = holiday_features(calendar, positions, "DE")
    assert index[flags == 1].strftime("%m-%d").tolist() == ["12-25", "12-26", "01-01"]
    wanted = {"12-20": 5, "12-24": 1, "12-25": 0, "12-29": 3, "12-31": 1, "01-01": 0, "01-08": 7, "01-12": 7}
    found = dict(zip(index.strftime("%m-%d"), away, strict=True))
    assert {day: found[day] for day in wanted} == wanted


def test_a_holiday_is_that_of_the_local_day() -> None:
    pytest.importorskip("holidays", reason="the package holidays is not installed")
    index, calendar, positions = timed("2024-10-02 12:00", 48, "h", "Europe/Berlin")
    flags, _ = holiday_features(calendar, positions, "DE")
    assert (flags == (index.strftime("%m-%d") == "10-03")).all()
    _, before, places = timed("1952-12-31", 2, "D")
    assert holiday_features(before, places, "US")[0].tolist() == [0, 1]


def test_holidays_of_every_day_of_some_years_are_those_of_the_package() -> None:
    holidays = pytest.importorskip("holidays", reason="the package holidays is not installed")
    index, calendar, positions = timed("2019-11-01", 800, "D")
    theirs = holidays.country_holidays("US", years=range(2018, 2024))
    flags, away = holiday_features(calendar, positions, "US")
    assert flags.tolist() == [float(day in theirs) for day in index.date]
    days = pd.to_datetime(sorted(theirs)).to_numpy()
    nearest = np.abs(index.to_numpy()[:, None] - days).min(axis=1) / np.timedelta64(1, "D")
    np.testing.assert_array_equal(away, np.minimum(nearest, 7))


def test_an_unknown_country_and_a_package_that_is_not_there_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    _, calendar, positions = timed("2024-01-01", 4, "D")
    monkeypatch.setitem(sys.modules, "holidays", None)
    with pytest.raises(DependencyError, match="pip install holidays"):
        holiday_features(calendar, positions, "DE")
    monkeypatch.undo()
    pytest.importorskip("holidays", reason="the package holidays is not installed")
    with pytest.raises(ParameterError, match=r"`holidays` must be the code of a country .*'DE', 'US'\) .*, got Atlantis"):
        holiday_features(calendar, positions, "Atlantis")
