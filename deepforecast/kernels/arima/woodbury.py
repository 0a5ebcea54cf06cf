"""Dense part of the exact likelihood: r x r matrices, r = max(p, q).

Notation of `exact_likelihood`: V covariance of the presample effect w, G = X'X.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import COVARIANCE, GRAM, INNER, LOWER, MIDDLE, POSTERIOR, POSTERIOR_GRAM
from deepforecast.kernels.arima.least_squares import dot_product
from deepforecast.kernels.compilation import inlined, inner_no_alloc

Floats = NDArray[np.float64]


@inner_no_alloc
def update_presample(n_rows: int, n_steps: int, n_weights: int, sequences: Floats, weights_row: int, matrices: Floats) -> float:
    """Return log det(I + V G), not finite if undefined.

    V is in matrices[COVARIANCE]; G is the Gram matrix of the weights of 1 / theta shifted by 0 ...
    n_rows - 1. Writes V (I + G V)^-1 to POSTERIOR and G (I + V G)^-1 to POSTERIOR_GRAM. With G = L L' both
    come from the well-conditioned M = I + L' V L (Woodbury identity): V - Z'Z with Z = chol(M)^-1 L' V, and
    Y'Y with Y = chol(M)^-1 L'. MIDDLE, INNER and LOWER are overwritten.
    """
    _gram_matrix(n_rows, n_steps, n_weights, sequences, weights_row, matrices)
    origin = n_rows - n_rows  # 0 as a variable: numba compiles again for each literal
    if not _cholesky(origin + GRAM, n_rows, matrices, origin + LOWER):
        return np.inf
    for i in range(n_rows):
        for j in range(n_rows):
            matrices[MIDDLE, i, j] = 0.0
        for k in range(i, n_rows):
            weight = matrices[LOWER, k, i]
            for j in range(n_rows):
                matrices[MIDDLE, i, j] += weight * matrices[COVARIANCE, k, j]
    for i in range(n_rows):
        for j in range(i + 1):
            element = 1.0 if i == j else 0.0
            for k in range(j, n_rows):
                element += matrices[MIDDLE, i, k] * matrices[LOWER, k, j]
            matrices[POSTERIOR, i, j] = element
    if not _cholesky(origin + POSTERIOR, n_rows, matrices, origin + INNER):
        return np.inf
    log_determinant = 0.0
    for i in range(n_rows):
        log_determinant += 2.0 * math.log(matrices[INNER, i, i])
    _solve_halves(n_rows, matrices)
    for i in range(n_rows):
        for j in range(n_rows):
            matrices[POSTERIOR, i, j] = matrices[COVARIANCE, i, j]
            matrices[INNER, i, j] = 0.0
    for k in range(n_rows):
        for i in range(n_rows):
            half_row, gram_row = matrices[MIDDLE, k, i], matrices[POSTERIOR_GRAM, k, i]
            for j in range(n_rows):
                matrices[POSTERIOR, i, j] -= half_row * matrices[MIDDLE, k, j]
                matrices[INNER, i, j] += gram_row * matrices[POSTERIOR_GRAM, k, j]
    for i in range(n_rows):
        for j in range(n_rows):
            matrices[POSTERIOR_GRAM, i, j] = matrices[INNER, i, j]
    return log_determinant


@inlined
def _solve_halves(n_rows: int, matrices: Floats) -> None:
    """Write Z to matrices[MIDDLE], in place of L' V, and Y to matrices[POSTERIOR_GRAM], by forward substitution."""
    for i in range(n_rows):
        for j in range(n_rows):
            matrices[POSTERIOR_GRAM, i, j] = matrices[LOWER, j, i] if j >= i else 0.0
        for k in range(i):
            weight = matrices[INNER, i, k]
            for j in range(n_rows):
                matrices[MIDDLE, i, j] -= weight * matrices[MIDDLE, k, j]
                matrices[POSTERIOR_GRAM, i, j] -= weight * matrices[POSTERIOR_GRAM, k, j]
        scale = 1.0 / matrices[INNER, i, i]
        for j in range(n_rows):
            matrices[MIDDLE, i, j] *= scale
            matrices[POSTERIOR_GRAM, i, j] *= scale


@inner_no_alloc
def _cholesky(source: int, n_rows: int, matrices: Floats, target: int) -> bool:
    """Write the lower Cholesky factor of matrices[source] to matrices[target]; False if not positive definite.

    Reads the lower half of the source; the upper half of the target becomes 0.
    """
    for j in range(n_rows):
        for k in range(j):
            matrices[target, k, j] = 0.0
        for i in range(j, n_rows):
            element = matrices[source, i, j]
            for k in range(j):
                element -= matrices[target, i, k] * matrices[target, j, k]
            if i > j:
                matrices[target, i, j] = element / matrices[target, j, j]
            elif element > 0.0:
                matrices[target, j, j] = math.sqrt(element)
            else:
                return False
    return True


@inlined
def _gram_matrix(n_rows: int, n_steps: int, n_weights: int, sequences: Floats, weights_row: int, matrices: Floats) -> None:
    """matrices[GRAM][i, j] = sum over t < n_steps of weights[t - i] weights[t - j]."""
    for lag in range(n_rows):
        product = dot_product(sequences, weights_row, lag, weights_row, min(n_weights, n_steps - lag))
        for i in range(n_rows - lag):
            matrices[GRAM, i, i + lag] = product
            matrices[GRAM, i + lag, i] = product
            product -= sequences[weights_row, n_steps - 1 - i - lag] * sequences[weights_row, n_steps - 1 - i]


@inner_no_alloc
def gram_gradient(n_rows: int, n_steps: int, n_weights: int, sequences: Floats, weights_row: int, matrices: Floats) -> None:
    """Write the gradient of sum(POSTERIOR * GRAM) / 2 by the weights to the row of `sequences` after theirs."""
    gradient_row = weights_row + 1
    for t in range(n_steps + 1):
        sequences[gradient_row, t] = 0.0
    for lag in range(n_rows):
        diagonal_sum = 0.0
        for i in range(n_rows - lag):
            diagonal_sum += matrices[POSTERIOR, i, i + lag]
        if lag == 0:
            diagonal_sum *= 0.5
        for k in range(min(n_weights, n_steps - lag)):
            sequences[gradient_row, k] += diagonal_sum * sequences[weights_row, k + lag]
        for k in range(min(n_weights, n_steps - lag)):
            sequences[gradient_row, k + lag] += diagonal_sum * sequences[weights_row, k]
        for i in range(1, n_rows - lag):
            multiplier = matrices[POSTERIOR, i, i + lag] * (0.5 if lag == 0 else 1.0)
            for k in range(n_steps - i - lag, min(n_steps - lag, n_weights)):
                sequences[gradient_row, k] -= multiplier * sequences[weights_row, k + lag]
                sequences[gradient_row, k + lag] -= multiplier * sequences[weights_row, k]
