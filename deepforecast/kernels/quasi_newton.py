"""BFGS minimization, one evaluation at a time, for several problems side by side.

The caller owns the loop: it evaluates all lanes at their `trial` points, passes value and gradient
of each lane to `advance`, and repeats for the lanes that continue. Coordinates are unconstrained;
callers transform bounded parameters.

References
----------
Nocedal & Wright (2006), *Numerical Optimization*, 2nd ed., Springer, sections 3.1 and 6.1,
doi:10.1007/978-0-387-40065-5.
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
"""Status of a search: to be evaluated at `trial`; at a minimum; without descent or evaluations left. In the last
two cases `point` and `value` are the best so far."""

ARMIJO = 1e-4  # smallest decrease that a step must achieve, relative to that of the linear model
MIN_STEP_SIZE = 1e-12  # shorter steps mean that there is no descent


class Search(NamedTuple):
    """State of n_lanes searches in at most max_coordinates coordinates."""

    trial: Floats  # (n_lanes, max_coordinates): where to evaluate next
    point: Floats  # (n_lanes, max_coordinates): the best so far
    gradient: Floats  # (n_lanes, max_coordinates): the gradient there
    direction: Floats  # (n_lanes, max_coordinates): the direction searched along
    inverse_hessian: Floats  # (n_lanes, max_coordinates, max_coordinates): approximate inverse of the Hessian
    value: Floats  # (n_lanes,): the value at point
    directional_derivative: Floats  # (n_lanes,): gradient times direction
    step_size: Floats  # (n_lanes,): trial = point + step_size * direction
    n_evaluations: Ints  # (n_lanes,): evaluations so far
    n_coordinates: Ints  # (n_lanes,): coordinates in use
    n_updates: Ints  # (n_lanes,): updates since `inverse_hessian` was reset, -1 before the first


def new_search(n_lanes: int, max_coordinates: int) -> Search:
    """Allocate the state of `n_lanes` searches."""
    trial, point, gradient, direction = np.zeros((4, n_lanes, max_coordinates))
    value, directional_derivative, step_size = np.zeros((3, n_lanes))
    n_evaluations, n_coordinates, n_updates = np.zeros((3, n_lanes), np.int64)
    inverse_hessian = np.zeros((n_lanes, max_coordinates, max_coordinates))
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
        n_coordinates,
        n_updates,
    )


@compiled_no_alloc
def begin_search(search: Search, lane: int, start: Floats, squared_scale: Floats) -> None:
    """Start a search of a lane; its trial point is `start`.

    `squared_scale` (expected squared distances to the minimum) is the diagonal of the initial inverse
    Hessian.
    """
    n_coordinates = len(start)
    search.n_coordinates[lane], search.n_evaluations[lane], search.n_updates[lane] = n_coordinates, 0, -1
    search.value[lane] = np.inf
    for i in range(n_coordinates):
        search.trial[lane, i] = start[i]
        search.point[lane, i] = start[i]
        for j in range(n_coordinates):
            search.inverse_hessian[lane, i, j] = 0.0
        search.inverse_hessian[lane, i, i] = squared_scale[i]


@compiled_no_alloc
def advance(search: Search, lane: int, value: float, gradient: Floats, tolerance: float, max_evaluations: int) -> int:
    """Process value and gradient at the trial point of a lane; return its status.

    A trial that satisfies the Armijo condition becomes the best point, and the next trial is a full BFGS
    step; otherwise the step is shortened. `tolerance`: expected gain, half the product of gradient and
    step, at which the search has converged.
    """
    search.n_evaluations[lane] += 1
    is_first = search.n_updates[lane] < 0
    is_finite = math.isfinite(value)
    for i in range(search.n_coordinates[lane]):
        is_finite = is_finite and math.isfinite(gradient[i])
    if is_first and not is_finite:
        return STALLED
    armijo_limit = search.value[lane] + ARMIJO * search.step_size[lane] * search.directional_derivative[lane]
    has_descended = is_first or (is_finite and value <= armijo_limit)
    step_size, gain = 1.0, search.value[lane] - value
    if has_descended:
        if not is_first:
            _update_inverse_hessian(search, lane, gradient)
        search.value[lane] = value
        search.n_updates[lane] += 1
        for i in range(search.n_coordinates[lane]):
            search.point[lane, i], search.gradient[lane, i] = search.trial[lane, i], gradient[i]
    else:
        if search.n_evaluations[lane] >= max_evaluations:
            return STALLED
        step_size = _backtrack(search, lane, value, is_finite)
    if step_size == 0.0:  # no descent along the direction
        if search.n_updates[lane] == 0:
            return STALLED
        _reset_inverse_hessian(search, lane)
    if has_descended or step_size == 0.0:
        _set_direction(search, lane)
    if has_descended:
        is_flat = -search.directional_derivative[lane] < 2.0 * tolerance
        if is_flat and (is_first or gain < 10.0 * tolerance or search.directional_derivative[lane] == 0.0):
            return CONVERGED
        if search.n_evaluations[lane] >= max_evaluations:
            return STALLED
    _set_trial(search, lane, step_size if step_size > 0.0 else 1.0)
    return CONTINUE


@inlined
def _backtrack(search: Search, lane: int, value: float, is_finite: bool) -> float:
    """Shorter step size along the direction, at the minimum of a parabola; 0 if no descent is possible.

    The factor lies between 0.1 and 0.5; 0.25 if the value is not finite.
    """
    step_size, directional_derivative, factor = search.step_size[lane], search.directional_derivative[lane], 0.25
    if is_finite:
        curvature = value - search.value[lane] - step_size * directional_derivative
        factor = min(max(-0.5 * step_size * directional_derivative / curvature, 0.1), 0.5) if curvature > 0.0 else 0.5
    can_decrease = -step_size * factor * directional_derivative > 1e-15 * (1.0 + abs(search.value[lane]))  # not just rounding
    if step_size * factor > MIN_STEP_SIZE and can_decrease:
        return float(step_size * factor)
    return 0.0


@inlined
def _update_inverse_hessian(search: Search, lane: int, gradient: Floats) -> None:
    """BFGS update of the inverse Hessian H, with step s and change of the gradient y (eq. 6.17):

        H + (1 + y'Hy / s'y) s s' / s'y - (s (Hy)' + Hy s') / s'y

    Loops run along rows, as H is symmetric. The first update is preceded by scaling H by s'y / y'Hy (as in eq. 6.20).
    With negative curvature (s'y <= 0) H is multiplied by 4 instead, which lengthens the steps.
    """
    n_coordinates, inverse_hessian = search.n_coordinates[lane], search.inverse_hessian[lane]
    trial = search.trial[lane]
    point = search.point[lane]
    previous_gradient = search.gradient[lane]
    scaled_change = search.direction[lane]  # reused: the direction is not needed any more
    _multiply_symmetric(inverse_hessian, gradient, previous_gradient, n_coordinates, scaled_change)
    step_dot_change, scaled_norm = 0.0, 0.0
    for i in range(n_coordinates):
        change = gradient[i] - previous_gradient[i]
        step_dot_change += (trial[i] - point[i]) * change
        scaled_norm += scaled_change[i] * change
    if not (step_dot_change > 0.0 and math.isfinite(scaled_norm)):
        if step_dot_change <= 0.0:  # negative curvature: only lengthen the steps
            for i in range(n_coordinates):
                for j in range(n_coordinates):
                    inverse_hessian[i, j] *= 4.0
        return
    if search.n_updates[lane] == 0:  # scale the initial matrix by the first step
        ratio = step_dot_change / scaled_norm
        for i in range(n_coordinates):
            scaled_change[i] *= ratio
            for j in range(n_coordinates):
                inverse_hessian[i, j] *= ratio
        scaled_norm *= ratio
    weight = (1.0 + scaled_norm / step_dot_change) / step_dot_change
    for i in range(n_coordinates):
        row, step = inverse_hessian[i], trial[i] - point[i]
        step_factor, change_factor = weight * step - scaled_change[i] / step_dot_change, step / step_dot_change
        for j in range(n_coordinates):
            row[j] += step_factor * (trial[j] - point[j]) - change_factor * scaled_change[j]


@inlined
def _multiply_symmetric(matrix: Floats, vector: Floats, subtrahend: Floats, n_coordinates: int, product: Floats) -> None:
    """Write the symmetric matrix times (vector - subtrahend) to `product`, row by row for vectorization."""
    for i in range(n_coordinates):
        product[i] = 0.0
    for j in range(n_coordinates):
        row, value = matrix[j], vector[j] - subtrahend[j]
        for i in range(n_coordinates):
            product[i] += row[i] * value


@inlined
def _set_direction(search: Search, lane: int) -> None:
    """Set the quasi-Newton direction -H g and its directional derivative.

    If it is not a descent direction, the inverse Hessian is reset first.
    """
    n_coordinates, direction, gradient = search.n_coordinates[lane], search.direction[lane], search.gradient[lane]
    for attempt in range(2):
        directional_derivative = 0.0
        for i in range(n_coordinates):
            direction[i] = 0.0
        for j in range(n_coordinates):
            row, derivative = search.inverse_hessian[lane, j], gradient[j]
            for i in range(n_coordinates):
                direction[i] -= row[i] * derivative
        for i in range(n_coordinates):
            directional_derivative += direction[i] * gradient[i]
        search.directional_derivative[lane] = directional_derivative
        if directional_derivative <= 0.0 and math.isfinite(directional_derivative):
            return
        if attempt == 0:
            _reset_inverse_hessian(search, lane)


@inner_no_alloc
def _reset_inverse_hessian(search: Search, lane: int) -> None:
    """Reset the inverse Hessian to a multiple of the identity, so that no element of the first step exceeds 1."""
    largest_derivative = 0.0
    for i in range(search.n_coordinates[lane]):
        largest_derivative = max(largest_derivative, abs(search.gradient[lane, i]))
    for i in range(search.n_coordinates[lane]):
        for j in range(search.n_coordinates[lane]):
            search.inverse_hessian[lane, i, j] = 0.0
        search.inverse_hessian[lane, i, i] = 1.0 / max(largest_derivative, 1.0)
    search.n_updates[lane] = 0


@inlined
def _set_trial(search: Search, lane: int, step_size: float) -> None:
    """Set the trial point at this step size along the direction."""
    search.step_size[lane] = step_size
    for i in range(search.n_coordinates[lane]):
        search.trial[lane, i] = search.point[lane, i] + step_size * search.direction[lane, i]
