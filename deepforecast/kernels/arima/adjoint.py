"""Gradient of `likelihood_with_missing`: adjoint of the Kalman filter, from the last time step to the first.

A "path" is a column through the filter: path 0 is the target less its regression, paths 1 to
`n_unknown` are the unknown early values, whose determinant is part of the likelihood. With Lambda the
gradient of the objective by the excess P - rho rho' (COVARIANCE_GRADIENT) and lambda the gradient by the
predicted state of a path (MEAN_GRADIENT), each step replaces both by the gradients before the step.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.kalman_filter import state_size
from deepforecast.kernels.arima.layout import (
    BETA,
    COVARIANCE_GRADIENT,
    FULL_PHI,
    FULL_PHI_GRADIENT,
    INITIAL_MEAN,
    LOWER,
    MEAN_GRADIENT,
    NEXT_GRADIENT,
    PHI_GRADIENT,
    RHO,
    RHO_GRADIENT,
    SUMMARY,
    THETA_GRADIENT,
    UNKNOWN_BLOCK,
    P,
    Q,
    R,
    Workspace,
)  # fmt: skip
from deepforecast.kernels.arima.presample import stationary_gradient
from deepforecast.kernels.compilation import inlined, inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@inlined
def filter_gradient(
    orders: Ints, variables: Floats, delta: Floats, n_unknown: int, variance_floor: float, workspace: Workspace
) -> None:
    """Write the gradient by lag to PHI_GRADIENT and THETA_GRADIENT, right after `likelihood_with_missing`.

    Gradients by FULL_PHI and RHO are accumulated over the time steps; `_initial_gradient` converts them to
    phi and theta and adds what enters through the initial state.
    """
    vectors, sequences, matrices, _, gram, states, covariances, cross_covariances = workspace
    state_length, begin = state_size(orders, delta), len(delta) - 1
    n_columns, n_steps = variables.shape
    error_weight = vectors[SUMMARY, 2] / (vectors[SUMMARY, 0] + vectors[SUMMARY, 2] * variance_floor)  # n / S
    _invert(gram, n_unknown)
    for i in range(state_length):
        vectors[FULL_PHI_GRADIENT, i] = 0.0
        vectors[RHO_GRADIENT, i] = 0.0
        for path in range(n_unknown + 1):
            states[MEAN_GRADIENT, path, i] = 0.0
        for j in range(state_length):
            covariances[COVARIANCE_GRADIENT, i, j] = 0.0
    for t in range(n_steps - 1, begin - 1, -1):
        is_observed = not math.isnan(variables[0, t])
        for path in range(n_unknown + 1):
            value = variables[path, t] if is_observed else sequences[path, t]
            if path == 0:
                for column in range(1, n_columns):
                    value -= vectors[BETA, column - 1] * (variables[column, t] if is_observed else sequences[column, t])
            for i in range(state_length):
                vectors[FULL_PHI_GRADIENT, i] += states[MEAN_GRADIENT, path, i] * value
        for i in range(state_length):
            covariance_effect = 0.0
            for j in range(state_length):
                covariance_effect += covariances[COVARIANCE_GRADIENT, i, j] * vectors[RHO, j]
            vectors[RHO_GRADIENT, i] += 2.0 * covariance_effect
        if is_observed:
            _step_observed(state_length, t, n_unknown, error_weight, variables, workspace)
        else:
            _step_missing(state_length, t, n_unknown, vectors, states, covariances, cross_covariances)
        for i in range(state_length):
            for j in range(state_length):
                covariances[COVARIANCE_GRADIENT, i, j] = covariances[NEXT_GRADIENT, i, j]
    _initial_gradient(orders, delta, n_columns, n_unknown, vectors, matrices, states, covariances)


@inner_no_alloc
def _step_observed(
    state_length: int, t: int, n_unknown: int, error_weight: float, variables: Floats, workspace: Workspace
) -> None:
    """Adjoint of an observed time step: v = y - a_1, F = P_11, K_i = P_i1 / F, see `kalman_filter`.

    Moves MEAN_GRADIENT to before the step and writes NEXT_GRADIENT, the covariance gradient before the step.
    """
    _, sequences, _, _, gram, states, covariances, cross_covariances = workspace
    variance = cross_covariances[t, 0]
    covariances[NEXT_GRADIENT, 0, 0] = 0.0
    for i in range(1, state_length):
        gain_effect = 0.0
        for j in range(1, state_length):
            covariances[NEXT_GRADIENT, i, j] = covariances[COVARIANCE_GRADIENT, i - 1, j - 1]
            gain_effect += covariances[COVARIANCE_GRADIENT, i - 1, j - 1] * cross_covariances[t, j]
        gain_effect /= variance
        covariances[NEXT_GRADIENT, i, 0] = -gain_effect
        covariances[NEXT_GRADIENT, 0, 0] += gain_effect * cross_covariances[t, i] / variance
    to_variance = 0.5 / variance
    for path in range(n_unknown + 1):
        error = sequences[len(variables), t] if path == 0 else variables[path, t] - sequences[path, t]
        to_error = error_weight * error / variance if path == 0 else 0.0
        for column in range(n_unknown if path > 0 else 0):
            to_error += gram[UNKNOWN_BLOCK, path - 1, column] * (variables[column + 1, t] - sequences[column + 1, t]) / variance
        to_variance -= 0.5 * to_error * error / variance
        level_gradient = 0.0
        for i in range(state_length - 1, 0, -1):
            states[MEAN_GRADIENT, path, i] = states[MEAN_GRADIENT, path, i - 1]
            level_gradient += states[MEAN_GRADIENT, path, i] * cross_covariances[t, i] / variance
            covariances[NEXT_GRADIENT, i, 0] += 0.5 * states[MEAN_GRADIENT, path, i] * error / variance
        to_variance -= level_gradient * error / variance
        states[MEAN_GRADIENT, path, 0] = -to_error - level_gradient
    covariances[NEXT_GRADIENT, 0, 0] += to_variance
    for i in range(1, state_length):
        covariances[NEXT_GRADIENT, 0, i] = covariances[NEXT_GRADIENT, i, 0]


@inner_no_alloc
def _step_missing(
    state_length: int, t: int, n_unknown: int, vectors: Floats, states: Floats, covariances: Floats, cross_covariances: Floats
) -> None:
    """Adjoint of a missing time step, in which the state moves by the full transition matrix.

    Adds to FULL_PHI_GRADIENT, moves MEAN_GRADIENT and writes NEXT_GRADIENT, as `_step_observed`.
    """
    covariances[NEXT_GRADIENT, 0, 0] = 0.0
    for i in range(state_length):
        shifted_gradient, phi_effect = 0.0, 0.0
        for j in range(state_length):
            shifted_gradient += covariances[COVARIANCE_GRADIENT, i, j] * vectors[FULL_PHI, j]
            next_covariance = cross_covariances[t, j + 1] if j + 1 < state_length else 0.0
            phi_effect += covariances[COVARIANCE_GRADIENT, i, j] * (
                next_covariance + vectors[FULL_PHI, j] * cross_covariances[t, 0]
            )
        vectors[FULL_PHI_GRADIENT, i] += 2.0 * phi_effect
        covariances[NEXT_GRADIENT, 0, 0] += shifted_gradient * vectors[FULL_PHI, i]
        if i + 1 < state_length:
            covariances[NEXT_GRADIENT, 0, i + 1] = shifted_gradient
            covariances[NEXT_GRADIENT, i + 1, 0] = shifted_gradient
            for j in range(state_length - 1):
                covariances[NEXT_GRADIENT, i + 1, j + 1] = covariances[COVARIANCE_GRADIENT, i, j]
    for path in range(n_unknown + 1):
        level_gradient = 0.0
        for i in range(state_length):
            level_gradient += vectors[FULL_PHI, i] * states[MEAN_GRADIENT, path, i]
        for i in range(state_length - 1, 0, -1):
            states[MEAN_GRADIENT, path, i] = states[MEAN_GRADIENT, path, i - 1]
        states[MEAN_GRADIENT, path, 0] = level_gradient


@inner_no_alloc
def _initial_gradient(
    orders: Ints,
    delta: Floats,
    n_columns: int,
    n_unknown: int,
    vectors: Floats,
    matrices: Floats,
    states: Floats,
    covariances: Floats,
) -> None:
    """Write PHI_GRADIENT and THETA_GRADIENT from the gradients by FULL_PHI, RHO and the initial state.

    The initial state depends on phi and theta through its mean, given the first m values, and through
    the stationary covariance V.
    """
    p, q, r = orders[P], orders[Q], orders[R]
    m, state_length = len(delta) - 1, state_size(orders, delta)
    for i in range(state_length):  # initial mean, less its regression
        for column in range(1, n_columns):
            states[INITIAL_MEAN, 0, i] -= vectors[BETA, column - 1] * states[INITIAL_MEAN, column, i]
    for lag in range(1, p + 1):
        lag_gradient = vectors[FULL_PHI_GRADIENT, lag - 1]
        for step in range(1, m + 1):
            if delta[step] != 0.0:
                lag_gradient -= delta[step] * vectors[FULL_PHI_GRADIENT, step + lag - 1]
        for path in range(n_unknown + 1):
            for i in range(lag, state_length):
                lag_gradient -= states[MEAN_GRADIENT, path, i] * states[INITIAL_MEAN, path, i - lag]
        vectors[PHI_GRADIENT, lag] = lag_gradient
    for i in range(1, q + 1):
        lag_gradient = vectors[RHO_GRADIENT, i]
        for j in range(state_length):
            lag_gradient += 2.0 * covariances[COVARIANCE_GRADIENT, i, j] * vectors[RHO, j]
        vectors[THETA_GRADIENT, i] = lag_gradient
    if r > 0:
        for i in range(r):
            for j in range(r):
                matrices[LOWER, i, j] = covariances[COVARIANCE_GRADIENT, i, j]
        stationary_gradient(orders, vectors, matrices, LOWER)


@inner_no_alloc
def _invert(gram: Floats, n_rows: int) -> None:
    """Invert the symmetric gram[UNKNOWN_BLOCK] in place (Gauss-Jordan); rows of collinear columns become 0."""
    for k in range(n_rows):
        pivot = gram[UNKNOWN_BLOCK, k, k]
        scale = 1.0 / pivot if pivot > 0.0 else 0.0
        for i in range(n_rows):
            multiplier = gram[UNKNOWN_BLOCK, i, k] * scale
            if i != k:
                for j in range(n_rows):
                    if j != k:
                        gram[UNKNOWN_BLOCK, i, j] -= multiplier * gram[UNKNOWN_BLOCK, k, j]
                gram[UNKNOWN_BLOCK, i, k] = -multiplier
        for j in range(n_rows):
            gram[UNKNOWN_BLOCK, k, j] *= scale
        gram[UNKNOWN_BLOCK, k, k] = scale
