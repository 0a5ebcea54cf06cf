"""Laplace approximation of the posterior of Prophet's parameters.

With the standard deviation sigma of the errors, the posterior is approximated by a normal
distribution around its maximum with the Gauss-Newton covariance sigma^2 (J'WJ + sigma^2 P)^-1, J
the Jacobian of the fitted values, W the weights of Student's t errors and P the prior precision.
The Laplace prior of the changes of the slope has no curvature; it is replaced by a normal prior
with the same variance, 2 scale^2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data.frames import Floats

if TYPE_CHECKING:
    from deepforecast.models.additive._design_matrix import Design
    from deepforecast.models.additive.prophet import Prophet


def covariance_factor(model: Prophet, design: Design, y: Floats, cap: Floats, x: Floats, deviation: float) -> Floats:
    """A square root F of the posterior covariance F F' of rate, offset, coefficients and slope changes.

    `x` are the parameters of the design, `deviation` is the standard deviation of the errors. Rows and columns of parameters
    that were not estimated are 0, and all of F if `deviation` is.
    """
    n_columns = len(design.scale)
    n_parameters = 2 + n_columns + model.max_changepoints
    factor = np.zeros((n_parameters, n_parameters))
    if deviation <= 0.0:
        return factor
    n_trend = 1 if model.growth == "flat" else 2
    jacobian, fitted = _jacobian(model, design, cap, x, n_trend)
    residuals = (y - fitted) / deviation
    # Of Student's t errors with nu = 3: (nu + 1) / (nu + r^2)
    weight = 4.0 / (3.0 + residuals * residuals) if model.errors == "student" else np.ones(len(y))
    prior = np.concatenate([design.precision, np.full(len(design.changepoints), 0.5 / model.changepoint_prior_scale**2)])
    products = (jacobian * weight[:, None]).T @ jacobian
    products[np.diag_indices_from(products)] += deviation**2 * prior
    eigenvalues, eigenvectors = np.linalg.eigh(products)
    # Smaller eigenvalues are rounding errors.
    min_eigenvalue = max(deviation**2 * float(prior.min()), 1e-15 * float(eigenvalues[-1]))
    scaled_vectors = eigenvectors * (deviation / np.sqrt(np.maximum(eigenvalues, min_eigenvalue)))
    trend_indices = [1] if n_trend == 1 else [0, 1]
    change_indices = 2 + n_columns + np.arange(len(design.changepoints))
    estimated = np.concatenate([trend_indices, 2 + design.active_columns, change_indices]).astype(np.int64)
    factor[estimated[:, None], estimated[None, :]] = scaled_vectors
    return factor


def _jacobian(model: Prophet, design: Design, cap: Floats, x: Floats, n_trend: int) -> tuple[Floats, Floats]:
    """Derivatives of the fitted values by x, (rows, parameters), and the fitted values.

    The order of the parameters is that of `Design`: trend, features, slope changes.
    """
    n_features = len(design.active_columns)
    coefficients, delta = x[n_trend : n_trend + n_features], x[n_trend + n_features :]
    rate_term = x[0] * design.time if n_trend == 2 else 0.0
    line = rate_term + x[n_trend - 1] + design.hinges @ delta
    ones = np.ones(len(design.time))
    trend = line
    slope_factor = ones  # d trend / d line
    trend_derivatives = [design.time, ones] if n_trend == 2 else [ones]  # of the line
    if model.growth == "logistic":
        line = x[0] * (design.time - x[1]) + design.hinges @ delta
        logistic = 1.0 / (1.0 + np.exp(-line))
        trend, slope_factor = cap * logistic, cap * logistic * (1.0 - logistic)
        trend_derivatives = [design.time - x[1], -x[0] * ones]
    multiplier = 1.0 + design.features @ (coefficients * design.multiplicative)
    fitted = trend * multiplier + design.features @ (coefficients * (1.0 - design.multiplicative))
    column_factor = np.where(design.multiplicative > 0.0, trend[:, None], 1.0)
    line_derivatives = np.concatenate([np.stack(trend_derivatives, axis=-1), design.hinges], axis=1)
    derivatives = line_derivatives * (slope_factor * multiplier)[:, None]
    blocks = [derivatives[:, :n_trend], design.features * column_factor, derivatives[:, n_trend:]]
    return np.concatenate(blocks, axis=1), fitted
