"""Lag and window features for all rows of a panel, and for the next row during recursive forecasts.

A feature is (kind, lag, size, stride) and a level, see `data.lags.Lagged`; windows skip missing
values and are NaN if empty (a standard deviation: with fewer than two values).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compiled, inner

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LAG, DIFFERENCE, MEAN, STD, MIN, MAX, QUANTILE, EXPANDING_MEAN, EXPANDING_STD, EXPANDING_MIN, EXPANDING_MAX, EWM = range(12)
COUNT, TOTAL, SQUARES, LOW, HIGH, WEIGHTED = range(6)  # elements of a running summary
SUMMARY = 6


@compiled
def fill_features(y: Floats, indptr: Ints, features: Ints, levels: Floats, first: int, columns: NDArray[np.float32]) -> None:
    """Write features of every row to `columns` from column `first`; `features`: kind, lag, size,
    stride.
    """
    for series in range(len(indptr) - 1):
        begin, end = indptr[series], indptr[series + 1]
        for number in range(len(features)):
            feature_kind, lag, size, stride = features[number]
            if feature_kind in (LAG, DIFFERENCE):
                _fill_lags(y, begin, end, feature_kind, lag, stride, columns[:, first + number])
            elif feature_kind in (MEAN, STD):
                _fill_moments(y, begin, end, feature_kind, lag, size, stride, columns[:, first + number])
            elif feature_kind >= EXPANDING_MEAN:
                _fill_expanding(y, begin, end, feature_kind, lag, levels[number], columns[:, first + number])
            elif feature_kind != QUANTILE and stride == 1:
                _fill_extremes(y, begin, end, feature_kind, lag, size, columns[:, first + number])
            else:
                for row in range(begin, end):
                    columns[row, first + number] = window_feature(
                        y, begin, row, feature_kind, lag, size, stride, levels[number]
                    )


@compiled
def fill_next_row(recent: Floats, n_past: int, features: Ints, levels: Floats, running: Floats, next_features: Floats) -> None:
    """Features of the next row of every series.

    `recent` (series, capacity): last values up to column `n_past`, NaN before the start of a
    series. `running` (series, features, SUMMARY): summaries of the expanding features.
    """
    for series in range(len(recent)):
        for number in range(len(features)):
            feature_kind, lag, size, stride = features[number]
            if feature_kind == LAG:
                next_features[series, number] = recent[series, n_past - lag]
            elif feature_kind == DIFFERENCE:
                next_features[series, number] = recent[series, n_past - lag] - recent[series, n_past - lag - stride]
            elif feature_kind >= EXPANDING_MEAN:
                next_features[series, number] = _summary_feature(running[series, number], feature_kind)
            else:
                next_features[series, number] = window_feature(
                    recent[series], 0, n_past, feature_kind, lag, size, stride, levels[number]
                )


@compiled
def fill_missing(y: Floats, indptr: Ints, lag: int, drift: Floats) -> None:
    """Replace missing values by the value `lag` rows before plus `drift`, or else the last value."""
    for series in range(len(indptr) - 1):
        for row in range(indptr[series], indptr[series + 1]):
            if math.isnan(y[row]) and row > indptr[series]:
                source = row - lag
                y[row] = y[row - 1]
                if source >= indptr[series] and not math.isnan(y[source]):
                    y[row] = y[source] + drift[series]


@compiled
def begin_expanding(y: Floats, indptr: Ints, features: Ints, levels: Floats, running: Floats) -> None:
    """Update `running` by the history of every series, except rows that the lag excludes."""
    running[:] = 0.0
    for series in range(len(indptr) - 1):
        for number in range(len(features)):
            feature_kind, lag = features[number, 0], features[number, 1]
            if feature_kind >= EXPANDING_MEAN:
                for row in range(indptr[series], indptr[series + 1] - lag + 1):
                    _update_summary(running[series, number], y[row], levels[number])


@compiled
def extend_expanding(y: Floats, indptr: Ints, n_processed: int, features: Ints, levels: Floats, running: Floats) -> None:
    """Update `running` as each series grows from `n_processed` rows to all of its rows."""
    for series in range(len(indptr) - 1):
        for number in range(len(features)):
            lag = features[number, 1]
            for row in range(max(indptr[series] + n_processed - lag + 1, indptr[series]), indptr[series + 1] - lag + 1):
                _update_summary(running[series, number], y[row], levels[number])


@compiled
def update_expanding(recent: Floats, n_past: int, features: Ints, levels: Floats, running: Floats) -> None:
    """Update `running` by the value that becomes available for the next row."""
    for series in range(len(recent)):
        for number in range(len(features)):
            if features[number, 0] >= EXPANDING_MEAN:
                _update_summary(running[series, number], recent[series, n_past - features[number, 1]], levels[number])


@inner
def window_feature(y: Floats, begin: int, row: int, feature_kind: int, lag: int, size: int, stride: int, level: float) -> float:
    """Feature of one window, computed directly."""
    newest_row = row - lag
    if newest_row < begin:
        return np.nan
    stop = max(newest_row - size * stride, begin - 1)
    if feature_kind in (MIN, MAX):
        return _window_extreme(y, newest_row, stop, stride, 1.0 if feature_kind == MIN else -1.0)
    if feature_kind == QUANTILE:
        return _window_quantile(y, newest_row, stop, stride, level, size)
    count, total, position = 0, 0.0, newest_row
    while position > stop:  # a strided range would need a division, slow for small windows
        value = y[position]
        if value == value:
            count += 1
            total += value
        position -= stride
    if count == 0 or (feature_kind == STD and count < 2):
        return np.nan
    if feature_kind == MEAN:
        return total / count
    squares, mean, position = 0.0, total / count, newest_row
    while position > stop:
        value = y[position]
        if value == value:
            squares += (value - mean) ** 2
        position -= stride
    return math.sqrt(squares / (count - 1))


@inner
def _window_extreme(y: Floats, first: int, stop: int, stride: int, sign: float) -> float:
    """Minimum of `sign` times the window values, missing ones ignored."""
    best, position = np.inf, first
    while position > stop:
        value = sign * y[position]
        if value < best:
            best = value
        position -= stride
    return sign * best if best < np.inf else np.nan


@inner
def _window_quantile(y: Floats, first: int, stop: int, stride: int, level: float, size: int) -> float:
    """Quantile by linear interpolation of order statistics."""
    ordered = np.empty(size)
    count, position = 0, first
    while position > stop:
        value = y[position]
        position -= stride
        if value == value:
            rank = count
            while rank > 0 and ordered[rank - 1] > value:
                ordered[rank] = ordered[rank - 1]
                rank -= 1
            ordered[rank] = value
            count += 1
    if count == 0:
        return np.nan
    fractional_rank = level * (count - 1)
    low = int(fractional_rank)
    high = min(low + 1, count - 1)
    return float(ordered[low] + (fractional_rank - low) * (ordered[high] - ordered[low]))


@inner
def _fill_lags(y: Floats, begin: int, end: int, feature_kind: int, lag: int, stride: int, column: NDArray[np.float32]) -> None:
    first = min(end, begin + lag + (stride if feature_kind == DIFFERENCE else 0))
    for row in range(begin, first):
        column[row] = np.nan
    if feature_kind == LAG:
        for row in range(first, end):
            column[row] = y[row - lag]
    else:
        for row in range(first, end):
            column[row] = y[row - lag] - y[row - lag - stride]


@inner
def _fill_moments(
    y: Floats, begin: int, end: int, feature_kind: int, lag: int, size: int, stride: int, column: NDArray[np.float32]
) -> None:
    """Running sums of `stride` interleaved series, recomputed every `size` values against rounding."""
    for phase in range(stride):
        count, total, squares, age, centre = 0, 0.0, 0.0, size, 0.0
        for row in range(begin + phase, end, stride):
            newest_row = row - lag
            if age >= size:  # recompute
                age, count, total, squares = 0, 0, 0.0, 0.0
                centre = y[newest_row] if newest_row >= begin else y[begin]
                centre = 0.0 if math.isnan(centre) else centre
                for step in range(size):
                    position = newest_row - step * stride
                    if position < begin:
                        break
                    if not math.isnan(y[position]):
                        deviation = y[position] - centre
                        count, total, squares = count + 1, total + deviation, squares + deviation * deviation
            else:
                if newest_row >= begin and not math.isnan(y[newest_row]):
                    deviation = y[newest_row] - centre
                    count, total, squares = count + 1, total + deviation, squares + deviation * deviation
                dropped_row = newest_row - size * stride
                if dropped_row >= begin and not math.isnan(y[dropped_row]):
                    deviation = y[dropped_row] - centre
                    count, total, squares = count - 1, total - deviation, squares - deviation * deviation
            age += 1
            if count == 0 or (feature_kind == STD and count < 2):
                column[row] = np.nan
            elif feature_kind == MEAN:
                column[row] = centre + total / count
            else:
                column[row] = math.sqrt(max(squares - total * total / count, 0.0) / (count - 1))


@inner
def _fill_extremes(
    y: Floats, begin: int, end: int, feature_kind: int, lag: int, size: int, column: NDArray[np.float32]
) -> None:
    """Minimum or maximum by a monotonic queue."""
    sign = 1.0 if feature_kind == MIN else -1.0
    queue = np.empty(end - begin, np.int64)
    head, tail = 0, 0
    for row in range(begin, end):
        position = row - lag
        if position >= begin and not math.isnan(y[position]):
            while tail > head and sign * y[queue[tail - 1]] >= sign * y[position]:
                tail -= 1
            queue[tail] = position
            tail += 1
        while tail > head and queue[head] <= position - size:
            head += 1
        column[row] = y[queue[head]] if tail > head else np.nan


@inner
def _fill_expanding(
    y: Floats, begin: int, end: int, feature_kind: int, lag: int, level: float, column: NDArray[np.float32]
) -> None:
    summary = np.zeros(SUMMARY)
    for row in range(begin, end):
        if row - lag >= begin:
            _update_summary(summary, y[row - lag], level)
        column[row] = _summary_feature(summary, feature_kind)


@inner
def _update_summary(summary: Floats, value: float, level: float) -> None:
    """Welford's recursion, the extremes, and the exponentially weighted mean."""
    if math.isnan(value):
        return
    summary[COUNT] += 1.0
    deviation = value - summary[TOTAL]
    summary[TOTAL] += deviation / summary[COUNT]  # the mean so far
    summary[SQUARES] += deviation * (value - summary[TOTAL])
    first = summary[COUNT] == 1.0
    summary[LOW] = value if first else min(summary[LOW], value)
    summary[HIGH] = value if first else max(summary[HIGH], value)
    summary[WEIGHTED] = value if first else level * value + (1.0 - level) * summary[WEIGHTED]


@inner
def _summary_feature(summary: Floats, feature_kind: int) -> float:
    if summary[COUNT] == 0.0 or (feature_kind == EXPANDING_STD and summary[COUNT] < 2.0):
        return np.nan
    if feature_kind == EXPANDING_MEAN:
        return float(summary[TOTAL])
    if feature_kind == EXPANDING_STD:
        return math.sqrt(summary[SQUARES] / (summary[COUNT] - 1.0))
    if feature_kind == EXPANDING_MIN:
        return float(summary[LOW])
    if feature_kind == EXPANDING_MAX:
        return float(summary[HIGH])
    return float(summary[WEIGHTED])
