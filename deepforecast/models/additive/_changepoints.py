"""Validation of user-defined changepoints: dates, or integers with integer time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepforecast.core.params import is_instance
from deepforecast.data.frames import Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, format_value
from deepforecast.models.additive._declarations import to_datetime64

UNITS = {86_400: "s", 86_400_000: "ms", 86_400_000_000: "us", 86_400_000_000_000: "ns"}  # by their number per day


def read_changepoints(changepoints: Sequence[Any], per_day: int) -> Ints:
    """Changepoints as sorted integers without duplicates, in clock units since 1970 or, with integer time, unchanged.

    The clock has `per_day` units per day; 1 for dates and for integer time.
    """
    return np.array(sorted({_to_clock(changepoint, per_day) for changepoint in changepoints}), dtype=np.int64)


def refuse_outside(changepoints: Sequence[Any], panel: Panel, start: Ints, end: Ints, per_day: int) -> None:
    """Raise `ParameterError` unless all changepoints lie within the history of every series.

    `start` and `end` are the first and last time of each series, in clock units.
    """
    times = read_changepoints(changepoints, per_day)
    if not len(times):
        return
    outside = np.flatnonzero((start > times[0]) | (end < times[-1]))
    if len(outside):
        raise ParameterError(
            f"`changepoints` must lie within the history of every series, got {format_value(min(map(str, changepoints)))} to "
            f"{format_value(max(map(str, changepoints)))}, which is not covered by the history of series: "
            f"{panel.series.labels(outside)}.",
            hint="Drop the changepoints outside, or use `n_changepoints`.",
            parameter="changepoints", series=panel.series.id_texts(outside),
        )


def check_changepoints(changepoints: Sequence[Any], integer: bool) -> None:
    """Raise `ParameterError` unless all changepoints are dates or, with integer time, integers."""
    for changepoint in changepoints:
        try:
            if integer != is_instance(changepoint, int) or (not integer and np.isnat(to_datetime64(changepoint, "s"))):
                raise ValueError
        except (ValueError, OverflowError):
            expected = "an integer, as the time is" if integer else "a date such as '2024-12-24'"
            raise ParameterError(
                f"Each item of `changepoints` must be {expected}, got {format_value(changepoint)}.",
                parameter="changepoints",
            ) from None


def _to_clock(changepoint: Any, per_day: int) -> int:
    """An integer unchanged, a date as number of clock units since 1970."""
    if is_instance(changepoint, int):
        return int(changepoint)
    return int(to_datetime64(changepoint, UNITS.get(per_day, "D")).astype(np.int64))
