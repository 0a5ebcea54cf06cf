"""Time stamps to whole-number positions and back, for every frequency.

A *position* counts base periods: raw units for ticks and integers, grid points (months, business days ...) otherwise.
Two neighbours of a series are `step` positions apart, so all arithmetic on time is arithmetic on int64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.frames import Ints, TimeType, integer_dtype
from deepforecast.data.frequency import LIES, TICKS, WEEKDAYS, Frequency
from deepforecast.errors import DataError, shown

PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000, "D": 1}
OFF_GRID = np.iinfo(np.int64).min
LARGEST = np.iinfo(np.int64).max
EPOCH = 4  # 1970-01-01 was a Thursday: weekday 3, so (day + 3) % 7 is the weekday counted from Monday
MANY = 100_000  # rows from which repeated stamps are converted once
GRID_MARGIN = 800  # days added on either side of a grid so that its ends are whole periods


@dataclass(frozen=True)
class Calendar:
    """How one panel counts time."""

    frequency: Frequency
    time: TimeType
    step: int
    time_of_day: int = 0  # raw units after midnight at which the points of a grid lie

    @property
    def freq(self) -> str:
        """The canonical alias, or the integer as text."""
        return str(self.frequency)

    @property
    def on_grid(self) -> bool:
        """Positions are points of a calendar grid (months, business days) rather than raw units."""
        return bool(self.frequency.base) and self.frequency.base not in TICKS and self.frequency.base != "W"

    @property
    def wall(self) -> bool:
        """Steps are counted in local time: days and longer where there is a time zone."""
        return _steps_in_wall_time(self.frequency, self.time)

    def positions(self, raw: Ints) -> Ints:
        """Positions of raw stamps; `OFF_GRID` where a stamp is no point of the calendar."""
        if self.on_grid and len(raw) > MANY:
            import pandas as pd

            codes, few = pd.factorize(raw)  # the stamps of a panel repeat from series to series
            return self.positions(few)[codes] if len(few) <= MANY else self._positions(raw)
        return self._positions(raw)

    def _positions(self, raw: Ints) -> Ints:
        local = to_local(raw, self.time) if self.wall else raw
        if not self.on_grid:
            if self.frequency.base == "W":
                days = local // PER_DAY[self.time.unit]
                return np.where((days + 3) % 7 == WEEKDAYS.index(self.frequency.anchor), local, OFF_GRID)
            return local
        days = local // PER_DAY[self.time.unit]  # not divmod: this division is vectorised
        rest = local - days * PER_DAY[self.time.unit]
        low, high = (int(days.min()), int(days.max())) if len(days) else (0, 0)
        table = grid(self.frequency, low, high)
        found = table.number_of(days)
        return found if not (rest != self.time_of_day).any() else np.where(rest == self.time_of_day, found, OFF_GRID)

    def stamps(self, positions: Ints) -> Ints:
        """Raw stamps of positions."""
        if not self.on_grid:
            local = positions
        else:
            days = grid_days(self.frequency, positions)
            limit = LARGEST // PER_DAY[self.time.unit]
            if len(days) and int(np.abs(days).max()) >= limit:
                raise self._too_late()
            local = days * PER_DAY[self.time.unit] + self.time_of_day
        return to_absolute(local, self.time) if self.wall else local

    def following(self, last: Ints, horizon: int) -> Ints:
        """Positions of the `horizon` steps after each of `last`, shape (len(last), horizon)."""
        if len(last) and not self.on_grid:
            furthest = int(last.max()) + self.step * horizon
            most = np.iinfo(integer_dtype(self.time)).max if not self.time.unit else LARGEST
            if furthest > most:
                raise self._too_late()
        return last[:, None] + self.step * np.arange(1, horizon + 1)

    def text(self, position: int) -> str:
        """A position as it is written in messages."""
        return stamp_text(int(self.stamps(np.array([position]))[0]), self.time)

    def _too_late(self) -> DataError:
        return DataError(
            f"The forecast must fit the time type; with dtype {self.time.dtype} the horizon runs past the last representable "
            "stamp. Shorten the horizon or convert the time column to a coarser unit, e.g. .astype('datetime64[s]')."
        )


def make(frequency: Frequency, time: TimeType, example: int) -> Calendar:
    """The calendar of a frequency for a time type; `example` is a raw stamp, which tells where in its period a stamp lies."""
    if bool(frequency.base) != bool(time.unit):
        raise DataError(
            f"freq and time column ds belong together: integers take an integer freq, dates an offset alias; "
            f"got freq {str(frequency)!r} for a column of dtype {time.dtype}."
        )
    if not time.unit:
        return Calendar(frequency, time, frequency.n)
    local = int(to_local(np.array([example]), time)[0]) if _steps_in_wall_time(frequency, time) else example
    day, rest = divmod(local, PER_DAY[time.unit])
    if frequency.base in LIES:
        start = int(str(np.datetime64(day, "D"))[8:]) == 1
        aliases = {"mo": ("MS", "ME"), "q": ("QS-JAN", "QE-DEC"), "y": ("YS-JAN", "YE-DEC")}[frequency.base]
        base, _, anchor = aliases[0 if start else 1].partition("-")
        frequency = replace(frequency, base=base, anchor=anchor)
    if frequency.base == "W":
        return Calendar(frequency, time, 7 * frequency.n * PER_DAY[time.unit])
    if frequency.base in TICKS:
        step = frequency.n * TICKS[frequency.base] * PER_DAY[time.unit]
        if step % TICKS["D"]:
            raise DataError(f"freq {str(frequency)!r} is finer than the time column's unit ({time.dtype}). Use a finer unit.")
        return Calendar(frequency, time, step // TICKS["D"])
    return Calendar(frequency, time, frequency.n, rest)


def to_local(raw: Ints, time: TimeType) -> Ints:
    """Absolute time to the local wall clock's."""
    index = _index(raw, time).tz_localize("UTC").tz_convert(time.tz).tz_localize(None)
    return np.asarray(index.as_unit(time.unit).to_numpy()).view(np.int64)


def to_absolute(local: Ints, time: TimeType) -> Ints:
    """The wall clock's time to absolute time; an hour that occurs twice is its first, one that does not exist moves on."""
    index = _index(local.reshape(-1), time)
    index = index.tz_localize(time.tz, ambiguous=np.ones(len(index), dtype=bool), nonexistent="shift_forward")
    raw = index.tz_convert("UTC").tz_localize(None).as_unit(time.unit).to_numpy()
    return np.asarray(raw).view(np.int64).reshape(local.shape)


def stamp_text(raw: int, time: TimeType) -> str:
    """A raw stamp as a user writes it: without a time of day at midnight, with the offset where there is a time zone."""
    if not time.unit:
        return str(raw)
    if time.tz is not None and time.tz != "UTC":
        return str(_index(np.array([raw]), time).tz_localize("UTC").tz_convert(time.tz)[0])
    text = str(np.datetime64(raw, time.unit)).replace("T", " ")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.removesuffix(" 00:00:00")


def _index(raw: Ints, time: TimeType) -> Any:
    import pandas as pd

    return pd.DatetimeIndex(raw.view(f"M8[{time.unit}]"))


def _steps_in_wall_time(frequency: Frequency, time: TimeType) -> bool:
    absolute = frequency.base in TICKS and frequency.base != "D"
    return bool(frequency.base) and not absolute and time.tz is not None and time.tz != "UTC"


@dataclass(frozen=True)
class Grid:
    """The points of a calendar as day numbers; `first` is the number of the first of them."""

    days: Ints
    first: int
    lookup: NDArray[np.int32]

    def number_of(self, days: Ints) -> Ints:
        found = self.lookup[days - self.days[0]]
        return np.where(found < 0, OFF_GRID, found + np.int64(self.first))


def grid(frequency: Frequency, low: int, high: int) -> Grid:
    """The grid that covers the days from `low` to `high`, numbered from the first point after 1970-01-01."""
    decade = 3653  # round outwards: few different grids are ever built, whatever the panels
    return _grid(frequency.alias, frequency.offset, low // decade * decade, (high // decade + 1) * decade)


def grid_days(frequency: Frequency, numbers: Ints) -> Ints:
    """Day numbers of grid points."""
    if not numbers.size:
        return numbers
    span = {"B": 1.5, "C": 2}.get(frequency.base, 32 if "M" in frequency.base else 93 if "Q" in frequency.base else 367)
    margin = {"C": 400}.get(frequency.base, 10)
    low, high = int(numbers.min()), int(numbers.max())
    if max(abs(low), abs(high)) * span > 3e6:
        raise DataError(f"The forecast runs {shown(high)} periods of {frequency} away from 1970: beyond any calendar. Shorten the horizon.")
    table = grid(frequency, int(min(low, 0) * span) - margin, int(max(high, 0) * span) + margin)
    while table.first + len(table.days) <= high:  # long runs of holidays stretch a custom calendar
        table = grid(frequency, int(table.days[0]) + 1, int(table.days[-1]) + 3653)
    return table.days[numbers - table.first]


@lru_cache(maxsize=64)
def _grid(alias: str, offset: Any, low: int, high: int) -> Grid:
    import pandas as pd
    from pandas.tseries.frequencies import to_offset

    step = to_offset(alias) if offset is None else offset
    margin = GRID_MARGIN
    ends = [str(np.datetime64(day, "D")) for day in (min(low, 0) - margin, max(high, 0) + margin)]
    index = pd.date_range(pd.Timestamp(ends[0]).as_unit("s"), pd.Timestamp(ends[1]).as_unit("s"), freq=step, unit="s")
    days = np.asarray(index.to_numpy()).astype("M8[D]").view(np.int64)
    lookup = np.full(int(days[-1] - days[0]) + 1, -1, dtype=np.int32)
    lookup[days - days[0]] = np.arange(len(days), dtype=np.int32)
    return Grid(days, -int(np.searchsorted(days, 0)), lookup)
