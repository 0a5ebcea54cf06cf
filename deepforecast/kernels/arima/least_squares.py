"""Least squares by the normal equations."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import BETA
from deepforecast.kernels.compilation import inner_no_alloc

Floats = NDArray[np.float64]

RANK_TOLERANCE = 1e-10
"""Relative size of a pivot below which a column is collinear with those before it."""


@inner_no_alloc
def solve_normal(gram: Floats, columns: int, vectors: Floats) -> None:
    """Write coefficients to BETA from the Gram matrix (lower half of gram[0]); column 0 is the
    target.

    gram[0] is overwritten by its Cholesky factor; a collinear column has pivot 0 and coefficient 0.
    """
    size = columns - 1
    for j in range(size):
        pivot = gram[0, j + 1, j + 1]
        for k in range(j):
            pivot -= gram[0, j + 1, k + 1] * gram[0, j + 1, k + 1]
        is_independent = pivot > RANK_TOLERANCE * gram[0, j + 1, j + 1]
        scale = 1.0 / math.sqrt(pivot) if is_independent else 0.0
        gram[0, j + 1, j + 1] = math.sqrt(pivot) if is_independent else 0.0
        for i in range(j + 1, size):
            total = gram[0, i + 1, j + 1]
            for k in range(j):
                total -= gram[0, i + 1, k + 1] * gram[0, j + 1, k + 1]
            gram[0, i + 1, j + 1] = total * scale
        total = gram[0, j + 1, 0]
        for k in range(j):
            total -= gram[0, j + 1, k + 1] * vectors[BETA, k]
        vectors[BETA, j] = total * scale
    for j in range(size - 1, -1, -1):
        total = vectors[BETA, j]
        for k in range(j + 1, size):
            total -= gram[0, k + 1, j + 1] * vectors[BETA, k]
        vectors[BETA, j] = total / gram[0, j + 1, j + 1] if gram[0, j + 1, j + 1] > 0.0 else 0.0


@inner_no_alloc
def dot_product(sequences: Floats, shifted: int, shift: int, reference: int, size: int) -> float:
    """Dot product of a sequence from row `shift` and another from row 0, in 4 independent sums."""
    sum_0, sum_1, sum_2, sum_3 = 0.0, 0.0, 0.0, 0.0
    blocked = size - size % 4 if size > 0 else 0
    for t in range(0, blocked, 4):
        sum_0 += sequences[shifted, shift + t] * sequences[reference, t]
        sum_1 += sequences[shifted, shift + t + 1] * sequences[reference, t + 1]
        sum_2 += sequences[shifted, shift + t + 2] * sequences[reference, t + 2]
        sum_3 += sequences[shifted, shift + t + 3] * sequences[reference, t + 3]
    for t in range(blocked, size):
        sum_0 += sequences[shifted, shift + t] * sequences[reference, t]
    return (sum_0 + sum_1) + (sum_2 + sum_3)
