"""Maximum a posteriori parameters of nonlinear additive models, by Gauss-Newton steps.

For multiplicative features, logistic trends and Student's t errors. Each step solves the problem of
`additive` for the linearized model (and for t the weighted squares that majorize its loss), with a
halving line search, so that the posterior never decreases.

    fitted value = trend (1 + sum of multiplicative terms) + sum of additive terms
    linear trend      rate t + offset + sum_j change_j (t - t_j)+         flat: the offset only
    logistic trend    cap / (1 + exp(-rate (t - offset) - sum_j change_j (t - t_j)+))

Parameters x: those of the trend (rate and offset; offset only if flat), one coefficient per feature, one
per slope change.
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
    add_weighted_gram,
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
MAX_EXPONENT = 500.0  # limit of the exponent of a logistic trend, against overflow
TREND, MULTIPLIER, FITTED, WEIGHT, RESIDUAL = range(5)
"""Rows of `lines` (5, time steps): trend; 1 plus the multiplicative terms; fitted value; weight of the squared
residual, 1 for normal errors; weighted residual."""
TARGET_ROW, TRIAL_ROW = 4, 5  # rows of `Workspace.vectors`: minimum of the linearized problem; trial point


class Rows(NamedTuple):
    """Data of one series, one row per observation."""

    y: Floats  # scaled values
    time: Floats  # scaled times
    capacity: Floats  # cap of a logistic trend; unused otherwise
    changepoint_hinges: Floats  # (rows, changes): (t - t_j)+
    features: Floats  # (rows, features)
    multiply: Floats  # (features,): 1 for multiplicative features, 0 for additive ones
    growth: int  # LINEAR, LOGISTIC or FLAT
    freedom: float  # degrees of freedom of Student's t, 0 for normal errors


def fit_nonlinear(observations: Rows, prior: Prior, start: Floats) -> tuple[Floats, float, float]:
    """Parameters, scale s and objective (-log posterior without constants) of the local optimum near a start."""
    x = np.array(start, dtype=np.float64)
    state = np.array([1.0, 0.0])  # variance, objective
    lines, jacobian = np.empty((5, len(observations.y))), np.empty((len(observations.y), len(start)))
    with compile_notice("additive models"):
        _gauss_newton(observations, prior, x, state, lines, jacobian, new_workspace(len(start), 0))
    return x, math.sqrt(state[0]), float(state[1])


@compiled_no_alloc
def _gauss_newton(
    observations: Rows, prior: Prior, x: Floats, state: Floats, lines: Floats, jacobian: Floats, workspace: Workspace
) -> None:
    """Improve `x` from a start until the objective converges; variance and objective are kept in `state`.

    Each iteration takes a step for the parameters, halved until the objective decreases, then a step for
    the variance. It ends when no step of at least MIN_STEP_SIZE decreases the objective.
    """
    n_steps = len(observations.y)
    target, trial = workspace.vectors[TARGET_ROW], workspace.vectors[TRIAL_ROW]
    _set_fitted(observations, x, lines)
    variance = _update_variance(observations, lines, state[0])
    objective = negative_log_posterior(_total_loss(observations, lines, variance), n_steps, variance, x, prior)
    for _ in range(MAX_ITERATIONS):
        _set_jacobian(observations, x, lines, jacobian)
        _set_normal_equations(observations.y, lines, jacobian, workspace.gram, workspace.gradient)
        for i in range(len(x)):
            target[i] = x[i]
        solve(variance, prior, x, target, workspace)
        step_size, previous_objective = 1.0, objective
        while step_size > MIN_STEP_SIZE:
            for i in range(len(x)):
                trial[i] = target[i] if step_size == 1.0 else x[i] + step_size * (target[i] - x[i])
            _set_fitted(observations, trial, lines)
            objective = negative_log_posterior(_total_loss(observations, lines, variance), n_steps, variance, trial, prior)
            if objective < previous_objective:
                break
            step_size *= 0.5
        if not objective < previous_objective:
            objective = previous_objective
            break
        for i in range(len(x)):
            x[i] = trial[i]
        variance = _update_variance(observations, lines, variance)
        objective = negative_log_posterior(_total_loss(observations, lines, variance), n_steps, variance, x, prior)
        if previous_objective - objective < GAIN_TOLERANCE * n_steps:
            break
    state[0], state[1] = variance, objective


@inner_no_alloc
def _set_fitted(observations: Rows, x: Floats, lines: Floats) -> None:
    """Write trend, multiplier of the trend, and fitted values at `x` to `lines`."""
    n_changes, n_features = observations.changepoint_hinges.shape[1], len(observations.multiply)
    n_trend = len(x) - n_changes - n_features
    for t in range(len(observations.time)):
        trend, multiplier, additive = x[n_trend - 1], 1.0, 0.0
        if observations.growth == LOGISTIC:
            trend = x[0] * (observations.time[t] - x[1])
        elif observations.growth == LINEAR:
            trend += x[0] * observations.time[t]
        for j in range(n_changes):
            trend += x[n_trend + n_features + j] * observations.changepoint_hinges[t, j]
        if observations.growth == LOGISTIC:
            trend = observations.capacity[t] / (1.0 + math.exp(-max(min(trend, MAX_EXPONENT), -MAX_EXPONENT)))
        for j in range(n_features):
            term = x[n_trend + j] * observations.features[t, j]
            multiplier += observations.multiply[j] * term
            additive += (1.0 - observations.multiply[j]) * term
        lines[TREND, t], lines[MULTIPLIER, t], lines[FITTED, t] = trend, multiplier, trend * multiplier + additive


@inner_no_alloc
def _set_jacobian(observations: Rows, x: Floats, lines: Floats, jacobian: Floats) -> None:
    """Write the Jacobian of the fitted values, (rows, parameters); `lines` must belong to `x`.

    The derivative of the logistic function is f (1 - f / cap).
    """
    n_changes, n_features = observations.changepoint_hinges.shape[1], len(observations.multiply)
    n_trend = len(x) - n_changes - n_features
    for t in range(len(observations.time)):
        multiplier, trend = lines[MULTIPLIER, t], lines[TREND, t]
        if observations.growth == LOGISTIC:
            multiplier *= trend * (1.0 - trend / observations.capacity[t])
            jacobian[t, 0], jacobian[t, 1] = multiplier * (observations.time[t] - x[1]), -multiplier * x[0]
        else:
            jacobian[t, 0] = multiplier * observations.time[t]
            jacobian[t, n_trend - 1] = multiplier
        for j in range(n_features):
            jacobian[t, n_trend + j] = observations.features[t, j] * (1.0 + observations.multiply[j] * (trend - 1.0))
        for j in range(n_changes):
            jacobian[t, n_trend + n_features + j] = multiplier * observations.changepoint_hinges[t, j]


@inner_no_alloc
def _set_normal_equations(y: Floats, lines: Floats, jacobian: Floats, gram: Floats, gradient: Floats) -> None:
    """Write the weighted J'J (upper half) to `gram` and J'r to `gradient`."""
    for i in range(len(gradient)):
        gradient[i] = 0.0
        for j in range(i, len(gradient)):
            gram[i, j] = 0.0
    add_weighted_gram(jacobian, lines[WEIGHT], gram)
    for t in range(len(y)):
        lines[RESIDUAL, t] = lines[WEIGHT, t] * (y[t] - lines[FITTED, t])
    add_gradient(jacobian, lines[RESIDUAL], gradient)


@inner_no_alloc
def _total_loss(observations: Rows, lines: Floats, variance: float) -> float:
    """Sum of r^2 / (2 s^2), or for v degrees of freedom of (v + 1) / 2 log(1 + r^2 / (v s^2))."""
    sum_of_losses, freedom = 0.0, observations.freedom
    for t in range(len(observations.y)):
        residual = observations.y[t] - lines[FITTED, t]
        square = residual * residual / variance
        normal_loss = 0.5 * square
        sum_of_losses += normal_loss if freedom == 0.0 else 0.5 * (freedom + 1.0) * math.log1p(square / freedom)
    return sum_of_losses


@inner_no_alloc
def _update_variance(observations: Rows, lines: Floats, variance: float) -> float:
    """Return the mode of the variance for these residuals; write the weights of the squares under it to WEIGHT.

    For Student's t both are iterated: weight (v + 1) / (v + r^2 / s^2), as in the EM algorithm.
    """
    freedom = observations.freedom
    for _ in range(50):
        weighted_squares = 0.0
        for t in range(len(observations.y)):
            residual = observations.y[t] - lines[FITTED, t]
            weight = 1.0 if freedom == 0.0 else (freedom + 1.0) / (freedom + residual * residual / variance)
            lines[WEIGHT, t] = weight
            weighted_squares += weight * residual * residual
        previous, variance = variance, variance_mode(weighted_squares, len(observations.y))
        if freedom == 0.0 or abs(variance - previous) <= 1e-9 * variance:
            break
    return variance
