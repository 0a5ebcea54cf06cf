"""What is not known of the regression of an ARIMA: generalised least squares tells the covariance of its coefficients.

Mean, drift and effects, with the errors' ARIMA given, are a linear regression: filtered as the series is, their columns have
unrelated errors, and the covariance is sigma^2 (X'X)^-1. It is held as directions, the rows of a root of (X'X)^-1: each is a
regression of its own, which errors of size sigma move the forecast along.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats
from deepforecast.models.statistical._arima_series import Order

ALONE = 1e-8  # of a column's square that has to be its own, for its effect to be told from those of others


def directions(order: Order, factors: Floats, beta: Floats, y: Floats, x: Floats) -> Floats:
    """Rows (1 + columns of x) of coefficients of level, drift and the columns; those without effect are known, so 0."""
    y, time = np.where(np.isnan(x).any(axis=1), np.nan, y), np.arange(float(len(y)))
    found = np.zeros((1 + x.shape[1], 2 + x.shape[1]))
    constant = [1 if order.lost else 0] if order.constant else []
    used = np.array([*constant, *(2 + np.flatnonzero(beta[1:]))], np.int64)
    if not len(used):
        return found
    table = np.column_stack([np.ones(len(y)), time, np.nan_to_num(x)])[:, used]
    size = np.abs(table).max(axis=0)
    size[size == 0.0] = 1.0
    filtered = np.column_stack([_filtered(order, factors, np.where(np.isnan(y), np.nan, one)) for one in (table / size).T])
    length = np.sqrt((filtered**2).sum(axis=0))
    length[length == 0.0] = np.inf  # a column of which nothing is left tells nothing: its effect is 0
    values, vectors = np.linalg.eigh((filtered / length).T @ (filtered / length))
    root = np.where(values > ALONE, 1.0 / np.sqrt(np.maximum(values, ALONE)), 0.0)[:, None] * vectors.T
    found[: len(used), used] = root / (length * size)
    return found


def regression_of(doubt: Floats, time: Floats, x: Floats) -> Floats:
    """The regression of a direction at some rows."""
    return np.asarray(doubt[0] + doubt[1] * time + np.nan_to_num(x) @ doubt[2:])


def doubtful(learned: Learned, time: Floats, x: Floats, foreseen: Any) -> Floats:
    """Deviations of the steps ahead for what is not known of the regression, in units of sigma, (series, steps).

    time: (series, steps); x: (series, steps, columns); foreseen: means ahead of states (series, size).
    """
    variance = np.zeros(time.shape)
    for number in range(learned["doubt"].shape[1]):
        doubt = learned["doubt"][:, number]
        if doubt.any():
            moved = doubt[:, :1] + doubt[:, 1:2] * time + (x * doubt[:, None, 2:]).sum(axis=-1)
            variance += (moved + foreseen(learned["doubted"][:, number])) ** 2
    return np.sqrt(variance)


def _filtered(order: Order, factors: Floats, column: Floats) -> Floats:
    """What the filter does not foresee of a column, over its deviation; 0 where nothing is seen or foreseen."""
    from deepforecast.kernels.arima.state import follow

    first = int(np.argmax(~np.isnan(column)))
    _, ahead, variance = follow(order.form, factors[: order.coefficients], order.delta, column[first:])
    found = np.zeros(len(column))
    with np.errstate(invalid="ignore", divide="ignore"):
        found[first:] = np.nan_to_num((column[first:] - ahead) / np.sqrt(variance))
    return found
