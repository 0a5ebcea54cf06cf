"""What parts that follow from time alone are at each stamp: waves of seasons, days of holidays, windows of events."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.holiday_days import days_of
from deepforecast.data.parts import HOLIDAY, REGRESSOR, SEASON, Part, Parts
from deepforecast.data.stamps import Stamps


def table(parts: Parts, stamps: Stamps, country: str | None) -> dict[str, Floats]:
    """The columns (stamps, columns) of each part that follows from time alone, at the few stamps there are."""
    return {one.name: _columns(one, stamps, country) for one in parts if one.kind != REGRESSOR}


def _columns(part: Part, stamps: Stamps, country: str | None) -> Floats:
    if part.kind == SEASON:
        return np.stack(list(_waves(stamps.days, part.period, part.order)), axis=-1)
    if part.kind == HOLIDAY:
        return _holidays(part, stamps, str(country))
    return np.stack(list(_windows(part, stamps.whole_days)), axis=-1)


def _waves(days: Floats, period: float, order: int) -> Iterator[Floats]:
    for number in range(1, order + 1):
        angle = 2.0 * np.pi * (number / period) * days
        yield np.sin(angle)
        yield np.cos(angle)


def _windows(part: Part, days: Ints) -> Iterator[Floats]:
    """A column for each day of the window of an event."""
    for offset in range(part.lower, part.upper + 1):
        yield np.isin(days, np.array(part.days, dtype=np.int64) + offset).astype(np.float64)


def _holidays(part: Part, stamps: Stamps, country: str) -> Floats:
    days = stamps.whole_days
    found = days_of(country, int(days.min()), int(days.max())) if len(days) else {}
    return np.stack([np.isin(days, found.get(name, [])).astype(np.float64) for name in part.names], axis=-1)
