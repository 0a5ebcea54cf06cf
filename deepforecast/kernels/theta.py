"""Theta models: one recursion for the standard, optimized and dynamic ones.

With time t = 1, 2, ..., smoothing parameter alpha, weight w = 1 - 1/theta and a line A + B t, the
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
Assimakopoulos & Nikolopoulos (2000), The theta model: a decomposition approach to forecasting,
*International Journal of Forecasting* 16, doi:10.1016/S0169-2070(00)00066-2.
Fiorucci, Pellegrini, Louzada, Petropoulos & Koehler (2016), Models for optimising the theta method and
their relationship to state space models, *International Journal of Forecasting* 32,
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
"""Elements of a state: time steps so far; l; (1 - alpha)^steps; the sum of the powers before; and for the
line: number of values, mean time, mean value, centred sums of squared times and of products of times and
values."""
START, POWER_LANE, SMOOTHED, SMOOTHED_DRIFT, POWER_SUM = (row * LANES for row in range(1, 6))
FIXED_FIXED, FIXED_START, START_START, FIXED_DRIFT, START_DRIFT, DRIFT_DRIFT = (row * LANES for row in range(6, 12))
"""Offsets of the quantities in `lanes`, each for LANES values of alpha; alpha itself is first. With

    error = fixed - initial level * start - w * drift,

START: (1 - alpha)^observed steps; POWER_LANE: (1 - alpha)^steps and POWER_SUM their sum; SMOOTHED,
SMOOTHED_DRIFT: parts of the level that do not depend on w, and are multiplied by w; the others:
sums of products of the three terms."""
ALPHA, WEIGHT, LOSS, SQUARED, FIRST = range(5)
"""Elements of `optimum`: alpha, w, objective, sum of squares, initial level."""
NEGLIGIBLE_POWER = 1e-200  # smaller powers are set to 0: subnormal numbers are slow
MIN_DETERMINANT = 1e-13  # relative determinant below which w and the initial level are not both identified
DEFAULT_WEIGHT = 0.5  # w of the standard Theta model, theta = 2


class Workspace(NamedTuple):
    """Work arrays of an estimation."""

    lines: Floats  # (2, time steps): intercept and slope of the line for each time step
    lanes: Floats  # (12 * LANES,): by quantity, alpha first
    losses: Floats  # (LANES,): objective by alpha
    optimum: Floats  # (5,): best parameters so far


def estimate(
    y: Floats,
    indptr: Ints,
    alpha: Sequence[Floats],
    weight: Sequence[Floats],
    slope: Floats,
    dynamic: Bools,
    n_skipped: Ints,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return alpha, w, objective, sum of squares, and the state before the first value of each series.

    `alpha`, `weight`: lower and upper bounds (series,) of alpha and w. `slope` (series,) of the line, NaN
    to estimate it. `dynamic` (series,): whether the line is fitted to the values before each step.
    `n_skipped` (series,): number of initial errors to omit. Values should be centred and of size about
    1; missing ones are skipped, and a series starts at its first observed value.
    """
    n_series = len(indptr) - 1
    estimates, states = np.zeros((4, n_series)), np.zeros((n_series, STATE_SIZE))
    max_length = int(np.diff(indptr).max())
    workspace = Workspace(
        lines=np.empty((2, max_length)), lanes=np.empty(12 * LANES), losses=np.empty(LANES), optimum=np.empty(5)
    )
    with compile_notice("Theta models"):
        _estimate(y, indptr, np.stack([*alpha, *weight, slope]), dynamic, n_skipped, workspace, estimates, states)
    return estimates[0], estimates[1], estimates[2], estimates[3], states


def filter_series(
    y: Floats, indptr: Ints, states: Floats, alpha: Floats, weight: Floats, dynamic: Bools
) -> tuple[Floats, Floats]:
    """One-step-ahead forecasts (NaN before the first value of a series), and the states after the last time step."""
    fitted, states = np.full(len(y), np.nan), states.copy()
    with compile_notice("Theta models"):
        _filter_series(y, indptr, states, alpha, weight, dynamic, fitted)
    return fitted, states


def simulate_paths(
    states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, shocks: Floats, level_offsets: Floats | None = None
) -> Floats:
    """Sample paths for `shocks` (series, paths, steps); with shocks of 0, the point forecast.

    Dynamic models update their line by the simulated values. `level_offsets` (series, paths):
    difference of the initial level of a path from that of the state.
    """
    paths = np.empty(shocks.shape)
    level_offsets = np.zeros(shocks.shape[:2]) if level_offsets is None else np.ascontiguousarray(level_offsets)
    with compile_notice("Theta models"):
        _simulate_paths(states, alpha, weight, dynamic, shocks, level_offsets, paths, np.empty(STATE_SIZE))
    return paths


def path_deviations(
    states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, n_steps: int, age: Ints | None = None
) -> Floats:
    """Standard deviations (series, n_steps) of paths whose shocks have standard deviation 1.

    `age` (series,): missing values before the state, each of which adds a shock times alpha to the level.
    """
    standard_deviations = np.empty((len(states), n_steps))
    n_missed = np.zeros(len(states)) if age is None else age.astype(np.float64)
    with compile_notice("Theta models"):
        _path_deviations(states.copy(), alpha, weight, dynamic, n_missed, standard_deviations, np.empty((5, 3, 3)))
    return standard_deviations


# -- estimation ----------------------------------------------------------------------------------------------------------------


@compiled_no_alloc
def _estimate(
    y: Floats,
    indptr: Ints,
    settings: Floats,
    dynamic: Bools,
    n_skipped: Ints,
    workspace: Workspace,
    estimates: Floats,
    states: Floats,
) -> None:
    """Estimate each series; rows of `settings` (5, series): bounds of alpha, bounds of w, slope.

    LANES values of alpha, dense near the lower bound, are evaluated together; each refinement spaces them
    between the neighbours of the best, and the last one puts all at the minimum of a parabola.
    """
    low = settings[0]
    high = settings[1]
    min_weight = settings[2]
    max_weight = settings[3]
    slope = settings[4]
    lines, lanes, losses, optimum = workspace
    for i in range(len(low)):
        values = y[indptr[i] : indptr[i + 1]]
        while len(values) and math.isnan(values[0]):
            values = values[1:]
        largest_value, n_observed = _fit_line(values, slope[i], dynamic[i], states[i], lines)
        # If initial errors are skipped, the level hardly matters: it is barely bounded, and P is left out.
        max_level = (3.0 if n_skipped[i] == 0 else 1e6) * largest_value
        exponent = 1.0 / max(n_observed - 1.0, 1.0) if n_skipped[i] == 0 else 0.0
        optimum[LOSS] = np.inf
        for lane in range(LANES):
            lanes[lane] = low[i] + (high[i] - low[i]) * (lane * lane / ((LANES - 1) * (LANES - 1)))
        for refinement in range(REFINEMENTS + 2):
            _set_error_products(values, lines, lanes, n_skipped[i])
            for lane in range(LANES - 1, -1, -1):  # of equal losses (perfect fits) the largest alpha
                losses[lane] = _minimize_lane(lanes, lane, min_weight[i], max_weight[i], max_level, exponent, optimum)
            if low[i] == high[i] or optimum[LOSS] == 0.0:
                break
            _narrow_bracket(lanes, losses, refinement == REFINEMENTS)
        for index in range(4):
            estimates[index, i] = optimum[index]
        states[i, LEVEL] = optimum[FIRST]


@inner_no_alloc
def _fit_line(values: Floats, slope: float, dynamic: bool, state: Floats, lines: Floats) -> tuple[float, float]:
    """Set the initial state except its level, and intercept and slope of the line for each time step.

    Return the largest absolute value and the number of observed values. A given `slope` (not NaN)
    replaces that of the line, unless it is dynamic.
    """
    for index in range(STATE_SIZE):
        state[index] = 0.0
    state[POWER] = 1.0
    largest_value, n_observed = 0.0, 0.0
    for t in range(len(values)):
        if dynamic:
            lines[1, t] = state[PRODUCTS] / state[SQUARES] if state[SQUARES] > 0.0 else 0.0
            lines[0, t] = state[MEAN] - lines[1, t] * state[MEAN_ROW]
        if not math.isnan(values[t]):
            largest_value, n_observed = max(largest_value, abs(values[t])), n_observed + 1.0
            _update_line(state, t + 1.0, values[t])
    if dynamic:
        for index in range(COUNT, STATE_SIZE):
            state[index] = 0.0
        return largest_value, n_observed
    if not math.isnan(slope):
        state[PRODUCTS] = slope * state[SQUARES]
    line_slope = state[PRODUCTS] / state[SQUARES] if state[SQUARES] > 0.0 else 0.0
    for t in range(len(values)):
        lines[0, t], lines[1, t] = state[MEAN] - line_slope * state[MEAN_ROW], line_slope
    return largest_value, n_observed


@inner_no_alloc
def _set_error_products(values: Floats, lines: Floats, lanes: Floats, n_skipped: int) -> None:
    """Sum the products of the terms of each error over time, for each alpha.

    The terms of error = fixed - initial level * start - w * drift follow the recursion; see the
    offsets of `lanes`. The first `n_skipped` errors are not counted.
    """
    for lane in range(LANES, 12 * LANES):
        lanes[lane] = 0.0
    for lane in range(LANES):
        lanes[START + lane], lanes[POWER_LANE + lane] = 1.0, 1.0
    for t in range(len(values)):
        is_observed = 0.0 if math.isnan(values[t]) else 1.0
        value = values[t] if is_observed > 0.0 else 0.0
        intercept = lines[0, t]
        slope = lines[1, t]
        is_counted = is_observed if t >= n_skipped else 0.0
        for lane in range(LANES):  # one array with constant offsets: vectorizes
            gain = is_observed * lanes[lane]
            start = lanes[START + lane]
            power = lanes[POWER_LANE + lane]
            line = power * intercept + (lanes[POWER_SUM + lane] + power) * slope
            fixed_term, drift = value - lanes[SMOOTHED + lane], lanes[SMOOTHED_DRIFT + lane] + line
            lanes[FIXED_FIXED + lane] += is_counted * fixed_term * fixed_term
            lanes[FIXED_START + lane] += is_counted * fixed_term * start
            lanes[START_START + lane] += is_counted * start * start
            lanes[FIXED_DRIFT + lane] += is_counted * fixed_term * drift
            lanes[START_DRIFT + lane] += is_counted * start * drift
            lanes[DRIFT_DRIFT + lane] += is_counted * drift * drift
            lanes[SMOOTHED + lane] += gain * fixed_term
            lanes[SMOOTHED_DRIFT + lane] += (lanes[lane] - gain) * line - gain * lanes[SMOOTHED_DRIFT + lane]
            lanes[POWER_SUM + lane] += power
            start, power = (1.0 - gain) * start, (1.0 - lanes[lane]) * power
            lanes[START + lane] = start if start > NEGLIGIBLE_POWER else 0.0
            lanes[POWER_LANE + lane] = power if power > NEGLIGIBLE_POWER else 0.0


@inner_no_alloc
def _minimize_lane(
    lanes: Floats, lane: int, min_weight: float, max_weight: float, max_level: float, exponent: float, optimum: Floats
) -> float:
    """Minimum of the objective of a lane over w and the initial level within bounds; stored if the best so far.

    The sum of squares is quadratic in both: the interior minimum is tried first, then the minima along the
    bounds. `exponent` is 1/(n - 1), the power of P, or 0.
    """
    # Sums of products of fixed (f), start (s) and drift (d).
    fs = lanes[FIXED_START + lane]
    ss = lanes[START_START + lane]
    fd = lanes[FIXED_DRIFT + lane]
    sd, dd = lanes[START_DRIFT + lane], lanes[DRIFT_DRIFT + lane]
    min_objective = np.inf
    determinant = ss * dd - sd * sd
    default_weight = min(max(DEFAULT_WEIGHT, min_weight), max_weight)
    level_factor = ss**exponent
    is_interior = determinant > MIN_DETERMINANT * ss * dd and min_weight < max_weight
    for corner in range(6):  # interior minimum, then along each bound
        weight, level = default_weight, 0.0
        if corner == 0 and is_interior:
            weight, level = (ss * fd - sd * fs) / determinant, (dd * fs - sd * fd) / determinant
        elif corner < 4:
            weight = min_weight if corner == 2 else max_weight
            if corner < 2 or not is_interior:
                weight = default_weight
            level = (fs - weight * sd) / ss if ss > 0.0 else 0.0
            level = min(max(level, -max_level), max_level)
        else:
            level = max_level if corner == 4 else -max_level
            weight = min(max((fd - level * sd) / dd, min_weight), max_weight) if dd > 0.0 else default_weight
        if weight < min_weight or weight > max_weight or abs(level) > max_level:
            continue
        loss = (
            lanes[FIXED_FIXED + lane] + level * (level * ss - 2.0 * fs + 2.0 * weight * sd) + weight * (weight * dd - 2.0 * fd)
        )
        loss = max(loss, 0.0)
        min_objective = min(min_objective, loss * level_factor)
        if loss * level_factor < optimum[LOSS]:
            optimum[LOSS] = loss * level_factor
            optimum[SQUARED] = loss
            optimum[ALPHA] = lanes[lane]
            optimum[WEIGHT] = weight
            optimum[FIRST] = level
        if corner == (0 if is_interior else 1):
            break
    return min_objective


@inner_no_alloc
def _narrow_bracket(lanes: Floats, losses: Floats, is_last: bool) -> None:
    """Space alphas between the neighbours of the best; `is_last`: all at the minimum of the parabola.

    The parabola runs through the best alpha and its neighbours.
    """
    best_lane = 0
    for lane in range(LANES):
        if losses[lane] < losses[best_lane]:
            best_lane = lane
    left_lane, right_lane = max(best_lane - 1, 0), min(best_lane + 1, LANES - 1)
    left = lanes[left_lane]
    centre = lanes[best_lane]
    right = lanes[right_lane]
    right_rise, left_rise = losses[right_lane] - losses[best_lane], losses[left_lane] - losses[best_lane]
    curvature, minimum = right_rise * (centre - left) + left_rise * (right - centre), centre
    if is_last and left < centre < right and curvature > 0.0:
        minimum -= (
            0.5 * (right_rise * (centre - left) * (centre - left) - left_rise * (right - centre) * (right - centre)) / curvature
        )
        minimum = min(max(minimum, left), right)
    for lane in range(LANES):
        lanes[lane] = minimum if is_last else left + (right - left) * lane / (LANES - 1)


# -- recursion over time -------------------------------------------------------------------------------------------------------


@inner_no_alloc
def _update_line(state: Floats, time: float, value: float) -> None:
    """Update the least-squares line by one value (Welford's recursion)."""
    state[COUNT] += 1.0
    deviation = time - state[MEAN_ROW]
    state[MEAN_ROW] += deviation / state[COUNT]
    state[SQUARES] += deviation * (time - state[MEAN_ROW])
    state[MEAN] += (value - state[MEAN]) / state[COUNT]
    state[PRODUCTS] += deviation * (value - state[MEAN])


@inner_no_alloc
def _one_step_mean(state: Floats, weight: float) -> Any:
    slope = state[PRODUCTS] / state[SQUARES] if state[SQUARES] > 0.0 else 0.0
    intercept = state[MEAN] - slope * state[MEAN_ROW]
    return state[LEVEL] + weight * (state[POWER] * intercept + (state[POWERS] + state[POWER]) * slope)


@inner_no_alloc
def _step(state: Floats, alpha: float, value: float, updates_line: bool) -> None:
    """Advance the state by one time step; `updates_line`: whether the value updates the line."""
    state[ROWS] += 1.0
    state[LEVEL] += alpha * (value - state[LEVEL])
    state[POWERS] += state[POWER]
    state[POWER] = (1.0 - alpha) * state[POWER] if state[POWER] > NEGLIGIBLE_POWER else 0.0
    if updates_line:
        _update_line(state, state[ROWS], value)


@compiled_no_alloc
def _filter_series(
    y: Floats, indptr: Ints, states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, fitted: Floats
) -> None:
    """Write forecasts to `fitted` and update `states`; a missing value is replaced by its forecast."""
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
    """Write the paths to `paths`; `state` is a buffer."""
    for i in range(shocks.shape[0]):
        for path in range(shocks.shape[1]):
            for index in range(STATE_SIZE):
                state[index] = states[i, index]
            state[LEVEL] += level_offsets[i, path]
            for step in range(shocks.shape[2]):
                paths[i, path, step] = _one_step_mean(state, weight[i]) + shocks[i, path, step]
                _step(state, alpha[i], paths[i, path, step], dynamic[i])


@compiled_no_alloc
def _path_deviations(
    states: Floats, alpha: Floats, weight: Floats, dynamic: Bools, n_missed: Floats, standard_deviations: Floats, work: Floats
) -> None:
    """Write standard deviations; `states` is overwritten, `work` (5, 3, 3) is a buffer.

    Variances from the covariance C of (level, mean, sum of products), which are linear in the shocks. With
    observation vector h, transition T and shock response r: variance = 1 + h' C h, C <- T C T' + r r'.
    """
    covariance = work[0]
    transition = work[1]
    product = work[2]
    shock_response, observation = work[3, 0], work[4, 0]
    for i in range(standard_deviations.shape[0]):
        state = states[i]
        for index in range(9):
            covariance[index // 3, index % 3] = 0.0
        covariance[0, 0] = n_missed[i] * alpha[i] * alpha[i]
        for step in range(standard_deviations.shape[1]):
            observation[0] = 1.0
            observation[1] = weight[i] * state[POWER]
            observation[2] = 0.0
            if state[SQUARES] > 0.0:
                line_weight = state[POWERS] + state[POWER] - state[POWER] * state[MEAN_ROW]
                observation[2] = weight[i] * line_weight / state[SQUARES]
            shock_response[0] = alpha[i]
            shock_response[1] = 0.0
            shock_response[2] = 0.0
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
