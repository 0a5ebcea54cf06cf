"""Integer arithmetic on calendar grids: weeks, months, quarters, years and business days.

Point 0 of a grid is the first at or after 1970-01-01 (business days: 1969-12-29, custom ones: after
0001-01-01).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data.frequency import MONTHS, PER_WEEK, PER_YEAR, WEEKDAYS, Frequency

if TYPE_CHECKING:
    from deepforecast.data.frames import Ints

GRIDS = frozenset(PER_YEAR) | frozenset(PER_WEEK) - {"D"}  # bases with grid points; the others have a constant step
OFF_GRID = np.iinfo(np.int64).min  # number of a day that is not a grid point
CUSTOM_START = -719_162  # 0001-01-01, so that business days are only counted forward
MONTHS_BETWEEN_POINTS = {"M": 1, "Q": 3, "Y": 12}


def point_numbers(frequency: Frequency, days: Ints) -> Ints:
    """Grid point numbers of days (since 1970-01-01).

    Days that are not grid points have the number `OFF_GRID`.
    """
    if frequency.base == "W":
        days_since_anchor = days - _weekday_shift(frequency)
        return np.where(days_since_anchor % 7 == 0, days_since_anchor // 7, OFF_GRID)
    if frequency.base in PER_WEEK:
        return _business_numbers(frequency, days)
    between, first = _months(frequency)
    months = days.view("M8[D]").astype("M8[M]").view(np.int64)
    numbers = (months - first) // between
    return np.where(_day_in_month(frequency, numbers * between + first) == days, numbers, OFF_GRID)


def point_days(frequency: Frequency, numbers: Ints) -> Ints:
    """Days (since 1970-01-01) of grid points, the inverse of `point_numbers`."""
    if frequency.base == "W":
        return numbers * 7 + _weekday_shift(frequency)
    if frequency.base in PER_WEEK:
        if frequency.offset is None:
            return numbers // 5 * 7 + numbers % 5 - 3  # the inverse of `_business_numbers`
        start = np.datetime64(CUSTOM_START, "D")
        return _as_days(np.busday_offset(start, numbers, roll="forward", busdaycal=frequency.offset.calendar))
    between, first = _months(frequency)
    return _day_in_month(frequency, numbers * between + first)


def _business_numbers(frequency: Frequency, days: Ints) -> Ints:
    """Numbers of business days: counted from Monday 1969-12-29, custom ones from 0001-01-01."""
    if frequency.offset is None:
        weekday = (days + 3) % 7  # 1970-01-01 was a Thursday
        return np.where(weekday < 5, (days + 3) // 7 * 5 + weekday, OFF_GRID)
    dates, calendar = days.view("M8[D]"), frequency.offset.calendar
    numbers = np.busday_count(np.datetime64(CUSTOM_START, "D"), dates, busdaycal=calendar)
    return np.where(np.is_busday(dates, busdaycal=calendar), numbers, OFF_GRID)


def _weekday_shift(frequency: Frequency) -> int:
    """The first day at or after 1970-01-01, a Thursday (3), on the weekday of the anchor."""
    return (WEEKDAYS.index(frequency.anchor) - 3) % 7


def _months(frequency: Frequency) -> tuple[int, int]:
    """Months between grid points, and the month of point 0 since January 1970."""
    between = MONTHS_BETWEEN_POINTS[frequency.base[-2]]
    return between, MONTHS.index(frequency.anchor) % between if frequency.anchor else 0


def _day_in_month(frequency: Frequency, months: Ints) -> Ints:
    """The first or last (business) day of months since January 1970."""
    at_start = frequency.base.endswith("S")
    months = months if at_start else months + 1
    day = _as_days(months.view("M8[M]")) - (0 if at_start else 1)
    if len(frequency.base) == 2:  # "MS", "ME": calendar days, not business days
        return day
    if frequency.offset is not None:
        roll: Any = "forward" if at_start else "backward"
        return _as_days(np.busday_offset(day.view("M8[D]"), 0, roll=roll, busdaycal=frequency.offset.calendar))
    weekday = (day + 3) % 7
    return day + np.where(weekday > 4, 7 - weekday if at_start else 4 - weekday, 0)


def _as_days(dates: Any) -> Ints:
    return np.asarray(dates).astype("M8[D]").view(np.int64)
