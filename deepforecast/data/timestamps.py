"""Unique timestamps in local time, and the index of each row into them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepforecast.data.calendar import PER_DAY, Calendar, to_local, unique_times
from deepforecast.data.frames import Floats, Ints


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
    flat = np.ascontiguousarray(positions.reshape(-1))
    unique_positions, position_index = unique_times(flat)
    row_index = np.arange(len(flat)) if position_index is Ellipsis else np.asarray(position_index)
    local_time = np.asarray(calendar.timestamps(np.asarray(unique_positions)))
    if calendar.time.tz not in (None, "UTC"):
        local_time = to_local(local_time, calendar.time)
    return Timestamps(local_time, row_index, PER_DAY.get(calendar.time.unit, 1))
