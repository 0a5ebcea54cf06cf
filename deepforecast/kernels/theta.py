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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import announced, compiled

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
    found, states = np.zeros((4, size)), np.zeros((size, WIDTH))
    with announced("the Theta models"):
        _estimate(y, indptr, np.stack([*alpha, *weight, slope]), dynamic, skip, found, states)
    return found[0], found[1], found[2], found[3], states


def filtered(
    y: Floats, indptr: Ints, states: Floats, alpha: Floats, weight: Floats, dynamic: Bools
) -> tuple[Floats, Floats]:
    """One-step-ahead forecasts of the rows (NaN before the first value), and the states after the last."""
    fitted, states = np.full(len(y), np.nan), states.copy()
    with announced("the Theta models"):
        _filter(y, indptr, states, alpha, weight, dynamic, fitted)
    return fitted, states


def ahead(states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, shocks: Floats) -> Floats:
    """Paths from the states on, one for each row of shocks (series, paths, steps): forecasts where these are 0."""
    paths = np.empty(shocks.shape)
    with announced("the Theta models"):
        _ahead(states, alpha, weight, dynamic, shocks, paths)
    return paths


def deviations(states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, steps: int) -> Floats:
    """Standard deviations (series, steps) of such paths where shocks have deviation 1."""
    found = np.empty((len(states), steps))
    with announced("the Theta models"):
        _deviations(states, alpha, weight, dynamic, found)
    return found


# -- estimation ----------------------------------------------------------------------------------------------------------------


@compiled
def _estimate(
    y: Floats, indptr: Ints, known: Floats, dynamic: Bools, skip: Ints, found: Floats, states: Floats
) -> None:
    low, high, light, heavy, slope = known[0], known[1], known[2], known[3], known[4]
    longest = 0
    for i in range(len(low)):
        longest = max(longest, indptr[i + 1] - indptr[i])
    lines, lanes, losses, best = np.empty((2, longest)), np.empty(12 * LANES), np.empty(LANES), np.empty(5)
    for i in range(len(low)):
        values = y[indptr[i] : indptr[i + 1]]
        while len(values) and math.isnan(values[0]):
            values = values[1:]
        largest, count = _draw_line(values, slope[i], dynamic[i], states[i], lines)
        reach, power = (3.0 * largest, 1.0 / max(count - 1.0, 1.0)) if skip[i] == 0 else (1e6 * largest, 0.0)
        best[LOSS] = np.inf
        for k in range(LANES):
            lanes[k] = low[i] + (high[i] - low[i]) * (k / (LANES - 1)) ** 2
        for turn in range(REFINEMENTS + 2):
            _sums(values, lines, lanes, skip[i])
            for k in range(LANES):
                losses[k] = _least(lanes, k, light[i], heavy[i], reach, power, best)
            if low[i] == high[i] or best[LOSS] == 0.0:
                break
            _closer(lanes, losses, turn == REFINEMENTS)
        for number in range(4):
            found[number, i] = best[number]
        states[i, LEVEL] = best[FIRST]


@compiled
def _draw_line(values: Floats, slope: float, dynamic: bool, state: Floats, lines: Floats) -> tuple[float, float]:
    """The state before the first row, but for its level; intercept and slope of the line that each row is forecast by.

    Gives the largest value without its sign, and how many there are.
    """
    state[:] = 0.0
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
        state[COUNT:] = 0.0
        return largest, count
    if not math.isnan(slope):
        state[PRODUCTS] = slope * state[SQUARES]
    found = state[PRODUCTS] / state[SQUARES] if state[SQUARES] > 0.0 else 0.0
    lines[1, : len(values)] = found
    lines[0, : len(values)] = state[MEAN] - found * state[MEAN_ROW]
    return largest, count


@compiled
def _sums(values: Floats, lines: Floats, lanes: Floats, skip: int) -> None:
    """For each alpha, products of what the errors are made of: error = fixed - first level * start - w * drift."""
    lanes[LANES:] = 0.0
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


@compiled
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


@compiled
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
        bottom -= 0.5 * (rise * (best - left) ** 2 - fall * (right - best) ** 2) / bend
        bottom = min(max(bottom, left), right)
    for k in range(LANES):
        lanes[k] = bottom if last else left + (right - left) * k / (LANES - 1)


# -- one row after another -----------------------------------------------------------------------------------------------------


@compiled
def _onto_line(state: Floats, row: float, value: float) -> None:
    """Take a value into the least-squares line."""
    state[COUNT] += 1.0
    away = row - state[MEAN_ROW]
    state[MEAN_ROW] += away / state[COUNT]
    state[SQUARES] += away * (row - state[MEAN_ROW])
    state[MEAN] += (value - state[MEAN]) / state[COUNT]
    state[PRODUCTS] += away * (value - state[MEAN])


@compiled
def _expected(state: Floats, weight: float) -> Any:
    slope = state[PRODUCTS] / state[SQUARES] if state[SQUARES] > 0.0 else 0.0
    intercept = state[MEAN] - slope * state[MEAN_ROW]
    return state[LEVEL] + weight * (state[POWER] * intercept + (state[POWERS] + state[POWER]) * slope)


@compiled
def _move(state: Floats, alpha: float, value: float, draws: bool) -> None:
    """Go over a row with this value; draws: the line takes it in."""
    state[ROWS] += 1.0
    state[LEVEL] += alpha * (value - state[LEVEL])
    state[POWERS] += state[POWER]
    state[POWER] = (1.0 - alpha) * state[POWER] if state[POWER] > VANISHED else 0.0
    if draws:
        _onto_line(state, state[ROWS], value)


@compiled
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


@compiled
def _ahead(states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, shocks: Floats, paths: Floats) -> None:
    for i in range(shocks.shape[0]):
        for path in range(shocks.shape[1]):
            state = states[i].copy()
            for step in range(shocks.shape[2]):
                paths[i, path, step] = _expected(state, weight[i]) + shocks[i, path, step]
                _move(state, alpha[i], paths[i, path, step], dynamic[i])


@compiled
def _deviations(states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, found: Floats) -> None:
    """By the covariance of level, mean and sum of products, which follow the shocks linearly."""
    moved, onto, expected = np.empty((3, 3)), np.empty(3), np.empty(3)
    for i in range(found.shape[0]):
        state, spread = states[i].copy(), np.zeros((3, 3))
        for step in range(found.shape[1]):
            expected[0], expected[1], expected[2] = 1.0, weight[i] * state[POWER], 0.0
            if state[SQUARES] > 0.0:
                reach = state[POWERS] + state[POWER] - state[POWER] * state[MEAN_ROW]
                expected[2] = weight[i] * reach / state[SQUARES]
            share, lever = 0.0, 0.0
            if dynamic[i]:
                share = 1.0 / (state[COUNT] + 1.0)
                lever = (state[ROWS] + 1.0 - state[MEAN_ROW]) * (1.0 - share)
            onto[0], onto[1], onto[2] = alpha[i], share, lever
            variance = 1.0
            for j in range(3):
                moved[0, j], moved[1, j], moved[2, j] = alpha[i] * expected[j], share * expected[j], lever * expected[j]
                for k in range(3):
                    variance += expected[j] * spread[j, k] * expected[k]
            moved[0, 0] += 1.0 - alpha[i]
            moved[1, 1] += 1.0 - share
            moved[2, 2] += 1.0
            moved[2, 1] -= lever
            found[i, step] = math.sqrt(variance)
            spread = _carried(spread, moved, onto)
            _move(state, alpha[i], 0.0, dynamic[i])


@compiled
def _carried(spread: Floats, moved: Floats, onto: Floats) -> Floats:
    """The covariance after a linear step with a shock of variance 1."""
    found = np.zeros((3, 3))
    for j in range(3):
        for k in range(3):
            total = onto[j] * onto[k]
            for p in range(3):
                for q in range(3):
                    total += moved[j, p] * spread[p, q] * moved[k, q]
            found[j, k] = total
    return found
