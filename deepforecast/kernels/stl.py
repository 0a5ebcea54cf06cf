"""Seasonal-trend decomposition by loess, with one season (STL) or several (MSTL), of many series.

References
----------
Cleveland, Cleveland, McRae & Terpenning (1990), STL: A seasonal-trend decomposition procedure based on
loess, *Journal of Official Statistics* 6, 3-73.
Bandara, Hyndman & Bergmeir (2021), MSTL: A seasonal-trend decomposition algorithm for time series with
multiple seasonal patterns, arXiv:2107.13462.
"""

from __future__ import annotations

import numpy as np

from deepforecast.kernels import loess
from deepforecast.kernels.compilation import compile_notice, compiled, inner, inner_no_alloc
from deepforecast.kernels.interrupt import run_interruptible
from deepforecast.kernels.loess import Floats, Ints, Line, Window

PERIOD, SEASONAL, TREND, LOW_PASS = range(4)
"""Columns of `windows`: period, and widths of the three smoothers; their degrees and jumps follow."""
DEGREES, JUMPS = 3, 6  # offsets of the degrees and jumps from the widths
INNER, OUTER, MSTL = range(3)  # elements of `loops`


def decompose(
    y: Floats, indptr: Ints, windows: Ints, loops: tuple[int, int, int], stop: Ints | None = None
) -> tuple[Floats, Floats]:
    """Trend (n,) and seasons (seasons, n) of series without missing values, n values in all.

    `windows` (seasons, 10): per season its period; widths of the seasonal, trend and low-pass smoothers; their
    degrees; their jumps. Seasons are removed in this order. A series shorter than two cycles of a season
    gets 0 for it; without any season the trend is the series. `loops`: inner and outer iterations of STL,
    and iterations of MSTL over the seasons. `stop` (1,): nonzero ends the work early.
    """
    stop = np.zeros(1, np.int64) if stop is None else stop
    y = np.require(y, np.float64, ["C", "W"])
    trend, seasons = np.empty(len(y)), np.zeros((len(windows), len(y)))
    bounds, windows = (np.require(array, np.int64, ["C", "W"]) for array in (indptr, windows))
    with compile_notice("seasonal decomposition"):
        run_interruptible(_decompose_series, stop, y, bounds, windows, np.array(loops, np.int64), trend, seasons)
    return trend, seasons


@compiled
def _decompose_series(stop: Ints, y: Floats, indptr: Ints, windows: Ints, loops: Ints, trend: Floats, seasons: Floats) -> None:
    """Write trend and seasons of each series, see `decompose`.

    With several seasons each is estimated in turn from the series less the others, `loops[MSTL]` times.
    The first value is subtracted meanwhile, which is exact for a constant series.
    """
    for i in range(len(indptr) - 1):
        begin, n = indptr[i], indptr[i + 1] - indptr[i]
        first_value = y[begin]
        deseasonalized = np.empty(n)
        level = np.empty(n)
        season = np.empty(n)
        for t in range(n):
            deseasonalized[t] = y[begin + t] - first_value  # exact for a constant series
            level[t] = deseasonalized[t]
        n_fitted = 0
        for season_index in range(len(windows)):
            n_fitted += windows[season_index, PERIOD] > 1 and n >= 2 * windows[season_index, PERIOD]
        for _ in range(loops[MSTL] if n_fitted > 1 else 1):
            for season_index in range(len(windows)):
                if windows[season_index, PERIOD] <= 1 or n < 2 * windows[season_index, PERIOD]:
                    continue
                for t in range(n):
                    deseasonalized[t] += seasons[season_index, begin + t]
                _decompose_season(deseasonalized, windows, season_index, loops, level, season, stop)
                for t in range(n):
                    seasons[season_index, begin + t] = season[t]
                    deseasonalized[t] -= season[t]
        for t in range(n):
            trend[begin + t] = level[t] + first_value


@inner
def _decompose_season(
    y: Floats, windows: Ints, season_index: int, loops: Ints, trend: Floats, season: Floats, stop: Ints
) -> None:
    """STL of one season of one series; writes `trend` and `season`.

    Inner loop: smooth the detrended cycle-subseries, subtract their low-pass filter to get the
    season, smooth the deseasonalized series to get the trend. Outer loop: robustness weights.
    """
    n, period = len(y), windows[season_index, PERIOD]
    is_robust = loops[OUTER] > 0
    window = windows[season_index]
    season_window = Window(window[SEASONAL], window[SEASONAL + DEGREES], window[SEASONAL + JUMPS], is_robust)
    trend_window = Window(window[TREND], window[TREND + DEGREES], window[TREND + JUMPS], is_robust)
    # loops[OUTER] < 0: False, as a variable, as numba compiles again for a constant
    low_pass_window = Window(window[LOW_PASS], window[LOW_PASS + DEGREES], window[LOW_PASS + JUMPS], loops[OUTER] < 0)
    trend_table, low_pass_table = _weight_table(n, trend_window), _weight_table(n, low_pass_window)
    weights = np.empty(n)
    detrended = np.empty(n + 2 * period)
    cycles = np.empty(n + 2 * period)
    filtered = np.empty(n + 2 * period)
    buffer = np.empty(n + 2 * period)
    kernel_weights = np.empty(n + 2 * period)
    for t in range(n):
        trend[t] = 0.0
        season[t] = 0.0
        weights[t] = 1.0
    for outer in range(loops[OUTER] + 1):
        for _ in range(loops[INNER]):
            if stop[0] != 0:
                return
            for t in range(n):
                detrended[t] = y[t] - trend[t]
            _smooth_phases(detrended, weights, period, season_window, buffer, kernel_weights, cycles, stop)
            _low_pass(cycles, n, period, detrended, filtered)
            _smooth(filtered, weights, low_pass_window, low_pass_table, buffer, kernel_weights, detrended, stop)
            for t in range(n):
                season[t] = cycles[t + period] - detrended[t]
                filtered[t] = y[t] - season[t]
            _smooth(filtered, weights, trend_window, trend_table, buffer, kernel_weights, trend, stop)
        if outer < loops[OUTER]:
            _robustness_weights(y, trend, season, weights, detrended)


@inner
def _weight_table(n: int, window: Window) -> Floats:
    """Table of filter weights of a smoother; empty if it is not tabulated."""
    if not loess.is_tabled(n, window):
        return np.empty(0)
    table = np.empty(min(n, window.width) * (loess.edge_size(n, window) + 1))
    loess.fill_weight_table(n, window, table)
    return table


@inner_no_alloc
def _smooth(
    y: Floats,
    weights: Floats,
    window: Window,
    table: Floats,
    buffer: Floats,
    kernel_weights: Floats,
    smooth: Floats,
    stop: Ints,
) -> None:
    """Smooth `y[:n]`, n = len(weights), with the table if there is one."""
    n = len(weights)
    if len(table) > 0:
        loess.smooth_with_table(y, n, window, table, buffer, smooth, stop)
    else:  # n - n is 0 and n // n is 1, as variables: numba compiles again for each literal argument
        loess.smooth_line(Line(y, weights, n - n, n // n, n), window, kernel_weights, smooth, n - n, n - n, stop)


@inner
def _smooth_phases(
    y: Floats, weights: Floats, period: int, window: Window, buffer: Floats, kernel_weights: Floats, smooth: Floats, stop: Ints
) -> None:
    """Smooth each cycle-subseries and extrapolate it by one cycle at both ends.

    `smooth` (n + 2 periods) starts one cycle before `y`. Subseries of equal length are smoothed together:
    those of the first n mod period phases have one value more.
    """
    n = len(weights)
    n_longer_phases = n % period
    if not window.weighted and min(window.jump, n // period) == 1:
        for group in range(2):
            start, end = (0, n_longer_phases) if group == 0 else (n_longer_phases, period)
            line = Line(y, weights, start, period, (n - 1 - start) // period + 1)
            if end > start:
                loess.smooth_phases(line, end - start, window, buffer, smooth)
        return
    for phase in range(period):
        line = Line(y, weights, phase, period, (n - 1 - phase) // period + 1)
        loess.smooth_line(line, window, kernel_weights, smooth, phase + period, period // period, stop)


@inner_no_alloc
def _low_pass(y: Floats, n: int, period: int, scratch: Floats, smooth: Floats) -> None:
    """Write moving averages of lengths m, m and 3 of `y` (n + 2 m values) to `smooth` (n values)."""
    source, n_values = y, n + 2 * period
    for stage in range(3):
        length, target = (3 if stage == 2 else period), (scratch if stage == 1 else smooth)
        window_sum = 0.0
        for t in range(length):
            window_sum += source[t]
        target[0] = window_sum / length
        for t in range(1, n_values - length + 1):
            window_sum += source[t + length - 1] - source[t - 1]
            target[t] = window_sum / length
        source, n_values = target, n_values - length + 1


@inner_no_alloc
def _robustness_weights(y: Floats, trend: Floats, season: Floats, weights: Floats, scratch: Floats) -> None:
    """Bisquare weights (1 - u^2)^2, u = |remainder| / (6 median |remainder|), 0 for u >= 1.

    All weights are 1 if the remainder is only rounding error.
    """
    n, largest_value = len(y), 0.0
    for t in range(n):
        weights[t] = abs(y[t] - trend[t] - season[t])
        scratch[t] = weights[t]
        largest_value = max(largest_value, abs(y[t]))
    # 6 times the median, the mean of the two middle values.
    limit = 3.0 * (_select_rank(scratch, n, n // 2) + _select_rank(scratch, n, n - n // 2 - 1))
    for t in range(n):
        relative_size = weights[t] / limit if limit > 1e-14 * largest_value else 0.0
        bisquare_base = 1.0 - relative_size * relative_size
        weights[t] = bisquare_base * bisquare_base if relative_size <= loess.FAR else 0.0
        if relative_size <= loess.NEAR:
            weights[t] = 1.0


@inner_no_alloc
def _select_rank(values: Floats, n: int, rank: int) -> float:
    """Value of this rank (from 0) in ascending order, by quickselect; reorders `values`."""
    low, high = 0, n - 1
    while low < high:
        pivot_value = values[(low + high) // 2]
        i = low
        j = high
        while i <= j:
            while values[i] < pivot_value:
                i += 1
            while values[j] > pivot_value:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return float(values[rank])
