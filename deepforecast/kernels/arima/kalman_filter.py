"""Exact likelihood with missing values by a Kalman filter.

Element i of the state before time t is the prediction of y_{t+i} from all values before t and the
coefficients, without the effect of y_t ... y_{t+i-1}. With rho = (1, theta_1, ...), phi the
autoregression times the differences (FULL_PHI), and the excess P - rho rho' (P: covariance of the
state in units of sigma^2), a time step computes

    v = y - a_1,    F = P_11,    K_i = P_i1 / F
    a_i' = a_{i+1} + K_{i+1} v + phi_i y       (missing: y = a_1, v = 0)
    -2 log L = sum (log(2 pi sigma^2 F) + v^2 / (sigma^2 F)),   over observed values

Given the first m values (m: order of differencing) the state at time m has the covariance of the
stationary part, so no diffuse prior is needed. Values missing among these m are unknowns with
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
    ERRORS,
    EXCESS,
    FULL_PHI,
    INITIAL_MEAN,
    MEAN,
    NORMAL,
    PHI,
    RHO,
    SUMMARY,
    THETA,
    UNKNOWN_BLOCK,
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

STEADY_TOLERANCE = 1e-14  # largest diagonal element of an excess that counts as converged to 0


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
    """Set FULL_PHI, RHO and the state at time m = len(delta) - 1, given the m values before.

    `delta` holds the coefficients of 1 - delta_1 B - ... by lag. INITIAL_MEAN gets the part of the state that
    the differencing predicts, MEAN the state after subtraction of its autoregression. False if phi is not
    stationary.
    """
    state_length, m = state_size(orders, delta), len(delta) - 1
    for i in range(state_length):
        vectors[FULL_PHI, i] = vectors[PHI, i + 1] if i < orders[P] else 0.0
        vectors[RHO, i] = vectors[THETA, i] if 0 < i <= orders[Q] else 0.0
    vectors[RHO, 0] = 1.0
    for step in range(1, m + 1):
        if delta[step] != 0.0:
            vectors[FULL_PHI, step - 1] += delta[step]
            for lag in range(1, orders[P] + 1):
                vectors[FULL_PHI, step + lag - 1] -= delta[step] * vectors[PHI, lag]
    if orders[R] > 0 and not stationary_covariance(orders, vectors, matrices):
        return False
    for i in range(state_length):
        for j in range(state_length):
            covariances[EXCESS, i, j] = matrices[COVARIANCE, i, j] if i < orders[R] and j < orders[R] else 0.0
    for column in range(len(variables)):
        for i in range(state_length):
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
def run_filter(state_length: int, variables: Floats, begin: int, workspace: Workspace) -> float:
    """Filter the time steps from `begin`; return the sum of log F over observed values (variables[0] not NaN).

    The one-step predictions of each column are written to `sequences`, the column P_i1 of each time step
    to `cross_covariances`. F is multiplied up before a logarithm is taken.
    """
    vectors, sequences, _, _, _, states, covariances, cross_covariances = workspace
    sum_of_logs = 0.0
    product = 1.0
    n_columns = len(variables)
    is_steady = begin < 0  # False, as a variable: numba compiles again for a constant
    for t in range(begin, variables.shape[1]):
        for i in range(state_length):
            cross_covariances[t, i] = vectors[RHO, i] if is_steady else covariances[EXCESS, i, 0] + vectors[RHO, i]
        is_observed = not math.isnan(variables[0, t])
        variance = cross_covariances[t, 0]
        for column in range(n_columns):
            prediction = states[MEAN, column, 0]
            value = variables[column, t] if is_observed else prediction
            sequences[column, t] = prediction
            error = (value - prediction) / variance
            for i in range(state_length - 1):
                increment = cross_covariances[t, i + 1] * error + vectors[FULL_PHI, i] * value
                states[MEAN, column, i] = states[MEAN, column, i + 1] + increment
            states[MEAN, column, state_length - 1] = vectors[FULL_PHI, state_length - 1] * value
        if is_observed:
            product *= variance
            if not 1e-200 < product < 1e200:
                sum_of_logs += math.log(product)
                product = 1.0
            if not is_steady:
                is_steady = _update_observed(state_length, t, vectors, covariances, cross_covariances)
        else:
            _update_missing(state_length, t, is_steady, vectors, covariances, cross_covariances)
            is_steady = False
    if is_steady:
        for i in range(state_length):
            for j in range(state_length):
                covariances[EXCESS, i, j] = 0.0
    return sum_of_logs + math.log(product)


@inner_no_alloc
def _update_observed(state_length: int, t: int, vectors: Floats, covariances: Floats, cross_covariances: Floats) -> bool:
    """Update the excess after an observed value; return whether it has converged to 0.

    excess'[i, j] = excess[i+1, j+1] + rho_{i+1} rho_{j+1} - P_{i+1,1} P_{j+1,1} / F
    """
    max_variance, variance = 0.0, cross_covariances[t, 0]
    for i in range(state_length - 1):
        gain, rho = cross_covariances[t, i + 1] / variance, vectors[RHO, i + 1]
        for j in range(state_length - 1):
            value = covariances[EXCESS, i + 1, j + 1] + rho * vectors[RHO, j + 1] - gain * cross_covariances[t, j + 1]
            covariances[EXCESS, i, j] = value
        max_variance = max(max_variance, abs(covariances[EXCESS, i, i]))
    for i in range(state_length):
        covariances[EXCESS, i, state_length - 1] = 0.0
        covariances[EXCESS, state_length - 1, i] = 0.0
    return max_variance < STEADY_TOLERANCE


@inner_no_alloc
def _update_missing(
    state_length: int, t: int, is_steady: bool, vectors: Floats, covariances: Floats, cross_covariances: Floats
) -> None:
    """Update the excess after a missing value, with the full transition matrix:

    excess'[i, j] = P[i+1, j+1] + phi_i P[1, j+1] + phi_j P[i+1, 1] + phi_i phi_j F    (0 beyond the state)
    """
    for i in range(state_length):
        row_phi = vectors[FULL_PHI, i]
        for j in range(state_length):
            column_phi = vectors[FULL_PHI, j]
            value = row_phi * column_phi * cross_covariances[t, 0]
            if j + 1 < state_length:
                value += row_phi * cross_covariances[t, j + 1]
            if i + 1 < state_length:
                value += column_phi * cross_covariances[t, i + 1]
            if i + 1 < state_length and j + 1 < state_length:
                value += vectors[RHO, i + 1] * vectors[RHO, j + 1] + (0.0 if is_steady else covariances[EXCESS, i + 1, j + 1])
            covariances[EXCESS, i, j] = value


@inlined
def likelihood_with_missing(
    orders: Ints, variables: Floats, delta: Floats, n_unknown: int, variance_floor: float, workspace: Workspace
) -> float:
    """As `exact_likelihood`, for undifferenced columns: target, unknown early values, regressors.

    The log determinant includes that of the normal equations of the unknown early values (flat prior).
    """
    vectors, sequences, matrices, _, gram, states, covariances, cross_covariances = workspace
    begin = len(delta) - 1
    n_columns, n_steps = variables.shape
    if not initialize_filter(orders, delta, variables, vectors, matrices, states, covariances):
        return np.inf
    log_determinant = run_filter(state_size(orders, delta), variables, begin, workspace)
    n_observed = _error_products(variables, begin, sequences, gram, cross_covariances)
    for i in range(n_unknown):
        for k in range(i + 1):
            gram[UNKNOWN_BLOCK, i, k] = gram[NORMAL, i + 1, k + 1]
            gram[UNKNOWN_BLOCK, k, i] = gram[NORMAL, i + 1, k + 1]
    solve_normal(gram, n_columns, vectors)
    for j in range(1, n_unknown + 1):
        if gram[NORMAL, j, j] > 0.0:
            log_determinant += 2.0 * math.log(gram[NORMAL, j, j])
            n_observed -= 1  # an identified unknown takes the place of an observation
    sum_of_squares, errors_row = 0.0, n_columns + ERRORS
    for t in range(begin, n_steps):
        if not math.isnan(variables[0, t]):
            error = variables[0, t] - sequences[0, t]
            for column in range(1, n_columns):
                error -= vectors[BETA, column - 1] * (variables[column, t] - sequences[column, t])
            sequences[errors_row, t] = error
            sum_of_squares += error * error / cross_covariances[t, 0]
    if n_observed < 1 or not math.isfinite(sum_of_squares + log_determinant):
        return np.inf
    floored_squares = sum_of_squares + n_observed * variance_floor
    vectors[SUMMARY, 0] = sum_of_squares
    vectors[SUMMARY, 1] = log_determinant
    vectors[SUMMARY, 2] = n_observed
    return 0.5 * (n_observed * math.log(floored_squares / n_observed) + log_determinant)


@inlined
def _error_products(variables: Floats, begin: int, sequences: Floats, gram: Floats, cross_covariances: Floats) -> int:
    """Write sum_t v_it v_jt / F_t of the columns' errors to gram[NORMAL]; return the number of observed values."""
    n_columns, n_steps = variables.shape
    n_observed = 0
    for i in range(n_columns):
        for j in range(n_columns):
            gram[NORMAL, i, j] = 0.0
    for t in range(begin, n_steps):
        if math.isnan(variables[0, t]):
            continue
        n_observed += 1
        for i in range(n_columns):
            error = (variables[i, t] - sequences[i, t]) / cross_covariances[t, 0]
            for j in range(i + 1):
                gram[NORMAL, i, j] += error * (variables[j, t] - sequences[j, t])
    return n_observed
