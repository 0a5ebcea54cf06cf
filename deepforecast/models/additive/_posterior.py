"""How a forecast moves with each parameter, and how far the parameters may be from the likeliest: Laplace's approximation.

Given the deviation of the errors, the posterior is taken for normal around its maximum, with the curvature of the squares
there. The prior of the changes of slope has no curvature; one of a normal prior of the same variance stands for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data.frames import Floats

if TYPE_CHECKING:
    from deepforecast.models.additive._design_matrix import Design
    from deepforecast.models.additive.prophet import Prophet


def covariance_factor(model: Prophet, design: Design, y: Floats, cap: Floats, x: Floats, deviation: float) -> Floats:
    """A square root of the covariance of all parameters (rate, offset, coefficients, changes), 0 for any not in the design."""
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
    floor = max(deviation**2 * float(prior.min()), 1e-15 * float(values[-1]))  # below it is rounding
    scaled_vectors = vectors * (deviation / np.sqrt(np.maximum(values, floor)))
    trend = [1] if n_trend == 1 else [0, 1]
    index = np.concatenate([trend, 2 + design.active_columns, 2 + columns + np.arange(len(design.changepoints))]).astype(np.int64)
    factor[index[:, None], index[None, :]] = scaled_vectors
    return factor


def _jacobian(
    model: Prophet, design: Design, cap: Floats, x: Floats, n_trend: int, features: int
) -> tuple[Floats, Floats]:
    """Derivatives of the fitted values (rows, parameters), and these."""
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
    slopes = np.concatenate([np.stack(trend_derivatives, axis=-1), design.hinges], axis=1) * (slope_factor * multiplier)[:, None]
    return np.concatenate([slopes[:, :n_trend], design.features * column_factor, slopes[:, n_trend:]], axis=1), fitted
