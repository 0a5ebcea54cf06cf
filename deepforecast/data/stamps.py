"""Rows of time by what the wall clock shows: the few stamps there are, and which of them each row has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepforecast.data.calendar import PER_DAY, Calendar, distinct, to_local
from deepforecast.data.frames import Floats, Ints


@dataclass(frozen=True)
class Stamps:
    """Rows of time: `clock` is what the wall clock shows at the few stamps there are, in units of the time column (positions,
    where time is counted in integers), `place` which of them each row has."""

    clock: Ints
    place: Ints
    per_day: int

    @property
    def days(self) -> Floats:
        """Days since 1970 of the few; positions, where time is counted in integers."""
        whole = self.whole_days
        return whole + (self.clock - whole * self.per_day) / self.per_day

    @property
    def whole_days(self) -> Ints:
        """The day of each of the few."""
        return self.clock // self.per_day

    @property
    def rows(self) -> Ints:
        """The clock at each row."""
        return self.clock[self.place]


def stamps_at(calendar: Calendar, positions: Ints) -> Stamps:
    """The stamps at positions, flat."""
    flat = np.ascontiguousarray(positions.reshape(-1))
    few, place = distinct(flat)
    where = np.arange(len(flat)) if place is Ellipsis else np.asarray(place)
    raw = np.asarray(calendar.stamps(np.asarray(few)))
    if calendar.time.tz not in (None, "UTC"):
        raw = to_local(raw, calendar.time)
    return Stamps(raw, where, PER_DAY.get(calendar.time.unit, 1))
