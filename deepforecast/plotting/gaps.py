"""Gaps in time: consecutive timestamps more than one step of their series apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepforecast.data.calendar import Calendar, infer_frequency, make_calendar
from deepforecast.data.frequency import OFF_GRID
from deepforecast.data.key_columns import TimeType
from deepforecast.plotting.chart import Array

GAP_FACTOR = 1.5  # without a calendar, timestamps further apart than this many median steps have a gap between them


@dataclass(frozen=True)
class TimeSteps:
    """Time step of a series: by its calendar (e.g. business days), or the median difference."""

    calendar: Calendar | None
    median_step: float

    @classmethod
    def from_timestamps(cls, stamps: Array, zone: str | None) -> TimeSteps:
        """Infer the step from sorted timestamps."""
        raw = _to_integers(stamps)
        if len(raw) < 2:
            return cls(None, np.inf)
        time = TimeType("us", zone, "datetime64[us]") if stamps.dtype.kind == "M" else TimeType("", None, "int64")
        frequency = infer_frequency(raw, np.array([0, len(raw)]), time)
        calendar = None if frequency is None else make_calendar(frequency, time, raw)
        return cls(calendar, float(np.median(np.diff(raw))))

    def find_gaps(self, stamps: Array) -> Array:
        """Positions of sorted timestamps that follow a gap."""
        raw = _to_integers(stamps)
        is_gap = np.diff(raw) > GAP_FACTOR * self.median_step
        if self.calendar is not None:
            positions = self.calendar.positions(raw)
            is_on_grid = (positions[1:] != OFF_GRID) & (positions[:-1] != OFF_GRID)
            is_gap = np.where(is_on_grid, np.diff(positions) > self.calendar.step, is_gap)
        return np.flatnonzero(is_gap) + 1


def insert_breaks(stamps: Array, values: Array, gaps: Array) -> tuple[Array, Array]:
    """Insert NaN at each gap, where the line is interrupted."""
    return np.insert(stamps, gaps, stamps[gaps - 1]), np.insert(values, gaps, np.nan)


def _to_integers(stamps: Array) -> Array:
    return stamps.astype(np.int64)
