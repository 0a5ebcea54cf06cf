"""Least squares from sums of products, and those."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import BETA
from deepforecast.kernels.compiling import bare

Floats = NDArray[np.float64]

TOLD = 1e-10
"""A column of which less than this share is not said by those before it adds nothing."""


@bare
def solve_normal(gram: Floats, columns: int, vectors: Floats) -> None:
    """Coefficients into BETA from the products of all columns (lower half of gram[0]), the first of which is the target.

    gram[0] is written over by its Cholesky factor: a pivot of 0 where a column adds nothing, and then a coefficient of 0.
    """
    size = columns - 1
    for j in range(size):
        pivot = gram[0, j + 1, j + 1]
        for k in range(j):
            pivot -= gram[0, j + 1, k + 1] * gram[0, j + 1, k + 1]
        told = pivot > TOLD * gram[0, j + 1, j + 1]
        scale = 1.0 / math.sqrt(pivot) if told else 0.0
        gram[0, j + 1, j + 1] = math.sqrt(pivot) if told else 0.0
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


@bare
def product(tracks: Floats, one: int, shift: int, other: int, size: int) -> float:
    """Of `size` rows of a track from row `shift` and of another from row 0, in four sums: none has to wait for the others."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = size - size % 4 if size > 0 else 0
    for t in range(0, whole, 4):
        a += tracks[one, shift + t] * tracks[other, t]
        b += tracks[one, shift + t + 1] * tracks[other, t + 1]
        c += tracks[one, shift + t + 2] * tracks[other, t + 2]
        d += tracks[one, shift + t + 3] * tracks[other, t + 3]
    for t in range(whole, size):
        a += tracks[one, shift + t] * tracks[other, t]
    return (a + b) + (c + d)
