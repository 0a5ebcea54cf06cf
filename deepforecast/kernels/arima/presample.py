"""Stationary covariance of the presample state, and its gradient.

Let f = phi, g = phi + theta (by lag, from 1). The predictable parts w_1 ... w_r of the next r
values follow w_i <- w_{i+1} + f_i w_1 + g_i e. Their stationary covariance V (in units of sigma^2)
satisfies

    V[i, j] = V[i+1, j+1] + f_i V[1, j+1] + f_j V[i+1, 1] + f_i f_j V[1, 1] + g_i g_j        (0 beyond r)

Summing along diagonals gives a linear system for the first row, triangular beyond the order p of
phi; the other rows follow from the first. Cost: O(r^2), plus O(p^3 / 3) for the system, per
evaluation.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import (
    COVARIANCE,
    F_GRADIENT,
    FIRST_ROW,
    G_GRADIENT,
    PHI,
    PHI_GRADIENT,
    PIVOTS,
    ROW,
    SYSTEM,
    THETA,
    THETA_GRADIENT,
    F,
    G,
    P,
    Q,
    R,
)
from deepforecast.kernels.compilation import inlined, inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@inner_no_alloc
def stationary_covariance(orders: Ints, vectors: Floats, matrices: Floats) -> bool:
    """Write V to matrices[COVARIANCE] and its first row to FIRST_ROW; False if not stationary."""
    p, q, r = orders[P], orders[Q], orders[R]
    for i in range(r):
        vectors[F, i] = vectors[PHI, i + 1] if i < p else 0.0
        vectors[G, i] = vectors[F, i] + (vectors[THETA, i + 1] if i < q else 0.0)
    vectors[FIRST_ROW, r] = 0.0
    for j in range(r - 1, -1, -1):
        total = 0.0
        for k in range(r - j):
            total += vectors[G, k] * vectors[G, j + k]
        for k in range(min(p, r - j - 1)):
            if j + 1 + k >= p:
                total += vectors[F, k] * vectors[FIRST_ROW, j + 1 + k]
        if j == 0 and p > 0:
            total += vectors[F, p - 1] * vectors[FIRST_ROW, p]
        vectors[FIRST_ROW, j] = total
    if p > 0:
        _yule_walker(p, vectors, matrices)
        if not _invert(p, vectors, matrices):
            return False
        for i in range(p):
            vectors[ROW, i] = vectors[FIRST_ROW, i]
        for i in range(p):
            total = 0.0
            for j in range(p):
                total += matrices[SYSTEM, i, j] * vectors[ROW, j]
            vectors[FIRST_ROW, i] = total
    first = vectors[FIRST_ROW, 0]
    for i in range(r - 1, -1, -1):
        for j in range(i, r):
            value = vectors[FIRST_ROW, j]
            if i > 0:
                value = matrices[COVARIANCE, i + 1, j + 1] if j + 1 < r else 0.0
                value += vectors[F, i] * vectors[FIRST_ROW, j + 1] + vectors[F, j] * vectors[FIRST_ROW, i + 1]
                value += vectors[F, i] * vectors[F, j] * first + vectors[G, i] * vectors[G, j]
            matrices[COVARIANCE, i, j] = value
            matrices[COVARIANCE, j, i] = value
    return bool(first >= 0.0 and math.isfinite(first))


@inner_no_alloc
def stationary_gradient(orders: Ints, vectors: Floats, matrices: Floats, gradient_slot: int) -> None:
    """Add the gradient through V to PHI_GRADIENT and THETA_GRADIENT.

    matrices[gradient_slot] is the symmetric gradient by V and is overwritten.
    """
    p, q, r = orders[P], orders[Q], orders[R]
    for i in range(r):
        vectors[FIRST_ROW, i] = matrices[COVARIANCE, 0, i]
        vectors[F_GRADIENT, i] = 0.0
        vectors[G_GRADIENT, i] = 0.0
        vectors[ROW, i] = (1.0 if i == 0 else 2.0) * matrices[gradient_slot, 0, i]
    vectors[FIRST_ROW, r] = 0.0
    vectors[ROW, r] = 0.0
    for i in range(1, r):
        to_f, to_g = 0.0, 0.0
        for j in range(1, r):
            if i > 1 and j > 1:
                matrices[gradient_slot, i, j] += matrices[gradient_slot, i - 1, j - 1]
            weight = matrices[gradient_slot, i, j]
            to_f += weight * (vectors[FIRST_ROW, j + 1] + vectors[F, j] * vectors[FIRST_ROW, 0])
            to_g += weight * vectors[G, j]
            vectors[ROW, j + 1] += 2.0 * weight * vectors[F, i]
            vectors[ROW, 0] += weight * vectors[F, i] * vectors[F, j]
        vectors[F_GRADIENT, i] += 2.0 * to_f
        vectors[G_GRADIENT, i] += 2.0 * to_g
    _first_row_gradient(p, r, vectors, matrices)
    for i in range(r):
        if i < p:
            vectors[PHI_GRADIENT, i + 1] += vectors[F_GRADIENT, i] + vectors[G_GRADIENT, i]
        if i < q:
            vectors[THETA_GRADIENT, i + 1] += vectors[G_GRADIENT, i]


@inlined
def _first_row_gradient(p: int, r: int, vectors: Floats, matrices: Floats) -> None:
    """Solve the transposed system for the gradient by the first row, in ROW."""
    for i in range(p):
        vectors[PIVOTS, i] = vectors[ROW, i]
    for i in range(p):
        total = 0.0
        for j in range(p):
            total += matrices[SYSTEM, j, i] * vectors[PIVOTS, j]
        vectors[ROW, i] = total
    for j in range(p, r):
        for k in range(min(p, j)):
            vectors[ROW, j] += vectors[F, k] * vectors[ROW, j - 1 - k]
        if j == p and p > 0:
            vectors[ROW, j] += vectors[F, p - 1] * vectors[ROW, 0]
    for j in range(r):
        weight = vectors[ROW, j]
        for k in range(r - j):
            vectors[G_GRADIENT, k] += weight * vectors[G, j + k]
            vectors[G_GRADIENT, j + k] += weight * vectors[G, k]
        for k in range(min(p, r - j - 1)):
            vectors[F_GRADIENT, k] += weight * vectors[FIRST_ROW, j + 1 + k]
        for k in range(p - j):
            vectors[F_GRADIENT, j + k] += weight * (vectors[FIRST_ROW, 1 + k] + vectors[F, k] * vectors[FIRST_ROW, 0])
            vectors[F_GRADIENT, k] += weight * vectors[F, j + k] * vectors[FIRST_ROW, 0]


@inlined
def _yule_walker(p: int, vectors: Floats, matrices: Floats) -> None:
    """Set up the system of the first p entries of the first row."""
    for j in range(p):
        for c in range(p):
            value = 1.0 if c == j else 0.0
            if c >= j + 1:
                value -= vectors[F, c - j - 1]
            if c >= 1 and j + c - 1 < p:
                value -= vectors[F, j + c - 1]
            matrices[SYSTEM, j, c] = value
        for k in range(p - j):
            matrices[SYSTEM, j, 0] -= vectors[F, k] * vectors[F, j + k]


@inlined
def _invert(size: int, vectors: Floats, matrices: Floats) -> bool:
    """Invert the system (Gauss-Jordan with partial pivoting)."""
    for k in range(size):
        best = k
        for i in range(k + 1, size):
            if abs(matrices[SYSTEM, i, k]) > abs(matrices[SYSTEM, best, k]):
                best = i
        vectors[PIVOTS, k] = best
        pivot = matrices[SYSTEM, best, k]
        if not abs(pivot) > 0.0:
            return False
        for j in range(size):
            swapped = matrices[SYSTEM, best, j]
            matrices[SYSTEM, best, j] = matrices[SYSTEM, k, j]
            matrices[SYSTEM, k, j] = (swapped if j != k else 1.0) / pivot
        for i in range(size):
            multiplier = matrices[SYSTEM, i, k]
            if i != k and multiplier != 0.0:
                matrices[SYSTEM, i, k] = 0.0
                for j in range(size):
                    matrices[SYSTEM, i, j] -= multiplier * matrices[SYSTEM, k, j]
    for k in range(size - 1, -1, -1):
        pivot_row = int(vectors[PIVOTS, k])
        for i in range(size if pivot_row != k else 0):
            swapped = matrices[SYSTEM, i, k]
            matrices[SYSTEM, i, k] = matrices[SYSTEM, i, pivot_row]
            matrices[SYSTEM, i, pivot_row] = swapped
    return True
