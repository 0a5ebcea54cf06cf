"""Gradient of `likelihood_with_missing`: adjoint of the Kalman filter, from the last row to the
first.
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
def filter_gradient(orders: Ints, variables: Floats, delta: Floats, unknown: int, floor: float, workspace: Workspace) -> None:
    """Gradient by lag into PHI_GRADIENT and THETA_GRADIENT, right after `likelihood_with_missing`.

    Path 0 is the target less its regression; paths 1 to `unknown` are the unknown early values,
    whose determinant is part of the likelihood.
    """
    vectors, sequences, matrices, _, gram, states, covariances, cross_covariances = workspace
    size, begin, (columns, rows) = state_size(orders, delta), len(delta) - 1, variables.shape
    weight = vectors[SUMMARY, 2] / (vectors[SUMMARY, 0] + vectors[SUMMARY, 2] * floor)
    _invert(gram, unknown)
    for i in range(size):
        vectors[FULL_PHI_GRADIENT, i] = 0.0
        vectors[RHO_GRADIENT, i] = 0.0
        for path in range(unknown + 1):
            states[MEAN_GRADIENT, path, i] = 0.0
        for j in range(size):
            covariances[COVARIANCE_GRADIENT, i, j] = 0.0
    for t in range(rows - 1, begin - 1, -1):
        is_observed = not math.isnan(variables[0, t])
        for path in range(unknown + 1):
            value = variables[path, t] if is_observed else sequences[path, t]
            if path == 0:
                for column in range(1, columns):
                    value -= vectors[BETA, column - 1] * (variables[column, t] if is_observed else sequences[column, t])
            for i in range(size):
                vectors[FULL_PHI_GRADIENT, i] += states[MEAN_GRADIENT, path, i] * value
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += covariances[COVARIANCE_GRADIENT, i, j] * vectors[RHO, j]
            vectors[RHO_GRADIENT, i] += 2.0 * total
        if is_observed:
            _step_observed(size, t, unknown, weight, variables, workspace)
        else:
            _step_missing(size, t, unknown, vectors, states, covariances, cross_covariances)
        for i in range(size):
            for j in range(size):
                covariances[COVARIANCE_GRADIENT, i, j] = covariances[NEXT_GRADIENT, i, j]
    _initial_gradient(orders, delta, columns, unknown, vectors, matrices, states, covariances)


@inner_no_alloc
def _step_observed(size: int, t: int, unknown: int, weight: float, variables: Floats, workspace: Workspace) -> None:
    _, sequences, _, _, gram, states, covariances, cross_covariances = workspace
    variance = cross_covariances[t, 0]
    covariances[NEXT_GRADIENT, 0, 0] = 0.0
    for i in range(1, size):
        total = 0.0
        for j in range(1, size):
            covariances[NEXT_GRADIENT, i, j] = covariances[COVARIANCE_GRADIENT, i - 1, j - 1]
            total += covariances[COVARIANCE_GRADIENT, i - 1, j - 1] * cross_covariances[t, j]
        total /= variance
        covariances[NEXT_GRADIENT, i, 0] = -total
        covariances[NEXT_GRADIENT, 0, 0] += total * cross_covariances[t, i] / variance
    to_variance = 0.5 / variance
    for path in range(unknown + 1):
        error = sequences[len(variables), t] if path == 0 else variables[path, t] - sequences[path, t]
        to_error = weight * error / variance if path == 0 else 0.0
        for column in range(unknown if path > 0 else 0):
            to_error += gram[1, path - 1, column] * (variables[column + 1, t] - sequences[column + 1, t]) / variance
        to_variance -= 0.5 * to_error * error / variance
        level_gradient = 0.0
        for i in range(size - 1, 0, -1):
            states[MEAN_GRADIENT, path, i] = states[MEAN_GRADIENT, path, i - 1]
            level_gradient += states[MEAN_GRADIENT, path, i] * cross_covariances[t, i] / variance
            covariances[NEXT_GRADIENT, i, 0] += 0.5 * states[MEAN_GRADIENT, path, i] * error / variance
        to_variance -= level_gradient * error / variance
        states[MEAN_GRADIENT, path, 0] = -to_error - level_gradient
    covariances[NEXT_GRADIENT, 0, 0] += to_variance
    for i in range(1, size):
        covariances[NEXT_GRADIENT, 0, i] = covariances[NEXT_GRADIENT, i, 0]


@inner_no_alloc
def _step_missing(
    size: int, t: int, unknown: int, vectors: Floats, states: Floats, covariances: Floats, cross_covariances: Floats
) -> None:
    covariances[NEXT_GRADIENT, 0, 0] = 0.0
    for i in range(size):
        total, weighted = 0.0, 0.0
        for j in range(size):
            total += covariances[COVARIANCE_GRADIENT, i, j] * vectors[FULL_PHI, j]
            shifted = cross_covariances[t, j + 1] if j + 1 < size else 0.0
            weighted += covariances[COVARIANCE_GRADIENT, i, j] * (shifted + vectors[FULL_PHI, j] * cross_covariances[t, 0])
        vectors[FULL_PHI_GRADIENT, i] += 2.0 * weighted
        covariances[NEXT_GRADIENT, 0, 0] += total * vectors[FULL_PHI, i]
        if i + 1 < size:
            covariances[NEXT_GRADIENT, 0, i + 1] = total
            covariances[NEXT_GRADIENT, i + 1, 0] = total
            for j in range(size - 1):
                covariances[NEXT_GRADIENT, i + 1, j + 1] = covariances[COVARIANCE_GRADIENT, i, j]
    for path in range(unknown + 1):
        first = 0.0
        for i in range(size):
            first += vectors[FULL_PHI, i] * states[MEAN_GRADIENT, path, i]
        for i in range(size - 1, 0, -1):
            states[MEAN_GRADIENT, path, i] = states[MEAN_GRADIENT, path, i - 1]
        states[MEAN_GRADIENT, path, 0] = first


@inner_no_alloc
def _initial_gradient(
    orders: Ints,
    delta: Floats,
    columns: int,
    unknown: int,
    vectors: Floats,
    matrices: Floats,
    states: Floats,
    covariances: Floats,
) -> None:
    p, q, r, m, size = orders[P], orders[Q], orders[R], len(delta) - 1, state_size(orders, delta)
    for i in range(size):  # initial mean, less its regression
        for column in range(1, columns):
            states[INITIAL_MEAN, 0, i] -= vectors[BETA, column - 1] * states[INITIAL_MEAN, column, i]
    for lag in range(1, p + 1):
        total = vectors[FULL_PHI_GRADIENT, lag - 1]
        for step in range(1, m + 1):
            if delta[step] != 0.0:
                total -= delta[step] * vectors[FULL_PHI_GRADIENT, step + lag - 1]
        for path in range(unknown + 1):
            for i in range(lag, size):
                total -= states[MEAN_GRADIENT, path, i] * states[INITIAL_MEAN, path, i - lag]
        vectors[PHI_GRADIENT, lag] = total
    for i in range(1, q + 1):
        total = vectors[RHO_GRADIENT, i]
        for j in range(size):
            total += 2.0 * covariances[COVARIANCE_GRADIENT, i, j] * vectors[RHO, j]
        vectors[THETA_GRADIENT, i] = total
    if r > 0:
        for i in range(r):
            for j in range(r):
                matrices[LOWER, i, j] = covariances[COVARIANCE_GRADIENT, i, j]
        stationary_gradient(orders, vectors, matrices, LOWER)


@inner_no_alloc
def _invert(gram: Floats, size: int) -> None:
    """Invert symmetric gram[1] in place (Gauss-Jordan); rows of collinear columns become 0."""
    for k in range(size):
        pivot = gram[1, k, k]
        scale = 1.0 / pivot if pivot > 0.0 else 0.0
        for i in range(size):
            multiplier = gram[1, i, k] * scale
            if i != k:
                for j in range(size):
                    if j != k:
                        gram[1, i, j] -= multiplier * gram[1, k, j]
                gram[1, i, k] = -multiplier
        for j in range(size):
            gram[1, k, j] *= scale
        gram[1, k, k] = scale
