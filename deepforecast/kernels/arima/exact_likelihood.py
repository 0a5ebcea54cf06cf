"""Exact likelihood of complete ARMA data with regressors, and its gradient.

With zeros before the first row, the recursion theta(B) e = phi(B) z gives e0 = L^-1 z. The
presample effect on the first r rows, w ~ N(0, sigma^2 V), adds the first r columns X of
theta(B)^-1, so that e = e0 - X w and

    -2 log L = n log(2 pi sigma^2) + log det(I + V G) + min_w Q(w) / sigma^2,
    Q(w) = |e0 - X w|^2 + w' V^-1 w,    G = X'X.

Only the sparse recursions run over all rows; the rest is dense of size r. Regression coefficients
(generalized least squares) and sigma are concentrated out. The gradient is the adjoint of the
recursions. Ljung & Box (1979), *Biometrika* 66, doi:10.1093/biomet/66.2.265, write the same
likelihood by backcasting.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import (
    BETA,
    COVARIANCE,
    GRAM,
    LOWER,
    PHI,
    PHI_GRADIENT,
    PHI_LAGS,
    POSTERIOR,
    POSTERIOR_GRAM,
    PRESAMPLE_SCORE,
    SUMMARY,
    THETA,
    THETA_GRADIENT,
    THETA_LAGS,
    R,
    Workspace,
)  # fmt: skip
from deepforecast.kernels.arima.least_squares import dot_product, solve_normal
from deepforecast.kernels.arima.presample import stationary_covariance, stationary_gradient
from deepforecast.kernels.arima.woodbury import gram_gradient, update_presample
from deepforecast.kernels.compilation import inlined, inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEGLIGIBLE_WEIGHT = 1e-18
"""Absolute value below which weights of 1 / theta are truncated."""


@inlined
def exact_likelihood(
    orders: Ints,
    lags: Ints,
    variables: Floats,
    floor: float,
    conditional: bool,
    with_gradient: bool,
    workspace: Workspace,
) -> float:
    """Return n log(S / n) / 2 + log det / 2 at PHI and THETA.

    S is the sum of squares plus n * `floor`, so that a perfect fit has a finite likelihood.
    `variables` (1 + regressors, rows) is complete. `conditional`: the presample effect is taken as
    0. `with_gradient`: write the gradient by lag to PHI_GRADIENT and THETA_GRADIENT.

    Rows of `sequences`: filtered columns, errors, values less their regression, weights of 1 /
    theta, gradient by the weights.
    """
    vectors, sequences, matrices, presample, gram, _, _, _ = workspace
    columns, rows = variables.shape
    weights = columns + 2
    length = _impulse_weights(orders, lags, rows, vectors, sequences, weights)
    for column in range(columns):
        for t in range(rows):
            sequences[column, t] = variables[column, t]
        _autoregress(orders, lags, variables, column, rows, vectors, sequences, column)
        divide_by_theta(orders, lags, rows, vectors, sequences, column)
    n_presample = 0 if conditional else min(orders[R], rows)
    determinant = 0.0
    if n_presample > 0:
        if not stationary_covariance(orders, vectors, matrices):
            return np.inf
        determinant = update_presample(n_presample, rows, length, sequences, weights, matrices)
        if not math.isfinite(determinant):
            return np.inf
    _presample_means(n_presample, rows, length, columns, sequences, matrices, presample)
    if columns > 1:
        _estimate_regression(n_presample, rows, columns, sequences, presample, gram, vectors)
    squares = _set_residuals(orders, lags, variables, n_presample, vectors, sequences, matrices, presample)
    total = squares + rows * floor
    vectors[SUMMARY, 0] = squares
    vectors[SUMMARY, 1] = determinant
    vectors[SUMMARY, 2] = rows
    if with_gradient:
        _gradient(orders, lags, columns, rows, n_presample, length, rows / total, workspace)
    return float(0.5 * (rows * math.log(total / rows) + determinant))


@inlined
def _impulse_weights(orders: Ints, lags: Ints, rows: int, vectors: Floats, sequences: Floats, weights_row: int) -> int:
    """Weights psi of 1 / theta(B); return how many are not negligible."""
    longest, last, t = orders[R], 0, 1
    sequences[weights_row, 0] = 1.0
    while t < rows and t - last <= longest:
        total = 0.0
        for index in range(orders[THETA_LAGS]):
            lag = lags[3, index]
            if lag > t:
                break
            total -= vectors[THETA, lag] * sequences[weights_row, t - lag]
        sequences[weights_row, t] = total
        if abs(total) > NEGLIGIBLE_WEIGHT:
            last = t
        t += 1
    for step in range(last + 1, rows + 1):
        sequences[weights_row, step] = 0.0
    return last + 1


@inner_no_alloc
def _autoregress(
    orders: Ints, lags: Ints, variables: Floats, source: int, rows: int, vectors: Floats, sequences: Floats, target: int
) -> None:
    """sequences[target, t] = variables[source, t] - sum_k phi_k variables[source, t - k]."""
    for index in range(orders[PHI_LAGS]):
        lag = lags[2, index]
        weight = vectors[PHI, lag]
        for t in range(lag, rows):
            sequences[target, t] -= weight * variables[source, t - lag]


@inner_no_alloc
def divide_by_theta(orders: Ints, lags: Ints, rows: int, vectors: Floats, sequences: Floats, target: int) -> None:
    """Apply theta(B)^-1 in place: e_t = x_t - sum_k theta_k e_{t-k}, zeros before the first row."""
    count = orders[THETA_LAGS]
    longest = lags[3, count - 1] if count > 0 else rows
    for t in range(min(longest, rows) if count > 0 else 0):
        total = sequences[target, t]
        for index in range(count):
            lag = lags[3, index]
            if lag > t:
                break
            total -= vectors[THETA, lag] * sequences[target, t - lag]
        sequences[target, t] = total
    for t in range(longest, rows):
        total = sequences[target, t]
        for index in range(count):
            lag = lags[3, index]
            total -= vectors[THETA, lag] * sequences[target, t - lag]
        sequences[target, t] = total


@inner_no_alloc
def _divide_transposed(orders: Ints, lags: Ints, rows: int, vectors: Floats, sequences: Floats, target: int) -> None:
    """Transpose of `divide_by_theta` in place, over the first `rows` values."""
    for t in range(rows - 1, -1, -1):
        total = sequences[target, t]
        for index in range(orders[THETA_LAGS]):
            lag = lags[3, index]
            if t + lag >= rows:
                break
            total -= vectors[THETA, lag] * sequences[target, t + lag]
        sequences[target, t] = total


@inlined
def _presample_means(
    n_presample: int, rows: int, length: int, columns: int, sequences: Floats, matrices: Floats, presample: Floats
) -> None:
    """Write X'e0 of each column to presample[0] and the mean of w, V (I + G V)^-1 X'e0, to
    presample[1].
    """
    for column in range(columns):
        for i in range(n_presample):
            presample[0, column, i] = dot_product(sequences, column, i, columns + 2, min(length, rows - i))
        for i in range(n_presample):
            total = 0.0
            for j in range(n_presample):
                total += matrices[POSTERIOR, i, j] * presample[0, column, j]
            presample[1, column, i] = total


@inlined
def _estimate_regression(
    n_presample: int, rows: int, columns: int, sequences: Floats, presample: Floats, gram: Floats, vectors: Floats
) -> None:
    """Regression coefficients by generalized least squares."""
    origin = rows - rows
    for row in range(columns):
        for column_index in range(row + 1):
            total = dot_product(sequences, row, origin, column_index, rows)
            for i in range(n_presample):
                total -= presample[1, row, i] * presample[0, column_index, i]
            gram[0, row, column_index] = total
    solve_normal(gram, columns, vectors)


@inner_no_alloc
def _set_residuals(
    orders: Ints,
    lags: Ints,
    variables: Floats,
    n_presample: int,
    vectors: Floats,
    sequences: Floats,
    matrices: Floats,
    presample: Floats,
) -> float:
    """Write the errors e = e0 - X w at the mean of w; return |e|^2 + w' V^-1 w."""
    columns, rows = variables.shape
    errors, values = columns, columns + 1
    for i in range(n_presample):
        for column in range(1, columns):
            presample[0, 0, i] -= vectors[BETA, column - 1] * presample[0, column, i]
            presample[1, 0, i] -= vectors[BETA, column - 1] * presample[1, column, i]
    for t in range(rows):
        sequences[values, t] = variables[0, t]
    for column in range(1, columns):
        weight = vectors[BETA, column - 1]
        for t in range(rows):
            sequences[values, t] -= weight * variables[column, t]
    for t in range(rows):
        sequences[errors, t] = sequences[values, t]
    _autoregress(orders, lags, sequences, values, rows, vectors, sequences, errors)
    presample_cost = 0.0
    for i in range(n_presample):
        score = presample[0, 0, i]
        for j in range(n_presample):
            score -= matrices[GRAM, i, j] * presample[1, 0, j]
        vectors[PRESAMPLE_SCORE, i] = score  # V^-1 w without inverting V
        sequences[errors, i] -= presample[1, 0, i]
    for i in range(n_presample):
        for j in range(n_presample):
            presample_cost += vectors[PRESAMPLE_SCORE, i] * matrices[COVARIANCE, i, j] * vectors[PRESAMPLE_SCORE, j]
    divide_by_theta(orders, lags, rows, vectors, sequences, errors)
    return presample_cost + dot_product(sequences, errors, rows - rows, errors, rows)


@inlined
def _gradient(
    orders: Ints, lags: Ints, columns: int, rows: int, n_presample: int, length: int, weight: float, workspace: Workspace
) -> None:
    """Gradient of the objective by lag; `weight` is n / S."""
    vectors, sequences, matrices, _, _, _, _, _ = workspace
    # Share a row, used in turn.
    errors, values, adjoint_errors, adjoint_weights = (
        columns,
        columns + 1,
        columns + 3,
        columns + 3,
    )
    for lag in range(vectors.shape[1]):
        vectors[PHI_GRADIENT, lag] = 0.0
        vectors[THETA_GRADIENT, lag] = 0.0
    for t in range(rows):
        sequences[adjoint_errors, t] = sequences[errors, t]
    _divide_transposed(orders, lags, rows, vectors, sequences, adjoint_errors)
    for index in range(orders[PHI_LAGS]):
        lag = lags[2, index]
        vectors[PHI_GRADIENT, lag] = -weight * dot_product(sequences, adjoint_errors, lag, values, rows - lag)
    for index in range(orders[THETA_LAGS]):
        lag = lags[3, index]
        vectors[THETA_GRADIENT, lag] = -weight * dot_product(sequences, adjoint_errors, lag, errors, rows - lag)
    if n_presample == 0:
        return
    for i in range(orders[R]):
        for j in range(orders[R]):
            is_used = i < n_presample and j < n_presample
            matrices[LOWER, i, j] = (
                0.5
                * (matrices[POSTERIOR_GRAM, i, j] - weight * vectors[PRESAMPLE_SCORE, i] * vectors[PRESAMPLE_SCORE, j])
                if is_used
                else 0.0
            )
    gram_gradient(n_presample, rows, length, sequences, columns + 2, matrices)
    _divide_transposed(orders, lags, length, vectors, sequences, adjoint_weights)
    for index in range(orders[THETA_LAGS]):
        lag = lags[3, index]
        vectors[THETA_GRADIENT, lag] -= dot_product(sequences, adjoint_weights, lag, columns + 2, length - lag)
    stationary_gradient(orders, vectors, matrices, LOWER)
