"""Intermittent demand: sizes and intervals (or probabilities) smoothed apart, and sums of blocks smoothed together.

A value that is not 0 is a demand. A missing value (NaN) is passed over: neither a demand nor a period without one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arrays import only_read
from deepforecast.kernels.compiling import announced, bare, compiled, lean
from deepforecast.kernels.smoothing import both_smoothed, smoothed, smoothing_parameter, unit_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

INTERVALS, PROBABILITY = 0, 1
"""What is smoothed beside the sizes: the periods from demand to demand (Croston), or whether there is one (TSB)."""

WORD = "the kernels of intermittent demand"


def fitted(y: Floats, indptr: Ints, kind: int, bounds: Floats, held: int) -> tuple[Floats, Floats, Floats]:
    """Smoothing parameters (series, 2) of sizes and of intervals or probabilities, each of least squared one-step errors
    between its two `bounds` (2, 2); with them the state after the last row and the last `held` sizes: see `walked`.
    """
    count = len(indptr) - 1
    alpha, state, sizes = np.zeros((count, 2)), np.full((count, 3), np.nan), np.full((count, held), np.nan)
    state[:, 2] = 0.0
    with announced(WORD):
        _walk(only_read(y), _whole(indptr), kind, _plain(bounds), alpha, state, sizes)
    return alpha, state, sizes


def walked(y: Floats, indptr: Ints, kind: int, alpha: Floats, state: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """`state` (series, 3: level of the sizes, of intervals or probabilities, periods since a demand; NaN levels before the
    first one) and the last sizes (the newest on the right, NaN where there are fewer), moved over the rows of `y`.
    """
    state, sizes = np.array(state, order="C"), np.array(sizes, order="C")
    with announced(WORD):
        _walk(only_read(y), _whole(indptr), kind, np.empty((0, 2)), _plain(alpha), state, sizes)
    return state, sizes


def levels(y: Floats, indptr: Ints, kind: int, alpha: Floats) -> tuple[Floats, Floats]:
    """The two levels before each row, from a start of which nothing is known."""
    found = np.empty((2, len(y)))
    with announced(WORD):
        _levels(only_read(y), _whole(indptr), kind, _plain(alpha), found)
    return found[0], found[1]


def mean_intervals(y: Floats, indptr: Ints) -> Ints:
    """The mean of the periods from one demand to the next, a whole number; 1 where there is none."""
    found = np.empty(len(indptr) - 1, np.int64)
    with announced(WORD):
        _mean_intervals(only_read(y), _whole(indptr), found)
    return found


def blocks_fitted(y: Floats, indptr: Ints, rows: Ints, low: float, high: float) -> tuple[Floats, Floats]:
    """Smoothing parameters of the sums of blocks of `rows` (series, levels; 0: no such level) that end with each series, and
    with them the state after the last one: see `blocks_walked`."""
    alpha, state = np.zeros(rows.shape), np.zeros((*rows.shape, 4))
    with announced(WORD):
        _fit_blocks(only_read(y), _whole(indptr), _whole(rows), np.array([low, high]), alpha, state)
    return alpha, state


def blocks_walked(y: Floats, indptr: Ints, rows: Ints, alpha: Floats, skip: Ints, state: Floats) -> tuple[Floats, Floats]:
    """Move `state` (series, levels, 4: smoothed sum, rows so far of a block, how many hold a value, their sum) over the rows of
    `y`, of which the first `skip` (series, levels) belong to no block. Moved, and for each row the forecast of a row before it.

    The forecast is the mean over levels of what a row of a block holds; NaN before any block is complete.
    """
    state = np.array(state, order="C")
    found = np.empty(len(y))
    with announced(WORD):
        _walk_blocks(only_read(y), _whole(indptr), _whole(rows), _plain(alpha), _whole(skip), state, found)
    return state, found


def tilted(sizes: Floats, occurrence: Floats, mean: Floats) -> Floats:
    """Probabilities of 0 and of each of the `sizes` (series, 1 + sizes) with this mean, as near as can be to the plain ones:
    1 - occurrence, and equal shares of occurrence.

    Exponential tilting: the weight of a value grows by exp(t * value), which changes least in the sense of Kullback and
    Leibler. A mean that no weights can give is met as nearly as they can.
    """
    found = np.zeros((sizes.shape[0], sizes.shape[1] + 1))
    with announced(WORD):
        _tilt(_plain(sizes), _plain(occurrence), _plain(mean), found)
    return found


@compiled
def _walk(y: Floats, indptr: Ints, kind: int, bounds: Floats, alpha: Floats, state: Floats, sizes: Floats) -> None:
    """Without `bounds`, alpha is as it is given."""
    longest = 0
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    seen, others = np.empty(longest + 1), np.empty(longest + 1)  # one more: written to ahead of time
    for i in range(len(indptr) - 1):
        demands, count, since = _demands(y, indptr[i], indptr[i + 1], kind, state[i, 2], seen, others)
        if len(bounds) > 0:
            alpha[i, 0] = smoothing_parameter(seen, demands, bounds[0, 0], bounds[0, 1], unit_of(seen, demands))
            alpha[i, 1] = smoothing_parameter(others, count, bounds[1, 0], bounds[1, 1], 1.0)
        both_smoothed(seen, demands, others, count, state[i], alpha[i])
        state[i, 2] = since
        held = sizes.shape[1]
        new = min(demands, held)
        for place in range(held - new):
            sizes[i, place] = sizes[i, place + new]
        for place in range(new):
            sizes[i, held - new + place] = seen[demands - new + place]


@bare
def _demands(y: Floats, begin: int, end: int, kind: int, since: float, seen: Floats, others: Floats) -> Any:
    """Write the sizes of demands, and the periods from one to the next or whether there is one in each period; how many of
    each, and the periods since the last."""
    demands, periods = 0, since
    for row in range(begin, end):
        value = y[row]
        there = not np.isnan(value)
        periods += 1.0 if there else 0.0
        seen[demands], others[demands] = value, periods
        demands += 1 if there and value != 0.0 else 0
    last = others[demands - 1] if demands > 0 else 0.0
    if kind == INTERVALS:
        for place in range(demands - 1, 0, -1):
            others[place] -= others[place - 1]
        return demands, demands, periods - last
    count = 0
    for row in range(begin, end):
        others[count] = 1.0 if y[row] != 0.0 else 0.0
        count += 0 if np.isnan(y[row]) else 1
    return demands, count, periods - last


@lean
def _levels(y: Floats, indptr: Ints, kind: int, alpha: Floats, found: Floats) -> None:
    for i in range(len(indptr) - 1):
        size, other, since = np.nan, np.nan, 0.0
        for row in range(indptr[i], indptr[i + 1]):
            found[0, row], found[1, row] = size, other
            if np.isnan(y[row]):
                continue
            demand = y[row] != 0.0
            since += 1.0
            if kind == PROBABILITY or demand:
                value = since if kind == INTERVALS else 1.0 if demand else 0.0
                other = value if np.isnan(other) else other + alpha[i, 1] * (value - other)
            if demand:
                size = y[row] if np.isnan(size) else size + alpha[i, 0] * (y[row] - size)
                since = 0.0


@lean
def _mean_intervals(y: Floats, indptr: Ints, found: Ints) -> None:
    for i in range(len(indptr) - 1):
        periods, demands, last = 0, 0, 0
        for row in range(indptr[i], indptr[i + 1]):
            periods += 0 if np.isnan(y[row]) else 1
            if y[row] != 0.0 and not np.isnan(y[row]):
                demands += 1
                last = periods
        found[i] = max(int(np.rint(last / demands)), 1) if demands > 0 else 1


@compiled
def _fit_blocks(y: Floats, indptr: Ints, rows: Ints, bounds: Floats, alpha: Floats, state: Floats) -> None:
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
            alpha[i, level] = smoothing_parameter(sums, count, bounds[0], bounds[1], unit_of(sums, count))
            state[i, level, 0] = smoothed(sums, count, sums[0] if count > 0 else np.nan, alpha[i, level])


@bare
def _block_sums(y: Floats, start: int, end: int, width: int, whole: bool, sums: Floats) -> int:
    """Write the sums of blocks, missing rows as the mean of the others; how many. `whole`: nothing is missing."""
    count = 0
    while start < end:
        total, seen = 0.0, width
        for row in range(start, start + width):
            value = y[row]
            if not whole and np.isnan(value):
                seen -= 1
            else:
                total += value
        if seen > 0:
            sums[count] = total if seen == width else total / seen * width
            count += 1
        start += width
    return count


@lean
def _walk_blocks(y: Floats, indptr: Ints, rows: Ints, alpha: Floats, skip: Ints, state: Floats, fitted: Floats) -> None:
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
            level_sum, passed, seen, total = state[i, level, 0], state[i, level, 1], state[i, level, 2], state[i, level, 3]
            share = 1.0 / (width * levels)
            for row in range(indptr[i], indptr[i + 1]):
                fitted[row] += level_sum * share
                if row - indptr[i] < skip[i, level]:
                    continue
                passed += 1.0
                if not np.isnan(y[row]):
                    seen += 1.0
                    total += y[row]
                if passed < width:
                    continue
                if seen > 0.0:
                    block = total if seen == width else total / seen * width
                    level_sum = block if np.isnan(level_sum) else level_sum + alpha[i, level] * (block - level_sum)
                passed, seen, total = 0.0, 0.0, 0.0
            state[i, level, 0], state[i, level, 1], state[i, level, 2], state[i, level, 3] = level_sum, passed, seen, total


@lean
def _tilt(sizes: Floats, occurrence: Floats, mean: Floats, found: Floats) -> None:
    for i in range(len(sizes)):
        held, largest = 0.0, 0.0  # a count that begins as a whole number would be a second kind of argument
        for place in range(sizes.shape[1]):
            if not np.isnan(sizes[i, place]):
                held += 1.0
                largest = max(largest, abs(sizes[i, place]))
        found[i, 0] = 1.0
        if held == 0.0:
            continue
        wanted, low, high, tilt = mean[i] / largest, -700.0, 700.0, 0.0
        for _ in range(200):
            first, spread = _weights(sizes[i], held, largest, min(occurrence[i], 1.0), tilt, found[i])
            if first > wanted:
                high = tilt
            else:
                low = tilt
            if abs(first - wanted) <= 1e-13 or high - low <= 1e-12 * abs(tilt):
                break
            following = tilt + (wanted - first) / spread if spread > 0.0 else high
            tilt = following if low < following < high else 0.5 * (low + high)


@bare
def _weights(sizes: Floats, held: float, largest: float, occurrence: float, tilt: float, found: Floats) -> Any:
    """Write down the tilted probabilities; their mean and variance, in units of the largest size."""
    top = 0.0 if occurrence < 1.0 else -np.inf
    for place in range(len(sizes)):
        if not np.isnan(sizes[place]):
            top = max(top, tilt * (sizes[place] / largest))
    found[0] = (1.0 - occurrence) * np.exp(-top) if occurrence < 1.0 else 0.0
    total, first, second = found[0], 0.0, 0.0
    for place in range(len(sizes)):
        found[place + 1] = 0.0
        if not np.isnan(sizes[place]):
            unit = sizes[place] / largest
            weight = occurrence / held * np.exp(tilt * unit - top)
            found[place + 1] = weight
            total += weight
            first += weight * unit
            second += weight * unit * unit
    for place in range(len(found)):
        found[place] /= total
    first /= total
    return first, second / total - first * first


def _plain(values: Any) -> Floats:
    return np.require(values, np.float64, ["C", "W"])


def _whole(values: Any) -> Ints:
    return np.require(values, np.int64, ["C", "W"])
