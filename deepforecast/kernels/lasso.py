"""Exact minimum of x'Qx / 2 - b'x + weight |x|_1 by an active set method.

The nonzero elements solve a linear system as long as they keep their signs; an element that would
change its sign becomes 0, and the zero that violates |gradient| <= weight most joins them. The objective
decreases with every change, so that the method ends in finitely many steps. In the code Q is `matrix`
and b is `linear`; `active` lists the indices of the nonzero elements.
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
GRADIENT, SIGN, EXCLUDED = range(3)
"""Rows of `workspace`: gradient without the penalty, or solution of the active set; signs of the elements;
1 for zeros that cannot join because of rounding."""


@inner_no_alloc
def minimize_lasso(
    matrix: Floats, linear: Floats, weight: float, x: Floats, factor: Floats, workspace: Floats, active: Ints
) -> None:
    """Minimize over `x` in place, from a start.

    `matrix` (n, n) is symmetric. `factor` (n, n), `workspace` (3, n), `active` (n,) are overwritten. At most
    30 n + 30 changes of the active set.
    """
    n_elements, n_active = len(x), 0
    for i in range(n_elements):
        workspace[EXCLUDED, i] = 0.0
        if x[i] != 0.0:
            active[n_active] = i
            n_active += 1
    for _ in range(30 * n_elements + 30):
        if n_active and not _move_active(matrix, linear, weight, x, factor, workspace, active, n_active):
            n_active = _drop_zeros(x, active, n_active)
            continue
        joining = _steepest_zero(matrix, linear, weight, x, workspace[GRADIENT], workspace[EXCLUDED])
        if joining < 0:
            return
        active[n_active] = joining
        n_active += 1
        workspace[SIGN, joining] = math.copysign(1.0, -workspace[GRADIENT, joining])
        if not _move_active(matrix, linear, weight, x, factor, workspace, active, n_active):
            n_active = _drop_zeros(x, active, n_active)
            if x[joining] == 0.0:  # because of rounding its sign would be the other one
                workspace[EXCLUDED, joining] = 1.0


@inner_no_alloc
def _steepest_zero(matrix: Floats, linear: Floats, weight: float, x: Floats, gradient: Floats, excluded: Floats) -> int:
    """Index of the zero that violates the optimality condition most, or -1; sets `gradient` (Qx - b)."""
    n_elements, steepest, largest_gradient = len(x), -1, weight * (1.0 + GRADIENT_TOLERANCE)
    for i in range(n_elements):
        gradient[i] = -linear[i]
    for j in range(n_elements):
        if x[j] != 0.0:
            for i in range(n_elements):
                gradient[i] += matrix[j, i] * x[j]
    for i in range(n_elements):
        if x[i] == 0.0 and excluded[i] == 0.0 and abs(gradient[i]) > largest_gradient + GRADIENT_TOLERANCE * abs(linear[i]):
            steepest, largest_gradient = i, abs(gradient[i])
    return steepest


@inner_no_alloc
def _move_active(
    matrix: Floats, linear: Floats, weight: float, x: Floats, factor: Floats, workspace: Floats, active: Ints, n_active: int
) -> bool:
    """Move the active elements to the solution for their signs, or to the first sign change on the way.

    True if the solution is reached; otherwise the element that would change its sign is 0.
    """
    target, sign = workspace[GRADIENT], workspace[SIGN]
    for position in range(n_active):
        i = active[position]
        if x[i] != 0.0:
            sign[i] = math.copysign(1.0, x[i])
        target[position] = linear[i] - weight * sign[i]
    _solve_active(matrix, factor, target, active, n_active)
    step_size, crossing_index = 1.0, -1
    for position in range(n_active):
        i = active[position]
        if target[position] * sign[i] <= 0.0:
            crossing_step = x[i] / (x[i] - target[position]) if x[i] != 0.0 else 0.0
            if crossing_step < step_size or crossing_index < 0:
                step_size, crossing_index = crossing_step, i
    for position in range(n_active):
        i = active[position]
        x[i] += step_size * (target[position] - x[i]) if crossing_index >= 0 else target[position] - x[i]
    if crossing_index >= 0:
        x[crossing_index] = 0.0
    return crossing_index < 0


@inner_no_alloc
def _solve_active(matrix: Floats, factor: Floats, target: Floats, active: Ints, n_active: int) -> None:
    """Solve the active rows and columns of `matrix` for the right side `target`, in place (Cholesky).

    Elements of collinear columns become 0. `factor` gets the upper Cholesky factor.
    """
    for row in range(n_active):
        for column in range(row, n_active):
            factor[row, column] = matrix[active[row], active[column]]
    for row in range(n_active):
        diagonal = matrix[active[row], active[row]]
        if factor[row, row] <= PIVOT_TOLERANCE * diagonal or diagonal <= 0.0:
            for column in range(row, n_active):
                factor[row, column] = 0.0
            target[row] = 0.0
            continue
        root = math.sqrt(factor[row, row])
        for column in range(row, n_active):
            factor[row, column] /= root
        target[row] /= root
        for lower_row in range(row + 1, n_active):
            multiplier = factor[row, lower_row]
            target[lower_row] -= multiplier * target[row]
            for column in range(lower_row, n_active):
                factor[lower_row, column] -= multiplier * factor[row, column]
    for row in range(n_active - 1, -1, -1):
        if factor[row, row] == 0.0:
            continue
        for column in range(row + 1, n_active):
            target[row] -= factor[row, column] * target[column]
        target[row] /= factor[row, row]


@inner_no_alloc
def _drop_zeros(x: Floats, active: Ints, n_before: int) -> int:
    """Remove elements that are 0 from `active`; return the number of the others."""
    n_active = 0
    for position in range(n_before):
        if x[active[position]] != 0.0:
            active[n_active] = active[position]
            n_active += 1
    return n_active
