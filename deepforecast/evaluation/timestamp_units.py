"""Conversion of the time columns of several frames to a common unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import key_columns
from deepforecast.data.calendar import MAX_INT64, PER_DAY, Calendar
from deepforecast.data.frames import Ints
from deepforecast.data.frequency import OFF_GRID
from deepforecast.data.key_columns import TimeType
from deepforecast.errors import DataError


def read_time_column(table: nw.DataFrame[Any], name: str, what: str) -> tuple[Ints, TimeType]:
    """A time column as integers and their type; missing values raise `DataError`, in which `what` names
    the frame."""
    if table[name].null_count():
        row = int(np.flatnonzero(table[name].is_null().to_numpy())[0])
        raise DataError(
            f"Column {name} of the {what} cannot have missing timestamps, but data row {row} has one.",
            hint="Drop the row or correct it.",
        )
    return key_columns.read_timestamps(table[name], name)


def finer_unit(first: TimeType, second: TimeType, what: str) -> str:
    """The finer of two units; `DataError` if the columns are of different kinds."""
    if bool(first.unit) != bool(second.unit) or (first.tz is None) != (second.tz is None):
        raise DataError(
            f"The times of {what} must be of the same kind: integers, timestamps, or timestamps with a time zone; got "
            f"{first.dtype} and {second.dtype}.",
            hint="Convert one of them.",
        )
    return max(first.unit, second.unit, key=lambda unit: PER_DAY.get(unit, 0))


def convert_unit(timestamps: Ints, time: TimeType, unit: str) -> Ints:
    """Convert timestamps to a unit that is at least as fine."""
    if time.unit == unit:
        return timestamps
    factor = PER_DAY[unit] // PER_DAY[time.unit]
    if len(timestamps) and max(abs(int(timestamps.min())), abs(int(timestamps.max()))) > MAX_INT64 // factor:
        raise DataError(
            f"Timestamps of dtype {time.dtype} cannot be converted to the unit {unit!r} of the other time column, because they "
            "exceed its range.",
            hint="Convert the other column to a coarser unit.",
        )
    return timestamps * factor


def calendar_positions(timestamps: Ints, time: TimeType, calendar: Calendar, describe_row: Callable[[int], str]) -> Ints:
    """Positions of timestamps on the calendar of another frame; `DataError` if one is not on its
    grid, in which `describe_row` names the row."""
    unit = finer_unit(time, calendar.time, "the forecasts and of the train frame")
    converted = convert_unit(timestamps, time, unit)
    factor = PER_DAY[unit] // PER_DAY[calendar.time.unit] if unit else 1
    calendar_times = converted if factor == 1 else converted // factor
    calendar_index = calendar.positions(calendar_times)
    off_grid = np.flatnonzero((calendar_index == OFF_GRID) | (calendar_times * factor != converted))
    if len(off_grid):
        raise DataError(
            f"Every timestamp must be on the grid of freq={calendar.freq!r}; that of {describe_row(int(off_grid[0]))} is not "
            f"({len(off_grid)} such timestamps).",
            hint="Pass the correct `freq`, or correct the timestamps.",
        )
    return calendar_index
