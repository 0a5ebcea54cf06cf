"""Theta models: one recursion for the standard, optimized and dynamic ones.

With row t = 1, 2, ..., smoothing parameter alpha, weight w = 1 - 1/theta and a line A + B t, the
one-step forecast and the level follow

    mu_t = l + w ((1 - alpha)^(t-1) A + (1 + (1 - alpha) + ... + (1 - alpha)^(t-1)) B)
    l   <- l + alpha (y_t - l)

The line is fitted by least squares to the whole series or (dynamic) to the values before t. Errors
are linear in w and the initial level, which are solved for exactly; the search is over alpha alone.

The objective is S P^(1/(n - 1)), with S the sum of n squared errors and P that of the squared
weights (1 - alpha)^(t-1) of the initial level: the likelihood with a flat prior of the initial
level, for w = 0 the exact one of ARIMA(0,1,1). If initial errors are skipped, S of the others is
minimized.

References
----------
Assimakopoulos & Nikolopoulos (2000), *International Journal of Forecasting* 16,
doi:10.1016/S0169-2070(00)00066-2.
Fiorucci, Pellegrini, Louzada, Petropoulos & Koehler (2016), *International Journal of Forecasting* 32,
doi:10.1016/j.ijforecast.2016.02.005.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc, inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LANES = 16  # values of alpha evaluated together
REFINEMENTS = 3  # each narrows the bracket of alpha to 2 / 15 of its width
STATE_SIZE = 9  # length of a state, indices below
ROWS, LEVEL, POWER, POWERS, COUNT, MEAN_ROW, MEAN, SQUARES, PRODUCTS = range(STATE_SIZE)
"""Rows so far; l; (1 - alpha)^rows; the sum of these powers; and for the line: number of values, mean
row, mean value, centred sums of squared rows and of products of rows and values."""
START, POWER_LANE, SMOOTHED, SMOOTHED_DRIFT, POWER_SUM = (row * LANES for row in range(1, 6))
FIXED_FIXED, FIXED_START, START_START, FIXED_DRIFT, START_DRIFT, DRIFT_DRIFT = (row * LANES for row in range(6, 12))
"""Offsets of the quantities in `lanes`; alpha is first."""
ALPHA, WEIGHT, LOSS, SQUARED, FIRST = range(5)
"""Elements of `best`: alpha, w, objective, sum of squares, initial level."""
NEGLIGIBLE_POWER = 1e-200  # smaller powers are set to 0: subnormal numbers are slow


class Workspace(NamedTuple):
    """Work arrays of an estimation."""

    lines: Floats  # (2, rows): intercept and slope of the line for each row
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
    """Return alpha, w, objective, sum of squares, and the state before the first row of each
    series.

    `alpha`, `weight`: lower and upper bounds. `slope` of the line, NaN to estimate it. `skip`:
    number of initial errors to omit. Values should be centred and of size about 1; missing ones are
    skipped, and a series starts at its first observed value.
    """
    size = len(indptr) - 1
    estimates, states, rows = np.zeros((4, size)), np.zeros((size, STATE_SIZE)), int(np.diff(indptr).max())
    workspace = Workspace(np.empty((2, rows)), np.empty(12 * LANES), np.empty(LANES), np.empty(5))
    with compile_notice("the Theta models"):
        _estimate(y, indptr, np.stack([*alpha, *weight, slope]), dynamic, skip, workspace, estimates, states)
    return estimates[0], estimates[1], estimates[2], estimates[3], states


def filter_series(
    y: Floats, indptr: Ints, states: Floats, alpha: Floats, weight: Floats, dynamic: Bools
) -> tuple[Floats, Floats]:
    """One-step-ahead forecasts (NaN before the first value), and the states after the last row."""
    fitted, states = np.full(len(y), np.nan), states.copy()
    with compile_notice("the Theta models"):
        _filter_series(y, indptr, states, alpha, weight, dynamic, fitted)
    return fitted, states


def simulate_paths(
    states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, shocks: Floats, level_offsets: Floats | None = None
) -> Floats:
    """Sample paths for `shocks` (series, paths, steps); with shocks of 0, the point forecast.

    `level_offsets` (series, paths): difference of the initial level of a path from that of the
    state.
    """
    paths = np.empty(shocks.shape)
    level_offsets = np.zeros(shocks.shape[:2]) if level_offsets is None else np.ascontiguousarray(level_offsets)
    with compile_notice("the Theta models"):
        _simulate_paths(states, alpha, weight, dynamic, shocks, level_offsets, paths, np.empty(STATE_SIZE))
    return paths


def path_deviations(
    states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, steps: int, age: Ints | None = None
) -> Floats:
    """Standard deviations (series, steps) of paths whose shocks have deviation 1.

    `age`: missing rows before the state, each of which adds a shock times alpha to the level.
    """
    standard_deviations = np.empty((len(states), steps))
    n_missed = np.zeros(len(states)) if age is None else age.astype(np.float64)
    with compile_notice("the Theta models"):
        _path_deviations(states.copy(), alpha, weight, dynamic, n_missed, standard_deviations, np.empty((5, 3, 3)))
    return standard_deviations


# -- estimation ----------------------------------------------------------------------------------------------------------------


@compiled_no_alloc
def _estimate(
    y: Floats,
    indptr: Ints,
    settings: Floats,
    dynamic: Bools,
    skip: Ints,
    workspace: Workspace,
    estimates: Floats,
    states: Floats,
) -> None:
    low, high, min_weight, max_weight, slope = settings[0], settings[1], settings[2], settings[3], settings[4]
    lines, lanes, losses, best = workspace
    for i in range(len(low)):
        values = y[indptr[i] : indptr[i + 1]]
        while len(values) and math.isnan(values[0]):
            values = values[1:]
        largest, count = _fit_line(values, slope[i], dynamic[i], states[i], lines)
        max_level, power = (3.0 * largest, 1.0 / max(count - 1.0, 1.0)) if skip[i] == 0 else (1e6 * largest, 0.0)
        best[LOSS] = np.inf
        for k in range(LANES):
            lanes[k] = low[i] + (high[i] - low[i]) * (k * k / ((LANES - 1) * (LANES - 1)))
        for refinement in range(REFINEMENTS + 2):
            _set_error_products(values, lines, lanes, skip[i])
            for k in range(LANES - 1, -1, -1):  # of equal losses (perfect fits) the largest alpha
                losses[k] = _minimize_lane(lanes, k, min_weight[i], max_weight[i], max_level, power, best)
            if low[i] == high[i] or best[LOSS] == 0.0:
                break
            _narrow_bracket(lanes, losses, refinement == REFINEMENTS)
        for number in range(4):
            estimates[number, i] = best[number]
        states[i, LEVEL] = best[FIRST]


@inner_no_alloc
def _fit_line(values: Floats, slope: float, dynamic: bool, state: Floats, lines: Floats) -> tuple[float, float]:
    """Set the initial state except its level, and intercept and slope of the line for each row.

    Return the largest absolute value and the number of values.
    """
    for number in range(STATE_SIZE):
        state[number] = 0.0
    state[POWER] = 1.0
    largest, count = 0.0, 0.0
    for t in range(len(values)):
        if dynamic:
            lines[1, t] = state[PRODUCTS] / state[SQUARES] if state[SQUARES] > 0.0 else 0.0
            lines[0, t] = state[MEAN] - lines[1, t] * state[MEAN_ROW]
        if not math.isnan(values[t]):
            largest, count = max(largest, abs(values[t])), count + 1.0
            _update_line(state, t + 1.0, values[t])
    if dynamic:
        for number in range(COUNT, STATE_SIZE):
            state[number] = 0.0
        return largest, count
    if not math.isnan(slope):
        state[PRODUCTS] = slope * state[SQUARES]
    line_slope = state[PRODUCTS] / state[SQUARES] if state[SQUARES] > 0.0 else 0.0
    for t in range(len(values)):
        lines[0, t], lines[1, t] = state[MEAN] - line_slope * state[MEAN_ROW], line_slope
    return largest, count


@inner_no_alloc
def _set_error_products(values: Floats, lines: Floats, lanes: Floats, skip: int) -> None:
    """For each alpha, products of the terms of error = fixed - initial level * start - w * drift."""
    for k in range(LANES, 12 * LANES):
        lanes[k] = 0.0
    for k in range(LANES):
        lanes[START + k], lanes[POWER_LANE + k] = 1.0, 1.0
    for t in range(len(values)):
        is_observed = 0.0 if math.isnan(values[t]) else 1.0
        value = values[t] if is_observed > 0.0 else 0.0
        intercept, slope, counts = lines[0, t], lines[1, t], is_observed if t >= skip else 0.0
        for k in range(LANES):  # one array with constant offsets: vectorizes
            gain, start, power = is_observed * lanes[k], lanes[START + k], lanes[POWER_LANE + k]
            line = power * intercept + (lanes[POWER_SUM + k] + power) * slope
            fixed, drift = value - lanes[SMOOTHED + k], lanes[SMOOTHED_DRIFT + k] + line
            lanes[FIXED_FIXED + k] += counts * fixed * fixed
            lanes[FIXED_START + k] += counts * fixed * start
            lanes[START_START + k] += counts * start * start
            lanes[FIXED_DRIFT + k] += counts * fixed * drift
            lanes[START_DRIFT + k] += counts * start * drift
            lanes[DRIFT_DRIFT + k] += counts * drift * drift
            lanes[SMOOTHED + k] += gain * fixed
            lanes[SMOOTHED_DRIFT + k] += (lanes[k] - gain) * line - gain * lanes[SMOOTHED_DRIFT + k]
            lanes[POWER_SUM + k] += power
            start, power = (1.0 - gain) * start, (1.0 - lanes[k]) * power
            lanes[START + k] = start if start > NEGLIGIBLE_POWER else 0.0
            lanes[POWER_LANE + k] = power if power > NEGLIGIBLE_POWER else 0.0


@inner_no_alloc
def _minimize_lane(
    lanes: Floats, k: int, min_weight: float, max_weight: float, max_level: float, power: float, best: Floats
) -> float:
    """Minimum of the objective of a lane over w and the initial level within bounds; stored if the
    best.
    """
    fs, ss, fd = lanes[FIXED_START + k], lanes[START_START + k], lanes[FIXED_DRIFT + k]
    sd, dd = lanes[START_DRIFT + k], lanes[DRIFT_DRIFT + k]
    least, determinant, default_weight = np.inf, ss * dd - sd * sd, min(max(0.5, min_weight), max_weight)
    factor = ss**power
    is_interior = determinant > 1e-13 * ss * dd and min_weight < max_weight
    for corner in range(6):  # interior minimum, then along each bound
        weight, level = default_weight, 0.0
        if corner == 0 and is_interior:
            weight, level = (ss * fd - sd * fs) / determinant, (dd * fs - sd * fd) / determinant
        elif corner < 4:
            weight = default_weight if corner < 2 or not is_interior else min_weight if corner == 2 else max_weight
            level = (fs - weight * sd) / ss if ss > 0.0 else 0.0
            level = min(max(level, -max_level), max_level)
        else:
            level = max_level if corner == 4 else -max_level
            weight = min(max((fd - level * sd) / dd, min_weight), max_weight) if dd > 0.0 else default_weight
        if weight < min_weight or weight > max_weight or abs(level) > max_level:
            continue
        loss = lanes[FIXED_FIXED + k] + level * (level * ss - 2.0 * fs + 2.0 * weight * sd) + weight * (weight * dd - 2.0 * fd)
        loss = max(loss, 0.0)
        least = min(least, loss * factor)
        if loss * factor < best[LOSS]:
            best[LOSS], best[SQUARED], best[ALPHA], best[WEIGHT], best[FIRST] = loss * factor, loss, lanes[k], weight, level
        if corner == (0 if is_interior else 1):
            break
    return least


@inner_no_alloc
def _narrow_bracket(lanes: Floats, losses: Floats, last: bool) -> None:
    """Space alphas between the neighbours of the best; `last`: all at the minimum of the parabola."""
    best_lane = 0
    for k in range(LANES):
        if losses[k] < losses[best_lane]:
            best_lane = k
    left_lane, right_lane = max(best_lane - 1, 0), min(best_lane + 1, LANES - 1)
    left, best, right = lanes[left_lane], lanes[best_lane], lanes[right_lane]
    right_rise, left_rise = losses[right_lane] - losses[best_lane], losses[left_lane] - losses[best_lane]
    curvature, bottom = right_rise * (best - left) + left_rise * (right - best), best
    if last and left < best < right and curvature > 0.0:
        bottom -= 0.5 * (right_rise * (best - left) * (best - left) - left_rise * (right - best) * (right - best)) / curvature
        bottom = min(max(bottom, left), right)
    for k in range(LANES):
        lanes[k] = bottom if last else left + (right - left) * k / (LANES - 1)


# -- one row after another -----------------------------------------------------------------------------------------------------


@inner_no_alloc
def _update_line(state: Floats, row: float, value: float) -> None:
    """Update the least-squares line by one value (Welford's recursion)."""
    state[COUNT] += 1.0
    deviation = row - state[MEAN_ROW]
    state[MEAN_ROW] += deviation / state[COUNT]
    state[SQUARES] += deviation * (row - state[MEAN_ROW])
    state[MEAN] += (value - state[MEAN]) / state[COUNT]
    state[PRODUCTS] += deviation * (value - state[MEAN])


@inner_no_alloc
def _one_step_mean(state: Floats, weight: float) -> Any:
    slope = state[PRODUCTS] / state[SQUARES] if state[SQUARES] > 0.0 else 0.0
    intercept = state[MEAN] - slope * state[MEAN_ROW]
    return state[LEVEL] + weight * (state[POWER] * intercept + (state[POWERS] + state[POWER]) * slope)


@inner_no_alloc
def _step(state: Floats, alpha: float, value: float, draws: bool) -> None:
    """Advance the state by one row; `draws`: whether the value updates the line."""
    state[ROWS] += 1.0
    state[LEVEL] += alpha * (value - state[LEVEL])
    state[POWERS] += state[POWER]
    state[POWER] = (1.0 - alpha) * state[POWER] if state[POWER] > NEGLIGIBLE_POWER else 0.0
    if draws:
        _update_line(state, state[ROWS], value)


@compiled_no_alloc
def _filter_series(
    y: Floats, indptr: Ints, states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, fitted: Floats
) -> None:
    for i in range(len(alpha)):
        for t in range(indptr[i], indptr[i + 1]):
            is_observed = not math.isnan(y[t])
            if not is_observed and states[i, ROWS] == 0.0:
                continue  # the series begins with its first value
            fitted[t] = _one_step_mean(states[i], weight[i])
            _step(states[i], alpha[i], y[t] if is_observed else fitted[t], is_observed and dynamic[i])


@compiled_no_alloc
def _simulate_paths(
    states: Floats,
    alpha: Floats,
    weight: Floats,
    dynamic: Bools,
    shocks: Floats,
    level_offsets: Floats,
    paths: Floats,
    state: Floats,
) -> None:
    for i in range(shocks.shape[0]):
        for path in range(shocks.shape[1]):
            for number in range(STATE_SIZE):
                state[number] = states[i, number]
            state[LEVEL] += level_offsets[i, path]
            for step in range(shocks.shape[2]):
                paths[i, path, step] = _one_step_mean(state, weight[i]) + shocks[i, path, step]
                _step(state, alpha[i], paths[i, path, step], dynamic[i])


@compiled_no_alloc
def _path_deviations(
    states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, n_missed: Floats, standard_deviations: Floats, work: Floats
) -> None:
    """Variances from the covariance C of (level, mean, sum of products), which are linear in the
    shocks.

    With observation vector h, transition T and shock response r: variance = 1 + h' C h, C <- T C T'
    + r r'.
    """
    covariance, transition, product, shock_response, observation = work[0], work[1], work[2], work[3, 0], work[4, 0]
    for i in range(standard_deviations.shape[0]):
        state = states[i]
        for number in range(9):
            covariance[number // 3, number % 3] = 0.0
        covariance[0, 0] = n_missed[i] * alpha[i] * alpha[i]
        for step in range(standard_deviations.shape[1]):
            observation[0], observation[1], observation[2] = 1.0, weight[i] * state[POWER], 0.0
            if state[SQUARES] > 0.0:
                line_weight = state[POWERS] + state[POWER] - state[POWER] * state[MEAN_ROW]
                observation[2] = weight[i] * line_weight / state[SQUARES]
            shock_response[0], shock_response[1], shock_response[2] = alpha[i], 0.0, 0.0
            if dynamic[i]:
                shock_response[1] = 1.0 / (state[COUNT] + 1.0)
                shock_response[2] = (state[ROWS] + 1.0 - state[MEAN_ROW]) * (1.0 - shock_response[1])
            variance = 1.0
            for j in range(3):
                for k in range(3):
                    transition[j, k] = shock_response[j] * observation[k] + (1.0 if j == k else 0.0)
                    variance += observation[j] * covariance[j, k] * observation[k]
            transition[0, 0] -= alpha[i]
            transition[1, 1] -= shock_response[1]
            transition[2, 1] -= shock_response[2]
            standard_deviations[i, step] = math.sqrt(variance)
            _propagate_covariance(covariance, transition, product, shock_response)
            _step(state, alpha[i], 0.0, dynamic[i])


@inner_no_alloc
def _propagate_covariance(covariance: Floats, transition: Floats, product: Floats, shock_response: Floats) -> None:
    """C <- T C T' + r r'."""
    for j in range(3):
        for k in range(3):
            product[j, k] = (
                transition[j, 0] * covariance[0, k] + transition[j, 1] * covariance[1, k] + transition[j, 2] * covariance[2, k]
            )
    for j in range(3):
        for k in range(3):
            covariance[j, k] = (
                product[j, 0] * transition[k, 0]
                + product[j, 1] * transition[k, 1]
                + product[j, 2] * transition[k, 2]
                + shock_response[j] * shock_response[k]
            )
