"""Distances between timestamps, in calendar units."""

from __future__ import annotations

import numpy as np

from deepforecast.plotting.chart import Array

DAY = np.timedelta64(1, "D").astype("m8[us]").astype(np.int64)
UNITS = (("days", DAY), ("hours", DAY // 24), ("minutes", DAY // 1440), ("seconds", DAY // 86_400), ("microseconds", 1))


def distance_back(time: Array, lag: Array) -> tuple[Array, str]:
    """Integer distances and their unit: the largest in which all are whole, up to months.

    >>> months = np.array(["2024-01-31", "2024-02-29", "2024-03-31"], dtype="M8[us]")
    >>> distance_back(months[[2, 2]], months[[0, 1]])
    (array([2, 1]), 'months')
    >>> distance_back(np.array([7, 8]), np.array([5, 5]))
    (array([2, 3]), '')
    """
    if time.dtype.kind != "M":
        return np.asarray(time - lag), ""
    unique_stamps = np.unique(np.concatenate([time, lag]))
    shortest_step = int(np.diff(unique_stamps).astype(np.int64).min()) if len(unique_stamps) > 1 else DAY
    if shortest_step >= 27 * DAY:
        months = time.astype("M8[M]").astype(np.int64) - lag.astype("M8[M]").astype(np.int64)
        return (months // 12, "years") if shortest_step > 360 * DAY else (months, "months")
    distance = (time - lag).astype(np.int64)
    if shortest_step >= 23 * DAY // 24:  # days of 23 or 25 hours, when DST begins or ends, count as one day
        return np.rint(distance / DAY).astype(np.int64), "days"
    return next((distance // size, name) for name, size in UNITS[1:] if not (distance % size).any())
