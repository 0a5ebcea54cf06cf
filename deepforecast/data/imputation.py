"""Imputation of missing values."""

from __future__ import annotations

import numpy as np

from deepforecast.data.frames import Floats, Ints

METHODS = ("interpolate", "ffill", "zero")


def fill_missing(y: Floats, indptr: Ints, method: str) -> Floats:
    """Return a copy of `y` with missing values filled, series by series.

    Values before the first observation take the first one. "ffill" repeats the last observation,
    "interpolate" is linear in time (constant after the last observation), "zero" fills 0. A series
    without observations stays missing, except for "zero".

    Examples
    --------
    >>> fill_missing(np.array([np.nan, 1.0, np.nan, 3.0]), np.array([0, 4]), "interpolate")
    array([1., 1., 2., 3.])
    """
    missing = np.isnan(y)
    if method == "zero":
        return np.where(missing, 0.0, y)
    rows = np.arange(len(y))
    previous, following = _nearest_observed(missing, indptr)
    previous, following = np.where(previous >= 0, previous, following), np.where(following >= 0, following, previous)
    # series without observations: rows refer to themselves and stay missing
    previous, following = np.where(previous >= 0, previous, rows), np.where(following >= 0, following, rows)
    if method == "ffill":
        return y[previous]
    weight = (rows - previous) / np.maximum(following - previous, 1)
    # in this form the result is exact for constant series
    return np.where(missing, y[previous] + weight * (y[following] - y[previous]), y)


def _nearest_observed(missing: np.ndarray, indptr: Ints) -> tuple[Ints, Ints]:
    """The nearest observed row of the series at or before and at or after each row.

    The index is -1 if there is none.
    """
    rows = np.arange(len(missing))
    lengths = np.diff(indptr)
    first, end = np.repeat(indptr[:-1], lengths), np.repeat(indptr[1:], lengths)
    previous = np.maximum.accumulate(np.where(missing, -1, rows))
    following = np.minimum.accumulate(np.where(missing, len(missing), rows)[::-1])[::-1]
    return np.where(previous >= first, previous, -1), np.where(following < end, following, -1)
