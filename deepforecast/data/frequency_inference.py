"""Inference of the frequency from the timestamps of all series."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data.calendar import PER_DAY, nominal_local_time, to_local, unique_times
from deepforecast.data.calendar_grids import OFF_GRID, point_numbers
from deepforecast.data.frequency import MONTHS, TICKS, WEEKDAYS, Frequency, tick_frequency

if TYPE_CHECKING:
    from deepforecast.data.datetimes import TimeType
    from deepforecast.data.frames import Ints

MIN_SHARE = 0.5  # minimum share of consecutive rows that are one step apart
# up to this share of timestamps off the grid, they are errors rather than the grid
MAX_OFF_GRID_SHARE = 0.1


def infer(timestamps: Ints, indptr: Ints, time: TimeType) -> Frequency | None:
    """Infer the frequency of the sorted timestamps of a ragged panel.

    Returns None if less than half of the rows are one step after the previous one. Daily data
    without weekends are business-daily. Gaps in daily, hourly ... data do not change the step.
    """
    if len(timestamps) < len(indptr):
        return None  # no series has two rows
    gaps = np.diff(timestamps)
    # replace the gaps between series by one within the longest series
    gaps[indptr[1:-1] - 1] = gaps[indptr[np.argmax(np.diff(indptr))]]
    step, largest_gap = int(gaps.min()), int(gaps.max())
    del gaps  # to save memory
    if step <= 0:
        return None
    if not time.unit and step == largest_gap:
        return Frequency(step)
    if time.unit and step == largest_gap and time.tz in (None, "UTC"):
        nanoseconds = step * (TICKS["D"] // PER_DAY[time.unit])
        if nanoseconds < 7 * TICKS["D"]:
            return tick_frequency(nanoseconds)
    return _infer_uneven(timestamps, indptr, time, step)


def may_be_business_days(frequency: Frequency, timestamps: Ints, indptr: Ints, time: TimeType) -> bool:
    """Whether the frequency is daily and each series is within one Monday to Friday, so possibly business-daily."""
    if frequency != Frequency(1, "D"):
        return False
    days = (timestamps if time.tz in (None, "UTC") else to_local(timestamps, time)) // PER_DAY[time.unit]
    weekday = (days + 3) % 7  # day 0 was a Thursday
    monday = days - weekday
    return bool((weekday < 5).all() and (monday == np.repeat(monday[indptr[:-1]], np.diff(indptr))).all())


def find_off_grid(timestamps: Ints, indptr: Ints, time: TimeType) -> tuple[Frequency, Ints] | None:
    """If `infer` fails: the frequency of nearly all timestamps and the rows off its grid.

    Returns None if these are more than a share of MAX_OFF_GRID_SHARE.
    """
    for find_rows in (_rows_off_steps, _rows_off_months):
        rows = find_rows(timestamps, indptr, time)
        if 0 < len(rows) <= MAX_OFF_GRID_SHARE * len(timestamps):
            on_grid = np.ones(len(timestamps), dtype=bool)
            on_grid[rows] = False
            frequency = infer(timestamps[on_grid], np.unique(np.append(0, np.cumsum(on_grid))[indptr]), time)
            if frequency is not None:
                return frequency, rows
    return None


def _rows_off_steps(timestamps: Ints, indptr: Ints, time: TimeType) -> Ints:
    """The rows off the grid of their series, for steps of constant length."""
    gaps = np.delete(np.diff(timestamps), indptr[1:-1] - 1)
    step, n_gaps_of_step = _most_frequent(gaps) if len(gaps) else (0, 0)
    if step <= 0 or n_gaps_of_step < MIN_SHARE * len(gaps):
        return timestamps[:0]
    # the same local time, not every 24 hours
    if time.tz not in (None, "UTC") and step % PER_DAY[time.unit] == 0:
        timestamps = nominal_local_time(timestamps, time, _most_frequent(to_local(timestamps, time) % PER_DAY[time.unit])[0])
    phase, begin = timestamps % step, indptr[:-1]
    mixed = np.flatnonzero(np.minimum.reduceat(phase, begin) != np.maximum.reduceat(phase, begin))
    rows = [_rows_off_phase(phase, int(indptr[number]), int(indptr[number + 1])) for number in mixed]
    return np.concatenate([timestamps[:0], *rows])


def _rows_off_months(timestamps: Ints, indptr: Ints, time: TimeType) -> Ints:
    """The rows that are not on the first or last (business) day of a month: the fewest of the four grids."""
    day = PER_DAY.get(time.unit, 0)
    if not day:
        return timestamps[:0]
    local = timestamps if time.tz in (None, "UTC") else to_local(timestamps, time)
    days, clock = local // day, local % day
    bases = (point_numbers(Frequency(1, base), days) == OFF_GRID for base in ("MS", "ME", "BMS", "BME"))
    return min((np.flatnonzero(is_off | (clock != _most_frequent(clock)[0])) for is_off in bases), key=len)


def _rows_off_phase(phase: Ints, begin: int, end: int) -> Ints:
    """The rows of a series whose phase is not its most frequent one."""
    return begin + np.flatnonzero(phase[begin:end] != _most_frequent(phase[begin:end])[0])


def _most_frequent(values: Ints) -> tuple[int, int]:
    """The most frequent value and its count."""
    unique_values, counts = np.unique(values, return_counts=True)
    return int(unique_values[np.argmax(counts)]), int(counts.max())


def _infer_uneven(timestamps: Ints, indptr: Ints, time: TimeType, step: int) -> Frequency | None:
    """`infer` if gaps differ, are a week or longer, or there is a time zone; `step` is the smallest gap."""
    neighbours = Neighbours.from_indptr(indptr)
    day = PER_DAY.get(time.unit, 0)
    has_zone = time.tz not in (None, "UTC")
    regular = None
    if not day or step % day or has_zone:
        if neighbours.share(neighbours.gaps(timestamps), step) >= MIN_SHARE:
            regular = Frequency(step) if not day else tick_frequency(step * (TICKS["D"] // day))
        if not has_zone or (regular is not None and regular.base != "D"):
            return regular
    unique, rows = unique_times(timestamps)
    neighbours = replace(neighbours, rows=rows)
    if has_zone:  # local midnights are 23 or 25 hours apart twice a year
        unique = nominal_local_time(unique, time, int((to_local(timestamps[:2], time) % day).min()))
    days = unique // day
    time_of_day = unique - days * day
    if (time_of_day != time_of_day[0]).any() and neighbours.gaps(time_of_day).any():
        # whole days in absolute time only
        return None if regular is None else Frequency(24 * regular.n, "h")
    return _infer_daily(days, neighbours)


@dataclass(frozen=True)
class Neighbours:
    """The `n_pairs` pairs of consecutive rows within series: all pairs except those at `bounds`, between two series.

    `typical` is a pair within the longest series. `rows` is the index of each row into unique values.
    """

    bounds: Ints
    n_pairs: int
    typical: int
    rows: Any = ...

    @classmethod
    def from_indptr(cls, indptr: Ints) -> Neighbours:
        """Create from a panel in which at least one series has two rows."""
        return cls(indptr[1:-1] - 1, int(indptr[-1]) - len(indptr) + 1, int(indptr[np.argmax(np.diff(indptr))]))

    def gaps(self, values: Ints) -> Ints:
        """Differences of consecutive rows.

        Differences between two series are replaced by a gap within a series.
        """
        gaps: Ints = np.diff(values[self.rows])
        gaps[self.bounds] = gaps[self.typical]
        return gaps

    def share(self, gaps: Ints, step: int) -> float:
        """The share of gaps of one step; 0 if any gap is not a whole number of steps."""
        is_one_step = gaps == step
        is_one_step[self.bounds] = False
        share = np.count_nonzero(is_one_step) / self.n_pairs
        return 0.0 if share < 1 and (gaps % step).any() else share


def _infer_daily(days: Ints, neighbours: Neighbours) -> Frequency | None:
    """Days, business days, weeks or months, whichever has most rows one step apart."""
    gaps = neighbours.gaps(days)
    step = int(gaps.min())
    monthly = _infer_monthly(days, neighbours) if step >= 28 else None
    if monthly is not None:
        return monthly
    daily_share = neighbours.share(gaps, step)
    del gaps  # to save memory
    weekday = (days + 3) % 7  # day 0 was a Thursday
    if step % 7 == 0:
        is_weekly = daily_share >= MIN_SHARE and (weekday == weekday[0]).all()
        return Frequency(step // 7, "W", WEEKDAYS[weekday[0]]) if is_weekly else None
    if daily_share < 1 and (weekday < 5).all():
        gaps = neighbours.gaps(point_numbers(Frequency(1, "B"), days))
        business_step = int(gaps.min())
        if neighbours.share(gaps, business_step) >= max(MIN_SHARE, daily_share):
            return Frequency(business_step, "B")
    return Frequency(step, "D") if daily_share >= MIN_SHARE else None


def _infer_monthly(days: Ints, neighbours: Neighbours) -> Frequency | None:
    """Months, quarters or years, if all `days` are their first or last (business) days."""
    for base in ("MS", "ME", "BMS", "BME"):
        numbers = point_numbers(Frequency(1, base), days)
        if (numbers != OFF_GRID).all():
            break
    else:
        return None
    gaps = neighbours.gaps(numbers)
    step = int(gaps.min())
    if neighbours.share(gaps, step) < MIN_SHARE:
        return None
    months = numbers % 12
    if step % 12 == 0 and (months == months[0]).all():
        return Frequency(step // 12, base.replace("M", "Y"), MONTHS[months[0]])
    if step % 3 == 0 and (months % 3 == months[0] % 3).all():
        # pandas anchors quarters that start in their first month, others that end in the last month of the year
        return Frequency(step // 3, base.replace("M", "Q"), MONTHS[months[0] % 3 + (0 if base.endswith("S") else 9)])
    return Frequency(step, base)
