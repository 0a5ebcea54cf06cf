"""The least of a quadratic with a penalty on sizes, x'Qx / 2 - b'x + weight * (|x_1| + ... + |x_n|), exactly.

An active set: the numbers that are not 0 solve linear equations as long as they keep their signs; one that would change it
becomes 0, and the one whose slope is steepest joins. The function falls with every change, so it ends, and from a near start
within a few of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import bare

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SLOPE = 1e-10  # by how much of its size a slope may exceed the penalty
DEPENDENT = 1e-12  # of its size what is left of a diagonal element that others explain


@bare
def least(matrix: Floats, linear: Floats, weight: float, x: Floats, factor: Floats, room: Floats, active: Ints) -> None:
    """`x` from a start to where the function is least. `factor` (n, n), `room` (3, n) and `active` are overwritten."""
    size, count = len(x), 0
    for i in range(size):
        room[2, i] = 0.0
        if x[i] != 0.0:
            active[count] = i
            count += 1
    for _ in range(30 * size + 30):
        if count and not _settled(matrix, linear, weight, x, factor, room, active, count):
            count = _without_zeros(x, active, count)
            continue
        joined = _steepest(matrix, linear, weight, x, room[0], room[2])
        if joined < 0:
            return
        active[count] = joined
        count += 1
        room[1, joined] = math.copysign(1.0, -room[0, joined])
        if not _settled(matrix, linear, weight, x, factor, room, active, count):
            count = _without_zeros(x, active, count)
            if x[joined] == 0.0:  # rounding: it would go the other way
                room[2, joined] = 1.0


@bare
def _steepest(matrix: Floats, linear: Floats, weight: float, x: Floats, slope: Floats, barred: Floats) -> int:
    """The zero whose slope exceeds the penalty most, or -1; the slopes are left in `slope`."""
    size, found, most = len(x), -1, weight * (1.0 + SLOPE)
    for i in range(size):
        slope[i] = -linear[i]
    for j in range(size):
        if x[j] != 0.0:
            for i in range(size):
                slope[i] += matrix[j, i] * x[j]
    for i in range(size):
        if x[i] == 0.0 and barred[i] == 0.0 and abs(slope[i]) > most + SLOPE * abs(linear[i]):
            found, most = i, abs(slope[i])
    return found


@bare
def _settled(
    matrix: Floats, linear: Floats, weight: float, x: Floats, factor: Floats, room: Floats, active: Ints, count: int
) -> bool:
    """Move the active ones to where they solve their equations, or as far as all keep their signs; whether all the way."""
    goal, sign = room[0], room[1]
    for a in range(count):
        i = active[a]
        if x[i] != 0.0:
            sign[i] = math.copysign(1.0, x[i])
        goal[a] = linear[i] - weight * sign[i]
    _solved(matrix, factor, goal, active, count)
    share, stopped = 1.0, -1
    for a in range(count):
        i = active[a]
        if goal[a] * sign[i] <= 0.0:
            reach = x[i] / (x[i] - goal[a]) if x[i] != 0.0 else 0.0
            if reach < share or stopped < 0:
                share, stopped = reach, i
    for a in range(count):
        i = active[a]
        x[i] += share * (goal[a] - x[i]) if stopped >= 0 else goal[a] - x[i]
    if stopped >= 0:
        x[stopped] = 0.0
    return stopped < 0


@bare
def _solved(matrix: Floats, factor: Floats, goal: Floats, active: Ints, count: int) -> None:
    """`goal` becomes the solution of the active rows and columns; what depends on earlier ones is 0."""
    for a in range(count):
        for c in range(a, count):
            factor[a, c] = matrix[active[a], active[c]]
    for a in range(count):
        whole = matrix[active[a], active[a]]
        if factor[a, a] <= DEPENDENT * whole or whole <= 0.0:
            for c in range(a, count):
                factor[a, c] = 0.0
            goal[a] = 0.0
            continue
        root = math.sqrt(factor[a, a])
        for c in range(a, count):
            factor[a, c] /= root
        goal[a] /= root
        for row in range(a + 1, count):
            by = factor[a, row]
            goal[row] -= by * goal[a]
            for c in range(row, count):
                factor[row, c] -= by * factor[a, c]
    for a in range(count - 1, -1, -1):
        if factor[a, a] == 0.0:
            continue
        for c in range(a + 1, count):
            goal[a] -= factor[a, c] * goal[c]
        goal[a] /= factor[a, a]


@bare
def _without_zeros(x: Floats, active: Ints, count: int) -> int:
    kept = 0
    for a in range(count):
        if x[active[a]] != 0.0:
            active[kept] = active[a]
            kept += 1
    return kept
