"""Least squares by the normal equations, and dot products of shifted sequences."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import BETA, NORMAL
from deepforecast.kernels.compilation import inner_no_alloc

Floats = NDArray[np.float64]

RANK_TOLERANCE = 1e-10
"""Relative size of a pivot below which a column is collinear with those before it."""


@inner_no_alloc
def solve_normal(gram: Floats, n_columns: int, vectors: Floats) -> None:
    """Write regression coefficients to BETA; column 0 of the Gram matrix is the target.

    Reads the lower half of gram[NORMAL] and overwrites its block of regressors by the Cholesky factor. A
    column that is collinear with earlier ones has pivot 0 and coefficient 0.
    """
    n_regressors = n_columns - 1
    for j in range(n_regressors):
        pivot = gram[NORMAL, j + 1, j + 1]
        for k in range(j):
            pivot -= gram[NORMAL, j + 1, k + 1] * gram[NORMAL, j + 1, k + 1]
        is_independent = pivot > RANK_TOLERANCE * gram[NORMAL, j + 1, j + 1]
        scale = 1.0 / math.sqrt(pivot) if is_independent else 0.0
        gram[NORMAL, j + 1, j + 1] = math.sqrt(pivot) if is_independent else 0.0
        for i in range(j + 1, n_regressors):
            element = gram[NORMAL, i + 1, j + 1]
            for k in range(j):
                element -= gram[NORMAL, i + 1, k + 1] * gram[NORMAL, j + 1, k + 1]
            gram[NORMAL, i + 1, j + 1] = element * scale
        right_side = gram[NORMAL, j + 1, 0]
        for k in range(j):
            right_side -= gram[NORMAL, j + 1, k + 1] * vectors[BETA, k]
        vectors[BETA, j] = right_side * scale
    for j in range(n_regressors - 1, -1, -1):
        coefficient = vectors[BETA, j]
        for k in range(j + 1, n_regressors):
            coefficient -= gram[NORMAL, k + 1, j + 1] * vectors[BETA, k]
        vectors[BETA, j] = coefficient / gram[NORMAL, j + 1, j + 1] if gram[NORMAL, j + 1, j + 1] > 0.0 else 0.0


@inner_no_alloc
def dot_product(sequences: Floats, shifted: int, shift: int, reference: int, n_terms: int) -> float:
    """Sum over t < n_terms of sequences[shifted, shift + t] * sequences[reference, t].

    Summed in 4 independent sums, which vectorize, in a fixed order.
    """
    sum_0, sum_1, sum_2, sum_3 = 0.0, 0.0, 0.0, 0.0
    n_blocked = n_terms - n_terms % 4 if n_terms > 0 else 0
    for t in range(0, n_blocked, 4):
        sum_0 += sequences[shifted, shift + t] * sequences[reference, t]
        sum_1 += sequences[shifted, shift + t + 1] * sequences[reference, t + 1]
        sum_2 += sequences[shifted, shift + t + 2] * sequences[reference, t + 2]
        sum_3 += sequences[shifted, shift + t + 3] * sequences[reference, t + 3]
    for t in range(n_blocked, n_terms):
        sum_0 += sequences[shifted, shift + t] * sequences[reference, t]
    return (sum_0 + sum_1) + (sum_2 + sum_3)
