"""Quasi-Newton minimisation (BFGS), one step at a time and for several problems side by side.

A kernel owns the loop: it evaluates all lanes at their `trial` points at once, hands each lane's value and gradient to
`advance`, and evaluates again those that are not done. So the objective can be computed for many series in one pass.
Coordinates are unconstrained; bounds are a matter of the kernel's transformations.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import bare, lean, part

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GO_ON, FOUND, STUCK = 0, 1, 2
"""Evaluate at `trial`; a minimum; no descent any more or no rounds left (`point` and `value` are the best seen)."""

ENOUGH_DESCENT = 1e-4
SHORTEST = 1e-12


class Search(NamedTuple):
    """The state of `lanes` searches in at most `width` coordinates."""

    trial: Floats  # (lanes, width): where to evaluate next
    point: Floats  # (lanes, width): the best seen
    slopes: Floats  # (lanes, width): the gradient there
    heading: Floats  # (lanes, width): the direction searched along
    inverse: Floats  # (lanes, width, width): approximate inverse of the Hessian
    value: Floats  # (lanes,): the value at point
    descent: Floats  # (lanes,): slope along heading
    stride: Floats  # (lanes,): trial = point + stride * heading
    rounds: Ints  # (lanes,): evaluations so far
    size: Ints  # (lanes,): coordinates in use
    renewed: Ints  # (lanes,): steps since `inverse` was last set anew, -1 before the first


def new_search(lanes: int, width: int) -> Search:
    """Room for `lanes` searches."""
    trial, point, slopes, heading = np.zeros((4, lanes, width))
    value, descent, stride = np.zeros((3, lanes))
    rounds, size, renewed = np.zeros((3, lanes), np.int64)
    inverse = np.zeros((lanes, width, width))
    return Search(trial, point, slopes, heading, inverse, value, descent, stride, rounds, size, renewed)


@lean
def begin(search: Search, lane: int, start: Floats, scale: Floats) -> None:
    """Begin a search in a lane, from `start`. `scale` (squares of likely distances) is the first inverse Hessian's diagonal."""
    size = len(start)
    search.size[lane], search.rounds[lane], search.renewed[lane] = size, 0, -1
    search.value[lane] = np.inf
    for i in range(size):
        search.trial[lane, i] = start[i]
        search.point[lane, i] = start[i]
        for j in range(size):
            search.inverse[lane, i, j] = 0.0
        search.inverse[lane, i, i] = scale[i]


@lean
def advance(search: Search, lane: int, value: float, gradient: Floats, tolerance: float, most: int) -> int:
    """Take in the value and gradient at the lane's trial point. `tolerance`: a gain in the value that does not matter;
    `most`: evaluations allowed."""
    search.rounds[lane] += 1
    first = search.renewed[lane] < 0
    finite = math.isfinite(value)
    for i in range(search.size[lane]):
        finite = finite and math.isfinite(gradient[i])
    if first and not finite:
        return STUCK
    limit = search.value[lane] + ENOUGH_DESCENT * search.stride[lane] * search.descent[lane]
    descends = first or (finite and value <= limit)
    stride, gain = 1.0, search.value[lane] - value
    if descends:
        if not first:
            _learn(search, lane, gradient)
        search.value[lane] = value
        search.renewed[lane] += 1
        for i in range(search.size[lane]):
            search.point[lane, i], search.slopes[lane, i] = search.trial[lane, i], gradient[i]
    else:
        if search.rounds[lane] >= most:
            return STUCK
        stride = _shorter(search, lane, value, finite)
    if stride == 0.0:
        if search.renewed[lane] == 0:
            return STUCK
        _renew(search, lane)
    if descends or stride == 0.0:
        _head(search, lane)
    if descends:
        near = -search.descent[lane] < 2.0 * tolerance
        if near and (first or gain < 10.0 * tolerance or search.descent[lane] == 0.0):
            return FOUND
        if search.rounds[lane] >= most:
            return STUCK
    _try(search, lane, stride if stride > 0.0 else 1.0)
    return GO_ON


@part
def _shorter(search: Search, lane: int, value: float, finite: bool) -> float:
    """A shorter step along the same heading; 0 where the heading leads nowhere."""
    stride, descent, factor = search.stride[lane], search.descent[lane], 0.25
    if finite:
        bend = value - search.value[lane] - stride * descent
        factor = min(max(-0.5 * stride * descent / bend, 0.1), 0.5) if bend > 0.0 else 0.5
    if stride * factor > SHORTEST and -stride * factor * descent > 1e-15 * (1.0 + abs(search.value[lane])):
        return float(stride * factor)
    return 0.0


@part
def _learn(search: Search, lane: int, gradient: Floats) -> None:
    """Take the change of the gradient over the step into the inverse Hessian. Loops run along rows: it is symmetric."""
    size, inverse = search.size[lane], search.inverse[lane]
    trial, point, slopes, turned = search.trial[lane], search.point[lane], search.slopes[lane], search.heading[lane]
    _times(inverse, gradient, slopes, size, turned)  # the heading is of no use any more
    moved_change, change_square = 0.0, 0.0
    for i in range(size):
        change = gradient[i] - slopes[i]
        moved_change += (trial[i] - point[i]) * change
        change_square += turned[i] * change
    if not (moved_change > 0.0 and math.isfinite(change_square)):
        if moved_change <= 0.0:  # bent downwards: nothing to learn but that longer steps pay
            for i in range(size):
                for j in range(size):
                    inverse[i, j] *= 4.0
        return
    if search.renewed[lane] == 0:  # the first step tells how large the Hessian is
        ratio = moved_change / change_square
        for i in range(size):
            turned[i] *= ratio
            for j in range(size):
                inverse[i, j] *= ratio
        change_square *= ratio
    weight = (1.0 + change_square / moved_change) / moved_change
    for i in range(size):
        row, moved = inverse[i], trial[i] - point[i]
        along, across = weight * moved - turned[i] / moved_change, moved / moved_change
        for j in range(size):
            row[j] += along * (trial[j] - point[j]) - across * turned[j]


@part
def _times(matrix: Floats, vector: Floats, less: Floats, size: int, out: Floats) -> None:
    """A symmetric matrix times (vector - less), row by row so that it becomes vector instructions."""
    for i in range(size):
        out[i] = 0.0
    for j in range(size):
        row, value = matrix[j], vector[j] - less[j]
        for i in range(size):
            out[i] += row[i] * value


@part
def _head(search: Search, lane: int) -> None:
    """The direction to go, downhill."""
    size, heading, slopes = search.size[lane], search.heading[lane], search.slopes[lane]
    for attempt in range(2):
        descent = 0.0
        for i in range(size):
            heading[i] = 0.0
        for j in range(size):
            row, slope = search.inverse[lane, j], slopes[j]
            for i in range(size):
                heading[i] -= row[i] * slope
        for i in range(size):
            descent += heading[i] * slopes[i]
        search.descent[lane] = descent
        if descent <= 0.0 and math.isfinite(descent):
            return
        if attempt == 0:
            _renew(search, lane)


@bare
def _renew(search: Search, lane: int) -> None:
    """Forget the inverse Hessian; the first step is then at most 1 long."""
    steepest = 0.0
    for i in range(search.size[lane]):
        steepest = max(steepest, abs(search.slopes[lane, i]))
    for i in range(search.size[lane]):
        for j in range(search.size[lane]):
            search.inverse[lane, i, j] = 0.0
        search.inverse[lane, i, i] = 1.0 / max(steepest, 1.0)
    search.renewed[lane] = 0


@part
def _try(search: Search, lane: int, stride: float) -> None:
    search.stride[lane] = stride
    for i in range(search.size[lane]):
        search.trial[lane, i] = search.point[lane, i] + stride * search.heading[lane, i]
