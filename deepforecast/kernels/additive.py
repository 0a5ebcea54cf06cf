"""The likeliest parameters of a trend with changes of slope plus features: Prophet's posterior, to its maximum.

    minus log posterior = n log s + sum of losses(r / s) + 2 s^2 + D (free - 0)^2 / 2 + weight * |changes|

with r the residuals of the scaled values, s their deviation (a half normal prior of 0.5), `free` the coefficients with a normal
prior of precision D, `changes` those with a Laplace prior. Losses are r^2 / 2 s^2, or those of Student's t.

`straight` is for a model that is linear in all of them: the values enter through X'y and y'y alone, so series on the same rows
share X'X. For a given s the free ones are eliminated (the first columns of a Cholesky factor) and what is left is a quadratic
with a penalty (`lasso`); s follows in closed form, and the two take turns: from large to small, so what is found is the most
regular of the maxima if there are several. `kernels.curved` is for the rest.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import announced, bare, lean
from deepforecast.kernels.lasso import least

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDS = 6  # of exact residuals
TURNS = 60  # of parameters and deviation
CLOSE = 1e-10  # relative change of the variance at which the turns end
LEAST = 1e-26  # a variance: residuals of scaled values are not known better
FIRST = 1.0  # variance to start from, no less than what will be found
VANISHED = 1e-15  # of its size what is left of a diagonal element that others explain


class Prior(NamedTuple):
    """`precision` of the first columns, which are free, and the `weight` of the sizes of the others, the changes."""

    precision: Floats
    weight: float


class Room(NamedTuple):
    """Where a search works, for p parameters: `whole` (p, p + 1), `factor` and `gram` (p, p), `small` (8, p), `slope` and
    `active` (p,), and `left` (rows,)."""

    whole: Floats
    factor: Floats
    gram: Floats
    small: Floats
    slope: Floats
    active: Ints
    left: Floats


class Found(NamedTuple):
    """What is found of each series: parameters, deviation, objective."""

    x: Floats
    deviation: Floats
    objective: Floats


def room(size: int, rows: int) -> Room:
    """Room for a model of `size` parameters."""
    whole, factor, gram = np.empty((size, size + 1)), np.empty((size, size)), np.zeros((size, size))
    return Room(whole, factor, gram, np.zeros((8, size)), np.empty(size), np.zeros(size, dtype=np.int64), np.empty(rows))


def straight(y: Floats, design: Floats, prior: Prior, constant: int) -> Found:
    """The best for series `y` (series, rows) on one `design` (rows, columns). constant: its column of ones."""
    rows, size = design.shape
    found = Found(np.zeros((len(y), size)), np.empty(len(y)), np.empty(len(y)))
    design = np.ascontiguousarray(design)
    with announced("the maximum of an additive model"):
        _straight(np.ascontiguousarray(y), design, np.ascontiguousarray(design.T), prior, constant, found, room(size, rows))
    return found


@lean
def _straight(
    y: Floats, design: Floats, across: Floats, prior: Prior, constant: int, found: Found, room: Room
) -> None:
    rows = len(design)
    for row in range(rows):
        room.left[row] = 1.0
    add_products(design, room.left, room.gram)
    for one in range(len(y)):
        x, variance, expected = found.x[one], FIRST, -1.0
        x[constant] = y[one].mean()
        for turn in range(ROUNDS):
            _residuals(y[one], across, x, room.left)
            squares = _squares(room.left)
            if turn and (abs(squares - expected) <= 1e-9 * squares or squares <= rows * LEAST):
                break
            for i in range(len(x)):
                room.slope[i] = 0.0
            add_slope(design, room.left, room.slope)
            variance, expected = _turns(squares, rows, prior, variance, x, room)
        _residuals(y[one], across, x, room.left)
        squares = _squares(room.left)
        variance = variance_of(squares, rows)
        found.deviation[one] = math.sqrt(variance)
        found.objective[one] = posterior(squares / (2.0 * variance), rows, variance, x, prior)


@bare
def _turns(squares: float, rows: int, prior: Prior, variance: float, x: Floats, room: Room) -> tuple[float, float]:
    """Parameters and variance in turn, by the sums alone; the variance and the sum of squares at the end."""
    start, step = room.small[6], room.small[7]
    expected = squares
    for i in range(len(x)):
        start[i] = x[i]
    for _ in range(TURNS):
        solve(variance, prior, start, x, room)
        for i in range(len(x)):
            step[i] = x[i] - start[i]
        expected = max(_expected(room.gram, room.slope, squares, step), 0.0)
        before, variance = variance, variance_of(expected, rows)
        if abs(variance - before) <= CLOSE * variance:
            break
    return variance, expected


@bare
def solve(variance: float, prior: Prior, start: Floats, x: Floats, room: Room) -> None:
    """`x` becomes the best by a model whose residuals fall by `room.gram` and `room.slope` as parameters leave `start`."""
    whole, size, free = room.whole, len(x), len(prior.precision)
    for i in range(size):
        for j in range(i, size):
            whole[i, j] = room.gram[i, j]
        whole[i, size] = room.slope[i]
    for i in range(free):
        whole[i, i] += variance * prior.precision[i]
        whole[i, size] -= variance * prior.precision[i] * start[i]
    _eliminate(whole, room.gram, free, size)
    if free < size:
        _changes(variance * prior.weight, start, x, free, room)
    for i in range(free - 1, -1, -1):
        if whole[i, i] == 0.0:
            x[i] = start[i]
            continue
        step = whole[i, size]
        for j in range(i + 1, size):
            step -= whole[i, j] * (x[j] - start[j])
        x[i] = start[i] + step / whole[i, i]


@bare
def _eliminate(whole: Floats, gram: Floats, free: int, size: int) -> None:
    """The first `free` rows become those of a Cholesky factor, the others what is left of them, the last column with them."""
    for i in range(free):
        if not whole[i, i] > VANISHED * gram[i, i]:
            for j in range(i, size + 1):
                whole[i, j] = 0.0
            continue
        root = math.sqrt(whole[i, i])
        for j in range(i, size + 1):
            whole[i, j] /= root
        for row in range(i + 1, size):
            by = whole[i, row]
            if by != 0.0:
                for j in range(row, size + 1):
                    whole[row, j] -= by * whole[i, j]


@bare
def _changes(weight: float, start: Floats, x: Floats, free: int, room: Room) -> None:
    """The changes of slope, once the others are eliminated."""
    size, whole = len(x), room.whole
    linear = room.small[3, : size - free]
    for i in range(free, size):
        for j in range(free, i):
            whole[i, j] = whole[j, i]
    for i in range(free, size):
        linear[i - free] = whole[i, size]
        for j in range(free, size):
            linear[i - free] += whole[i, j] * start[j]
    least(whole[free:, free:size], linear, weight, x[free:], room.factor, room.small[:3], room.active)


@bare
def add_products(design: Floats, weight: Floats, gram: Floats) -> None:
    """The upper half of the weighted X'X, added to what is there, four rows at a time: the same bits whatever stands beside."""
    rows, size = design.shape
    for row in range(0, rows - 3, 4):
        one, two, three, four = design[row], design[row + 1], design[row + 2], design[row + 3]
        for i in range(size):
            a, b = weight[row] * one[i], weight[row + 1] * two[i]
            c, d = weight[row + 2] * three[i], weight[row + 3] * four[i]
            if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                for j in range(i, size):
                    gram[i, j] += a * one[j] + b * two[j] + (c * three[j] + d * four[j])
    for row in range(rows - rows % 4, rows):
        for i in range(size):
            a = weight[row] * design[row, i]
            for j in range(i, size):
                gram[i, j] += a * design[row, j]


@bare
def add_slope(design: Floats, left: Floats, slope: Floats) -> None:
    """X'r, added to what is there."""
    for row in range(len(left)):
        by = left[row]
        for j in range(len(slope)):
            slope[j] += by * design[row, j]


@bare
def _residuals(y: Floats, across: Floats, x: Floats, left: Floats) -> None:
    for row in range(len(left)):
        left[row] = y[row]
    for j in range(len(x)):
        by = x[j]
        if by != 0.0:
            for row in range(len(left)):
                left[row] -= by * across[j, row]


@bare
def _squares(left: Floats) -> float:
    total = 0.0
    for row in range(len(left)):
        total += left[row] * left[row]
    return total


@bare
def _expected(gram: Floats, slope: Floats, squares: float, step: Floats) -> float:
    """The sum of squares after a step, by the upper half of X'X."""
    total = squares
    for i in range(len(step)):
        if step[i] != 0.0:
            inner = 0.5 * gram[i, i] * step[i]
            for j in range(i + 1, len(step)):
                inner += gram[i, j] * step[j]
            total += 2.0 * step[i] * (inner - slope[i])
    return total


@bare
def variance_of(squares: float, rows: int) -> float:
    """The likeliest variance under its prior: where rows / s - squares / s^3 + 4 s is 0."""
    return max(2.0 * squares / (rows + math.sqrt(rows * rows + 16.0 * squares)), LEAST)


@bare
def posterior(losses: float, rows: int, variance: float, x: Floats, prior: Prior) -> float:
    """Minus its logarithm, without constants."""
    total, free = losses + 0.5 * rows * math.log(variance) + 2.0 * variance, len(prior.precision)
    for i in range(len(x)):
        total += 0.5 * prior.precision[i] * x[i] * x[i] if i < free else prior.weight * abs(x[i])
    return total
