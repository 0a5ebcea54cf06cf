"""Where a line breaks because rows are absent: between two stamps further apart than one step of their series."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepforecast.data.calendar import OFF_GRID, Calendar, make_calendar
from deepforecast.data.datetimes import TimeType
from deepforecast.data.frequency_inference import infer
from deepforecast.plotting.chart import Array

FAR = 1.5  # usual steps from which two stamps have a hole between them, where no calendar counts them


@dataclass(frozen=True)
class Steps:
    """The step from stamp to stamp of a series: that of its calendar (business days know no weekend), or the median."""

    calendar: Calendar | None
    usual: float

    @classmethod
    def of(cls, stamps: Array, zone: str | None) -> Steps:
        """Learned from the sorted stamps of the series."""
        raw = _raw(stamps)
        if len(raw) < 2:
            return cls(None, np.inf)
        time = TimeType("us", zone, "datetime64[us]") if stamps.dtype.kind == "M" else TimeType("", None, "int64")
        frequency = infer(raw, np.array([0, len(raw)]), time)
        calendar = None if frequency is None else make_calendar(frequency, time, raw)
        return cls(calendar, float(np.median(np.diff(raw))))

    def holes(self, stamps: Array) -> Array:
        """The positions of the sorted stamps that a hole lies before."""
        raw = _raw(stamps)
        far = np.diff(raw) > FAR * self.usual
        if self.calendar is not None:
            at = self.calendar.positions(raw)
            counted = (at[1:] != OFF_GRID) & (at[:-1] != OFF_GRID)
            far = np.where(counted, np.diff(at) > self.calendar.step, far)
        return np.flatnonzero(far) + 1


def broken(stamps: Array, values: Array, holes: Array) -> tuple[Array, Array]:
    """Both with a missing value at each hole, so that no line is drawn over it."""
    return np.insert(stamps, holes, stamps[holes - 1]), np.insert(values, holes, np.nan)


def _raw(stamps: Array) -> Array:
    return stamps.astype(np.int64)
