"""Changepoints as they are given: dates, or integers where time is counted in these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepforecast.core.kinds import is_a
from deepforecast.data.frames import Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, shown
from deepforecast.models.additive._declared import stamp

UNITS = {86_400: "s", 86_400_000: "ms", 86_400_000_000: "us", 86_400_000_000_000: "ns"}


def said(given: Sequence[Any], per_day: int) -> Ints:
    """Changepoints in units of the clock, sorted. One day a day is integer time or that of dates."""
    return np.array(sorted({_clock(one, per_day) for one in given}), dtype=np.int64)


def refuse_outside(given: Sequence[Any], panel: Panel, start: Ints, end: Ints, per_day: int) -> None:
    """Changepoints lie within the history of every series."""
    found = said(given, per_day)
    if not len(found):
        return
    outside = np.flatnonzero((start > found[0]) | (end < found[-1]))
    if len(outside):
        raise ParameterError(
            f"changepoints= lie within the history of every series; that of series {panel.series.labels(outside)} does not "
            f"reach from the first, {shown(min(map(str, given)))}, to the last, {shown(max(map(str, given)))}. Leave those "
            "outside out, or say n_changepoints=."
        )


def checked(given: Sequence[Any], integer: bool) -> None:
    """Each is a date, or an integer where time is counted in integers."""
    for one in given:
        try:
            if integer != is_a(one, int) or (not integer and np.isnat(stamp(one, "s"))):
                raise ValueError
        except (ValueError, OverflowError):
            wanted = "integers, as time is counted in integers" if integer else "dates such as '2024-12-24'"
            raise ParameterError(f"changepoints= is a list of {wanted}; it holds {shown(one)}.") from None


def _clock(one: Any, per_day: int) -> int:
    if is_a(one, int):
        return int(one)
    return int(stamp(one, UNITS.get(per_day, "D")).astype(np.int64))
