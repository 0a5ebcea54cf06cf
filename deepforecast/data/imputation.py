"""Filling what is missing, inside the rows given and nowhere else, so that nothing crosses a cutoff."""

from __future__ import annotations

import numpy as np

from deepforecast.data.frames import Floats, Ints

METHODS = ("interpolate", "ffill", "zero")


def fill_missing(y: Floats, indptr: Ints, method: str) -> Floats:
    """A copy of `y` without missing values. Before the first and (interpolate) after the last value of a series that value
    holds; a series without any value stays missing.

    >>> fill_missing(np.array([np.nan, 1.0, np.nan, 3.0]), np.array([0, 4]), "interpolate")
    array([1., 1., 2., 3.])
    """
    missing = np.isnan(y)
    if method == "zero":
        return np.where(missing, 0.0, y)
    rows = np.arange(len(y))
    previous, following = _nearest_observed(missing, indptr)
    previous, following = np.where(previous >= 0, previous, following), np.where(following >= 0, following, previous)
    previous, following = np.where(previous >= 0, previous, rows), np.where(following >= 0, following, rows)  # nothing there: it stays missing
    if method == "ffill":
        return y[previous]
    weight = (rows - previous) / np.maximum(following - previous, 1)
    return np.where(missing, y[previous] + weight * (y[following] - y[previous]), y)  # in this form a constant stays one


def _nearest_observed(missing: np.ndarray, indptr: Ints) -> tuple[Ints, Ints]:
    """The nearest row with a value at or before and at or after each row within its series; -1 where there is none."""
    rows = np.arange(len(missing))
    lengths = np.diff(indptr)
    first, end = np.repeat(indptr[:-1], lengths), np.repeat(indptr[1:], lengths)
    previous = np.maximum.accumulate(np.where(missing, -1, rows))
    following = np.minimum.accumulate(np.where(missing, len(missing), rows)[::-1])[::-1]
    return np.where(previous >= first, previous, -1), np.where(following < end, following, -1)
