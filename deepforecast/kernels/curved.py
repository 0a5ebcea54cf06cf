"""The likeliest parameters where the model is no straight line in them: `kernels.additive` by tangents.

Features that multiply the trend, trends that saturate, errors of Student's t. Each step solves the same problem for the model
as its tangents say (and for t as squares with weights, which lie above its losses), then goes as far that way as the
posterior gains, so it never falls. Parameters are the trend's (rate and offset; offset alone where it is flat), one for each
feature, one for each change of slope.

    trend = rate t + offset + sum of changes (t - when)+                           or flat, the offset alone
    trend = cap / (1 + exp(-rate (t - offset) - sum of changes (t - when)+))       if it saturates
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.additive import Prior, Room, add_products, add_slope, posterior, room, solve, variance_of
from deepforecast.kernels.compiling import announced, bare, lean

Floats = NDArray[np.float64]

LINEAR, LOGISTIC, FLAT = 0, 1, 2
STEPS = 500
GAIN = 1e-11  # of the objective, per row, below which a step is the last
SHORTEST = 1e-9  # share of a step
TREND, SHARE, FITTED, WEIGHT, LEFT = range(5)  # of the lines


class Rows(NamedTuple):
    """A series as the kernel takes it: scaled values and times, `capacity` (saturating trends), `hinges` (rows, changes),
    `features` (rows, features) and which of these `multiply`; `growth`, one of those above; `freedom` of Student's t, 0 for
    normal errors."""

    y: Floats
    time: Floats
    capacity: Floats
    hinges: Floats
    features: Floats
    multiply: Floats
    growth: int
    freedom: float


def curved(rows: Rows, prior: Prior, start: Floats) -> tuple[Floats, float, float]:
    """Parameters, deviation and objective from a start."""
    x, found = np.array(start, dtype=np.float64), np.array([1.0, 0.0])
    lines, tangents = np.empty((5, len(rows.y))), np.empty((len(rows.y), len(start)))
    with announced("the maximum of an additive model"):
        _curved(rows, prior, x, found, lines, tangents, room(len(start), 0))
    return x, math.sqrt(found[0]), float(found[1])


@lean
def _curved(rows: Rows, prior: Prior, x: Floats, found: Floats, lines: Floats, tangents: Floats, room: Room) -> None:
    count, goal, trial = len(rows.y), room.small[4], room.small[5]
    _fit(rows, x, lines)
    variance = _spread(rows, lines, found[0])
    now = posterior(_losses(rows, lines, variance), count, variance, x, prior)
    for _ in range(STEPS):
        _tangents(rows, x, lines, tangents)
        _sums(rows.y, lines, tangents, room.gram, room.slope)
        for i in range(len(x)):
            goal[i] = x[i]
        solve(variance, prior, x, goal, room)
        share, before = 1.0, now
        while share > SHORTEST:
            for i in range(len(x)):
                trial[i] = goal[i] if share == 1.0 else x[i] + share * (goal[i] - x[i])
            _fit(rows, trial, lines)
            now = posterior(_losses(rows, lines, variance), count, variance, trial, prior)
            if now < before:
                break
            share *= 0.5
        if not now < before:
            now = before
            break
        for i in range(len(x)):
            x[i] = trial[i]
        variance = _spread(rows, lines, variance)
        now = posterior(_losses(rows, lines, variance), count, variance, x, prior)
        if before - now < GAIN * count:
            break
    found[0], found[1] = variance, now


@bare
def _fit(rows: Rows, x: Floats, lines: Floats) -> None:
    """Trend, share (what multiplies it) and fitted values."""
    changes, count = rows.hinges.shape[1], len(rows.multiply)
    free = len(x) - changes - count
    for row in range(len(rows.time)):
        trend, share, added = x[free - 1], 1.0, 0.0
        if rows.growth == LOGISTIC:
            trend = x[0] * (rows.time[row] - x[1])
        elif rows.growth == LINEAR:
            trend += x[0] * rows.time[row]
        for j in range(changes):
            trend += x[free + count + j] * rows.hinges[row, j]
        if rows.growth == LOGISTIC:
            trend = rows.capacity[row] / (1.0 + math.exp(-max(min(trend, 500.0), -500.0)))
        for j in range(count):
            part = x[free + j] * rows.features[row, j]
            share += rows.multiply[j] * part
            added += (1.0 - rows.multiply[j]) * part
        lines[TREND, row], lines[SHARE, row], lines[FITTED, row] = trend, share, trend * share + added


@bare
def _tangents(rows: Rows, x: Floats, lines: Floats, tangents: Floats) -> None:
    """How the fitted values move with each parameter, (rows, parameters)."""
    changes, count = rows.hinges.shape[1], len(rows.multiply)
    free = len(x) - changes - count
    for row in range(len(rows.time)):
        by, trend = lines[SHARE, row], lines[TREND, row]
        if rows.growth == LOGISTIC:
            by *= trend * (1.0 - trend / rows.capacity[row])
            tangents[row, 0], tangents[row, 1] = by * (rows.time[row] - x[1]), -by * x[0]
        else:
            tangents[row, 0] = by * rows.time[row]
            tangents[row, free - 1] = by
        for j in range(count):
            tangents[row, free + j] = rows.features[row, j] * (1.0 + rows.multiply[j] * (trend - 1.0))
        for j in range(changes):
            tangents[row, free + count + j] = by * rows.hinges[row, j]


@bare
def _sums(y: Floats, lines: Floats, tangents: Floats, gram: Floats, slope: Floats) -> None:
    """Weighted sums of products of the tangents (the upper half), and of them and the residuals."""
    for i in range(len(slope)):
        slope[i] = 0.0
        for j in range(i, len(slope)):
            gram[i, j] = 0.0
    add_products(tangents, lines[WEIGHT], gram)
    for row in range(len(y)):
        lines[LEFT, row] = lines[WEIGHT, row] * (y[row] - lines[FITTED, row])
    add_slope(tangents, lines[LEFT], slope)


@bare
def _losses(rows: Rows, lines: Floats, variance: float) -> float:
    total, freedom = 0.0, rows.freedom
    for row in range(len(rows.y)):
        left = rows.y[row] - lines[FITTED, row]
        square = left * left / variance
        total += 0.5 * square if freedom == 0.0 else 0.5 * (freedom + 1.0) * math.log1p(square / freedom)
    return total


@bare
def _spread(rows: Rows, lines: Floats, variance: float) -> float:
    """The likeliest variance for these residuals, and the weight of each row under it."""
    freedom = rows.freedom
    for _ in range(50):
        total = 0.0
        for row in range(len(rows.y)):
            left = rows.y[row] - lines[FITTED, row]
            weight = 1.0 if freedom == 0.0 else (freedom + 1.0) / (freedom + left * left / variance)
            lines[WEIGHT, row] = weight
            total += weight * left * left
        before, variance = variance, variance_of(total, len(rows.y))
        if freedom == 0.0 or abs(variance - before) <= 1e-9 * variance:
            break
    return variance
