"""Calendars: inference of the frequency, and conversion of timestamps to integer positions and back.

A *position* counts base periods: time units for ticks and integers, grid points (weeks, months,
business days ...) otherwise. Consecutive rows of a series are `step` positions apart, so all time
arithmetic is int64 arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.frequency import (
    GRIDS,
    MONTHS,
    OFF_GRID,
    POLARS_BASES,
    TICKS,
    WEEKDAYS,
    Frequency,
    point_days,
    point_numbers,
    tick_frequency,
)
from deepforecast.data.key_columns import TimeType, integer_dtype
from deepforecast.errors import DataError

PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000, "D": 1}  # time units per day
MAX_INT64 = np.iinfo(np.int64).max
UTC = (None, "UTC")  # time zones whose local time is that of the timestamps
MIN_ROWS_TO_REDUCE = 10_000  # rows from which repeated timestamps are converted only once
# every 97th row is sampled to detect repetition; a prime, unlikely to divide the length of series
SAMPLE_STEP = 97
MONTHLY = ("MS", "ME", "BMS", "BME")
MIN_SHARE = 0.5  # minimum share of consecutive rows that are one step apart
# up to this share of timestamps off the grid, they are errors rather than the grid
MAX_OFF_GRID_SHARE = 0.1


class Calendar(NamedTuple):
    """The time axis of a panel: frequency, time type and step between rows."""

    frequency: Frequency
    time: TimeType
    step: int
    # time units from local midnight to the timestamps of daily and longer periods
    time_of_day: int = 0

    @property
    def freq(self) -> str:
        """The canonical alias, or the integer as text."""
        return str(self.frequency)

    @property
    def counts_local_time(self) -> bool:
        """Whether steps are counted in local time: daily and longer periods in a time zone."""
        is_absolute = self.frequency.base in TICKS and self.frequency.base != "D"
        return self.time.tz not in UTC and not is_absolute

    def positions(self, timestamps: Ints) -> Ints:
        """Positions of int64 timestamps; `OFF_GRID` for timestamps that are not points of the calendar grid.

        Ticks and integer time have no grid: positions are the timestamps, in local time for days in a time zone.
        """
        has_grid = self.frequency.base in GRIDS
        if not has_grid and not self.counts_local_time:
            return timestamps
        local, rows = unique_times(timestamps)
        if self.counts_local_time:
            local = nominal_local_time(local, self.time, self.time_of_day)
        if has_grid:
            day = PER_DAY[self.time.unit]
            days = local // day  # not divmod: this division is vectorised
            local = np.where(days * day + self.time_of_day == local, point_numbers(self.frequency, days), OFF_GRID)
        return np.asarray(local[rows])

    def timestamps(self, positions: Ints) -> Ints:
        """int64 timestamps of positions, the inverse of `positions`; raises `DataError` on overflow."""
        local = positions
        if self.frequency.base in GRIDS:
            day = PER_DAY[self.time.unit]
            days = point_days(self.frequency, positions)
            if days.size and int(np.abs(days).max()) >= MAX_INT64 // day:
                raise self._overflow_error()
            local = days * day + self.time_of_day
        if self.time.tz is None or not self.counts_local_time:
            return local
        try:
            return to_absolute(local, self.time)
        except (OverflowError, ValueError):  # pandas raises OutOfBoundsDatetime, a ValueError
            raise self._overflow_error() from None

    def next_positions(self, last: Ints, horizon: int) -> Ints:
        """Positions of the `horizon` steps after each of `last`, shape (len(last), horizon); raises on overflow."""
        # positions on grids are small numbers; `timestamps` checks the overflow when it converts them
        if self.frequency.base not in GRIDS and len(last):
            max_position = MAX_INT64 if self.time.unit else int(np.iinfo(integer_dtype(self.time)).max)
            if int(last.max()) + self.step * horizon > max_position:
                raise self._overflow_error()
        return last[:, None] + self.step * np.arange(1, horizon + 1)

    def format(self, position: int) -> str:
        """A position as text for messages."""
        return format_timestamp(int(self.timestamps(np.array([position]))[0]), self.time)

    def _overflow_error(self) -> DataError:
        """The error for a horizon that ends after the largest timestamp of the dtype."""
        suggestion = "a coarser unit, e.g. datetime64[s]" if self.time.unit else "a larger integer type"
        return DataError(
            "The timestamps of a forecast must fit the dtype of the time column; the horizon ends "
            f"after the largest timestamp of {self.time.dtype}.",
            hint=f"Use a shorter horizon, or convert the column to {suggestion}.",
        )


def make_calendar(frequency: Frequency, time: TimeType, examples: Ints | int, name: str = "ds") -> Calendar:
    """Create the calendar of a frequency and a time type.

    `examples` are the first timestamps of a series; they determine the anchor of weeks, months,
    quarters and years and the time of day. `name` is the name of the time column, for messages.
    """
    calendar = Calendar(frequency, time, frequency.n)
    if bool(frequency.base) != bool(time.unit):
        rule = f"match the time column {name}: an integer for integer time, an alias such as 'D' for dates"
        raise _mismatch_error(rule, calendar, hint="Pass a matching freq, or convert the column.")
    if not time.unit:
        return calendar
    day = PER_DAY[time.unit]
    if frequency.base not in TICKS or (time.tz is not None and calendar.counts_local_time):
        local = to_local(np.atleast_1d(examples), time)
        frequency = _resolve_alignment(frequency, int(local[0]) // day)
        # a timestamp in a daylight saving gap is later in its day, hence min
        calendar = Calendar(frequency, time, frequency.n, int((local % day).min()))
    if frequency.base in GRIDS:
        return calendar
    step, remainder = divmod(frequency.n * TICKS[frequency.base] * day, TICKS["D"])
    if remainder:
        rule = f"be a whole multiple of the unit of the time column {name}"
        raise _mismatch_error(rule, calendar, hint="Convert the column to a finer unit, or pass a longer freq.")
    return calendar._replace(step=step)


def _mismatch_error(rule: str, calendar: Calendar, hint: str) -> DataError:
    """The error for a frequency that does not fit the type of the time column."""
    return DataError(
        f"`freq` must {rule}, got freq={calendar.freq!r} for dtype {calendar.time.dtype}.",
        hint=hint,
        parameter="freq",
        problem="frequency",
    )


def unique_times(timestamps: Ints) -> tuple[Ints, Any]:
    """Unique timestamps, in order of appearance, and the index of each row into them.

    If few timestamps repeat, all timestamps and `...` are returned, which selects all rows.
    """
    sample = timestamps[::SAMPLE_STEP]
    if len(timestamps) < MIN_ROWS_TO_REDUCE or 2 * len(np.unique(sample)) > len(sample):
        return timestamps, ...
    import pandas as pd

    rows, unique = pd.factorize(timestamps)
    return unique, rows


def nominal_local_time(timestamps: Ints, time: TimeType, time_of_day: int) -> Ints:
    """Local time, without the shift by a daylight saving gap (01:00 if there is no 00:00)."""
    local = to_local(timestamps, time)
    day = PER_DAY[time.unit]
    off_time = np.flatnonzero(local % day != time_of_day)
    if len(off_time):
        nominal = local[off_time] - (local[off_time] - time_of_day) % day
        # the nominal time was skipped if it is later than the local time one unit before
        is_skipped = nominal > to_local(timestamps[off_time] - 1, time)
        local[off_time[is_skipped]] = nominal[is_skipped]
    return local


def to_local(timestamps: Ints, time: TimeType) -> Ints:
    """Convert UTC to local time, as a new array; timestamps without a time zone are returned as they are."""
    if time.tz in UTC:
        return timestamps
    return np.array(_in_time_zone(timestamps, time).tz_localize(None).asi8)


def to_absolute(local: Ints, time: TimeType) -> Ints:
    """Convert local time to UTC.

    Ambiguous times are the first occurrence, nonexistent ones are shifted forward.
    """
    import pandas as pd

    index = pd.DatetimeIndex(local.reshape(-1).view(f"M8[{time.unit}]"))
    index = index.tz_localize(time.tz, ambiguous=np.ones(len(index), dtype=bool), nonexistent="shift_forward")
    return np.asarray(index.asi8).reshape(local.shape)


def _in_time_zone(timestamps: Ints, time: TimeType) -> Any:
    """UTC timestamps as a pandas index in their time zone."""
    import pandas as pd

    return pd.DatetimeIndex(timestamps.view(f"M8[{time.unit}]")).tz_localize("UTC").tz_convert(time.tz)


def format_timestamp(timestamp: int, time: TimeType) -> str:
    """A timestamp as text, without the time at midnight, with the offset of its time zone."""
    if not time.unit:
        return str(timestamp)
    if time.tz not in UTC:
        return str(_in_time_zone(np.array([timestamp]), time)[0])
    text = str(np.int64(timestamp).view(f"M8[{time.unit}]")).replace("T", " ")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.removesuffix(" 00:00:00")


def _resolve_alignment(frequency: Frequency, day: int) -> Frequency:
    """Anchor polars' weeks, months, quarters and years so that `day` is on the grid, at the start or end of a month."""
    if frequency.base not in POLARS_BASES:
        return frequency
    if frequency.base == "w":
        return frequency._replace(base="W", anchor=WEEKDAYS[(day + 3) % 7])  # day 0 was a Thursday
    date = str(np.int64(day).view("M8[D]"))
    side = "S" if date[-2:] == "01" else "E"
    anchor = "" if frequency.base == "mo" else MONTHS[int(date[-5:-3]) - 1]
    return frequency._replace(base=f"{frequency.base[0].upper()}{side}", anchor=anchor)


@dataclass(frozen=True)
class Timestamps:
    """Unique timestamps of rows.

    `local_time` is their local time in units of the time column (positions for integer time),
    `index` the index of each row into them, `per_day` the number of units per day.
    """

    local_time: Ints
    index: Ints
    per_day: int

    @property
    def days(self) -> Floats:
        """Fractional days since 1970 of the unique timestamps; positions for integer time."""
        day_numbers = self.whole_days
        return day_numbers + (self.local_time - day_numbers * self.per_day) / self.per_day

    @property
    def whole_days(self) -> Ints:
        """Days since 1970 of the unique timestamps."""
        return self.local_time // self.per_day

    @property
    def local_time_of_rows(self) -> Ints:
        """Local time of each row."""
        return self.local_time[self.index]


def timestamps_at(calendar: Calendar, positions: Ints) -> Timestamps:
    """The timestamps of positions, flattened."""
    unique_positions, rows = unique_times(np.ascontiguousarray(positions.reshape(-1)))
    local_time = to_local(calendar.timestamps(unique_positions), calendar.time)
    return Timestamps(local_time, np.arange(positions.size)[rows], PER_DAY.get(calendar.time.unit, 1))


def infer_frequency(timestamps: Ints, indptr: Ints, time: TimeType) -> Frequency | None:
    """Infer the frequency of the sorted timestamps of a ragged panel.

    Returns None if less than half of the rows are one step after the previous one. Daily data
    without weekends are business-daily. Gaps in daily, hourly ... data do not change the step.
    """
    if len(timestamps) < len(indptr):
        return None  # no series has two rows
    gaps = np.diff(timestamps)
    # replace the gaps between series by one within the longest series
    gaps[indptr[1:-1] - 1] = gaps[indptr[np.argmax(np.diff(indptr))]]
    step, day = int(gaps.min()), PER_DAY.get(time.unit, 0)
    if step <= 0:
        return None
    is_even = step == int(gaps.max())
    regular = None  # the frequency of steps of constant length
    has_zone = time.tz not in UTC
    if not day or step % day or has_zone or (is_even and step < 7 * day):
        if is_even or Neighbours(indptr).share(gaps, step) >= MIN_SHARE:
            regular = tick_frequency(step * (TICKS["D"] // day)) if day else Frequency(step)
        if not has_zone or (regular is not None and regular.base != "D"):
            return regular
    del gaps  # to save memory
    unique, rows = unique_times(timestamps)
    neighbours = Neighbours(indptr, rows)
    if has_zone:  # local midnights are 23 or 25 hours apart twice a year
        unique = nominal_local_time(unique, time, int((to_local(timestamps[:2], time) % day).min()))
    days = unique // day
    time_of_day = unique - days * day
    if (time_of_day != time_of_day[0]).any() and neighbours.gaps(time_of_day).any():
        # whole days in absolute time only
        return None if regular is None else Frequency(24 * regular.n, "h")
    return _infer_daily(days, neighbours)


def may_be_business_days(frequency: Frequency, timestamps: Ints, indptr: Ints, time: TimeType) -> bool:
    """Whether the frequency is daily and each series is within one Monday to Friday, so possibly business-daily."""
    if frequency != Frequency(1, "D"):
        return False
    days = to_local(timestamps, time) // PER_DAY[time.unit]
    weekday = (days + 3) % 7  # day 0 was a Thursday
    monday = days - weekday
    return bool((weekday < 5).all() and (monday == np.repeat(monday[indptr[:-1]], np.diff(indptr))).all())


def find_off_grid(timestamps: Ints, indptr: Ints, time: TimeType) -> tuple[Frequency, Ints] | None:
    """If `infer_frequency` fails: the frequency of nearly all timestamps and the rows off its grid.

    Returns None if these are more than a share of MAX_OFF_GRID_SHARE.
    """
    day = PER_DAY.get(time.unit, 0)
    time_of_day = _most_frequent(to_local(timestamps, time) % day) if day else 0
    for find_rows in (_rows_off_steps, _rows_off_months):
        rows = find_rows(timestamps, indptr, time, time_of_day)
        if 0 < len(rows) <= MAX_OFF_GRID_SHARE * len(timestamps):
            on_grid = np.ones(len(timestamps), dtype=bool)
            on_grid[rows] = False
            frequency = infer_frequency(timestamps[on_grid], np.unique(np.append(0, np.cumsum(on_grid))[indptr]), time)
            if frequency is not None:
                return frequency, rows
    return None


def _rows_off_steps(timestamps: Ints, indptr: Ints, time: TimeType, time_of_day: int) -> Ints:
    """The rows off the grid of their series, for steps of constant length."""
    gaps = np.delete(np.diff(timestamps), indptr[1:-1] - 1)
    step = _most_frequent(gaps) if len(gaps) else 0
    if step <= 0 or np.count_nonzero(gaps == step) < MIN_SHARE * len(gaps):
        return timestamps[:0]
    # the same local time, not every 24 hours
    if time.tz not in UTC and step % PER_DAY[time.unit] == 0:
        timestamps = nominal_local_time(timestamps, time, time_of_day)
    phase, begin = timestamps % step, indptr[:-1]
    mixed = np.flatnonzero(np.minimum.reduceat(phase, begin) != np.maximum.reduceat(phase, begin))
    usual_phase = phase[begin]
    usual_phase[mixed] = [_most_frequent(phase[indptr[number] : indptr[number + 1]]) for number in mixed]
    return np.flatnonzero(phase != np.repeat(usual_phase, np.diff(indptr)))


def _rows_off_months(timestamps: Ints, indptr: Ints, time: TimeType, time_of_day: int) -> Ints:
    """The rows that are not on the first or last (business) day of a month: the fewest of the four grids."""
    if not time.unit:
        return timestamps[:0]
    calendars = (Calendar(Frequency(1, base), time, 1, time_of_day) for base in MONTHLY)
    return min((np.flatnonzero(calendar.positions(timestamps) == OFF_GRID) for calendar in calendars), key=len)


def _most_frequent(values: Ints) -> int:
    unique_values, counts = np.unique(values, return_counts=True)
    return int(unique_values[np.argmax(counts)])


@dataclass(frozen=True)
class Neighbours:
    """The pairs of consecutive rows within the series of a ragged panel, of which at least one has two rows.

    `rows` is the index of each row into unique values.
    """

    indptr: Ints
    rows: Any = ...

    def gaps(self, values: Ints) -> Ints:
        """Differences of consecutive rows.

        Differences between two series are replaced by a gap within the longest series.
        """
        gaps: Ints = np.diff(values[self.rows])
        gaps[self.indptr[1:-1] - 1] = gaps[self.indptr[np.argmax(np.diff(self.indptr))]]
        return gaps

    def share(self, gaps: Ints, step: int) -> float:
        """The share of gaps of one step; 0 if any gap is not a whole number of steps."""
        is_one_step = gaps == step
        is_one_step[self.indptr[1:-1] - 1] = False
        share = np.count_nonzero(is_one_step) / (len(gaps) - len(self.indptr) + 2)
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
    for base in MONTHLY:
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
