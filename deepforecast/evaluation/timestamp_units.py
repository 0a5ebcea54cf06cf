"""Time columns of several frames on one clock, so that their stamps can be compared and counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import frames
from deepforecast.data.calendar import MAX_INT64, OFF_GRID, PER_DAY, Calendar
from deepforecast.data.frames import Ints, TimeType
from deepforecast.errors import DataError


def read_time_column(table: nw.DataFrame[Any], name: str, what: str) -> tuple[Ints, TimeType]:
    """A time column without missing stamps, as integers and how they came."""
    if table[name].null_count():
        row = int(np.flatnonzero(table[name].is_null().to_numpy())[0])
        raise DataError(f"Column {name} of the {what} has no missing stamps; there is one in row {row}. Drop or repair it.")
    return frames.read_timestamps(table[name], name)


def finer_unit(first: TimeType, second: TimeType, what: str) -> str:
    """The unit that holds stamps of both columns; `DataError` where they are of different kinds."""
    if bool(first.unit) != bool(second.unit) or (first.tz is None) != (second.tz is None):
        raise DataError(
            f"The times of {what} are of one kind, both integers or both dates, with a time zone or without; "
            f"got {first.dtype} and {second.dtype}. Convert one of them."
        )
    return max(first.unit, second.unit, key=lambda unit: PER_DAY.get(unit, 0))


def convert_unit(timestamps: Ints, time: TimeType, unit: str) -> Ints:
    """Stamps in a unit at least as fine as their own."""
    if time.unit == unit:
        return timestamps
    factor = PER_DAY[unit] // PER_DAY[time.unit]
    if len(timestamps) and max(abs(int(timestamps.min())), abs(int(timestamps.max()))) > MAX_INT64 // factor:
        raise DataError(f"Stamps of dtype {time.dtype} do not fit into the unit {unit!r} of the other column. Convert one.")
    return timestamps * factor


def calendar_positions(timestamps: Ints, time: TimeType, calendar: Calendar, describe_row: Callable[[int], str]) -> Ints:
    """Stamps counted on the calendar of another frame; one that is no point of it is refused, as `describe_row` writes it."""
    unit = finer_unit(time, calendar.time, "the forecasts and of the train frame")
    converted = convert_unit(timestamps, time, unit)
    factor = PER_DAY[unit] // PER_DAY[calendar.time.unit] if unit else 1
    calendar_times = converted if factor == 1 else converted // factor
    calendar_index = calendar.positions(calendar_times)
    off_grid = np.flatnonzero((calendar_index == OFF_GRID) | (calendar_times * factor != converted))
    if len(off_grid):
        raise DataError(
            f"Every stamp lies on the grid of freq {calendar.freq!r}; that of {describe_row(int(off_grid[0]))} does not ({len(off_grid)} stamps "
            "in all). Give the right freq, or repair the stamps."
        )
    return calendar_index
