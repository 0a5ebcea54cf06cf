"""The exact likelihood where values are missing, by a Kalman filter, and its gradient by the filter run in reverse.

State i after row t - 1: what phi, theta and all before t say of y_{t+i}, without what lies between; one transition is a shift
plus phi times the first state plus rho = (1, theta) times the new error. phi holds the differences too. Given the first m rows
(m: the order of the differences) the state at row m has the covariance of the stationary part, so nothing is diffuse; values
missing among these m rows are unknowns with a flat prior, each a column of its own beside the regressors (Ansley & Kohn 1985,
Annals of Statistics 13). An observed row leaves no uncertainty about itself, so that its gradient needs one column a row.

Once the uncertainty left by the past has died out, only a missing value brings it back: until then the gain stands still.
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

STEADY_TOLERANCE = 1e-14


@inner_no_alloc
def state_size(orders: Ints, delta: Floats) -> int:
    """How many states there are: the order of phi with its differences, or one more than that of theta."""
    return int(max(orders[P] + len(delta) - 1, orders[Q] + 1))


@inner_no_alloc
def initialize_filter(orders: Ints, delta: Floats, variables: Floats, vectors: Floats, matrices: Floats, states: Floats, covariances: Floats) -> bool:
    """Polynomials, and the state at row m = len(delta) - 1, given the m rows before. delta: 1 - delta_1 B - ..., by lag."""
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
    """Filter the rows from `begin`; the sum of the logarithms of their variances. A row is seen where data[0] is not NaN.

    Each column's prediction goes to its track, the covariance of the states with the row (by columns) to `cross_covariances`.
    """
    vectors, sequences, _, _, _, states, covariances, cross_covariances = workspace
    logs, product, columns = 0.0, 1.0, len(variables)
    is_steady = begin < 0  # whether nothing is left of the past's uncertainty; no constant, for which more would be compiled
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
    """The covariance after a row was seen; whether all of it has died out."""
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
def _update_missing(size: int, t: int, is_steady: bool, vectors: Floats, covariances: Floats, cross_covariances: Floats) -> None:
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
def likelihood_with_missing(orders: Ints, variables: Floats, delta: Floats, unknown: int, floor: float, workspace: Workspace) -> float:
    """As `exact`, for columns that are not differenced: the target, `unknown` columns for missing starts, regressors."""
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
    """Products of the columns' errors, over their variances; how many rows were seen."""
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
