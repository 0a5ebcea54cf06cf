"""Maximum a posteriori parameters of nonlinear additive models, by Gauss-Newton steps.

For multiplicative features, logistic trends and Student's t errors. Each step solves the problem of
`additive` for the linearized model (and for t the weighted squares that majorize its loss), with a
line search, so that the posterior never decreases. Parameters: those of the trend (rate and offset;
offset only if flat), one per feature, one per slope change.

    linear      rate t + offset + sum_j change_j (t - t_j)+         flat: the offset only
    logistic    cap / (1 + exp(-rate (t - offset) - sum_j change_j (t - t_j)+))
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.additive import (
    Prior,
    Workspace,
    add_gradient,
    add_products,
    negative_log_posterior,
    new_workspace,
    solve,
    variance_mode,
)
from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc, inner_no_alloc

Floats = NDArray[np.float64]

LINEAR, LOGISTIC, FLAT = 0, 1, 2
MAX_ITERATIONS = 500
GAIN_TOLERANCE = 1e-11  # of the objective, per row, at convergence
MIN_STEP_SIZE = 1e-9  # of the line search
TREND, MULTIPLIER, FITTED, WEIGHT, RESIDUAL = range(5)  # rows of `lines`


class Rows(NamedTuple):
    """One series: scaled values and times, `capacity` (logistic trend), `changepoint_hinges` (rows,
    changes), `features` (rows, features) and which of these `multiply`, `growth` (a constant
    above), and `freedom`, the degrees of freedom of Student's t, 0 for normal errors.
    """

    y: Floats
    time: Floats
    capacity: Floats
    changepoint_hinges: Floats
    features: Floats
    multiply: Floats
    growth: int
    freedom: float


def fit_nonlinear(rows: Rows, prior: Prior, start: Floats) -> tuple[Floats, float, float]:
    """Parameters, scale and objective from a start."""
    x, state = np.array(start, dtype=np.float64), np.array([1.0, 0.0])
    lines, jacobian = np.empty((5, len(rows.y))), np.empty((len(rows.y), len(start)))
    with compile_notice("the maximum of an additive model"):
        _gauss_newton(rows, prior, x, state, lines, jacobian, new_workspace(len(start), 0))
    return x, math.sqrt(state[0]), float(state[1])


@compiled_no_alloc
def _gauss_newton(
    rows: Rows, prior: Prior, x: Floats, state: Floats, lines: Floats, jacobian: Floats, workspace: Workspace
) -> None:
    count, target, trial = len(rows.y), workspace.vectors[4], workspace.vectors[5]
    _set_fitted(rows, x, lines)
    variance = _update_variance(rows, lines, state[0])
    objective = negative_log_posterior(_total_loss(rows, lines, variance), count, variance, x, prior)
    for _ in range(MAX_ITERATIONS):
        _set_jacobian(rows, x, lines, jacobian)
        _set_normal_equations(rows.y, lines, jacobian, workspace.gram, workspace.gradient)
        for i in range(len(x)):
            target[i] = x[i]
        solve(variance, prior, x, target, workspace)
        step_size, previous = 1.0, objective
        while step_size > MIN_STEP_SIZE:
            for i in range(len(x)):
                trial[i] = target[i] if step_size == 1.0 else x[i] + step_size * (target[i] - x[i])
            _set_fitted(rows, trial, lines)
            objective = negative_log_posterior(_total_loss(rows, lines, variance), count, variance, trial, prior)
            if objective < previous:
                break
            step_size *= 0.5
        if not objective < previous:
            objective = previous
            break
        for i in range(len(x)):
            x[i] = trial[i]
        variance = _update_variance(rows, lines, variance)
        objective = negative_log_posterior(_total_loss(rows, lines, variance), count, variance, x, prior)
        if previous - objective < GAIN_TOLERANCE * count:
            break
    state[0], state[1] = variance, objective


@inner_no_alloc
def _set_fitted(rows: Rows, x: Floats, lines: Floats) -> None:
    """Trend, multiplier of the trend, and fitted values."""
    changes, count = rows.changepoint_hinges.shape[1], len(rows.multiply)
    n_trend = len(x) - changes - count
    for row in range(len(rows.time)):
        trend, multiplier, additive = x[n_trend - 1], 1.0, 0.0
        if rows.growth == LOGISTIC:
            trend = x[0] * (rows.time[row] - x[1])
        elif rows.growth == LINEAR:
            trend += x[0] * rows.time[row]
        for j in range(changes):
            trend += x[n_trend + count + j] * rows.changepoint_hinges[row, j]
        if rows.growth == LOGISTIC:
            trend = rows.capacity[row] / (1.0 + math.exp(-max(min(trend, 500.0), -500.0)))
        for j in range(count):
            term = x[n_trend + j] * rows.features[row, j]
            multiplier += rows.multiply[j] * term
            additive += (1.0 - rows.multiply[j]) * term
        lines[TREND, row], lines[MULTIPLIER, row], lines[FITTED, row] = trend, multiplier, trend * multiplier + additive


@inner_no_alloc
def _set_jacobian(rows: Rows, x: Floats, lines: Floats, jacobian: Floats) -> None:
    """Jacobian of the fitted values, (rows, parameters)."""
    changes, count = rows.changepoint_hinges.shape[1], len(rows.multiply)
    n_trend = len(x) - changes - count
    for row in range(len(rows.time)):
        multiplier, trend = lines[MULTIPLIER, row], lines[TREND, row]
        if rows.growth == LOGISTIC:
            multiplier *= trend * (1.0 - trend / rows.capacity[row])
            jacobian[row, 0], jacobian[row, 1] = multiplier * (rows.time[row] - x[1]), -multiplier * x[0]
        else:
            jacobian[row, 0] = multiplier * rows.time[row]
            jacobian[row, n_trend - 1] = multiplier
        for j in range(count):
            jacobian[row, n_trend + j] = rows.features[row, j] * (1.0 + rows.multiply[j] * (trend - 1.0))
        for j in range(changes):
            jacobian[row, n_trend + count + j] = multiplier * rows.changepoint_hinges[row, j]


@inner_no_alloc
def _set_normal_equations(y: Floats, lines: Floats, jacobian: Floats, gram: Floats, gradient: Floats) -> None:
    """Weighted J'J (upper half) and J'r."""
    for i in range(len(gradient)):
        gradient[i] = 0.0
        for j in range(i, len(gradient)):
            gram[i, j] = 0.0
    add_products(jacobian, lines[WEIGHT], gram)
    for row in range(len(y)):
        lines[RESIDUAL, row] = lines[WEIGHT, row] * (y[row] - lines[FITTED, row])
    add_gradient(jacobian, lines[RESIDUAL], gradient)


@inner_no_alloc
def _total_loss(rows: Rows, lines: Floats, variance: float) -> float:
    total, freedom = 0.0, rows.freedom
    for row in range(len(rows.y)):
        residual = rows.y[row] - lines[FITTED, row]
        square = residual * residual / variance
        total += 0.5 * square if freedom == 0.0 else 0.5 * (freedom + 1.0) * math.log1p(square / freedom)
    return total


@inner_no_alloc
def _update_variance(rows: Rows, lines: Floats, variance: float) -> float:
    """Mode of the variance for these residuals, and the weights of the rows under it."""
    freedom = rows.freedom
    for _ in range(50):
        total = 0.0
        for row in range(len(rows.y)):
            residual = rows.y[row] - lines[FITTED, row]
            weight = 1.0 if freedom == 0.0 else (freedom + 1.0) / (freedom + residual * residual / variance)
            lines[WEIGHT, row] = weight
            total += weight * residual * residual
        previous, variance = variance, variance_mode(total, len(rows.y))
        if freedom == 0.0 or abs(variance - previous) <= 1e-9 * variance:
            break
    return variance
