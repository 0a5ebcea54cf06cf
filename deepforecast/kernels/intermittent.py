"""Intermittent demand: sizes and intervals (or probabilities) smoothed apart, and sums of blocks smoothed together.

A value that is not 0 is a demand. A missing value (NaN) is passed over: neither a demand nor a period without one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import announced, bare, compiled, lean

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

INTERVALS, PROBABILITY = 0, 1
"""What is smoothed beside the sizes: the periods from demand to demand (Croston), or whether there is one (TSB)."""

GOLDEN = 0.6180339887498949
ENOUGH = 1e-9  # how closely a smoothing parameter is found


def smoothing_parameters(y: Floats, indptr: Ints, kind: int, bounds: Floats) -> Floats:
    """Smoothing parameters of sizes and of intervals or probabilities, shape (series, 2), of least squared one-step errors.

    `bounds`: lower and upper one of each, shape (2, 2); where they are equal there is nothing to look for.
    """
    found = np.empty((len(indptr) - 1, 2))
    with announced("the kernels of intermittent demand"):
        _parameters(_plain(y), _whole(indptr), kind, _plain(bounds), found)
    return found


def walked(
    y: Floats, indptr: Ints, kind: int, alpha: Floats, state: Floats, sizes: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Move `state` (series, 3: level of the sizes, of intervals or probabilities, periods since a demand; NaN levels before the
    first one) and the last `sizes` (the newest on the right, NaN where there are fewer) over the rows of `y`.

    Both moved, and for each row the two levels before it.
    """
    state, sizes = np.array(state, order="C"), np.array(sizes, order="C")
    levels = np.empty((2, len(y)))
    with announced("the kernels of intermittent demand"):
        _walk(_plain(y), _whole(indptr), kind, _plain(alpha), state, sizes, levels)
    return state, sizes, levels[0], levels[1]


def block_parameters(y: Floats, indptr: Ints, rows: Ints, low: float, high: float) -> Floats:
    """Smoothing parameters of the sums of blocks of `rows` (series, levels; 0: no such level) that end with each series."""
    found = np.zeros(rows.shape)
    with announced("the kernels of intermittent demand"):
        _block_parameters(_plain(y), _whole(indptr), _whole(rows), float(low), float(high), found)
    return found


def blocks_walked(y: Floats, indptr: Ints, rows: Ints, alpha: Floats, skip: Ints, state: Floats) -> tuple[Floats, Floats]:
    """Move `state` (series, levels, 4: smoothed sum, rows so far of a block, how many hold a value, their sum) over the rows of
    `y`, of which the first `skip` (series, levels) belong to no block. Moved, and for each row the forecast of a row before it.

    The forecast is the mean over levels of what a row of a block holds; NaN before any block is complete.
    """
    state = np.array(state, order="C")
    fitted = np.empty(len(y))
    with announced("the kernels of intermittent demand"):
        _walk_blocks(_plain(y), _whole(indptr), _whole(rows), _plain(alpha), _whole(skip), state, fitted)
    return state, fitted


def tilted(sizes: Floats, occurrence: Floats, mean: Floats) -> Floats:
    """Probabilities of 0 and of each of the `sizes` (series, 1 + sizes) with this mean, as near as can be to the plain ones:
    1 - occurrence, and equal shares of occurrence.

    Exponential tilting: the weight of a value grows by exp(t * value), which changes least in the sense of Kullback and
    Leibler. A mean that no weights can give is met as nearly as they can.
    """
    found = np.zeros((sizes.shape[0], sizes.shape[1] + 1))
    with announced("the kernels of intermittent demand"):
        _tilt(_plain(sizes), _plain(occurrence), _plain(mean), found)
    return found


@compiled
def _parameters(y: Floats, indptr: Ints, kind: int, bounds: Floats, found: Floats) -> None:
    longest = 1
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    sizes, others = np.empty(longest), np.empty(longest)
    for i in range(len(indptr) - 1):
        demands, periods, since, largest = 0, 0, 0, 0.0
        for row in range(indptr[i], indptr[i + 1]):
            if np.isnan(y[row]):
                continue
            since += 1
            largest = max(largest, abs(y[row]))
            if kind == PROBABILITY:
                others[periods] = 1.0 if y[row] != 0.0 else 0.0
                periods += 1
            if y[row] != 0.0:
                if kind == INTERVALS:
                    others[periods] = since
                    periods += 1
                sizes[demands] = y[row]
                demands += 1
                since = 0
        for row in range(demands):
            sizes[row] /= largest
        found[i, 0] = _smoothing(sizes, demands, bounds[0, 0], bounds[0, 1])
        found[i, 1] = _smoothing(others, periods, bounds[1, 0], bounds[1, 1])


@bare
def _smoothing(values: Floats, count: int, low: float, high: float) -> float:
    """The parameter of least squared one-step errors between two bounds, by golden sections."""
    if count < 2:
        return low
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = _squares(values, count, left), _squares(values, count, right)
    while high - low > ENOUGH:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = _squares(values, count, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = _squares(values, count, right)
    return 0.5 * (low + high)


@bare
def _squares(values: Floats, count: int, alpha: float) -> float:
    level, total = values[0], 0.0
    for row in range(1, count):
        error = values[row] - level
        total += error * error
        level += alpha * error
    return total


@lean
def _walk(y: Floats, indptr: Ints, kind: int, alpha: Floats, state: Floats, sizes: Floats, levels: Floats) -> None:
    held = sizes.shape[1]
    for i in range(len(indptr) - 1):
        size, other, since = state[i, 0], state[i, 1], state[i, 2]
        new = 0
        for row in range(indptr[i], indptr[i + 1]):
            levels[0, row], levels[1, row] = size, other
            if np.isnan(y[row]):
                continue
            demand = y[row] != 0.0
            since += 1.0
            if kind == PROBABILITY:
                seen = 1.0 if demand else 0.0
                other = seen if np.isnan(other) else other + alpha[i, 1] * (seen - other)
            if demand:
                if kind == INTERVALS:
                    other = since if np.isnan(other) else other + alpha[i, 1] * (since - other)
                size = y[row] if np.isnan(size) else size + alpha[i, 0] * (y[row] - size)
                since = 0.0
                new += 1
        state[i, 0], state[i, 1], state[i, 2] = size, other, since
        new = min(new, held)
        for place in range(held - new):
            sizes[i, place] = sizes[i, place + new]
        place, row = held - 1, indptr[i + 1] - 1
        while place >= held - new:
            if y[row] != 0.0 and not np.isnan(y[row]):
                sizes[i, place] = y[row]
                place -= 1
            row -= 1


@compiled
def _block_parameters(y: Floats, indptr: Ints, rows: Ints, low: float, high: float, found: Floats) -> None:
    longest = 1
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    sums = np.empty(longest)
    for i in range(rows.shape[0]):
        largest = 0.0
        for row in range(indptr[i], indptr[i + 1]):
            if not np.isnan(y[row]):
                largest = max(largest, abs(y[row]))
        if largest == 0.0:
            largest = 1.0
        for level in range(rows.shape[1]):
            width = rows[i, level]
            if width == 0:
                continue
            count = 0
            start = indptr[i] + (indptr[i + 1] - indptr[i]) % width
            while start < indptr[i + 1]:
                total, seen = 0.0, 0
                for row in range(start, start + width):
                    if not np.isnan(y[row]):
                        total += y[row] / largest
                        seen += 1
                if seen > 0:
                    sums[count] = total if seen == width else total / seen * width
                    count += 1
                start += width
            found[i, level] = _smoothing(sums, count, low, high)


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
            smoothed, passed, seen, total = state[i, level, 0], state[i, level, 1], state[i, level, 2], state[i, level, 3]
            share = 1.0 / (width * levels)
            for row in range(indptr[i], indptr[i + 1]):
                fitted[row] += smoothed * share
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
                    smoothed = block if np.isnan(smoothed) else smoothed + alpha[i, level] * (block - smoothed)
                passed, seen, total = 0.0, 0.0, 0.0
            state[i, level, 0], state[i, level, 1], state[i, level, 2], state[i, level, 3] = smoothed, passed, seen, total


@lean
def _tilt(sizes: Floats, occurrence: Floats, mean: Floats, found: Floats) -> None:
    for i in range(len(sizes)):
        held, largest = 0, 0.0
        for place in range(sizes.shape[1]):
            if not np.isnan(sizes[i, place]):
                held += 1
                largest = max(largest, abs(sizes[i, place]))
        found[i, 0] = 1.0
        if held == 0:
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
def _weights(sizes: Floats, held: int, largest: float, occurrence: float, tilt: float, found: Floats) -> Any:
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
