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


def read_stamps(table: nw.DataFrame[Any], name: str, what: str) -> tuple[Ints, TimeType]:
    """A time column without missing stamps, as integers and how they came."""
    if table[name].null_count():
        row = int(np.flatnonzero(table[name].is_null().to_numpy())[0])
        raise DataError(f"Column {name} of the {what} has no missing stamps; there is one in row {row}. Drop or repair it.")
    return frames.read_timestamps(table[name], name)


def finer_unit(one: TimeType, other: TimeType, what: str) -> str:
    """The unit that holds stamps of both columns; `DataError` where they are of different kinds."""
    if bool(one.unit) != bool(other.unit) or (one.tz is None) != (other.tz is None):
        raise DataError(
            f"The times of {what} are of one kind, both integers or both dates, with a time zone or without; "
            f"got {one.dtype} and {other.dtype}. Convert one of them."
        )
    return max(one.unit, other.unit, key=lambda unit: PER_DAY.get(unit, 0))


def in_unit(raw: Ints, time: TimeType, unit: str) -> Ints:
    """Stamps in a unit at least as fine as their own."""
    if time.unit == unit:
        return raw
    factor = PER_DAY[unit] // PER_DAY[time.unit]
    if len(raw) and max(abs(int(raw.min())), abs(int(raw.max()))) > MAX_INT64 // factor:
        raise DataError(f"Stamps of dtype {time.dtype} do not fit into the unit {unit!r} of the other column. Convert one.")
    return raw * factor


def positions(raw: Ints, time: TimeType, calendar: Calendar, where: Callable[[int], str]) -> Ints:
    """Stamps counted on the calendar of another frame; one that is no point of it is refused, as `where` writes it."""
    unit = finer_unit(time, calendar.time, "the forecasts and of the train frame")
    fine = in_unit(raw, time, unit)
    factor = PER_DAY[unit] // PER_DAY[calendar.time.unit] if unit else 1
    own = fine if factor == 1 else fine // factor
    found = calendar.positions(own)
    off = np.flatnonzero((found == OFF_GRID) | (own * factor != fine))
    if len(off):
        raise DataError(
            f"Every stamp lies on the grid of freq {calendar.freq!r}; that of {where(int(off[0]))} does not ({len(off)} stamps "
            "in all). Give the right freq, or repair the stamps."
        )
    return found
