"""Time stamps to whole-number positions and back, for every frequency.

A *position* counts base periods: raw units for ticks and integers, grid points (weeks, months, business days ...) otherwise.
Two neighbours of a series are `step` positions apart, so all arithmetic on time is arithmetic on int64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deepforecast.data.frequency import LIES, MONTHS, TICKS, WEEKDAYS, Frequency
from deepforecast.data.grids import GRIDS, point_days, point_numbers
from deepforecast.data.grids import OFF_GRID as OFF_GRID
from deepforecast.data.times import TimeType, integer_dtype
from deepforecast.errors import DataError

if TYPE_CHECKING:
    from deepforecast.data.frames import Ints

PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000, "D": 1}
LARGEST = np.iinfo(np.int64).max
MANY = 10_000  # rows below which it does not matter that stamps repeat
SAMPLED = 97  # one row in so many is looked at to see whether they do; a prime, to go round the lengths of series


class Calendar(NamedTuple):
    """How one panel counts time."""

    frequency: Frequency
    time: TimeType
    step: int
    time_of_day: int = 0  # raw units after local midnight at which days and longer periods are stamped

    @property
    def freq(self) -> str:
        """The canonical alias, or the integer as text."""
        return str(self.frequency)

    @property
    def wall(self) -> bool:
        """Steps are counted in local time: days and longer where there is a time zone."""
        return counts_local(self.frequency, self.time)

    def positions(self, raw: Ints) -> Ints:
        """Positions of raw stamps; `OFF_GRID` where a stamp is no point of the calendar."""
        on_grid, wall = self.frequency.base in GRIDS, self.time.tz is not None and self.wall
        if not on_grid and not wall:
            return raw
        few, rows = distinct(raw)
        local = local_clock(few, self.time, self.time_of_day) if wall else few
        if not on_grid:
            return np.asarray(local[rows])
        day = PER_DAY[self.time.unit]
        days = local // day  # not divmod: this division is vectorised
        found = np.where(days * day + self.time_of_day == local, point_numbers(self.frequency, days), OFF_GRID)
        return np.asarray(found[rows])

    def stamps(self, positions: Ints) -> Ints:
        """Raw stamps of positions."""
        local = positions
        if self.frequency.base in GRIDS:
            day = PER_DAY[self.time.unit]
            days = point_days(self.frequency, positions)
            if days.size and int(np.abs(days).max()) >= LARGEST // day:
                raise self._too_late()
            local = days * day + self.time_of_day
        if self.time.tz is None or not self.wall:
            return local
        try:
            return absolute_clock(local, self.time)
        except (OverflowError, ValueError):  # pandas says OutOfBoundsDatetime, a ValueError
            raise self._too_late() from None

    def following(self, last: Ints, horizon: int) -> Ints:
        """Positions of the `horizon` steps after each of `last`, shape (len(last), horizon)."""
        if self.frequency.base not in GRIDS and len(last):
            most = LARGEST if self.time.unit else int(np.iinfo(integer_dtype(self.time)).max)
            if int(last.max()) + self.step * horizon > most:
                raise self._too_late()
        return last[:, None] + self.step * np.arange(1, horizon + 1)

    def text(self, position: int) -> str:
        """A position as it is written in messages."""
        return stamp_text(int(self.stamps(np.array([position]))[0]), self.time)

    def _too_late(self) -> DataError:
        wider = "a coarser unit, e.g. datetime64[s]" if self.time.unit else "a larger integer type"
        return DataError(
            f"The stamps of a forecast fit the type of the time column; with dtype {self.time.dtype} the horizon runs past "
            f"its last one. Shorten the horizon, or convert the column to {wider}."
        )


def make(frequency: Frequency, time: TimeType, examples: Ints | int, name: str = "ds") -> Calendar:
    """The calendar of a frequency for a time type; `examples` are a few stamps of one series, the first first, which tell where
    in its period a stamp lies. `name` is the time column's, for messages."""
    if bool(frequency.base) != bool(time.unit):
        raise DataError(
            f"freq and the time column {name} belong together: integers take an integer freq, dates an alias such as 'D'; "
            f"got freq {str(frequency)!r} for a column of dtype {time.dtype}. Give the freq that fits, or convert the "
            "column."
        )
    if not time.unit:
        return Calendar(frequency, time, frequency.n)
    day, time_of_day = PER_DAY[time.unit], 0
    if frequency.base not in TICKS or (time.tz is not None and counts_local(frequency, time)):
        local = np.atleast_1d(examples)
        local = to_local(local, time) if counts_local(frequency, time) else local
        frequency = _as_they_lie(frequency, int(local[0]) // day)
        time_of_day = int((local % day).min())  # where clocks went forward over it, a stamp stands later in its day
    if frequency.base in GRIDS:
        return Calendar(frequency, time, frequency.n, time_of_day)
    step, lost = divmod(frequency.n * TICKS[frequency.base] * day, TICKS["D"])
    if lost:
        raise DataError(
            f"A step of time is a whole number of the units of column {name}; freq {str(frequency)!r} is finer than its dtype "
            f"{time.dtype}. Use a finer unit, or a longer freq."
        )
    return Calendar(frequency, time, step, time_of_day)


def distinct(raw: Ints) -> tuple[Ints, Any]:
    """Stamps of a panel repeat from series to series: each once, and which one each row has; all where they hardly do."""
    sample = raw[::SAMPLED]
    if len(raw) < MANY or 2 * len(np.unique(sample)) > len(sample):
        return raw, ...
    import pandas as pd

    rows, few = pd.factorize(raw)
    return few, rows


def counts_local(frequency: Frequency, time: TimeType) -> bool:
    """Days and longer step in local time where there is a time zone, ticks below in absolute time."""
    absolute = frequency.base in TICKS and frequency.base != "D"
    return bool(frequency.base) and not absolute and time.tz not in (None, "UTC")


def local_clock(raw: Ints, time: TimeType, time_of_day: int) -> Ints:
    """The wall clock's time; a stamp that clocks went over to (no 00:00 that day, so 01:00) counts as the one left out."""
    local = to_local(raw, time)
    day = PER_DAY[time.unit]
    odd = np.flatnonzero(local % day != time_of_day)
    if len(odd):
        wanted = local[odd] - (local[odd] - time_of_day) % day
        left_out = wanted > to_local(raw[odd] - 1, time)
        local[odd[left_out]] = wanted[left_out]
    return local


def to_local(raw: Ints, time: TimeType) -> Ints:
    """Absolute time to what the wall clock shows, a new array."""
    index = _index(raw, time).tz_localize("UTC").tz_convert(time.tz).tz_localize(None)
    return np.array(index.as_unit(time.unit).asi8)


def absolute_clock(local: Ints, time: TimeType) -> Ints:
    """The wall clock's time to absolute time; an hour that occurs twice is its first, one that does not exist moves on."""
    index = _index(local.reshape(-1), time)
    index = index.tz_localize(time.tz, ambiguous=np.ones(len(index), dtype=bool), nonexistent="shift_forward")
    return np.asarray(index.as_unit(time.unit).asi8).reshape(local.shape)


def stamp_text(raw: int, time: TimeType) -> str:
    """A raw stamp as a user writes it: without a time of day at midnight, with the offset where there is a time zone."""
    if not time.unit:
        return str(raw)
    if time.tz is not None and time.tz != "UTC":
        return str(_index(np.array([raw]), time).tz_localize("UTC").tz_convert(time.tz)[0])
    text = str(np.int64(raw).view(f"M8[{time.unit}]")).replace("T", " ")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.removesuffix(" 00:00:00")


def _index(raw: Ints, time: TimeType) -> Any:
    import pandas as pd

    return pd.DatetimeIndex(raw.view(f"M8[{time.unit}]"))


def _as_they_lie(frequency: Frequency, day: int) -> Frequency:
    """Weeks, months, quarters and years as polars names them, begun or ended where this day lies."""
    if frequency.base not in LIES:
        return frequency
    if frequency.base == "w":
        return frequency._replace(base="W", anchor=WEEKDAYS[(day + 3) % 7])
    date = str(np.int64(day).view("M8[D]"))
    side = "S" if date[-2:] == "01" else "E"
    anchor = "" if frequency.base == "mo" else MONTHS[int(date[-5:-3]) - 1]
    return frequency._replace(base=f"{frequency.base[0].upper()}{side}", anchor=anchor)
