"""Intermittent demand: Croston's method, TSB, and smoothing of temporally aggregated blocks.

A demand is a nonzero value. With sizes z, intervals q, demand probability p and demand indicator d,

    Croston (at demands)        z <- z + alpha (y - z),  q <- q + beta (interval - q),  forecast z / q
    TSB (p in every period)     p <- p + beta (d - p),   z as above at demands,         forecast p z

Missing values are skipped: neither a demand nor a period without one. `y` holds the series one after
the other, series i from `indptr[i]` to `indptr[i + 1]`. `method` is INTERVALS or PROBABILITY, `alpha`
(series, 2) holds the smoothing parameters alpha and beta.

References
----------
Croston (1972), Forecasting and stock control for intermittent demands, *Operational Research Quarterly*
23, doi:10.1057/jors.1972.50.
Teunter, Syntetos & Babai (2011), Intermittent demand: Linking forecasting to inventory obsolescence,
*European Journal of Operational Research* 214, doi:10.1016/j.ejor.2011.05.018.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arrays import as_read_only
from deepforecast.kernels.compilation import compile_notice, compiled, compiled_no_alloc, inner_no_alloc
from deepforecast.kernels.smoothing import fit_alpha, overflow_scale, smooth_level, smooth_two_levels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

INTERVALS, PROBABILITY = 0, 1
"""Second smoothed series: intervals between demands (Croston) or demand probability (TSB)."""

KERNEL_FAMILY = "models of intermittent demand"

SIZE_LEVEL, SECOND_LEVEL, PERIODS_SINCE = range(3)
"""Elements of the state of a series: level of the sizes, level of intervals or probabilities, periods since
the last demand."""

BLOCK_LEVEL, N_ROWS, N_OBSERVED, BLOCK_SUM = range(4)
"""Elements of the state of an aggregation level: smoothed sum of blocks; of the current block the number of
rows so far, how many of them are observed, and their sum."""

MAX_TILT = 700.0  # largest absolute exponent of the tilted probabilities


def fit_demands(y: Floats, indptr: Ints, method: int, bounds: Floats, n_sizes: int) -> tuple[Floats, Floats, Floats]:
    """Least-squares smoothing parameters (series, 2) of sizes and of intervals or probabilities.

    `bounds` (2, 2): lower and upper bound of each. Also returns the state after the last period and
    the last `n_sizes` sizes, see `update_demands`.
    """
    n_series = len(indptr) - 1
    alpha = np.zeros((n_series, 2))
    state = np.full((n_series, 3), np.nan)
    state[:, PERIODS_SINCE] = 0.0
    sizes = np.full((n_series, n_sizes), np.nan)
    with compile_notice(KERNEL_FAMILY):
        _smooth_demands(as_read_only(y), _as_integers(indptr), method, _as_floats(bounds), alpha, state, sizes)
    return alpha, state, sizes


def update_demands(y: Floats, indptr: Ints, method: int, alpha: Floats, state: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Update states and last sizes by the values `y`; return copies.

    `state` (series, 3): level of the sizes, level of intervals or probabilities (both NaN before the
    first demand or value), periods since the last demand. `sizes` (series, n): newest last, NaN where
    there are fewer.
    """
    state, sizes = np.array(state, order="C"), np.array(sizes, order="C")
    with compile_notice(KERNEL_FAMILY):
        _smooth_demands(as_read_only(y), _as_integers(indptr), method, np.empty((0, 2)), _as_floats(alpha), state, sizes)
    return state, sizes


def filter_levels(y: Floats, indptr: Ints, method: int, alpha: Floats) -> tuple[Floats, Floats]:
    """Level of the sizes, and of intervals or probabilities, before each period; NaN before the first demand or value."""
    filtered = np.empty((2, len(y)))
    with compile_notice(KERNEL_FAMILY):
        _levels(as_read_only(y), _as_integers(indptr), method, _as_floats(alpha), filtered)
    return filtered[0], filtered[1]


def mean_intervals(y: Floats, indptr: Ints) -> Ints:
    """Mean interval between demands of each series, rounded; 1 without any demand."""
    intervals = np.empty(len(indptr) - 1, np.int64)
    with compile_notice(KERNEL_FAMILY):
        _mean_intervals(as_read_only(y), _as_integers(indptr), intervals)
    return intervals


def fit_blocks(y: Floats, indptr: Ints, block_lengths: Ints, low: float, high: float) -> tuple[Floats, Floats]:
    """Smoothing parameters of sums of blocks, and the state after the last period, see `update_blocks`.

    `block_lengths` (series, levels): periods per block, 0 for an unused level; blocks end with the series.
    `low`, `high`: bounds of the smoothing parameters.
    """
    alpha, state = np.zeros(block_lengths.shape), np.zeros((*block_lengths.shape, 4))
    with compile_notice(KERNEL_FAMILY):
        _fit_block_sums(as_read_only(y), _as_integers(indptr), _as_integers(block_lengths), np.array([low, high]), alpha, state)
    return alpha, state


def update_blocks(
    y: Floats, indptr: Ints, block_lengths: Ints, alpha: Floats, n_skipped: Ints, state: Floats
) -> tuple[Floats, Floats]:
    """Update states by the values `y`; return a copy, and the forecast of each period from those before.

    `state` (series, levels, 4): smoothed sum, periods of the current block so far, how many are observed,
    their sum. The first `n_skipped` (series, levels) periods belong to no block. The forecast is the mean
    over levels of the smoothed sum per period; NaN before the first block of each level is complete.
    """
    state = np.array(state, order="C")
    forecasts = np.empty(len(y))
    with compile_notice(KERNEL_FAMILY):
        _smooth_blocks(
            as_read_only(y),
            _as_integers(indptr),
            _as_integers(block_lengths),
            _as_floats(alpha),
            _as_integers(n_skipped),
            state,
            forecasts,
        )
    return state, forecasts


def tilt_probabilities(sizes: Floats, occurrence: Floats, mean: Floats) -> Floats:
    """Probabilities (series, 1 + sizes) of 0 and each of `sizes` that have the given mean.

    Exponential tilting: the distribution closest in Kullback-Leibler divergence to 1 - occurrence
    for 0 and equal shares of occurrence for the sizes; its weights are multiplied by exp(t * size).
    A mean out of reach is approximated as closely as possible. NaN in `sizes` (series, n) is no size.
    """
    probabilities = np.zeros((sizes.shape[0], sizes.shape[1] + 1))
    with compile_notice(KERNEL_FAMILY):
        _tilt(_as_floats(sizes), _as_floats(occurrence), _as_floats(mean), probabilities)
    return probabilities


@compiled
def _smooth_demands(y: Floats, indptr: Ints, method: int, bounds: Floats, alpha: Floats, state: Floats, sizes: Floats) -> None:
    """Smooth sizes and intervals (or indicators), updating `state` and `sizes`.

    `alpha` is estimated only if `bounds` are not empty.
    """
    max_length = 0
    for i in range(len(indptr) - 1):
        max_length = max(max_length, indptr[i + 1] - indptr[i])
    demand_sizes, second_values = np.empty(max_length + 1), np.empty(max_length + 1)  # one more as scratch
    for i in range(len(indptr) - 1):
        n_demands, n_values, periods_since = _extract_demands(
            y, indptr[i], indptr[i + 1], method, state[i, PERIODS_SINCE], demand_sizes, second_values
        )
        if len(bounds) > 0:
            alpha[i, 0] = fit_alpha(
                demand_sizes, n_demands, bounds[0, 0], bounds[0, 1], overflow_scale(demand_sizes, n_demands)
            )
            alpha[i, 1] = fit_alpha(second_values, n_values, bounds[1, 0], bounds[1, 1], 1.0)
        smooth_two_levels(demand_sizes, n_demands, second_values, n_values, state[i], alpha[i])
        state[i, PERIODS_SINCE] = periods_since
        n_sizes = sizes.shape[1]
        n_new = min(n_demands, n_sizes)
        for position in range(n_sizes - n_new):
            sizes[i, position] = sizes[i, position + n_new]
        for position in range(n_new):
            sizes[i, n_sizes - n_new + position] = demand_sizes[n_demands - n_new + position]


@inner_no_alloc
def _extract_demands(
    y: Floats, begin: int, end: int, method: int, periods_since: float, demand_sizes: Floats, intervals: Floats
) -> Any:
    """Write sizes, and intervals between demands (or indicators of every period), to the arrays.

    Return the numbers of sizes and of intervals (or indicators), and the periods since the last demand. The
    element after the last is scratch, which saves a branch. `periods_since`: before `begin`.
    """
    n_demands = 0
    periods = periods_since  # counted since the last demand before `begin`
    for t in range(begin, end):
        value = y[t]
        is_observed = not np.isnan(value)
        periods += 1.0 if is_observed else 0.0
        demand_sizes[n_demands], intervals[n_demands] = value, periods
        n_demands += 1 if is_observed and value != 0.0 else 0
    last_demand = intervals[n_demands - 1] if n_demands > 0 else 0.0
    if method == INTERVALS:
        for position in range(n_demands - 1, 0, -1):
            intervals[position] -= intervals[position - 1]
        return n_demands, n_demands, periods - last_demand
    n_values = 0
    for t in range(begin, end):
        intervals[n_values] = 1.0 if y[t] != 0.0 else 0.0
        n_values += 0 if np.isnan(y[t]) else 1
    return n_demands, n_values, periods - last_demand


@compiled_no_alloc
def _levels(y: Floats, indptr: Ints, method: int, alpha: Floats, filtered: Floats) -> None:
    """Write the levels before each period to `filtered` (2, periods), from an empty state."""
    for i in range(len(indptr) - 1):
        size_level, second_level, periods_since = np.nan, np.nan, 0.0
        for t in range(indptr[i], indptr[i + 1]):
            filtered[0, t], filtered[1, t] = size_level, second_level
            if np.isnan(y[t]):
                continue
            is_demand = y[t] != 0.0
            periods_since += 1.0
            if method == PROBABILITY or is_demand:
                indicator = 1.0 if is_demand else 0.0
                value = periods_since if method == INTERVALS else indicator
                second_level = value if np.isnan(second_level) else second_level + alpha[i, 1] * (value - second_level)
            if is_demand:
                size_level = y[t] if np.isnan(size_level) else size_level + alpha[i, 0] * (y[t] - size_level)
                periods_since = 0.0


@compiled_no_alloc
def _mean_intervals(y: Floats, indptr: Ints, intervals: Ints) -> None:
    """Write the number of periods up to the last demand over the number of demands, rounded, to `intervals`."""
    for i in range(len(indptr) - 1):
        n_periods, n_demands, last_demand = 0, 0, 0
        for t in range(indptr[i], indptr[i + 1]):
            n_periods += 0 if np.isnan(y[t]) else 1
            if y[t] != 0.0 and not np.isnan(y[t]):
                n_demands += 1
                last_demand = n_periods
        intervals[i] = max(int(np.rint(last_demand / n_demands)), 1) if n_demands > 0 else 1


@compiled
def _fit_block_sums(y: Floats, indptr: Ints, block_lengths: Ints, bounds: Floats, alpha: Floats, state: Floats) -> None:
    """Write smoothing parameters to `alpha` and smoothed sums to `state`.

    Blocks start so that the last one ends with the series.
    """
    max_length = 0
    for i in range(len(indptr) - 1):
        max_length = max(max_length, indptr[i + 1] - indptr[i])
    sums = np.empty(max_length)
    for i in range(block_lengths.shape[0]):
        n_missing = 0
        for t in range(indptr[i], indptr[i + 1]):
            n_missing += np.isnan(y[t])
        for level in range(block_lengths.shape[1]):
            block_length = block_lengths[i, level]
            if block_length == 0:
                continue
            start, end = indptr[i] + (indptr[i + 1] - indptr[i]) % block_length, indptr[i + 1]
            n_blocks = _block_sums(y, start, end, block_length, n_missing == 0, sums)
            alpha[i, level] = fit_alpha(sums, n_blocks, bounds[0], bounds[1], overflow_scale(sums, n_blocks))
            state[i, level, BLOCK_LEVEL] = smooth_level(sums, n_blocks, sums[0] if n_blocks > 0 else np.nan, alpha[i, level])


@inner_no_alloc
def _block_sums(y: Floats, start: int, end: int, block_length: int, is_complete: bool, sums: Floats) -> int:
    """Write the sums of the blocks from `start` to `end`; return their number.

    A missing value counts as the mean of the others of its block; blocks without values are left out.
    """
    n_blocks = 0
    while start < end:
        block_sum, n_observed = 0.0, block_length
        for t in range(start, start + block_length):
            value = y[t]
            if not is_complete and np.isnan(value):
                n_observed -= 1
            else:
                block_sum += value
        if n_observed > 0:
            sums[n_blocks] = block_sum if n_observed == block_length else block_sum / n_observed * block_length
            n_blocks += 1
        start += block_length
    return n_blocks


@compiled_no_alloc
def _smooth_blocks(
    y: Floats, indptr: Ints, block_lengths: Ints, alpha: Floats, n_skipped: Ints, state: Floats, fitted: Floats
) -> None:
    """Write the forecasts to `fitted` and update `state` in place, see `update_blocks`."""
    for i in range(len(indptr) - 1):
        n_levels = 0
        for level in range(block_lengths.shape[1]):
            n_levels += block_lengths[i, level] > 0
        for t in range(indptr[i], indptr[i + 1]):
            fitted[t] = 0.0
        for level in range(block_lengths.shape[1]):
            block_length = block_lengths[i, level]
            if block_length == 0:
                continue
            level_sum = state[i, level, BLOCK_LEVEL]
            n_periods = state[i, level, N_ROWS]
            n_observed = state[i, level, N_OBSERVED]
            block_sum = state[i, level, BLOCK_SUM]
            share = 1.0 / (block_length * n_levels)  # of a sum in the forecast of a period
            for t in range(indptr[i], indptr[i + 1]):
                fitted[t] += level_sum * share
                if t - indptr[i] < n_skipped[i, level]:
                    continue
                n_periods += 1.0
                if not np.isnan(y[t]):
                    n_observed += 1.0
                    block_sum += y[t]
                if n_periods < block_length:
                    continue
                if n_observed > 0.0:
                    complete_sum = block_sum if n_observed == block_length else block_sum / n_observed * block_length
                    level_sum = (
                        complete_sum if np.isnan(level_sum) else level_sum + alpha[i, level] * (complete_sum - level_sum)
                    )
                n_periods, n_observed, block_sum = 0.0, 0.0, 0.0
            state[i, level, BLOCK_LEVEL] = level_sum
            state[i, level, N_ROWS] = n_periods
            state[i, level, N_OBSERVED] = n_observed
            state[i, level, BLOCK_SUM] = block_sum


@compiled_no_alloc
def _tilt(sizes: Floats, occurrence: Floats, mean: Floats, probabilities: Floats) -> None:
    """Find the tilt of each series by Newton's method within a bracket; write the tilted probabilities."""
    for i in range(len(sizes)):
        n_sizes, largest = 0.0, 0.0  # floats: an integer would compile a second version
        for position in range(sizes.shape[1]):
            if not np.isnan(sizes[i, position]):
                n_sizes += 1.0
                largest = max(largest, abs(sizes[i, position]))
        probabilities[i, 0] = 1.0
        if n_sizes == 0.0:
            continue
        target_mean = mean[i] / largest
        low, high, tilt = -MAX_TILT, MAX_TILT, 0.0
        for _ in range(200):
            tilted_mean, tilted_variance = _tilted_weights(
                sizes[i], n_sizes, largest, min(occurrence[i], 1.0), tilt, probabilities[i]
            )
            if tilted_mean > target_mean:
                high = tilt
            else:
                low = tilt
            if abs(tilted_mean - target_mean) <= 1e-13 or high - low <= 1e-12 * abs(tilt):
                break
            newton_step = tilt + (target_mean - tilted_mean) / tilted_variance if tilted_variance > 0.0 else high
            tilt = newton_step if low < newton_step < high else 0.5 * (low + high)


@inner_no_alloc
def _tilted_weights(
    sizes: Floats, n_sizes: float, largest: float, occurrence: float, tilt: float, probabilities: Floats
) -> Any:
    """Write tilted probabilities; return their mean and variance in units of the largest absolute size.

    Exponents are reduced by their maximum, so that they do not overflow. `n_sizes`: sizes that are not NaN.
    """
    max_exponent = 0.0 if occurrence < 1.0 else -np.inf
    for position in range(len(sizes)):
        if not np.isnan(sizes[position]):
            max_exponent = max(max_exponent, tilt * (sizes[position] / largest))
    probabilities[0] = (1.0 - occurrence) * np.exp(-max_exponent) if occurrence < 1.0 else 0.0
    sum_of_weights, first_moment, second_moment = probabilities[0], 0.0, 0.0
    for position in range(len(sizes)):
        probabilities[position + 1] = 0.0
        if not np.isnan(sizes[position]):
            relative_size = sizes[position] / largest
            weight = occurrence / n_sizes * np.exp(tilt * relative_size - max_exponent)
            probabilities[position + 1] = weight
            sum_of_weights += weight
            first_moment += weight * relative_size
            second_moment += weight * relative_size * relative_size
    for position in range(len(probabilities)):
        probabilities[position] /= sum_of_weights
    first_moment /= sum_of_weights
    return first_moment, second_moment / sum_of_weights - first_moment * first_moment


def _as_floats(values: Any) -> Floats:
    return np.require(values, np.float64, ["C", "W"])


def _as_integers(values: Any) -> Ints:
    return np.require(values, np.int64, ["C", "W"])
