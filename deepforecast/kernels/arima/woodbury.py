"""Dense part of the exact likelihood: r x r matrices, r = max(p, q)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import COVARIANCE, GRAM, INNER, LOWER, MIDDLE, POSTERIOR, POSTERIOR_GRAM
from deepforecast.kernels.arima.least_squares import dot_product
from deepforecast.kernels.compilation import inlined, inner_no_alloc

Floats = NDArray[np.float64]


@inner_no_alloc
def update_presample(size: int, rows: int, length: int, sequences: Floats, weights: int, matrices: Floats) -> float:
    """Return log det(I + V G), not finite if undefined.

    V is in matrices[COVARIANCE], G the Gram matrix of shifted weights. Writes V (I + G V)^-1 to
    POSTERIOR and G (I + V G)^-1 to POSTERIOR_GRAM. With G = L L' both come from the
    well-conditioned M = I + L' V L (Woodbury): V - Z'Z with Z = chol(M)^-1 L' V, and Y'Y with Y =
    chol(M)^-1 L'.
    """
    _gram_matrix(size, rows, length, sequences, weights, matrices)
    origin = size - size  # 0 as a variable: numba compiles again for each literal
    if not _cholesky(origin + GRAM, size, matrices, origin + LOWER):
        return np.inf
    for i in range(size):
        for j in range(size):
            matrices[MIDDLE, i, j] = 0.0
        for k in range(i, size):
            weight = matrices[LOWER, k, i]
            for j in range(size):
                matrices[MIDDLE, i, j] += weight * matrices[COVARIANCE, k, j]
    for i in range(size):
        for j in range(i + 1):
            total = 1.0 if i == j else 0.0
            for k in range(j, size):
                total += matrices[MIDDLE, i, k] * matrices[LOWER, k, j]
            matrices[POSTERIOR, i, j] = total
    if not _cholesky(origin + POSTERIOR, size, matrices, origin + INNER):
        return np.inf
    determinant = 0.0
    for i in range(size):
        determinant += 2.0 * math.log(matrices[INNER, i, i])
    _solve_halves(size, matrices)
    for i in range(size):
        for j in range(size):
            matrices[POSTERIOR, i, j] = matrices[COVARIANCE, i, j]
            matrices[INNER, i, j] = 0.0
    for k in range(size):
        for i in range(size):
            half_row, gram_row = matrices[MIDDLE, k, i], matrices[POSTERIOR_GRAM, k, i]
            for j in range(size):
                matrices[POSTERIOR, i, j] -= half_row * matrices[MIDDLE, k, j]
                matrices[INNER, i, j] += gram_row * matrices[POSTERIOR_GRAM, k, j]
    for i in range(size):
        for j in range(size):
            matrices[POSTERIOR_GRAM, i, j] = matrices[INNER, i, j]
    return determinant


@inlined
def _solve_halves(size: int, matrices: Floats) -> None:
    """Write Z to matrices[MIDDLE] and Y to matrices[POSTERIOR_GRAM]."""
    for i in range(size):
        for j in range(size):
            matrices[POSTERIOR_GRAM, i, j] = matrices[LOWER, j, i] if j >= i else 0.0
        for k in range(i):
            weight = matrices[INNER, i, k]
            for j in range(size):
                matrices[MIDDLE, i, j] -= weight * matrices[MIDDLE, k, j]
                matrices[POSTERIOR_GRAM, i, j] -= weight * matrices[POSTERIOR_GRAM, k, j]
        scale = 1.0 / matrices[INNER, i, i]
        for j in range(size):
            matrices[MIDDLE, i, j] *= scale
            matrices[POSTERIOR_GRAM, i, j] *= scale


@inner_no_alloc
def _cholesky(source: int, size: int, matrices: Floats, target: int) -> bool:
    """Lower Cholesky factor from the lower half of a symmetric matrix; upper half 0."""
    for j in range(size):
        for k in range(j):
            matrices[target, k, j] = 0.0
        for i in range(j, size):
            total = matrices[source, i, j]
            for k in range(j):
                total -= matrices[target, i, k] * matrices[target, j, k]
            if i > j:
                matrices[target, i, j] = total / matrices[target, j, j]
            elif total > 0.0:
                matrices[target, j, j] = math.sqrt(total)
            else:
                return False
    return True


@inlined
def _gram_matrix(size: int, rows: int, length: int, sequences: Floats, weights: int, matrices: Floats) -> None:
    """matrices[GRAM][i, j] = sum over t < rows of weights[t - i] weights[t - j]."""
    for lag in range(size):
        total = dot_product(sequences, weights, lag, weights, min(length, rows - lag))
        for i in range(size - lag):
            matrices[GRAM, i, i + lag] = total
            matrices[GRAM, i + lag, i] = total
            total -= sequences[weights, rows - 1 - i - lag] * sequences[weights, rows - 1 - i]


@inner_no_alloc
def gram_gradient(size: int, rows: int, length: int, sequences: Floats, weights: int, matrices: Floats) -> None:
    """Gradient of sum(POSTERIOR * GRAM) / 2 by the weights, into the row after theirs."""
    gradient_row = weights + 1
    for t in range(rows + 1):
        sequences[gradient_row, t] = 0.0
    for lag in range(size):
        total = 0.0
        for i in range(size - lag):
            total += matrices[POSTERIOR, i, i + lag]
        if lag == 0:
            total *= 0.5
        for k in range(min(length, rows - lag)):
            sequences[gradient_row, k] += total * sequences[weights, k + lag]
        for k in range(min(length, rows - lag)):
            sequences[gradient_row, k + lag] += total * sequences[weights, k]
        for i in range(1, size - lag):
            multiplier = matrices[POSTERIOR, i, i + lag] * (0.5 if lag == 0 else 1.0)
            for k in range(rows - i - lag, min(rows - lag, length)):
                sequences[gradient_row, k] -= multiplier * sequences[weights, k + lag]
                sequences[gradient_row, k + lag] -= multiplier * sequences[weights, k]
