"""Covariance of the regression coefficients of ARIMA models, by generalized least squares.

Given the ARIMA of the errors, mean, drift and effects are a linear regression. With X the columns
after filtering like the series, the covariance is sigma^2 (X'X)^-1. It is stored as directions, the
rows of a root of (X'X)^-1; each is a set of coefficients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats
from deepforecast.models.statistical._scaled_series import Order

MIN_EIGENVALUE = 1e-8  # of the correlation matrix; smaller ones count as collinear


def covariance_directions(order: Order, factors: Floats, beta: Floats, y: Floats, x: Floats) -> Floats:
    """Directions (1 + columns) of coefficients of level, drift and the columns.

    0 for fixed ones.
    """
    y, time = np.where(np.isnan(x).any(axis=1), np.nan, y), np.arange(float(len(y)))
    rows = np.zeros((1 + x.shape[1], 2 + x.shape[1]))
    constant = [1 if order.n_lost else 0] if order.constant else []
    used_columns = np.array([*constant, *(2 + np.flatnonzero(beta[1:]))], np.int64)
    if not len(used_columns):
        return rows
    table = np.column_stack([np.ones(len(y)), time, np.nan_to_num(x)])[:, used_columns]
    size = np.abs(table).max(axis=0)
    size[size == 0.0] = 1.0
    filtered = np.column_stack(
        [_filter_column(order, factors, np.where(np.isnan(y), np.nan, column)) for column in (table / size).T]
    )
    length = np.sqrt((filtered**2).sum(axis=0))
    length[length == 0.0] = np.inf  # columns that filter to 0 have no effect
    values, vectors = np.linalg.eigh((filtered / length).T @ (filtered / length))
    root = np.where(values > MIN_EIGENVALUE, 1.0 / np.sqrt(np.maximum(values, MIN_EIGENVALUE)), 0.0)[:, None] * vectors.T
    rows[: len(used_columns), used_columns] = root / (length * size)
    return rows


def regression_values(direction: Floats, time: Floats, x: Floats) -> Floats:
    """The regression function of a direction."""
    return np.asarray(direction[0] + direction[1] * time + np.nan_to_num(x) @ direction[2:])


def regression_deviations(learned: LearnedState, time: Floats, x: Floats, forecast_mean: Any) -> Floats:
    """Standard deviations due to the estimated regression, in units of sigma, (series, steps).

    Shapes: time (series, steps), x (series, steps, columns). `forecast_mean` maps states (series,
    size) to forecasts (series, steps).
    """
    variance = np.zeros(time.shape)
    for number in range(learned["doubt"].shape[1]):
        direction = learned["doubt"][:, number]
        if direction.any():
            shift = direction[:, :1] + direction[:, 1:2] * time + (x * direction[:, None, 2:]).sum(axis=-1)
            variance += (shift + forecast_mean(learned["doubted"][:, number])) ** 2
    return np.sqrt(variance)


def _filter_column(order: Order, factors: Floats, column: Floats) -> Floats:
    """Standardized one-step errors of the filter on a column; 0 for missing ones."""
    from deepforecast.kernels.arima.state import filter_history

    first = int(np.argmax(~np.isnan(column)))
    _, predictions, variance = filter_history(order.lag_structure, factors[: order.n_coefficients], order.delta, column[first:])
    residuals = np.zeros(len(column))
    with np.errstate(invalid="ignore", divide="ignore"):
        residuals[first:] = np.nan_to_num((column[first:] - predictions) / np.sqrt(variance))
    return residuals
