"""Lag and window features for all rows of a panel, and for the next row during recursive forecasts.

A feature is (kind, lag, size, stride) and a level, see `data.lags.Lagged`: a statistic of `size` values,
`stride` rows apart, of which the newest is `lag` rows back. Windows skip missing values and are NaN if
empty (a standard deviation: with fewer than two values). `y` holds the series one after the other,
series i from `indptr[i]` to `indptr[i + 1]`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compiled, inner

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LAG, DIFFERENCE, MEAN, STD, MIN, MAX, QUANTILE, EXPANDING_MEAN, EXPANDING_STD, EXPANDING_MIN, EXPANDING_MAX, EWM = range(12)
COUNT, RUNNING_MEAN, SQUARES, LOW, HIGH, WEIGHTED = range(6)
"""Elements of the running summary of an expanding feature: number of values, mean, sum of squared deviations
from it, minimum, maximum, exponentially weighted mean."""
SUMMARY = 6  # length of a running summary


@compiled
def fill_features(
    y: Floats, indptr: Ints, features: Ints, levels: Floats, first_column: int, columns: NDArray[np.float32]
) -> None:
    """Write features of every row to `columns`, from column `first_column` on.

    `features` (features, 4): kind, lag, window size, stride. `levels` (features,): of quantiles; smoothing
    parameter of exponentially weighted means.
    """
    for series in range(len(indptr) - 1):
        begin, end = indptr[series], indptr[series + 1]
        for index in range(len(features)):
            feature_kind, lag, window_size, stride = features[index]
            if feature_kind in (LAG, DIFFERENCE):
                _fill_lags(y, begin, end, feature_kind, lag, stride, columns[:, first_column + index])
            elif feature_kind in (MEAN, STD):
                _fill_moments(y, begin, end, feature_kind, lag, window_size, stride, columns[:, first_column + index])
            elif feature_kind >= EXPANDING_MEAN:
                _fill_expanding(y, begin, end, feature_kind, lag, levels[index], columns[:, first_column + index])
            elif feature_kind != QUANTILE and stride == 1:
                _fill_extremes(y, begin, end, feature_kind, lag, window_size, columns[:, first_column + index])
            else:
                for row in range(begin, end):
                    columns[row, first_column + index] = window_feature(
                        y, begin, row, feature_kind, lag, window_size, stride, levels[index]
                    )


@compiled
def fill_next_row(recent: Floats, n_past: int, features: Ints, levels: Floats, running: Floats, next_features: Floats) -> None:
    """Write the features of the next row of every series to `next_features` (series, features).

    `recent` (series, capacity): last values up to, but not including, column `n_past`, NaN before the
    start of a series. `running` (series, features, SUMMARY): summaries of the expanding features.
    """
    for series in range(len(recent)):
        for index in range(len(features)):
            feature_kind, lag, window_size, stride = features[index]
            if feature_kind == LAG:
                next_features[series, index] = recent[series, n_past - lag]
            elif feature_kind == DIFFERENCE:
                next_features[series, index] = recent[series, n_past - lag] - recent[series, n_past - lag - stride]
            elif feature_kind >= EXPANDING_MEAN:
                next_features[series, index] = _summary_feature(running[series, index], feature_kind)
            else:
                next_features[series, index] = window_feature(
                    recent[series], 0, n_past, feature_kind, lag, window_size, stride, levels[index]
                )


@compiled
def fill_missing(y: Floats, indptr: Ints, lag: int, drift: Floats) -> None:
    """Replace missing values in place by the value `lag` rows before plus `drift` (series,).

    If that is missing too, by the value before. Missing values at the start of a series stay.
    """
    for series in range(len(indptr) - 1):
        for row in range(indptr[series], indptr[series + 1]):
            if math.isnan(y[row]) and row > indptr[series]:
                source = row - lag
                y[row] = y[row - 1]
                if source >= indptr[series] and not math.isnan(y[source]):
                    y[row] = y[source] + drift[series]


@compiled
def begin_expanding(y: Floats, indptr: Ints, features: Ints, levels: Floats, running: Floats) -> None:
    """Set `running` to the summaries of the history of every series, without the last `lag` - 1 rows."""
    running[:] = 0.0
    for series in range(len(indptr) - 1):
        for index in range(len(features)):
            feature_kind, lag = features[index, 0], features[index, 1]
            if feature_kind >= EXPANDING_MEAN:
                for row in range(indptr[series], indptr[series + 1] - lag + 1):
                    _update_summary(running[series, index], y[row], levels[index])


@compiled
def extend_expanding(y: Floats, indptr: Ints, n_processed: int, features: Ints, levels: Floats, running: Floats) -> None:
    """Update `running` as each series grows from `n_processed` rows to all of its rows.

    All features must be expanding ones; the last `lag` - 1 rows are left out, as in `begin_expanding`.
    """
    for series in range(len(indptr) - 1):
        for index in range(len(features)):
            lag = features[index, 1]
            for row in range(max(indptr[series] + n_processed - lag + 1, indptr[series]), indptr[series + 1] - lag + 1):
                _update_summary(running[series, index], y[row], levels[index])


@compiled
def update_expanding(recent: Floats, n_past: int, features: Ints, levels: Floats, running: Floats) -> None:
    """Update `running` by the value `lag` rows before the next row, which becomes available."""
    for series in range(len(recent)):
        for index in range(len(features)):
            if features[index, 0] >= EXPANDING_MEAN:
                _update_summary(running[series, index], recent[series, n_past - features[index, 1]], levels[index])


@inner
def window_feature(
    y: Floats, begin: int, row: int, feature_kind: int, lag: int, window_size: int, stride: int, level: float
) -> float:
    """Feature of one window, computed directly; NaN if it has too few values.

    `begin` is the first row of the series, `row` the row of the feature. Rows run backward from the
    newest to, but not including, `end`.
    """
    newest_row = row - lag
    if newest_row < begin:
        return np.nan
    end = max(newest_row - window_size * stride, begin - 1)
    if feature_kind in (MIN, MAX):
        return _window_extreme(y, newest_row, end, stride, 1.0 if feature_kind == MIN else -1.0)
    if feature_kind == QUANTILE:
        return _window_quantile(y, newest_row, end, stride, level, window_size)
    n_values = 0
    sum_of_values = 0.0
    position = newest_row
    while position > end:  # a strided range would need a division, slow for small windows
        value = y[position]
        if value == value:
            n_values += 1
            sum_of_values += value
        position -= stride
    if n_values == 0 or (feature_kind == STD and n_values < 2):
        return np.nan
    if feature_kind == MEAN:
        return sum_of_values / n_values
    squares = 0.0
    mean = sum_of_values / n_values
    position = newest_row
    while position > end:
        value = y[position]
        if value == value:
            squares += (value - mean) ** 2
        position -= stride
    return math.sqrt(squares / (n_values - 1))


@inner
def _window_extreme(y: Floats, newest_row: int, end: int, stride: int, sign: float) -> float:
    """Minimum (`sign` 1) or maximum (-1) of a window, missing values ignored; rows as in `window_feature`."""
    smallest, position = np.inf, newest_row
    while position > end:
        value = sign * y[position]
        if value < smallest:
            smallest = value
        position -= stride
    return sign * smallest if smallest < np.inf else np.nan


@inner
def _window_quantile(y: Floats, newest_row: int, end: int, stride: int, level: float, window_size: int) -> float:
    """Quantile of a window by linear interpolation of order statistics (insertion sort)."""
    sorted_values = np.empty(window_size)
    n_values, position = 0, newest_row
    while position > end:
        value = y[position]
        position -= stride
        if value == value:
            rank = n_values
            while rank > 0 and sorted_values[rank - 1] > value:
                sorted_values[rank] = sorted_values[rank - 1]
                rank -= 1
            sorted_values[rank] = value
            n_values += 1
    if n_values == 0:
        return np.nan
    fractional_rank = level * (n_values - 1)
    low = int(fractional_rank)
    high = min(low + 1, n_values - 1)
    return float(sorted_values[low] + (fractional_rank - low) * (sorted_values[high] - sorted_values[low]))


@inner
def _fill_lags(y: Floats, begin: int, end: int, feature_kind: int, lag: int, stride: int, column: NDArray[np.float32]) -> None:
    """Write the value `lag` rows back, or its difference to the value `stride` rows before it; NaN at the start."""
    first_row = min(end, begin + lag + (stride if feature_kind == DIFFERENCE else 0))
    for row in range(begin, first_row):
        column[row] = np.nan
    if feature_kind == LAG:
        for row in range(first_row, end):
            column[row] = y[row - lag]
    else:
        for row in range(first_row, end):
            column[row] = y[row - lag] - y[row - lag - stride]


@inner
def _fill_moments(
    y: Floats, begin: int, end: int, feature_kind: int, lag: int, window_size: int, stride: int, column: NDArray[np.float32]
) -> None:
    """Mean or standard deviation of each window, by running sums of `stride` interleaved series.

    Sums are of deviations from `centre`, a value of the window, and are recomputed every `window_size` values,
    which limits rounding errors.
    """
    for phase in range(stride):
        n_values = 0
        sum_of_deviations = 0.0
        sum_of_squares = 0.0
        n_since_reset = window_size
        centre = 0.0
        for row in range(begin + phase, end, stride):
            newest_row = row - lag
            if n_since_reset >= window_size:  # recompute
                n_since_reset = 0
                n_values = 0
                sum_of_deviations = 0.0
                sum_of_squares = 0.0
                centre = y[newest_row] if newest_row >= begin else y[begin]
                centre = 0.0 if math.isnan(centre) else centre
                for step in range(window_size):
                    position = newest_row - step * stride
                    if position < begin:
                        break
                    if not math.isnan(y[position]):
                        deviation = y[position] - centre
                        n_values += 1
                        sum_of_deviations += deviation
                        sum_of_squares += deviation * deviation
            else:
                if newest_row >= begin and not math.isnan(y[newest_row]):
                    deviation = y[newest_row] - centre
                    n_values += 1
                    sum_of_deviations += deviation
                    sum_of_squares += deviation * deviation
                dropped_row = newest_row - window_size * stride
                if dropped_row >= begin and not math.isnan(y[dropped_row]):
                    deviation = y[dropped_row] - centre
                    n_values -= 1
                    sum_of_deviations -= deviation
                    sum_of_squares -= deviation * deviation
            n_since_reset += 1
            if n_values == 0 or (feature_kind == STD and n_values < 2):
                column[row] = np.nan
            elif feature_kind == MEAN:
                column[row] = centre + sum_of_deviations / n_values
            else:
                column[row] = math.sqrt(
                    max(sum_of_squares - sum_of_deviations * sum_of_deviations / n_values, 0.0) / (n_values - 1)
                )


@inner
def _fill_extremes(
    y: Floats, begin: int, end: int, feature_kind: int, lag: int, window_size: int, column: NDArray[np.float32]
) -> None:
    """Minimum or maximum of each window by a monotonic queue.

    `queue` holds the rows of values that can still become the extreme, best first.
    """
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
        while tail > head and queue[head] <= position - window_size:
            head += 1
        column[row] = y[queue[head]] if tail > head else np.nan


@inner
def _fill_expanding(
    y: Floats, begin: int, end: int, feature_kind: int, lag: int, level: float, column: NDArray[np.float32]
) -> None:
    """Write the statistic of all values up to `lag` rows back."""
    summary = np.zeros(SUMMARY)
    for row in range(begin, end):
        if row - lag >= begin:
            _update_summary(summary, y[row - lag], level)
        column[row] = _summary_feature(summary, feature_kind)


@inner
def _update_summary(summary: Floats, value: float, level: float) -> None:
    """Update a summary by a value: Welford's recursion, the extremes, and the exponentially weighted mean.

    Missing values are skipped. `level`: weight of the newest value in the weighted mean.
    """
    if math.isnan(value):
        return
    summary[COUNT] += 1.0
    deviation = value - summary[RUNNING_MEAN]
    summary[RUNNING_MEAN] += deviation / summary[COUNT]
    summary[SQUARES] += deviation * (value - summary[RUNNING_MEAN])
    is_first = summary[COUNT] == 1.0
    summary[LOW] = value if is_first else min(summary[LOW], value)
    summary[HIGH] = value if is_first else max(summary[HIGH], value)
    summary[WEIGHTED] = value if is_first else level * value + (1.0 - level) * summary[WEIGHTED]


@inner
def _summary_feature(summary: Floats, feature_kind: int) -> float:
    """Statistic of a summary; NaN if it has too few values."""
    if summary[COUNT] == 0.0 or (feature_kind == EXPANDING_STD and summary[COUNT] < 2.0):
        return np.nan
    if feature_kind == EXPANDING_MEAN:
        return float(summary[RUNNING_MEAN])
    if feature_kind == EXPANDING_STD:
        return math.sqrt(summary[SQUARES] / (summary[COUNT] - 1.0))
    if feature_kind == EXPANDING_MIN:
        return float(summary[LOW])
    if feature_kind == EXPANDING_MAX:
        return float(summary[HIGH])
    return float(summary[WEIGHTED])
