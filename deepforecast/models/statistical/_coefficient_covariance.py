"""Covariance of the regression coefficients of ARIMA models, by generalized least squares.

Given the ARIMA of the errors, mean, drift and effects are a linear regression. With X the regressors
filtered like the series, the covariance of the coefficients is sigma^2 (X'X)^-1. It is stored as
directions: the rows of a matrix R with R'R = (X'X)^-1. Each direction is a vector of coefficients
(level, drift, effects of the columns).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats
from deepforecast.models.statistical._scaled_series import Order

MIN_EIGENVALUE = 1e-8  # of the correlation matrix; smaller ones count as collinear


def covariance_directions(order: Order, factors: Floats, beta: Floats, y: Floats, x: Floats) -> Floats:
    """Directions (1 + columns, 2 + columns) of the coefficients of level, drift and the columns `x`.

    Coefficients that are not estimated (no constant, effect of 0) and directions beyond their number
    are 0. `factors`: ARMA coefficients; `beta`: drift and effects of the fit.
    """
    y, time = np.where(np.isnan(x).any(axis=1), np.nan, y), np.arange(float(len(y)))
    directions = np.zeros((1 + x.shape[1], 2 + x.shape[1]))
    constant = [1 if order.n_lost else 0] if order.constant else []  # with differences the constant is the drift
    used_columns = np.array([*constant, *(2 + np.flatnonzero(beta[1:]))], np.int64)
    if not len(used_columns):
        return directions
    table = np.column_stack([np.ones(len(y)), time, np.nan_to_num(x)])[:, used_columns]
    column_scale = np.abs(table).max(axis=0)
    column_scale[column_scale == 0.0] = 1.0
    filtered = np.column_stack(
        [_filter_column(order, factors, np.where(np.isnan(y), np.nan, column)) for column in (table / column_scale).T]
    )
    norm = np.sqrt((filtered**2).sum(axis=0))
    norm[norm == 0.0] = np.inf  # columns that filter to 0 have no effect
    values, vectors = np.linalg.eigh((filtered / norm).T @ (filtered / norm))
    root = np.where(values > MIN_EIGENVALUE, 1.0 / np.sqrt(np.maximum(values, MIN_EIGENVALUE)), 0.0)[:, None] * vectors.T
    directions[: len(used_columns), used_columns] = root / (norm * column_scale)
    return directions


def regression_values(direction: Floats, time: Floats, x: Floats) -> Floats:
    """Values of the regression with the coefficients `direction`, at times `time` and regressors `x` (NaN: 0)."""
    return np.asarray(direction[0] + direction[1] * time + np.nan_to_num(x) @ direction[2:])


def regression_deviations(learned: LearnedState, time: Floats, x: Floats, forecast_mean: Any) -> Floats:
    """Standard deviations of forecasts due to the estimated regression, in units of sigma, (series, steps).

    The variance is the sum of the squared forecasts over all directions. Shapes: time (series,
    steps), x (series, steps, columns). `forecast_mean` maps filter states (series, n_states) to
    forecasts of the errors (series, steps).
    """
    variance = np.zeros(time.shape)
    for direction_index in range(learned["coefficient_directions"].shape[1]):
        direction = learned["coefficient_directions"][:, direction_index]
        if direction.any():
            regression = direction[:, :1] + direction[:, 1:2] * time + (x * direction[:, None, 2:]).sum(axis=-1)
            variance += (regression + forecast_mean(learned["direction_states"][:, direction_index])) ** 2
    return np.sqrt(variance)


def _filter_column(order: Order, factors: Floats, column: Floats) -> Floats:
    """One-step errors of the ARIMA filter on a column, divided by their standard deviation in units of sigma.

    0 where the column is missing (NaN).
    """
    from deepforecast.kernels.arima.state import filter_history

    first_row = int(np.argmax(~np.isnan(column)))
    _, predictions, variance = filter_history(
        order.lag_structure, factors[: order.n_coefficients], order.delta, column[first_row:]
    )
    residuals = np.zeros(len(column))
    with np.errstate(invalid="ignore", divide="ignore"):
        residuals[first_row:] = np.nan_to_num((column[first_row:] - predictions) / np.sqrt(variance))
    return residuals
