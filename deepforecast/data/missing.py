"""Filling what is missing, inside the rows given and nowhere else, so that nothing crosses a cutoff."""

from __future__ import annotations

import numpy as np

from deepforecast.data.frames import Floats, Ints

METHODS = ("interpolate", "ffill", "zero")


def filled(y: Floats, indptr: Ints, method: str) -> Floats:
    """A copy of `y` without missing values. Before the first and (interpolate) after the last value of a series that value
    holds; a series without any value stays missing.

    >>> filled(np.array([np.nan, 1.0, np.nan, 3.0]), np.array([0, 4]), "interpolate")
    array([1., 1., 2., 3.])
    """
    missing = np.isnan(y)
    if method == "zero":
        return np.where(missing, 0.0, y)
    rows = np.arange(len(y))
    before, after = _neighbours(missing, indptr)
    before, after = np.where(before >= 0, before, after), np.where(after >= 0, after, before)
    before, after = np.where(before >= 0, before, rows), np.where(after >= 0, after, rows)  # nothing there: it stays missing
    if method == "ffill":
        return y[before]
    share = (rows - before) / np.maximum(after - before, 1)
    return np.where(missing, y[before] + share * (y[after] - y[before]), y)  # in this form a constant stays one


def _neighbours(missing: np.ndarray, indptr: Ints) -> tuple[Ints, Ints]:
    """The nearest row with a value at or before and at or after each row within its series; -1 where there is none."""
    rows = np.arange(len(missing))
    lengths = np.diff(indptr)
    first, end = np.repeat(indptr[:-1], lengths), np.repeat(indptr[1:], lengths)
    before = np.maximum.accumulate(np.where(missing, -1, rows))
    after = np.minimum.accumulate(np.where(missing, len(missing), rows)[::-1])[::-1]
    return np.where(before >= first, before, -1), np.where(after < end, after, -1)
