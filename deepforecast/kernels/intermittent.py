"""Intermittent demand: Croston's method, TSB, and smoothing of temporally aggregated blocks.

A demand is a nonzero value. With sizes z, intervals q and demand indicator d,

    Croston (at demands)        z <- z + alpha (y - z),  q <- q + beta (interval - q),  forecast z / q
    TSB (p in every period)     p <- p + beta (d - p),   z as above at demands,         forecast p z

Missing values are skipped: neither a demand nor a period without one. Croston (1972), *Operational
Research Quarterly* 23, doi:10.1057/jors.1972.50; Teunter, Syntetos & Babai (2011), *European
Journal of Operational Research* 214, doi:10.1016/j.ejor.2011.05.018.
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

KERNEL_FAMILY = "the kernels of intermittent demand"


def fit_demands(y: Floats, indptr: Ints, method: int, bounds: Floats, n_sizes: int) -> tuple[Floats, Floats, Floats]:
    """Least-squares smoothing parameters (series, 2) of sizes and of intervals or probabilities.

    `bounds` (2, 2): lower and upper bound of each. Also returns the state after the last row and
    the last `n_sizes` sizes, see `update_demands`.
    """
    count = len(indptr) - 1
    alpha, state, sizes = np.zeros((count, 2)), np.full((count, 3), np.nan), np.full((count, n_sizes), np.nan)
    state[:, 2] = 0.0
    with compile_notice(KERNEL_FAMILY):
        _smooth_demands(as_read_only(y), _as_integers(indptr), method, _as_floats(bounds), alpha, state, sizes)
    return alpha, state, sizes


def update_demands(y: Floats, indptr: Ints, method: int, alpha: Floats, state: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Update states and last sizes by the rows of `y`.

    `state` (series, 3): level of the sizes, level of intervals or probabilities (NaN before the
    first demand), periods since the last demand. `sizes`: newest last, NaN where there are fewer.
    """
    state, sizes = np.array(state, order="C"), np.array(sizes, order="C")
    with compile_notice(KERNEL_FAMILY):
        _smooth_demands(as_read_only(y), _as_integers(indptr), method, np.empty((0, 2)), _as_floats(alpha), state, sizes)
    return state, sizes


def filter_levels(y: Floats, indptr: Ints, method: int, alpha: Floats) -> tuple[Floats, Floats]:
    """Both levels before each row, from an empty state."""
    filtered = np.empty((2, len(y)))
    with compile_notice(KERNEL_FAMILY):
        _levels(as_read_only(y), _as_integers(indptr), method, _as_floats(alpha), filtered)
    return filtered[0], filtered[1]


def mean_intervals(y: Floats, indptr: Ints) -> Ints:
    """Mean interval between demands, rounded; 1 without any."""
    intervals = np.empty(len(indptr) - 1, np.int64)
    with compile_notice(KERNEL_FAMILY):
        _mean_intervals(as_read_only(y), _as_integers(indptr), intervals)
    return intervals


def fit_blocks(y: Floats, indptr: Ints, rows: Ints, low: float, high: float) -> tuple[Floats, Floats]:
    """Smoothing parameters of sums of blocks, and the state after the last row, see
    `update_blocks`.

    `rows` (series, levels): block lengths, 0 for an unused level; blocks end with the series.
    """
    alpha, state = np.zeros(rows.shape), np.zeros((*rows.shape, 4))
    with compile_notice(KERNEL_FAMILY):
        _fit_block_sums(as_read_only(y), _as_integers(indptr), _as_integers(rows), np.array([low, high]), alpha, state)
    return alpha, state


def update_blocks(y: Floats, indptr: Ints, rows: Ints, alpha: Floats, skip: Ints, state: Floats) -> tuple[Floats, Floats]:
    """Update states by the rows of `y`; return them and the forecast of each row from the rows
    before.

    `state` (series, levels, 4): smoothed sum, rows of the current block so far, how many are
    observed, their sum. The first `skip` (series, levels) rows belong to no block. The forecast is
    the mean over levels of the smoothed sum per row; NaN before any block is complete.
    """
    state = np.array(state, order="C")
    forecasts = np.empty(len(y))
    with compile_notice(KERNEL_FAMILY):
        _smooth_blocks(
            as_read_only(y), _as_integers(indptr), _as_integers(rows), _as_floats(alpha), _as_integers(skip), state, forecasts
        )
    return state, forecasts


def tilt_probabilities(sizes: Floats, occurrence: Floats, mean: Floats) -> Floats:
    """Probabilities of 0 and each of `sizes` (series, 1 + sizes) that have the given mean.

    Exponential tilting: the distribution closest in Kullback-Leibler divergence to 1 - occurrence
    for 0 and equal shares of occurrence for the sizes; its weights are multiplied by exp(t * size).
    A mean out of reach is approximated as closely as possible.
    """
    probabilities = np.zeros((sizes.shape[0], sizes.shape[1] + 1))
    with compile_notice(KERNEL_FAMILY):
        _tilt(_as_floats(sizes), _as_floats(occurrence), _as_floats(mean), probabilities)
    return probabilities


@compiled
def _smooth_demands(y: Floats, indptr: Ints, method: int, bounds: Floats, alpha: Floats, state: Floats, sizes: Floats) -> None:
    """Smooth sizes and intervals; `alpha` is estimated only if `bounds` are not empty."""
    longest = 0
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    demand_sizes, intervals = np.empty(longest + 1), np.empty(longest + 1)  # one more as scratch
    for i in range(len(indptr) - 1):
        demands, count, periods_since = _extract_demands(
            y, indptr[i], indptr[i + 1], method, state[i, 2], demand_sizes, intervals
        )
        if len(bounds) > 0:
            alpha[i, 0] = fit_alpha(demand_sizes, demands, bounds[0, 0], bounds[0, 1], overflow_scale(demand_sizes, demands))
            alpha[i, 1] = fit_alpha(intervals, count, bounds[1, 0], bounds[1, 1], 1.0)
        smooth_two_levels(demand_sizes, demands, intervals, count, state[i], alpha[i])
        state[i, 2] = periods_since
        n_sizes = sizes.shape[1]
        n_new = min(demands, n_sizes)
        for position in range(n_sizes - n_new):
            sizes[i, position] = sizes[i, position + n_new]
        for position in range(n_new):
            sizes[i, n_sizes - n_new + position] = demand_sizes[demands - n_new + position]


@inner_no_alloc
def _extract_demands(
    y: Floats, begin: int, end: int, method: int, periods_since: float, demand_sizes: Floats, intervals: Floats
) -> Any:
    """Write sizes and intervals (or indicators); return their numbers and the periods since the
    last.
    """
    demands, periods = 0, periods_since
    for row in range(begin, end):
        value = y[row]
        is_observed = not np.isnan(value)
        periods += 1.0 if is_observed else 0.0
        demand_sizes[demands], intervals[demands] = value, periods
        demands += 1 if is_observed and value != 0.0 else 0
    last = intervals[demands - 1] if demands > 0 else 0.0
    if method == INTERVALS:
        for position in range(demands - 1, 0, -1):
            intervals[position] -= intervals[position - 1]
        return demands, demands, periods - last
    count = 0
    for row in range(begin, end):
        intervals[count] = 1.0 if y[row] != 0.0 else 0.0
        count += 0 if np.isnan(y[row]) else 1
    return demands, count, periods - last


@compiled_no_alloc
def _levels(y: Floats, indptr: Ints, method: int, alpha: Floats, filtered: Floats) -> None:
    for i in range(len(indptr) - 1):
        size, interval, periods_since = np.nan, np.nan, 0.0
        for row in range(indptr[i], indptr[i + 1]):
            filtered[0, row], filtered[1, row] = size, interval
            if np.isnan(y[row]):
                continue
            demand = y[row] != 0.0
            periods_since += 1.0
            if method == PROBABILITY or demand:
                value = periods_since if method == INTERVALS else 1.0 if demand else 0.0
                interval = value if np.isnan(interval) else interval + alpha[i, 1] * (value - interval)
            if demand:
                size = y[row] if np.isnan(size) else size + alpha[i, 0] * (y[row] - size)
                periods_since = 0.0


@compiled_no_alloc
def _mean_intervals(y: Floats, indptr: Ints, intervals: Ints) -> None:
    for i in range(len(indptr) - 1):
        periods, demands, last = 0, 0, 0
        for row in range(indptr[i], indptr[i + 1]):
            periods += 0 if np.isnan(y[row]) else 1
            if y[row] != 0.0 and not np.isnan(y[row]):
                demands += 1
                last = periods
        intervals[i] = max(int(np.rint(last / demands)), 1) if demands > 0 else 1


@compiled
def _fit_block_sums(y: Floats, indptr: Ints, rows: Ints, bounds: Floats, alpha: Floats, state: Floats) -> None:
    longest = 0
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    sums = np.empty(longest)
    for i in range(rows.shape[0]):
        missing = 0
        for row in range(indptr[i], indptr[i + 1]):
            missing += np.isnan(y[row])
        for level in range(rows.shape[1]):
            width = rows[i, level]
            if width == 0:
                continue
            count = _block_sums(y, indptr[i] + (indptr[i + 1] - indptr[i]) % width, indptr[i + 1], width, missing == 0, sums)
            alpha[i, level] = fit_alpha(sums, count, bounds[0], bounds[1], overflow_scale(sums, count))
            state[i, level, 0] = smooth_level(sums, count, sums[0] if count > 0 else np.nan, alpha[i, level])


@inner_no_alloc
def _block_sums(y: Floats, start: int, end: int, width: int, complete: bool, sums: Floats) -> int:
    """Write block sums, missing rows as the mean of the others; return how many."""
    count = 0
    while start < end:
        total, n_observed = 0.0, width
        for row in range(start, start + width):
            value = y[row]
            if not complete and np.isnan(value):
                n_observed -= 1
            else:
                total += value
        if n_observed > 0:
            sums[count] = total if n_observed == width else total / n_observed * width
            count += 1
        start += width
    return count


@compiled_no_alloc
def _smooth_blocks(y: Floats, indptr: Ints, rows: Ints, alpha: Floats, skip: Ints, state: Floats, fitted: Floats) -> None:
    for i in range(len(indptr) - 1):
        levels = 0
        for level in range(rows.shape[1]):
            levels += rows[i, level] > 0
        for row in range(indptr[i], indptr[i + 1]):
            fitted[row] = 0.0
        for level in range(rows.shape[1]):
            width = rows[i, level]
            if width == 0:
                continue
            level_sum, n_rows, n_observed, total = (
                state[i, level, 0],
                state[i, level, 1],
                state[i, level, 2],
                state[i, level, 3],
            )
            share = 1.0 / (width * levels)
            for row in range(indptr[i], indptr[i + 1]):
                fitted[row] += level_sum * share
                if row - indptr[i] < skip[i, level]:
                    continue
                n_rows += 1.0
                if not np.isnan(y[row]):
                    n_observed += 1.0
                    total += y[row]
                if n_rows < width:
                    continue
                if n_observed > 0.0:
                    block = total if n_observed == width else total / n_observed * width
                    level_sum = block if np.isnan(level_sum) else level_sum + alpha[i, level] * (block - level_sum)
                n_rows, n_observed, total = 0.0, 0.0, 0.0
            state[i, level, 0], state[i, level, 1], state[i, level, 2], state[i, level, 3] = (
                level_sum,
                n_rows,
                n_observed,
                total,
            )


@compiled_no_alloc
def _tilt(sizes: Floats, occurrence: Floats, mean: Floats, probabilities: Floats) -> None:
    for i in range(len(sizes)):
        n_sizes, largest = 0.0, 0.0  # floats: an integer would compile a second version
        for position in range(sizes.shape[1]):
            if not np.isnan(sizes[i, position]):
                n_sizes += 1.0
                largest = max(largest, abs(sizes[i, position]))
        probabilities[i, 0] = 1.0
        if n_sizes == 0.0:
            continue
        target_mean, low, high, tilt = mean[i] / largest, -700.0, 700.0, 0.0
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
    """Write tilted probabilities; return their mean and variance in units of the largest size."""
    max_exponent = 0.0 if occurrence < 1.0 else -np.inf
    for position in range(len(sizes)):
        if not np.isnan(sizes[position]):
            max_exponent = max(max_exponent, tilt * (sizes[position] / largest))
    probabilities[0] = (1.0 - occurrence) * np.exp(-max_exponent) if occurrence < 1.0 else 0.0
    total, first, second = probabilities[0], 0.0, 0.0
    for position in range(len(sizes)):
        probabilities[position + 1] = 0.0
        if not np.isnan(sizes[position]):
            unit = sizes[position] / largest
            weight = occurrence / n_sizes * np.exp(tilt * unit - max_exponent)
            probabilities[position + 1] = weight
            total += weight
            first += weight * unit
            second += weight * unit * unit
    for position in range(len(probabilities)):
        probabilities[position] /= total
    first /= total
    return first, second / total - first * first


def _as_floats(values: Any) -> Floats:
    return np.require(values, np.float64, ["C", "W"])


def _as_integers(values: Any) -> Ints:
    return np.require(values, np.int64, ["C", "W"])
