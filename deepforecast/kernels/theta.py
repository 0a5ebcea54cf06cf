"""The Theta models of Fiorucci et al. (2016): one recursion for the standard, optimised and dynamic ones.

With row t = 1, 2, ... of a series, smoothing alpha, weight w = 1 - 1/theta and a line A + B t, the forecast of row t is
    l + w * ((1 - alpha)^(t-1) * A + (1 + (1 - alpha) + ... + (1 - alpha)^(t-1)) * B),    l += alpha * (y - l) once y is seen.
The line is the least-squares one: through the whole series, or (dynamic) through the values before t. The errors are linear in
w and in the first l, so these are solved for exactly, and the search is over alpha alone: many values of it in one pass.

The objective is S * P^(1/(n - 1)), with S the sum of the n squared errors and P that of the squared weights (1 - alpha)^(t-1)
of the first l in them: the likelihood with the first l unknown (a flat prior), for w = 0 the exact one of ARIMA(0,1,1). Or, if
errors at the start are skipped, S of the others: then what is best fits the first l to one of them where alpha is high.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import announced, bare, lean

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LANES = 16  # values of alpha beside each other
REFINEMENTS = 3  # each narrows the bracket of alpha to 2 / 15
WIDTH = 9  # numbers of a state, below
ROWS, LEVEL, POWER, POWERS, COUNT, MEAN_ROW, MEAN, SQUARES, PRODUCTS = range(WIDTH)
"""Rows passed; l; (1 - alpha)^rows; the sum of such powers; and the line: how many values, their mean row and mean, the sums of
squares of rows and of products of rows and values, around the means."""
START, RAISED, SMOOTHED, CARRIED, SUMMED = (row * LANES for row in range(1, 6))
FIXED_FIXED, FIXED_START, START_START, FIXED_DRIFT, START_DRIFT, DRIFT_DRIFT = (row * LANES for row in range(6, 12))
"""Where in the lanes' array each quantity begins; alpha is first."""
ALPHA, WEIGHT, LOSS, SQUARED, FIRST = range(5)
"""Of the best: alpha, w, objective, sum of squares, first level."""
VANISHED = 1e-200  # a power below: as good as 0, and numbers below 1e-308 are slow


class Room(NamedTuple):
    """Where an estimation works."""

    lines: Floats  # (2, rows): intercept and slope that each row is forecast by
    lanes: Floats  # (12 * LANES,): by quantity, alpha first
    losses: Floats  # (LANES,)
    best: Floats  # (5,)


def estimate(
    y: Floats,
    indptr: Ints,
    alpha: Sequence[Floats],
    weight: Sequence[Floats],
    slope: Floats,
    dynamic: Bools,
    skip: Ints,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """alpha, w, objective, sum of squares, and the state before the first row of each series.

    alpha, weight: lower and upper bounds. slope: of the line, NaN to find it. skip: leading errors that do not count. Values
    are best near 1 in size and around 0; those missing are stepped over. What the first one is preceded by does not count.
    """
    size = len(indptr) - 1
    found, states, rows = np.zeros((4, size)), np.zeros((size, WIDTH)), int(np.diff(indptr).max())
    room = Room(np.empty((2, rows)), np.empty(12 * LANES), np.empty(LANES), np.empty(5))
    with announced("the Theta models"):
        _estimate(y, indptr, np.stack([*alpha, *weight, slope]), dynamic, skip, room, found, states)
    return found[0], found[1], found[2], found[3], states


def filtered(
    y: Floats, indptr: Ints, states: Floats, alpha: Floats, weight: Floats, dynamic: Bools
) -> tuple[Floats, Floats]:
    """One-step-ahead forecasts of the rows (NaN before the first value), and the states after the last."""
    fitted, states = np.full(len(y), np.nan), states.copy()
    with announced("the Theta models"):
        _filter(y, indptr, states, alpha, weight, dynamic, fitted)
    return fitted, states


def ahead(
    states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, shocks: Floats, away: Floats | None = None
) -> Floats:
    """Paths from the states on, one for each row of shocks (series, paths, steps): forecasts where these are 0.

    away: how far the level that a path begins at is from that of its state (series, paths).
    """
    paths = np.empty(shocks.shape)
    away = np.zeros(shocks.shape[:2]) if away is None else np.ascontiguousarray(away)
    with announced("the Theta models"):
        _ahead(states, alpha, weight, dynamic, shocks, away, paths, np.empty(WIDTH))
    return paths


def deviations(
    states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, steps: int, age: Ints | None = None
) -> Floats:
    """Standard deviations (series, steps) of such paths where shocks have deviation 1, also those of the `age` rows before
    the state that were stepped over: each has moved the level by alpha times its own, and nothing else."""
    found = np.empty((len(states), steps))
    missed = np.zeros(len(states)) if age is None else age.astype(np.float64)
    with announced("the Theta models"):
        _deviations(states.copy(), alpha, weight, dynamic, missed, found, np.empty((5, 3, 3)))
    return found


# -- estimation ----------------------------------------------------------------------------------------------------------------


@lean
def _estimate(
    y: Floats, indptr: Ints, known: Floats, dynamic: Bools, skip: Ints, room: Room, found: Floats, states: Floats
) -> None:
    low, high, light, heavy, slope = known[0], known[1], known[2], known[3], known[4]
    lines, lanes, losses, best = room
    for i in range(len(low)):
        values = y[indptr[i] : indptr[i + 1]]
        while len(values) and math.isnan(values[0]):
            values = values[1:]
        largest, count = _draw_line(values, slope[i], dynamic[i], states[i], lines)
        reach, power = (3.0 * largest, 1.0 / max(count - 1.0, 1.0)) if skip[i] == 0 else (1e6 * largest, 0.0)
        best[LOSS] = np.inf
        for k in range(LANES):
            lanes[k] = low[i] + (high[i] - low[i]) * (k * k / ((LANES - 1) * (LANES - 1)))
        for turn in range(REFINEMENTS + 2):
            _sums(values, lines, lanes, skip[i])
            for k in range(LANES - 1, -1, -1):  # of those alike, as all are where nothing is left over, the one that moves most
                losses[k] = _least(lanes, k, light[i], heavy[i], reach, power, best)
            if low[i] == high[i] or best[LOSS] == 0.0:
                break
            _closer(lanes, losses, turn == REFINEMENTS)
        for number in range(4):
            found[number, i] = best[number]
        states[i, LEVEL] = best[FIRST]


@bare
def _draw_line(values: Floats, slope: float, dynamic: bool, state: Floats, lines: Floats) -> tuple[float, float]:
    """The state before the first row, but for its level; intercept and slope of the line that each row is forecast by.

    Gives the largest value without its sign, and how many there are.
    """
    for number in range(WIDTH):
        state[number] = 0.0
    state[POWER] = 1.0
    largest, count = 0.0, 0.0
    for t in range(len(values)):
        if dynamic:
            lines[1, t] = state[PRODUCTS] / state[SQUARES] if state[SQUARES] > 0.0 else 0.0
            lines[0, t] = state[MEAN] - lines[1, t] * state[MEAN_ROW]
        if not math.isnan(values[t]):
            largest, count = max(largest, abs(values[t])), count + 1.0
            _onto_line(state, t + 1.0, values[t])
    if dynamic:
        for number in range(COUNT, WIDTH):
            state[number] = 0.0
        return largest, count
    if not math.isnan(slope):
        state[PRODUCTS] = slope * state[SQUARES]
    found = state[PRODUCTS] / state[SQUARES] if state[SQUARES] > 0.0 else 0.0
    for t in range(len(values)):
        lines[0, t], lines[1, t] = state[MEAN] - found * state[MEAN_ROW], found
    return largest, count


@bare
def _sums(values: Floats, lines: Floats, lanes: Floats, skip: int) -> None:
    """For each alpha, products of what the errors are made of: error = fixed - first level * start - w * drift."""
    for k in range(LANES, 12 * LANES):
        lanes[k] = 0.0
    for k in range(LANES):
        lanes[START + k], lanes[RAISED + k] = 1.0, 1.0
    for t in range(len(values)):
        seen = 0.0 if math.isnan(values[t]) else 1.0
        value = values[t] if seen > 0.0 else 0.0
        intercept, slope, counts = lines[0, t], lines[1, t], seen if t >= skip else 0.0
        for k in range(LANES):  # in one array, at distances known beforehand: so all lanes go at once
            gain, start, power = seen * lanes[k], lanes[START + k], lanes[RAISED + k]
            line = power * intercept + (lanes[SUMMED + k] + power) * slope
            fixed, drift = value - lanes[SMOOTHED + k], lanes[CARRIED + k] + line
            lanes[FIXED_FIXED + k] += counts * fixed * fixed
            lanes[FIXED_START + k] += counts * fixed * start
            lanes[START_START + k] += counts * start * start
            lanes[FIXED_DRIFT + k] += counts * fixed * drift
            lanes[START_DRIFT + k] += counts * start * drift
            lanes[DRIFT_DRIFT + k] += counts * drift * drift
            lanes[SMOOTHED + k] += gain * fixed
            lanes[CARRIED + k] += (lanes[k] - gain) * line - gain * lanes[CARRIED + k]
            lanes[SUMMED + k] += power
            start, power = (1.0 - gain) * start, (1.0 - lanes[k]) * power
            lanes[START + k] = start if start > VANISHED else 0.0
            lanes[RAISED + k] = power if power > VANISHED else 0.0


@bare
def _least(lanes: Floats, k: int, light: float, heavy: float, reach: float, power: float, best: Floats) -> float:
    """The least objective of a lane over w (light to heavy) and the first level (within reach), kept if the best."""
    fs, ss, fd = lanes[FIXED_START + k], lanes[START_START + k], lanes[FIXED_DRIFT + k]
    sd, dd = lanes[START_DRIFT + k], lanes[DRIFT_DRIFT + k]
    least, inside, middle = np.inf, ss * dd - sd * sd, min(max(0.5, light), heavy)
    factor = ss**power
    apart = inside > 1e-13 * ss * dd and light < heavy
    for corner in range(6):  # within all bounds; else along each of them
        weight, level = middle, 0.0
        if corner == 0 and apart:
            weight, level = (ss * fd - sd * fs) / inside, (dd * fs - sd * fd) / inside
        elif corner < 4:
            weight = middle if corner < 2 or not apart else light if corner == 2 else heavy
            level = (fs - weight * sd) / ss if ss > 0.0 else 0.0
            level = min(max(level, -reach), reach)
        else:
            level = reach if corner == 4 else -reach
            weight = min(max((fd - level * sd) / dd, light), heavy) if dd > 0.0 else middle
        if weight < light or weight > heavy or abs(level) > reach:
            continue
        loss = lanes[FIXED_FIXED + k] + level * (level * ss - 2.0 * fs + 2.0 * weight * sd) + weight * (weight * dd - 2.0 * fd)
        loss = max(loss, 0.0)
        least = min(least, loss * factor)
        if loss * factor < best[LOSS]:
            best[LOSS], best[SQUARED], best[ALPHA], best[WEIGHT], best[FIRST] = loss * factor, loss, lanes[k], weight, level
        if corner == (0 if apart else 1):
            break
    return least


@bare
def _closer(lanes: Floats, losses: Floats, last: bool) -> None:
    """Put the alphas between the neighbours of the best; last: all where a parabola through the three has its bottom."""
    place = 0
    for k in range(LANES):
        if losses[k] < losses[place]:
            place = k
    before, after = max(place - 1, 0), min(place + 1, LANES - 1)
    left, best, right = lanes[before], lanes[place], lanes[after]
    rise, fall = losses[after] - losses[place], losses[before] - losses[place]
    bend, bottom = rise * (best - left) + fall * (right - best), best
    if last and left < best < right and bend > 0.0:
        bottom -= 0.5 * (rise * (best - left) * (best - left) - fall * (right - best) * (right - best)) / bend
        bottom = min(max(bottom, left), right)
    for k in range(LANES):
        lanes[k] = bottom if last else left + (right - left) * k / (LANES - 1)


# -- one row after another -----------------------------------------------------------------------------------------------------


@bare
def _onto_line(state: Floats, row: float, value: float) -> None:
    """Take a value into the least-squares line."""
    state[COUNT] += 1.0
    away = row - state[MEAN_ROW]
    state[MEAN_ROW] += away / state[COUNT]
    state[SQUARES] += away * (row - state[MEAN_ROW])
    state[MEAN] += (value - state[MEAN]) / state[COUNT]
    state[PRODUCTS] += away * (value - state[MEAN])


@bare
def _expected(state: Floats, weight: float) -> Any:
    slope = state[PRODUCTS] / state[SQUARES] if state[SQUARES] > 0.0 else 0.0
    intercept = state[MEAN] - slope * state[MEAN_ROW]
    return state[LEVEL] + weight * (state[POWER] * intercept + (state[POWERS] + state[POWER]) * slope)


@bare
def _move(state: Floats, alpha: float, value: float, draws: bool) -> None:
    """Go over a row with this value; draws: the line takes it in."""
    state[ROWS] += 1.0
    state[LEVEL] += alpha * (value - state[LEVEL])
    state[POWERS] += state[POWER]
    state[POWER] = (1.0 - alpha) * state[POWER] if state[POWER] > VANISHED else 0.0
    if draws:
        _onto_line(state, state[ROWS], value)


@lean
def _filter(
    y: Floats, indptr: Ints, states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, fitted: Floats
) -> None:
    for i in range(len(alpha)):
        for t in range(indptr[i], indptr[i + 1]):
            seen = not math.isnan(y[t])
            if not seen and states[i, ROWS] == 0.0:
                continue  # the series begins with its first value
            fitted[t] = _expected(states[i], weight[i])
            _move(states[i], alpha[i], y[t] if seen else fitted[t], seen and dynamic[i])


@lean
def _ahead(
    states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, shocks: Floats, away: Floats, paths: Floats, state: Floats
) -> None:
    for i in range(shocks.shape[0]):
        for path in range(shocks.shape[1]):
            for number in range(WIDTH):
                state[number] = states[i, number]
            state[LEVEL] += away[i, path]
            for step in range(shocks.shape[2]):
                paths[i, path, step] = _expected(state, weight[i]) + shocks[i, path, step]
                _move(state, alpha[i], paths[i, path, step], dynamic[i])


@lean
def _deviations(
    states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, missed: Floats, found: Floats, work: Floats
) -> None:
    """By the covariance of level, mean and sum of products, which follow the shocks linearly."""
    spread, moved, half, onto, expected = work[0], work[1], work[2], work[3, 0], work[4, 0]
    for i in range(found.shape[0]):
        state = states[i]
        for number in range(9):
            spread[number // 3, number % 3] = 0.0
        spread[0, 0] = missed[i] * alpha[i] * alpha[i]
        for step in range(found.shape[1]):
            expected[0], expected[1], expected[2] = 1.0, weight[i] * state[POWER], 0.0
            if state[SQUARES] > 0.0:
                reach = state[POWERS] + state[POWER] - state[POWER] * state[MEAN_ROW]
                expected[2] = weight[i] * reach / state[SQUARES]
            onto[0], onto[1], onto[2] = alpha[i], 0.0, 0.0
            if dynamic[i]:
                onto[1] = 1.0 / (state[COUNT] + 1.0)
                onto[2] = (state[ROWS] + 1.0 - state[MEAN_ROW]) * (1.0 - onto[1])
            variance = 1.0
            for j in range(3):
                for k in range(3):
                    moved[j, k] = onto[j] * expected[k] + (1.0 if j == k else 0.0)
                    variance += expected[j] * spread[j, k] * expected[k]
            moved[0, 0] -= alpha[i]
            moved[1, 1] -= onto[1]
            moved[2, 1] -= onto[2]
            found[i, step] = math.sqrt(variance)
            _carry(spread, moved, half, onto)
            _move(state, alpha[i], 0.0, dynamic[i])


@bare
def _carry(spread: Floats, moved: Floats, half: Floats, onto: Floats) -> None:
    """The covariance after a linear step with a shock of variance 1."""
    for j in range(3):
        for k in range(3):
            half[j, k] = moved[j, 0] * spread[0, k] + moved[j, 1] * spread[1, k] + moved[j, 2] * spread[2, k]
    for j in range(3):
        for k in range(3):
            spread[j, k] = half[j, 0] * moved[k, 0] + half[j, 1] * moved[k, 1] + half[j, 2] * moved[k, 2] + onto[j] * onto[k]
