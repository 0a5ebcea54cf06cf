"""Conversion of timestamps to integer positions and back, for every frequency.

A *position* counts base periods: time units for ticks and integers, grid points (weeks, months,
business days ...) otherwise. Consecutive rows of a series are `step` positions apart, so all time
arithmetic is int64 arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deepforecast.data.calendar_grids import GRIDS, point_days, point_numbers
from deepforecast.data.calendar_grids import OFF_GRID as OFF_GRID
from deepforecast.data.datetimes import TimeType, integer_dtype
from deepforecast.data.frequency import MONTHS, POLARS_BASES, TICKS, WEEKDAYS, Frequency
from deepforecast.errors import DataError

if TYPE_CHECKING:
    from deepforecast.data.frames import Ints

PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000, "D": 1}  # time units per day
MAX_INT64 = np.iinfo(np.int64).max
MIN_ROWS_TO_REDUCE = 10_000  # rows from which repeated timestamps are converted only once
# every 97th row is sampled to detect repetition; a prime, unlikely to divide the length of series
SAMPLE_STEP = 97


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
        return is_local_frequency(self.frequency, self.time)

    def positions(self, timestamps: Ints) -> Ints:
        """Positions of int64 timestamps; `OFF_GRID` for timestamps that are not points of the calendar grid.

        Ticks and integer time have no grid: positions are the timestamps, in local time for days in a time zone.
        """
        has_grid = self.frequency.base in GRIDS
        uses_local_time = self.time.tz is not None and self.counts_local_time
        if not has_grid and not uses_local_time:
            return timestamps
        unique, rows = unique_times(timestamps)
        local = nominal_local_time(unique, self.time, self.time_of_day) if uses_local_time else unique
        if not has_grid:
            return np.asarray(local[rows])
        day = PER_DAY[self.time.unit]
        days = local // day  # not divmod: this division is vectorised
        positions = np.where(days * day + self.time_of_day == local, point_numbers(self.frequency, days), OFF_GRID)
        return np.asarray(positions[rows])

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
            f"after the largest timestamp of {self.time.dtype}. Use a shorter horizon, or convert "
            f"the column to {suggestion}."
        )


def make_calendar(frequency: Frequency, time: TimeType, examples: Ints | int, name: str = "ds") -> Calendar:
    """Create the calendar of a frequency and a time type.

    `examples` are the first timestamps of a series; they determine the anchor of weeks, months,
    quarters and years and the time of day. `name` is the name of the time column, for messages.
    """
    if bool(frequency.base) != bool(time.unit):
        raise DataError(
            f"`freq` must match the time column {name}: an integer for integer time, an alias such "
            f"as 'D' for dates, got freq={str(frequency)!r} for dtype {time.dtype}. Pass a "
            "matching freq, or convert the column."
        )
    if not time.unit:
        return Calendar(frequency, time, frequency.n)
    day, time_of_day = PER_DAY[time.unit], 0
    if frequency.base not in TICKS or (time.tz is not None and is_local_frequency(frequency, time)):
        local = np.atleast_1d(examples)
        local = to_local(local, time) if is_local_frequency(frequency, time) else local
        frequency = _resolve_alignment(frequency, int(local[0]) // day)
        # a timestamp in a daylight saving gap is later in its day, hence min
        time_of_day = int((local % day).min())
    if frequency.base in GRIDS:
        return Calendar(frequency, time, frequency.n, time_of_day)
    step, remainder = divmod(frequency.n * TICKS[frequency.base] * day, TICKS["D"])
    if remainder:
        raise DataError(
            f"`freq` must be a whole multiple of the unit of the time column {name}, got "
            f"freq={str(frequency)!r} for dtype {time.dtype}, which is coarser. Convert the column "
            "to a finer unit, or pass a longer freq."
        )
    return Calendar(frequency, time, step, time_of_day)


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


def is_local_frequency(frequency: Frequency, time: TimeType) -> bool:
    """Whether steps are in local time: daily and longer periods in a zone other than UTC."""
    absolute = frequency.base in TICKS and frequency.base != "D"
    return bool(frequency.base) and not absolute and time.tz not in (None, "UTC")


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
    """Convert UTC to local time, as a new array."""
    index = _datetime_index(timestamps, time).tz_localize("UTC").tz_convert(time.tz).tz_localize(None)
    return np.array(index.as_unit(time.unit).asi8)


def to_absolute(local: Ints, time: TimeType) -> Ints:
    """Convert local time to UTC.

    Ambiguous times are the first occurrence, nonexistent ones are shifted forward.
    """
    index = _datetime_index(local.reshape(-1), time)
    index = index.tz_localize(time.tz, ambiguous=np.ones(len(index), dtype=bool), nonexistent="shift_forward")
    return np.asarray(index.as_unit(time.unit).asi8).reshape(local.shape)


def format_timestamp(timestamp: int, time: TimeType) -> str:
    """A timestamp as text, without the time at midnight, with the offset of its time zone."""
    if not time.unit:
        return str(timestamp)
    if time.tz is not None and time.tz != "UTC":
        return str(_datetime_index(np.array([timestamp]), time).tz_localize("UTC").tz_convert(time.tz)[0])
    text = str(np.int64(timestamp).view(f"M8[{time.unit}]")).replace("T", " ")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.removesuffix(" 00:00:00")


def _datetime_index(timestamps: Ints, time: TimeType) -> Any:
    import pandas as pd

    return pd.DatetimeIndex(timestamps.view(f"M8[{time.unit}]"))


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
