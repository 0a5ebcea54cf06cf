"""Exact likelihood with missing values by a Kalman filter.

State i before row t is the prediction of y_{t+i} from all rows before t and the coefficients,
without the effect of y_t ... y_{t+i-1}. With rho = (1, theta_1, ...), phi the autoregression times
the differences, and excess P - rho rho' (P: covariance of the state in units of sigma^2), a row
computes

    v = y - a_1,    F = P_11,    K_i = P_i1 / F
    a_i' = a_{i+1} + K_{i+1} v + phi_i y       (missing: y = a_1, v = 0)
    log L = -1/2 sum (log F + v^2 / (sigma^2 F)),   over observed rows

Given the first m rows (m: order of differencing) the state at row m has the covariance of the
stationary part, so no diffuse prior is needed. Values missing among these m rows are unknowns with
a flat prior, each with a column of its own next to the regressors. Once the excess has converged to
0 the gain is constant (steady state) until the next missing value.

References
----------
Durbin & Koopman (2012), *Time Series Analysis by State Space Methods*, 2nd ed., Oxford, chapter 4.
Ansley & Kohn (1985), *Annals of Statistics* 13, doi:10.1214/aos/1176349739.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import (
    BETA,
    COVARIANCE,
    EXCESS,
    FULL_PHI,
    INITIAL_MEAN,
    MEAN,
    PHI,
    RHO,
    SUMMARY,
    THETA,
    P,
    Q,
    R,
    Workspace,
)  # fmt: skip
from deepforecast.kernels.arima.least_squares import solve_normal
from deepforecast.kernels.arima.presample import stationary_covariance
from deepforecast.kernels.compilation import inlined, inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEADY_TOLERANCE = 1e-14  # of the excess


@inner_no_alloc
def state_size(orders: Ints, delta: Floats) -> int:
    """Size of the state: max(p + m, q + 1)."""
    return int(max(orders[P] + len(delta) - 1, orders[Q] + 1))


@inner_no_alloc
def initialize_filter(
    orders: Ints,
    delta: Floats,
    variables: Floats,
    vectors: Floats,
    matrices: Floats,
    states: Floats,
    covariances: Floats,
) -> bool:
    """Set FULL_PHI, RHO and the state at row m = len(delta) - 1, given the m rows before.

    `delta` holds the coefficients of 1 - delta_1 B - ... by lag. False if phi is not stationary.
    """
    size, m = state_size(orders, delta), len(delta) - 1
    for i in range(size):
        vectors[FULL_PHI, i] = vectors[PHI, i + 1] if i < orders[P] else 0.0
        vectors[RHO, i] = vectors[THETA, i] if 0 < i <= orders[Q] else 1.0 if i == 0 else 0.0
    for step in range(1, m + 1):
        if delta[step] != 0.0:
            vectors[FULL_PHI, step - 1] += delta[step]
            for lag in range(1, orders[P] + 1):
                vectors[FULL_PHI, step + lag - 1] -= delta[step] * vectors[PHI, lag]
    if orders[R] > 0 and not stationary_covariance(orders, vectors, matrices):
        return False
    for i in range(size):
        for j in range(size):
            covariances[EXCESS, i, j] = matrices[COVARIANCE, i, j] if i < orders[R] and j < orders[R] else 0.0
    for column in range(len(variables)):
        for i in range(size):
            states[INITIAL_MEAN, column, i] = 0.0
            for lag in range(i + 1, m + 1):
                early_value = variables[column, m + i - lag]
                if delta[lag] != 0.0 and not math.isnan(early_value):
                    states[INITIAL_MEAN, column, i] += delta[lag] * early_value
            mean = states[INITIAL_MEAN, column, i]
            for lag in range(1, min(i, orders[P]) + 1):
                mean -= vectors[PHI, lag] * states[INITIAL_MEAN, column, i - lag]
            states[MEAN, column, i] = mean
    return True


@inner_no_alloc
def run_filter(size: int, variables: Floats, begin: int, workspace: Workspace) -> float:
    """Filter the rows from `begin`; return the sum of log F over observed rows (variables[0] not
    NaN).

    Predictions of each column go to `sequences`, the column P_i1 of each row to
    `cross_covariances`.
    """
    vectors, sequences, _, _, _, states, covariances, cross_covariances = workspace
    logs, product, columns = 0.0, 1.0, len(variables)
    is_steady = begin < 0  # False, as a variable: numba compiles again for a constant
    for t in range(begin, variables.shape[1]):
        for i in range(size):
            cross_covariances[t, i] = vectors[RHO, i] if is_steady else covariances[EXCESS, i, 0] + vectors[RHO, i]
        is_observed = not math.isnan(variables[0, t])
        variance = cross_covariances[t, 0]
        for column in range(columns):
            prediction = states[MEAN, column, 0]
            value = variables[column, t] if is_observed else prediction
            sequences[column, t] = prediction
            error = (value - prediction) / variance
            for i in range(size - 1):
                increment = cross_covariances[t, i + 1] * error + vectors[FULL_PHI, i] * value
                states[MEAN, column, i] = states[MEAN, column, i + 1] + increment
            states[MEAN, column, size - 1] = vectors[FULL_PHI, size - 1] * value
        if is_observed:
            product *= variance
            if not 1e-200 < product < 1e200:
                logs += math.log(product)
                product = 1.0
            if not is_steady:
                is_steady = _update_observed(size, t, vectors, covariances, cross_covariances)
        else:
            _update_missing(size, t, is_steady, vectors, covariances, cross_covariances)
            is_steady = False
    if is_steady:
        for i in range(size):
            for j in range(size):
                covariances[EXCESS, i, j] = 0.0
    return logs + math.log(product)


@inner_no_alloc
def _update_observed(size: int, t: int, vectors: Floats, covariances: Floats, cross_covariances: Floats) -> bool:
    """Update the excess after an observed row; return whether it has converged to 0."""
    largest, variance = 0.0, cross_covariances[t, 0]
    for i in range(size - 1):
        gain, rho = cross_covariances[t, i + 1] / variance, vectors[RHO, i + 1]
        for j in range(size - 1):
            value = covariances[EXCESS, i + 1, j + 1] + rho * vectors[RHO, j + 1] - gain * cross_covariances[t, j + 1]
            covariances[EXCESS, i, j] = value
        largest = max(largest, abs(covariances[EXCESS, i, i]))
    for i in range(size):
        covariances[EXCESS, i, size - 1] = 0.0
        covariances[EXCESS, size - 1, i] = 0.0
    return largest < STEADY_TOLERANCE


@inner_no_alloc
def _update_missing(
    size: int, t: int, is_steady: bool, vectors: Floats, covariances: Floats, cross_covariances: Floats
) -> None:
    for i in range(size):
        row_phi = vectors[FULL_PHI, i]
        for j in range(size):
            column_phi = vectors[FULL_PHI, j]
            value = row_phi * column_phi * cross_covariances[t, 0]
            if j + 1 < size:
                value += row_phi * cross_covariances[t, j + 1]
            if i + 1 < size:
                value += column_phi * cross_covariances[t, i + 1]
            if i + 1 < size and j + 1 < size:
                value += vectors[RHO, i + 1] * vectors[RHO, j + 1] + (0.0 if is_steady else covariances[EXCESS, i + 1, j + 1])
            covariances[EXCESS, i, j] = value


@inlined
def likelihood_with_missing(
    orders: Ints, variables: Floats, delta: Floats, unknown: int, floor: float, workspace: Workspace
) -> float:
    """As `exact_likelihood`, for undifferenced columns: target, unknown early values, regressors."""
    vectors, sequences, matrices, _, gram, states, covariances, cross_covariances = workspace
    begin, (columns, rows) = len(delta) - 1, variables.shape
    if not initialize_filter(orders, delta, variables, vectors, matrices, states, covariances):
        return np.inf
    determinant = run_filter(state_size(orders, delta), variables, begin, workspace)
    count = _error_products(variables, begin, sequences, gram, cross_covariances)
    for i in range(unknown):
        for k in range(i + 1):
            gram[1, i, k] = gram[0, i + 1, k + 1]
            gram[1, k, i] = gram[0, i + 1, k + 1]
    solve_normal(gram, columns, vectors)
    for j in range(1, unknown + 1):
        if gram[0, j, j] > 0.0:
            determinant += 2.0 * math.log(gram[0, j, j])
            count -= 1
    squares, errors = 0.0, columns
    for t in range(begin, rows):
        if not math.isnan(variables[0, t]):
            error = variables[0, t] - sequences[0, t]
            for column in range(1, columns):
                error -= vectors[BETA, column - 1] * (variables[column, t] - sequences[column, t])
            sequences[errors, t] = error
            squares += error * error / cross_covariances[t, 0]
    if count < 1 or not math.isfinite(squares + determinant):
        return np.inf
    total = squares + count * floor
    vectors[SUMMARY, 0] = squares
    vectors[SUMMARY, 1] = determinant
    vectors[SUMMARY, 2] = count
    return 0.5 * (count * math.log(total / count) + determinant)


@inlined
def _error_products(variables: Floats, begin: int, sequences: Floats, gram: Floats, cross_covariances: Floats) -> int:
    """Products of the columns' errors over F; return the number of observed rows."""
    columns, rows = variables.shape
    count = 0
    for i in range(columns):
        for j in range(columns):
            gram[0, i, j] = 0.0
    for t in range(begin, rows):
        if math.isnan(variables[0, t]):
            continue
        count += 1
        for i in range(columns):
            error = (variables[i, t] - sequences[i, t]) / cross_covariances[t, 0]
            for j in range(i + 1):
                gram[0, i, j] += error * (variables[j, t] - sequences[j, t])
    return count
