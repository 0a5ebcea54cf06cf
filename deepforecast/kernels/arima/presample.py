"""Stationary covariance of the presample state, and its gradient.

Let f = phi, g = phi + theta (by lag, from 1). The predictable parts w_1 ... w_r of the next r
values follow w_i <- w_{i+1} + f_i w_1 + g_i e. Their stationary covariance V (in units of sigma^2)
satisfies

    V[i, j] = V[i+1, j+1] + f_i V[1, j+1] + f_j V[i+1, 1] + f_i f_j V[1, 1] + g_i g_j        (0 beyond r)

Summing along diagonals gives a linear system A v = c for the first row v, triangular beyond the order p
of phi; the other rows follow from the first. Cost: O(r^2), plus O(p^3 / 3) for the system, per
evaluation. In the code indices start at 0: F, G and FIRST_ROW hold f, g and v, ROW holds c, and
matrices[SYSTEM] holds A, then its inverse.
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
    """Write V to matrices[COVARIANCE] and its first row to FIRST_ROW; False if phi is not stationary.

    The first p elements of the first row solve the system of `_yule_walker`, the others follow backward.
    """
    p, q, r = orders[P], orders[Q], orders[R]
    for i in range(r):
        vectors[F, i] = vectors[PHI, i + 1] if i < p else 0.0
        vectors[G, i] = vectors[F, i] + (vectors[THETA, i + 1] if i < q else 0.0)
    vectors[FIRST_ROW, r] = 0.0
    for j in range(r - 1, -1, -1):
        right_side = 0.0
        for k in range(r - j):
            right_side += vectors[G, k] * vectors[G, j + k]
        for k in range(min(p, r - j - 1)):
            if j + 1 + k >= p:
                right_side += vectors[F, k] * vectors[FIRST_ROW, j + 1 + k]
        if j == 0 and p > 0:
            right_side += vectors[F, p - 1] * vectors[FIRST_ROW, p]
        vectors[FIRST_ROW, j] = right_side
    if p > 0:
        _yule_walker(p, vectors, matrices)
        if not _invert(p, vectors, matrices):
            return False
        for i in range(p):
            vectors[ROW, i] = vectors[FIRST_ROW, i]
        for i in range(p):
            right_side = 0.0
            for j in range(p):
                right_side += matrices[SYSTEM, i, j] * vectors[ROW, j]
            vectors[FIRST_ROW, i] = right_side
    variance = vectors[FIRST_ROW, 0]
    for i in range(r - 1, -1, -1):
        for j in range(i, r):
            value = vectors[FIRST_ROW, j]
            if i > 0:
                value = matrices[COVARIANCE, i + 1, j + 1] if j + 1 < r else 0.0
                value += vectors[F, i] * vectors[FIRST_ROW, j + 1] + vectors[F, j] * vectors[FIRST_ROW, i + 1]
                value += vectors[F, i] * vectors[F, j] * variance + vectors[G, i] * vectors[G, j]
            matrices[COVARIANCE, i, j] = value
            matrices[COVARIANCE, j, i] = value
    return bool(variance >= 0.0 and math.isfinite(variance))


@inner_no_alloc
def stationary_gradient(orders: Ints, vectors: Floats, matrices: Floats, gradient_slot: int) -> None:
    """Add the gradient through V to PHI_GRADIENT and THETA_GRADIENT: adjoint of `stationary_covariance`.

    matrices[gradient_slot] is the symmetric gradient by V and is overwritten; it is summed along
    diagonals. Uses the inverse of the system that `stationary_covariance` has left in matrices[SYSTEM].
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
        f_gradient, g_gradient = 0.0, 0.0
        for j in range(1, r):
            if i > 1 and j > 1:
                matrices[gradient_slot, i, j] += matrices[gradient_slot, i - 1, j - 1]
            weight = matrices[gradient_slot, i, j]
            f_gradient += weight * (vectors[FIRST_ROW, j + 1] + vectors[F, j] * vectors[FIRST_ROW, 0])
            g_gradient += weight * vectors[G, j]
            vectors[ROW, j + 1] += 2.0 * weight * vectors[F, i]
            vectors[ROW, 0] += weight * vectors[F, i] * vectors[F, j]
        vectors[F_GRADIENT, i] += 2.0 * f_gradient
        vectors[G_GRADIENT, i] += 2.0 * g_gradient
    _first_row_gradient(p, r, vectors, matrices)
    for i in range(r):
        if i < p:
            vectors[PHI_GRADIENT, i + 1] += vectors[F_GRADIENT, i] + vectors[G_GRADIENT, i]
        if i < q:
            vectors[THETA_GRADIENT, i + 1] += vectors[G_GRADIENT, i]


@inlined
def _first_row_gradient(p: int, r: int, vectors: Floats, matrices: Floats) -> None:
    """Solve the transposed system for the gradient by the right sides, in ROW, and add to F and G gradients.

    ROW holds the gradient by the first row at the start; PIVOTS serves as a copy of it.
    """
    for i in range(p):
        vectors[PIVOTS, i] = vectors[ROW, i]
    for i in range(p):
        solution = 0.0
        for j in range(p):
            solution += matrices[SYSTEM, j, i] * vectors[PIVOTS, j]
        vectors[ROW, i] = solution
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
    """Write the system of the first p elements of the first row, with Yule-Walker structure, to matrices[SYSTEM]."""
    for row in range(p):
        for column in range(p):
            value = 1.0 if column == row else 0.0
            if column >= row + 1:
                value -= vectors[F, column - row - 1]
            if column >= 1 and row + column - 1 < p:
                value -= vectors[F, row + column - 1]
            matrices[SYSTEM, row, column] = value
        for i in range(p - row):
            matrices[SYSTEM, row, 0] -= vectors[F, i] * vectors[F, row + i]


@inlined
def _invert(n_rows: int, vectors: Floats, matrices: Floats) -> bool:
    """Invert matrices[SYSTEM] in place (Gauss-Jordan with partial pivoting); False if it is singular.

    PIVOTS gets the row exchanged in each step; at the end columns are exchanged in reverse order.
    """
    for step in range(n_rows):
        pivot_index = step
        for i in range(step + 1, n_rows):
            if abs(matrices[SYSTEM, i, step]) > abs(matrices[SYSTEM, pivot_index, step]):
                pivot_index = i
        vectors[PIVOTS, step] = pivot_index
        pivot = matrices[SYSTEM, pivot_index, step]
        if not abs(pivot) > 0.0:
            return False
        for j in range(n_rows):
            swapped = matrices[SYSTEM, pivot_index, j]
            matrices[SYSTEM, pivot_index, j] = matrices[SYSTEM, step, j]
            matrices[SYSTEM, step, j] = (swapped if j != step else 1.0) / pivot
        for i in range(n_rows):
            multiplier = matrices[SYSTEM, i, step]
            if i != step and multiplier != 0.0:
                matrices[SYSTEM, i, step] = 0.0
                for j in range(n_rows):
                    matrices[SYSTEM, i, j] -= multiplier * matrices[SYSTEM, step, j]
    for step in range(n_rows - 1, -1, -1):
        pivot_row = int(vectors[PIVOTS, step])
        for i in range(n_rows if pivot_row != step else 0):
            swapped = matrices[SYSTEM, i, step]
            matrices[SYSTEM, i, step] = matrices[SYSTEM, i, pivot_row]
            matrices[SYSTEM, i, pivot_row] = swapped
    return True
