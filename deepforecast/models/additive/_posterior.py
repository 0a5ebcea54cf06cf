"""How a forecast moves with each parameter, and how far the parameters may be from the likeliest: Laplace's approximation.

Given the deviation of the errors, the posterior is taken for normal around its maximum, with the curvature of the squares
there. The prior of the changes of slope has no curvature; one of a normal prior of the same variance stands for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data.frames import Floats

if TYPE_CHECKING:
    from deepforecast.models.additive._designing import Design
    from deepforecast.models.additive.prophet import Prophet


def factor(model: Prophet, design: Design, y: Floats, cap: Floats, x: Floats, deviation: float) -> Floats:
    """A square root of the covariance of all parameters (rate, offset, coefficients, changes), 0 for any not in the design."""
    columns = len(design.scale)
    size = 2 + columns + model.most_changes
    found = np.zeros((size, size))
    if deviation <= 0.0:
        return found
    free, features = (1 if model.growth == "flat" else 2), len(design.on)
    along, fitted = _tangents(model, design, cap, x, free, features)
    left = (y - fitted) / deviation
    weight = 4.0 / (3.0 + left * left) if model.errors == "student" else np.ones(len(y))
    prior = np.concatenate([design.precision, np.full(len(design.changes), 0.5 / model.changepoint_prior_scale**2)])
    products = (along * weight[:, None]).T @ along
    products[np.diag_indices_from(products)] += deviation**2 * prior
    values, vectors = np.linalg.eigh(products)
    least = max(deviation**2 * float(prior.min()), 1e-15 * float(values[-1]))  # below it is rounding
    covering = vectors * (deviation / np.sqrt(np.maximum(values, least)))
    trend = [1] if free == 1 else [0, 1]
    where = np.concatenate([trend, 2 + design.on, 2 + columns + np.arange(len(design.changes))]).astype(np.int64)
    found[where[:, None], where[None, :]] = covering
    return found


def _tangents(
    model: Prophet, design: Design, cap: Floats, x: Floats, free: int, features: int
) -> tuple[Floats, Floats]:
    """Derivatives of the fitted values (rows, parameters), and these."""
    coefficients, delta = x[free : free + features], x[free + features :]
    line = (x[0] * design.time if free == 2 else 0.0) + x[free - 1] + design.hinges @ delta
    ones = np.ones(len(design.time))
    trend, by, first = line, ones, [design.time, ones][2 - free :]
    if model.growth == "logistic":
        line = x[0] * (design.time - x[1]) + design.hinges @ delta
        share = 1.0 / (1.0 + np.exp(-line))
        trend, by = cap * share, cap * share * (1.0 - share)
        first = [design.time - x[1], -x[0] * ones]
    grown = 1.0 + design.features @ (coefficients * design.multiply)
    fitted = trend * grown + design.features @ (coefficients * (1.0 - design.multiply))
    wide = np.where(design.multiply > 0.0, trend[:, None], 1.0)
    slopes = np.concatenate([np.stack(first, axis=-1), design.hinges], axis=1) * (by * grown)[:, None]
    return np.concatenate([slopes[:, :free], design.features * wide, slopes[:, free:]], axis=1), fitted
