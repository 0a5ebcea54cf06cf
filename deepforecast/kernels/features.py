"""Features of the past, for all rows of a panel at once, and for the next row of all series while a forecast goes on.

A feature is a row of four numbers and a level, as `data.lags.Lagged` names them; windows skip missing values and are NaN where
they hold none (a deviation: fewer than two).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import compiled, inner

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LAG, DIFFERENCE, MEAN, STD, MIN, MAX, QUANTILE, ALL_MEAN, ALL_STD, ALL_MIN, ALL_MAX, EWM = range(12)
COUNT, TOTAL, SQUARES, LOW, HIGH, WEIGHTED = range(6)  # of a running summary
SUMMARY = 6


@compiled
def table(y: Floats, indptr: Ints, features: Ints, levels: Floats, first: int, out: NDArray[np.float32]) -> None:
    """The features of every row, into the columns of `out` from `first`: kind, lag, size and stride of each in `features`."""
    for one in range(len(indptr) - 1):
        begin, end = indptr[one], indptr[one + 1]
        for number in range(len(features)):
            kind, lag, size, stride = features[number]
            if kind in (LAG, DIFFERENCE):
                _shifts(y, begin, end, kind, lag, stride, out[:, first + number])
            elif kind in (MEAN, STD):
                _moments(y, begin, end, kind, lag, size, stride, out[:, first + number])
            elif kind >= ALL_MEAN:
                _growing(y, begin, end, kind, lag, levels[number], out[:, first + number])
            elif kind != QUANTILE and stride == 1:
                _extremes(y, begin, end, kind, lag, size, out[:, first + number])
            else:
                for row in range(begin, end):
                    out[row, first + number] = window(y, begin, row, kind, lag, size, stride, levels[number])


@compiled
def newest(past: Floats, held: int, features: Ints, levels: Floats, running: Floats, out: Floats) -> None:
    """The features of the next row of every series: `past` (series, room) holds its last values up to column `held`, NaN before
    its begin; `running` (series, features, SUMMARY) what `watch` has seen of it."""
    for one in range(len(past)):
        for number in range(len(features)):
            kind, lag, size, stride = features[number]
            if kind == LAG:
                out[one, number] = past[one, held - lag]
            elif kind == DIFFERENCE:
                out[one, number] = past[one, held - lag] - past[one, held - lag - stride]
            elif kind >= ALL_MEAN:
                out[one, number] = _summed(running[one, number], kind)
            else:
                out[one, number] = window(past[one], 0, held, kind, lag, size, stride, levels[number])


@compiled
def carry(y: Floats, indptr: Ints, lag: int, drift: Floats) -> None:
    """In the place of each missing value put the one `lag` rows before and the `drift` of its series, or else the last one."""
    for one in range(len(indptr) - 1):
        for row in range(indptr[one], indptr[one + 1]):
            if math.isnan(y[row]) and row > indptr[one]:
                before = row - lag
                y[row] = y[row - 1]
                if before >= indptr[one] and not math.isnan(y[before]):
                    y[row] = y[before] + drift[one]


@compiled
def begin_watch(y: Floats, indptr: Ints, features: Ints, levels: Floats, running: Floats) -> None:
    """Take the whole history of every series into `running`, but for the rows a lag leaves out."""
    running[:] = 0.0
    for one in range(len(indptr) - 1):
        for number in range(len(features)):
            kind, lag = features[number, 0], features[number, 1]
            if kind >= ALL_MEAN:
                for row in range(indptr[one], indptr[one + 1] - lag + 1):
                    _take(running[one, number], y[row], levels[number])


@compiled
def watch_on(y: Floats, indptr: Ints, known: int, features: Ints, levels: Floats, running: Floats) -> None:
    """Go on with the values that come into sight when each series grows from its first `known` rows to all of them."""
    for one in range(len(indptr) - 1):
        for number in range(len(features)):
            lag = features[number, 1]
            for row in range(max(indptr[one] + known - lag + 1, indptr[one]), indptr[one + 1] - lag + 1):
                _take(running[one, number], y[row], levels[number])


@compiled
def watch(past: Floats, held: int, features: Ints, levels: Floats, running: Floats) -> None:
    """Take the value that a row further on has come into sight of each feature."""
    for one in range(len(past)):
        for number in range(len(features)):
            if features[number, 0] >= ALL_MEAN:
                _take(running[one, number], past[one, held - features[number, 1]], levels[number])


@inner
def window(y: Floats, begin: int, row: int, kind: int, lag: int, size: int, stride: int, level: float) -> float:
    """One window, value by value."""
    newest_place = row - lag
    if newest_place < begin:
        return np.nan
    stop = max(newest_place - size * stride, begin - 1)
    if kind in (MIN, MAX):
        return _extreme(y, newest_place, stop, stride, 1.0 if kind == MIN else -1.0)
    if kind == QUANTILE:
        return _quantile(y, newest_place, stop, stride, level, size)
    count, total, place = 0, 0.0, newest_place
    while place > stop:  # a range with a stride would divide to know its length, which takes as long as a small window
        value = y[place]
        if value == value:
            count += 1
            total += value
        place -= stride
    if count == 0 or (kind == STD and count < 2):
        return np.nan
    if kind == MEAN:
        return total / count
    squares, mean, place = 0.0, total / count, newest_place
    while place > stop:
        value = y[place]
        if value == value:
            squares += (value - mean) ** 2
        place -= stride
    return math.sqrt(squares / (count - 1))


@inner
def _extreme(y: Floats, first: int, stop: int, stride: int, sign: float) -> float:
    """The smallest value of a window times `sign`; missing ones are never smaller."""
    best, place = np.inf, first
    while place > stop:
        value = sign * y[place]
        if value < best:
            best = value
        place -= stride
    return sign * best if best < np.inf else np.nan


@inner
def _quantile(y: Floats, first: int, stop: int, stride: int, level: float, size: int) -> float:
    """Linear between order statistics."""
    held = np.empty(size)
    count, at = 0, first
    while at > stop:
        value = y[at]
        at -= stride
        if value == value:
            place = count
            while place > 0 and held[place - 1] > value:
                held[place] = held[place - 1]
                place -= 1
            held[place] = value
            count += 1
    if count == 0:
        return np.nan
    spot = level * (count - 1)
    low = int(spot)
    high = min(low + 1, count - 1)
    return float(held[low] + (spot - low) * (held[high] - held[low]))


@inner
def _shifts(y: Floats, begin: int, end: int, kind: int, lag: int, stride: int, out: NDArray[np.float32]) -> None:
    first = min(end, begin + lag + (stride if kind == DIFFERENCE else 0))
    for row in range(begin, first):
        out[row] = np.nan
    if kind == LAG:
        for row in range(first, end):
            out[row] = y[row - lag]
    else:
        for row in range(first, end):
            out[row] = y[row - lag] - y[row - lag - stride]


@inner
def _moments(y: Floats, begin: int, end: int, kind: int, lag: int, size: int, stride: int, out: NDArray[np.float32]) -> None:
    """Running sums along each of the `stride` interleaved series, taken anew every `size` values so that nothing lingers."""
    for phase in range(stride):
        count, total, squares, age, centre = 0, 0.0, 0.0, size, 0.0
        for row in range(begin + phase, end, stride):
            newest_place = row - lag
            if age >= size:  # anew
                age, count, total, squares = 0, 0, 0.0, 0.0
                centre = y[newest_place] if newest_place >= begin else y[begin]
                centre = 0.0 if math.isnan(centre) else centre
                for step in range(size):
                    place = newest_place - step * stride
                    if place < begin:
                        break
                    if not math.isnan(y[place]):
                        away = y[place] - centre
                        count, total, squares = count + 1, total + away, squares + away * away
            else:
                if newest_place >= begin and not math.isnan(y[newest_place]):
                    away = y[newest_place] - centre
                    count, total, squares = count + 1, total + away, squares + away * away
                left = newest_place - size * stride
                if left >= begin and not math.isnan(y[left]):
                    away = y[left] - centre
                    count, total, squares = count - 1, total - away, squares - away * away
            age += 1
            if count == 0 or (kind == STD and count < 2):
                out[row] = np.nan
            elif kind == MEAN:
                out[row] = centre + total / count
            else:
                out[row] = math.sqrt(max(squares - total * total / count, 0.0) / (count - 1))


@inner
def _extremes(y: Floats, begin: int, end: int, kind: int, lag: int, size: int, out: NDArray[np.float32]) -> None:
    """A queue of the values that may still become the extreme of a window."""
    sign = 1.0 if kind == MIN else -1.0
    queue = np.empty(end - begin, np.int64)
    head, tail = 0, 0
    for row in range(begin, end):
        place = row - lag
        if place >= begin and not math.isnan(y[place]):
            while tail > head and sign * y[queue[tail - 1]] >= sign * y[place]:
                tail -= 1
            queue[tail] = place
            tail += 1
        while tail > head and queue[head] <= place - size:
            head += 1
        out[row] = y[queue[head]] if tail > head else np.nan


@inner
def _growing(y: Floats, begin: int, end: int, kind: int, lag: int, level: float, out: NDArray[np.float32]) -> None:
    seen = np.zeros(SUMMARY)
    for row in range(begin, end):
        if row - lag >= begin:
            _take(seen, y[row - lag], level)
        out[row] = _summed(seen, kind)


@inner
def _take(seen: Floats, value: float, level: float) -> None:
    """Welford's recursion, the extremes, and the exponentially weighted mean."""
    if math.isnan(value):
        return
    seen[COUNT] += 1.0
    away = value - seen[TOTAL]
    seen[TOTAL] += away / seen[COUNT]  # the mean so far
    seen[SQUARES] += away * (value - seen[TOTAL])
    first = seen[COUNT] == 1.0
    seen[LOW] = value if first else min(seen[LOW], value)
    seen[HIGH] = value if first else max(seen[HIGH], value)
    seen[WEIGHTED] = value if first else level * value + (1.0 - level) * seen[WEIGHTED]


@inner
def _summed(seen: Floats, kind: int) -> float:
    if seen[COUNT] == 0.0 or (kind == ALL_STD and seen[COUNT] < 2.0):
        return np.nan
    if kind == ALL_MEAN:
        return float(seen[TOTAL])
    if kind == ALL_STD:
        return math.sqrt(seen[SQUARES] / (seen[COUNT] - 1.0))
    if kind == ALL_MIN:
        return float(seen[LOW])
    if kind == ALL_MAX:
        return float(seen[HIGH])
    return float(seen[WEIGHTED])
