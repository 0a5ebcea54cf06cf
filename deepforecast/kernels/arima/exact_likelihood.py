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
    ADJOINT,
    BETA,
    COVARIANCE,
    ERRORS,
    GRAM,
    LOWER,
    N_PHI_LAGS,
    N_THETA_LAGS,
    NORMAL,
    PHI,
    PHI_GRADIENT,
    PHI_LAG_ROW,
    POSTERIOR,
    POSTERIOR_GRAM,
    PRESAMPLE_MEAN,
    PRESAMPLE_SCORE,
    SUMMARY,
    THETA,
    THETA_GRADIENT,
    THETA_LAG_ROW,
    VALUES,
    WEIGHTED_ERRORS,
    WEIGHTS,
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
    variance_floor: float,
    conditional: bool,
    with_gradient: bool,
    workspace: Workspace,
) -> float:
    """Return n log(S / n) / 2 + log det(I + V G) / 2 at PHI and THETA; infinite if phi is not stationary.

    S is the minimum of Q plus n * `variance_floor`, so that a perfect fit has a finite likelihood.
    `variables` (1 + regressors, n_steps) is complete. `conditional`: the presample effect w is taken as
    0. `with_gradient`: write the gradient by lag to PHI_GRADIENT and THETA_GRADIENT. BETA and SUMMARY are
    set; rows of `sequences` as in `layout`.
    """
    vectors, sequences, matrices, presample, gram, _, _, _ = workspace
    n_columns, n_steps = variables.shape
    weights_row = n_columns + WEIGHTS
    n_weights = _impulse_weights(orders, lags, n_steps, vectors, sequences, weights_row)
    for column in range(n_columns):
        for t in range(n_steps):
            sequences[column, t] = variables[column, t]
        _autoregress(orders, lags, variables, column, n_steps, vectors, sequences, column)
        divide_by_theta(orders, lags, n_steps, vectors, sequences, column)
    n_presample = 0 if conditional else min(orders[R], n_steps)
    log_determinant = 0.0
    if n_presample > 0:
        if not stationary_covariance(orders, vectors, matrices):
            return np.inf
        log_determinant = update_presample(n_presample, n_steps, n_weights, sequences, weights_row, matrices)
        if not math.isfinite(log_determinant):
            return np.inf
    _presample_means(n_presample, n_steps, n_weights, n_columns, sequences, matrices, presample)
    if n_columns > 1:
        _estimate_regression(n_presample, n_steps, n_columns, sequences, presample, gram, vectors)
    sum_of_squares = _set_residuals(orders, lags, variables, n_presample, vectors, sequences, matrices, presample)
    floored_squares = sum_of_squares + n_steps * variance_floor
    vectors[SUMMARY, 0] = sum_of_squares
    vectors[SUMMARY, 1] = log_determinant
    vectors[SUMMARY, 2] = n_steps
    if with_gradient:
        _gradient(orders, lags, n_columns, n_steps, n_presample, n_weights, n_steps / floored_squares, workspace)
    return float(0.5 * (n_steps * math.log(floored_squares / n_steps) + log_determinant))


@inlined
def _impulse_weights(orders: Ints, lags: Ints, n_steps: int, vectors: Floats, sequences: Floats, weights_row: int) -> int:
    """Write the weights psi of 1 / theta(B): psi_t = -sum_k theta_k psi_{t-k}; return how many are not negligible.

    The recursion ends after r consecutive negligible weights; the others are set to 0.
    """
    max_gap = orders[R]
    last_step = 0
    t = 1
    sequences[weights_row, 0] = 1.0
    while t < n_steps and t - last_step <= max_gap:
        weight = 0.0
        for index in range(orders[N_THETA_LAGS]):
            lag = lags[THETA_LAG_ROW, index]
            if lag > t:
                break
            weight -= vectors[THETA, lag] * sequences[weights_row, t - lag]
        sequences[weights_row, t] = weight
        if abs(weight) > NEGLIGIBLE_WEIGHT:
            last_step = t
        t += 1
    for t_after in range(last_step + 1, n_steps + 1):
        sequences[weights_row, t_after] = 0.0
    return last_step + 1


@inner_no_alloc
def _autoregress(
    orders: Ints, lags: Ints, variables: Floats, source: int, n_steps: int, vectors: Floats, sequences: Floats, target: int
) -> None:
    """sequences[target, t] -= sum_k phi_k variables[source, t - k], with 0 before the first value."""
    for index in range(orders[N_PHI_LAGS]):
        lag = lags[PHI_LAG_ROW, index]
        weight = vectors[PHI, lag]
        for t in range(lag, n_steps):
            sequences[target, t] -= weight * variables[source, t - lag]


@inner_no_alloc
def divide_by_theta(orders: Ints, lags: Ints, n_steps: int, vectors: Floats, sequences: Floats, target: int) -> None:
    """Apply theta(B)^-1 in place: e_t = x_t - sum_k theta_k e_{t-k}, zeros before the first value."""
    n_lags = orders[N_THETA_LAGS]
    longest = lags[THETA_LAG_ROW, n_lags - 1] if n_lags > 0 else n_steps
    for t in range(min(longest, n_steps) if n_lags > 0 else 0):
        value = sequences[target, t]
        for index in range(n_lags):
            lag = lags[THETA_LAG_ROW, index]
            if lag > t:
                break
            value -= vectors[THETA, lag] * sequences[target, t - lag]
        sequences[target, t] = value
    for t in range(longest, n_steps):
        value = sequences[target, t]
        for index in range(n_lags):
            lag = lags[THETA_LAG_ROW, index]
            value -= vectors[THETA, lag] * sequences[target, t - lag]
        sequences[target, t] = value


@inner_no_alloc
def _divide_transposed(orders: Ints, lags: Ints, n_steps: int, vectors: Floats, sequences: Floats, target: int) -> None:
    """Apply the transpose of `divide_by_theta` in place, to the first `n_steps` values, from the last backward."""
    for t in range(n_steps - 1, -1, -1):
        value = sequences[target, t]
        for index in range(orders[N_THETA_LAGS]):
            lag = lags[THETA_LAG_ROW, index]
            if t + lag >= n_steps:
                break
            value -= vectors[THETA, lag] * sequences[target, t + lag]
        sequences[target, t] = value


@inlined
def _presample_means(
    n_presample: int, n_steps: int, n_weights: int, n_columns: int, sequences: Floats, matrices: Floats, presample: Floats
) -> None:
    """Write X'e0 of each column to WEIGHTED_ERRORS, and V (I + G V)^-1 X'e0, the mean of w, to PRESAMPLE_MEAN."""
    for column in range(n_columns):
        for i in range(n_presample):
            presample[WEIGHTED_ERRORS, column, i] = dot_product(
                sequences, column, i, n_columns + WEIGHTS, min(n_weights, n_steps - i)
            )
        for i in range(n_presample):
            mean = 0.0
            for j in range(n_presample):
                mean += matrices[POSTERIOR, i, j] * presample[WEIGHTED_ERRORS, column, j]
            presample[PRESAMPLE_MEAN, column, i] = mean


@inlined
def _estimate_regression(
    n_presample: int, n_steps: int, n_columns: int, sequences: Floats, presample: Floats, gram: Floats, vectors: Floats
) -> None:
    """Write the regression coefficients to BETA, by generalized least squares.

    The normal equations are products e0_i'e0_j less w_i' X'e0_j of the filtered columns i, j.
    """
    origin = n_steps - n_steps  # 0 as a variable: numba compiles again for each literal argument
    for column in range(n_columns):
        for other_column in range(column + 1):
            product = dot_product(sequences, column, origin, other_column, n_steps)
            for i in range(n_presample):
                product -= presample[PRESAMPLE_MEAN, column, i] * presample[WEIGHTED_ERRORS, other_column, i]
            gram[NORMAL, column, other_column] = product
    solve_normal(gram, n_columns, vectors)


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
    """Write the errors e = e0 - X w at the mean of w to row ERRORS; return the minimum of Q.

    Also writes the values less their regression to row VALUES, and V^-1 w = X'e0 - G w to PRESAMPLE_SCORE, which
    gives w' V^-1 w = (V^-1 w)' V (V^-1 w) without inverting V.
    """
    n_columns, n_steps = variables.shape
    errors, values = n_columns + ERRORS, n_columns + VALUES
    origin = n_steps - n_steps  # 0 as a variable, as above
    for i in range(n_presample):
        for column in range(1, n_columns):
            presample[WEIGHTED_ERRORS, 0, i] -= vectors[BETA, column - 1] * presample[WEIGHTED_ERRORS, column, i]
            presample[PRESAMPLE_MEAN, 0, i] -= vectors[BETA, column - 1] * presample[PRESAMPLE_MEAN, column, i]
    for t in range(n_steps):
        sequences[values, t] = variables[0, t]
    for column in range(1, n_columns):
        weight = vectors[BETA, column - 1]
        for t in range(n_steps):
            sequences[values, t] -= weight * variables[column, t]
    for t in range(n_steps):
        sequences[errors, t] = sequences[values, t]
    _autoregress(orders, lags, sequences, values, n_steps, vectors, sequences, errors)
    presample_cost = 0.0
    for i in range(n_presample):
        score = presample[WEIGHTED_ERRORS, 0, i]
        for j in range(n_presample):
            score -= matrices[GRAM, i, j] * presample[PRESAMPLE_MEAN, 0, j]
        vectors[PRESAMPLE_SCORE, i] = score  # V^-1 w without inverting V
        sequences[errors, i] -= presample[PRESAMPLE_MEAN, 0, i]
    for i in range(n_presample):
        for j in range(n_presample):
            presample_cost += vectors[PRESAMPLE_SCORE, i] * matrices[COVARIANCE, i, j] * vectors[PRESAMPLE_SCORE, j]
    divide_by_theta(orders, lags, n_steps, vectors, sequences, errors)
    return presample_cost + dot_product(sequences, errors, origin, errors, n_steps)


@inlined
def _gradient(
    orders: Ints,
    lags: Ints,
    n_columns: int,
    n_steps: int,
    n_presample: int,
    n_weights: int,
    error_weight: float,
    workspace: Workspace,
) -> None:
    """Write the gradient of the objective by lag; `error_weight` is n / S.

    With the adjoint errors a = theta(B)^-T e: -n/S sum_t a_t z_{t-k} by phi_k and -n/S sum_t a_t e_{t-k} by theta_k.
    The presample adds the gradients through G, by the weights of 1 / theta, and through V.
    """
    vectors, sequences, matrices, _, _, _, _, _ = workspace
    errors = n_columns + ERRORS
    values = n_columns + VALUES
    adjoint_errors = n_columns + ADJOINT
    adjoint_weights = n_columns + ADJOINT  # the same row, used after adjoint_errors
    for lag in range(vectors.shape[1]):
        vectors[PHI_GRADIENT, lag] = 0.0
        vectors[THETA_GRADIENT, lag] = 0.0
    for t in range(n_steps):
        sequences[adjoint_errors, t] = sequences[errors, t]
    _divide_transposed(orders, lags, n_steps, vectors, sequences, adjoint_errors)
    for index in range(orders[N_PHI_LAGS]):
        lag = lags[PHI_LAG_ROW, index]
        vectors[PHI_GRADIENT, lag] = -error_weight * dot_product(sequences, adjoint_errors, lag, values, n_steps - lag)
    for index in range(orders[N_THETA_LAGS]):
        lag = lags[THETA_LAG_ROW, index]
        vectors[THETA_GRADIENT, lag] = -error_weight * dot_product(sequences, adjoint_errors, lag, errors, n_steps - lag)
    if n_presample == 0:
        return
    for i in range(orders[R]):
        for j in range(orders[R]):
            is_used = i < n_presample and j < n_presample
            matrices[LOWER, i, j] = (
                0.5
                * (matrices[POSTERIOR_GRAM, i, j] - error_weight * vectors[PRESAMPLE_SCORE, i] * vectors[PRESAMPLE_SCORE, j])
                if is_used
                else 0.0
            )
    gram_gradient(n_presample, n_steps, n_weights, sequences, n_columns + WEIGHTS, matrices)
    _divide_transposed(orders, lags, n_weights, vectors, sequences, adjoint_weights)
    for index in range(orders[N_THETA_LAGS]):
        lag = lags[THETA_LAG_ROW, index]
        vectors[THETA_GRADIENT, lag] -= dot_product(sequences, adjoint_weights, lag, n_columns + WEIGHTS, n_weights - lag)
    stationary_gradient(orders, vectors, matrices, LOWER)
