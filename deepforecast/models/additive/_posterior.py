"""Laplace approximation of the posterior of Prophet's parameters.

With the standard deviation sigma of the errors, the posterior is approximated by a normal
distribution around its maximum with the Gauss-Newton covariance sigma^2 (J'WJ + sigma^2 P)^-1, J
the Jacobian of the fitted values, W the weights of Student's t errors and P the prior precision.
The Laplace prior of the changes of the slope has no curvature; a normal prior with the same
variance, 2 scale^2, replaces it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data.frames import Floats

if TYPE_CHECKING:
    from deepforecast.models.additive._design_matrix import Design
    from deepforecast.models.additive.prophet import Prophet


def covariance_factor(model: Prophet, design: Design, y: Floats, cap: Floats, x: Floats, deviation: float) -> Floats:
    """Square root F of the covariance F F' of rate, offset, coefficients and slope changes."""
    columns = len(design.scale)
    size = 2 + columns + model.max_changepoints
    factor = np.zeros((size, size))
    if deviation <= 0.0:
        return factor
    n_trend, features = (1 if model.growth == "flat" else 2), len(design.active_columns)
    jacobian, fitted = _jacobian(model, design, cap, x, n_trend, features)
    residuals = (y - fitted) / deviation
    weight = 4.0 / (3.0 + residuals * residuals) if model.errors == "student" else np.ones(len(y))
    prior = np.concatenate([design.precision, np.full(len(design.changepoints), 0.5 / model.changepoint_prior_scale**2)])
    products = (jacobian * weight[:, None]).T @ jacobian
    products[np.diag_indices_from(products)] += deviation**2 * prior
    values, vectors = np.linalg.eigh(products)
    # Smaller eigenvalues are rounding errors.
    floor = max(deviation**2 * float(prior.min()), 1e-15 * float(values[-1]))
    scaled_vectors = vectors * (deviation / np.sqrt(np.maximum(values, floor)))
    trend = [1] if n_trend == 1 else [0, 1]
    index = np.concatenate(
        [trend, 2 + design.active_columns, 2 + columns + np.arange(len(design.changepoints))]
    ).astype(np.int64)
    factor[index[:, None], index[None, :]] = scaled_vectors
    return factor


def _jacobian(
    model: Prophet, design: Design, cap: Floats, x: Floats, n_trend: int, features: int
) -> tuple[Floats, Floats]:
    """Derivatives of the fitted values (rows, parameters), and the fitted values."""
    coefficients, delta = x[n_trend : n_trend + features], x[n_trend + features :]
    line = (x[0] * design.time if n_trend == 2 else 0.0) + x[n_trend - 1] + design.hinges @ delta
    ones = np.ones(len(design.time))
    trend, slope_factor, trend_derivatives = line, ones, [design.time, ones][2 - n_trend :]
    if model.growth == "logistic":
        line = x[0] * (design.time - x[1]) + design.hinges @ delta
        logistic = 1.0 / (1.0 + np.exp(-line))
        trend, slope_factor = cap * logistic, cap * logistic * (1.0 - logistic)
        trend_derivatives = [design.time - x[1], -x[0] * ones]
    multiplier = 1.0 + design.features @ (coefficients * design.multiplicative)
    fitted = trend * multiplier + design.features @ (coefficients * (1.0 - design.multiplicative))
    column_factor = np.where(design.multiplicative > 0.0, trend[:, None], 1.0)
    slopes = (
        np.concatenate([np.stack(trend_derivatives, axis=-1), design.hinges], axis=1)
        * (slope_factor * multiplier)[:, None]
    )
    return np.concatenate([slopes[:, :n_trend], design.features * column_factor, slopes[:, n_trend:]], axis=1), fitted
