"""BFGS minimization, one evaluation at a time, for several problems side by side.

The caller owns the loop: it evaluates all lanes at their `trial` points, passes value and gradient
of each lane to `advance`, and repeats for the lanes that continue. Coordinates are unconstrained;
callers transform bounded parameters. See Nocedal & Wright (2006), *Numerical Optimization*, chapter
6.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compiled_no_alloc, inlined, inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CONTINUE, CONVERGED, STALLED = 0, 1, 2
"""Evaluate at `trial`; minimum; no descent or no evaluations left (`point`, `value`: the best)."""

ARMIJO = 1e-4
MIN_STEP_SIZE = 1e-12


class Search(NamedTuple):
    """State of `lanes` searches in at most `width` coordinates."""

    trial: Floats  # (lanes, width): where to evaluate next
    point: Floats  # (lanes, width): the best so far
    gradient: Floats  # (lanes, width): the gradient there
    direction: Floats  # (lanes, width): the direction searched along
    inverse_hessian: Floats  # (lanes, width, width): approximate inverse of the Hessian
    value: Floats  # (lanes,): the value at point
    directional_derivative: Floats  # (lanes,): gradient times direction
    step_size: Floats  # (lanes,): trial = point + step_size * direction
    n_evaluations: Ints  # (lanes,): evaluations so far
    size: Ints  # (lanes,): coordinates in use
    n_updates: Ints  # (lanes,): updates since `inverse_hessian` was reset, -1 before the first


def new_search(lanes: int, width: int) -> Search:
    """Allocate `lanes` searches."""
    trial, point, gradient, direction = np.zeros((4, lanes, width))
    value, directional_derivative, step_size = np.zeros((3, lanes))
    n_evaluations, size, n_updates = np.zeros((3, lanes), np.int64)
    inverse_hessian = np.zeros((lanes, width, width))
    return Search(
        trial,
        point,
        gradient,
        direction,
        inverse_hessian,
        value,
        directional_derivative,
        step_size,
        n_evaluations,
        size,
        n_updates,
    )


@compiled_no_alloc
def begin_search(search: Search, lane: int, start: Floats, scale: Floats) -> None:
    """Start a search; `scale` (expected squared distances) is the diagonal of the inverse Hessian."""
    size = len(start)
    search.size[lane], search.n_evaluations[lane], search.n_updates[lane] = size, 0, -1
    search.value[lane] = np.inf
    for i in range(size):
        search.trial[lane, i] = start[i]
        search.point[lane, i] = start[i]
        for j in range(size):
            search.inverse_hessian[lane, i, j] = 0.0
        search.inverse_hessian[lane, i, i] = scale[i]


@compiled_no_alloc
def advance(search: Search, lane: int, value: float, gradient: Floats, tolerance: float, max_evaluations: int) -> int:
    """Process value and gradient at the trial point of a lane; return its status.

    `tolerance`: expected gain at which the search has converged.
    """
    search.n_evaluations[lane] += 1
    first = search.n_updates[lane] < 0
    finite = math.isfinite(value)
    for i in range(search.size[lane]):
        finite = finite and math.isfinite(gradient[i])
    if first and not finite:
        return STALLED
    armijo_limit = search.value[lane] + ARMIJO * search.step_size[lane] * search.directional_derivative[lane]
    descends = first or (finite and value <= armijo_limit)
    step_size, gain = 1.0, search.value[lane] - value
    if descends:
        if not first:
            _update_inverse_hessian(search, lane, gradient)
        search.value[lane] = value
        search.n_updates[lane] += 1
        for i in range(search.size[lane]):
            search.point[lane, i], search.gradient[lane, i] = search.trial[lane, i], gradient[i]
    else:
        if search.n_evaluations[lane] >= max_evaluations:
            return STALLED
        step_size = _backtrack(search, lane, value, finite)
    if step_size == 0.0:
        if search.n_updates[lane] == 0:
            return STALLED
        _reset_inverse_hessian(search, lane)
    if descends or step_size == 0.0:
        _set_direction(search, lane)
    if descends:
        is_flat = -search.directional_derivative[lane] < 2.0 * tolerance
        if is_flat and (first or gain < 10.0 * tolerance or search.directional_derivative[lane] == 0.0):
            return CONVERGED
        if search.n_evaluations[lane] >= max_evaluations:
            return STALLED
    _set_trial(search, lane, step_size if step_size > 0.0 else 1.0)
    return CONTINUE


@inlined
def _backtrack(search: Search, lane: int, value: float, finite: bool) -> float:
    """Shorter step along the direction; 0 if there is no descent."""
    step_size, directional_derivative, factor = search.step_size[lane], search.directional_derivative[lane], 0.25
    if finite:
        curvature = value - search.value[lane] - step_size * directional_derivative
        factor = min(max(-0.5 * step_size * directional_derivative / curvature, 0.1), 0.5) if curvature > 0.0 else 0.5
    if step_size * factor > MIN_STEP_SIZE and -step_size * factor * directional_derivative > 1e-15 * (
        1.0 + abs(search.value[lane])
    ):
        return float(step_size * factor)
    return 0.0


@inlined
def _update_inverse_hessian(search: Search, lane: int, gradient: Floats) -> None:
    """BFGS update of the inverse Hessian; loops run along rows, as it is symmetric."""
    size, inverse_hessian = search.size[lane], search.inverse_hessian[lane]
    trial, point, previous_gradient, scaled_change = (
        search.trial[lane],
        search.point[lane],
        search.gradient[lane],
        search.direction[lane],
    )
    # The direction is not needed any more.
    _multiply_symmetric(inverse_hessian, gradient, previous_gradient, size, scaled_change)
    step_dot_change, change_norm = 0.0, 0.0
    for i in range(size):
        change = gradient[i] - previous_gradient[i]
        step_dot_change += (trial[i] - point[i]) * change
        change_norm += scaled_change[i] * change
    if not (step_dot_change > 0.0 and math.isfinite(change_norm)):
        if step_dot_change <= 0.0:  # negative curvature: only lengthen the steps
            for i in range(size):
                for j in range(size):
                    inverse_hessian[i, j] *= 4.0
        return
    if search.n_updates[lane] == 0:  # scale the initial matrix by the first step
        ratio = step_dot_change / change_norm
        for i in range(size):
            scaled_change[i] *= ratio
            for j in range(size):
                inverse_hessian[i, j] *= ratio
        change_norm *= ratio
    weight = (1.0 + change_norm / step_dot_change) / step_dot_change
    for i in range(size):
        row, step = inverse_hessian[i], trial[i] - point[i]
        along, across = weight * step - scaled_change[i] / step_dot_change, step / step_dot_change
        for j in range(size):
            row[j] += along * (trial[j] - point[j]) - across * scaled_change[j]


@inlined
def _multiply_symmetric(matrix: Floats, vector: Floats, subtrahend: Floats, size: int, product: Floats) -> None:
    """Symmetric matrix times (vector - subtrahend), row by row for vectorization."""
    for i in range(size):
        product[i] = 0.0
    for j in range(size):
        row, value = matrix[j], vector[j] - subtrahend[j]
        for i in range(size):
            product[i] += row[i] * value


@inlined
def _set_direction(search: Search, lane: int) -> None:
    """Quasi-Newton descent direction."""
    size, direction, gradient = search.size[lane], search.direction[lane], search.gradient[lane]
    for attempt in range(2):
        directional_derivative = 0.0
        for i in range(size):
            direction[i] = 0.0
        for j in range(size):
            row, slope = search.inverse_hessian[lane, j], gradient[j]
            for i in range(size):
                direction[i] -= row[i] * slope
        for i in range(size):
            directional_derivative += direction[i] * gradient[i]
        search.directional_derivative[lane] = directional_derivative
        if directional_derivative <= 0.0 and math.isfinite(directional_derivative):
            return
        if attempt == 0:
            _reset_inverse_hessian(search, lane)


@inner_no_alloc
def _reset_inverse_hessian(search: Search, lane: int) -> None:
    """Reset the inverse Hessian so that the first step has length at most 1."""
    steepest = 0.0
    for i in range(search.size[lane]):
        steepest = max(steepest, abs(search.gradient[lane, i]))
    for i in range(search.size[lane]):
        for j in range(search.size[lane]):
            search.inverse_hessian[lane, i, j] = 0.0
        search.inverse_hessian[lane, i, i] = 1.0 / max(steepest, 1.0)
    search.n_updates[lane] = 0


@inlined
def _set_trial(search: Search, lane: int, step_size: float) -> None:
    search.step_size[lane] = step_size
    for i in range(search.size[lane]):
        search.trial[lane, i] = search.point[lane, i] + step_size * search.direction[lane, i]
