"""Exact minimum of x'Qx / 2 - b'x + weight |x|_1 by an active set method.

The nonzero elements solve a linear system as long as they keep their signs; an element that would
change its sign becomes 0, and the zero that violates |gradient| <= weight most joins. The objective
decreases with every change, so that the method ends in finitely many steps.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GRADIENT_TOLERANCE = 1e-10  # relative tolerance of |gradient| <= weight
PIVOT_TOLERANCE = 1e-12  # relative size of the pivot of a collinear column


@inner_no_alloc
def minimize_lasso(
    matrix: Floats, linear: Floats, weight: float, x: Floats, factor: Floats, workspace: Floats, active: Ints
) -> None:
    """Minimize over `x` from a start. `factor` (n, n), `workspace` (3, n), `active` are
    overwritten.
    """
    size, count = len(x), 0
    for i in range(size):
        workspace[2, i] = 0.0
        if x[i] != 0.0:
            active[count] = i
            count += 1
    for _ in range(30 * size + 30):
        if count and not _move_active(matrix, linear, weight, x, factor, workspace, active, count):
            count = _drop_zeros(x, active, count)
            continue
        joined = _steepest_zero(matrix, linear, weight, x, workspace[0], workspace[2])
        if joined < 0:
            return
        active[count] = joined
        count += 1
        workspace[1, joined] = math.copysign(1.0, -workspace[0, joined])
        if not _move_active(matrix, linear, weight, x, factor, workspace, active, count):
            count = _drop_zeros(x, active, count)
            if x[joined] == 0.0:  # rounding: it would go the other way
                workspace[2, joined] = 1.0


@inner_no_alloc
def _steepest_zero(matrix: Floats, linear: Floats, weight: float, x: Floats, gradient: Floats, excluded: Floats) -> int:
    """Zero that violates the optimality condition most, or -1; sets `gradient`."""
    size, steepest, largest = len(x), -1, weight * (1.0 + GRADIENT_TOLERANCE)
    for i in range(size):
        gradient[i] = -linear[i]
    for j in range(size):
        if x[j] != 0.0:
            for i in range(size):
                gradient[i] += matrix[j, i] * x[j]
    for i in range(size):
        if x[i] == 0.0 and excluded[i] == 0.0 and abs(gradient[i]) > largest + GRADIENT_TOLERANCE * abs(linear[i]):
            steepest, largest = i, abs(gradient[i])
    return steepest


@inner_no_alloc
def _move_active(
    matrix: Floats, linear: Floats, weight: float, x: Floats, factor: Floats, workspace: Floats, active: Ints, count: int
) -> bool:
    """Move to the solution of the active set, or to the first sign change; True if the former."""
    target, sign = workspace[0], workspace[1]
    for a in range(count):
        i = active[a]
        if x[i] != 0.0:
            sign[i] = math.copysign(1.0, x[i])
        target[a] = linear[i] - weight * sign[i]
    _solve_active(matrix, factor, target, active, count)
    step_size, stopped = 1.0, -1
    for a in range(count):
        i = active[a]
        if target[a] * sign[i] <= 0.0:
            crossing = x[i] / (x[i] - target[a]) if x[i] != 0.0 else 0.0
            if crossing < step_size or stopped < 0:
                step_size, stopped = crossing, i
    for a in range(count):
        i = active[a]
        x[i] += step_size * (target[a] - x[i]) if stopped >= 0 else target[a] - x[i]
    if stopped >= 0:
        x[stopped] = 0.0
    return stopped < 0


@inner_no_alloc
def _solve_active(matrix: Floats, factor: Floats, target: Floats, active: Ints, count: int) -> None:
    """Solve the active rows and columns in place of `target`; 0 for collinear columns."""
    for a in range(count):
        for c in range(a, count):
            factor[a, c] = matrix[active[a], active[c]]
    for a in range(count):
        diagonal = matrix[active[a], active[a]]
        if factor[a, a] <= PIVOT_TOLERANCE * diagonal or diagonal <= 0.0:
            for c in range(a, count):
                factor[a, c] = 0.0
            target[a] = 0.0
            continue
        root = math.sqrt(factor[a, a])
        for c in range(a, count):
            factor[a, c] /= root
        target[a] /= root
        for row in range(a + 1, count):
            multiplier = factor[a, row]
            target[row] -= multiplier * target[a]
            for c in range(row, count):
                factor[row, c] -= multiplier * factor[a, c]
    for a in range(count - 1, -1, -1):
        if factor[a, a] == 0.0:
            continue
        for c in range(a + 1, count):
            target[a] -= factor[a, c] * target[c]
        target[a] /= factor[a, a]


@inner_no_alloc
def _drop_zeros(x: Floats, active: Ints, count: int) -> int:
    n_active = 0
    for a in range(count):
        if x[active[a]] != 0.0:
            active[n_active] = active[a]
            n_active += 1
    return n_active
