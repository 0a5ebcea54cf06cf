"""Seasonal-trend decomposition by loess, with one season (STL) or several (MSTL), of many series.

References
----------
Cleveland, Cleveland, McRae & Terpenning (1990), STL: A Seasonal-Trend Decomposition Procedure Based on
Loess, *Journal of Official Statistics* 6.
Bandara, Hyndman & Bergmeir (2021), MSTL, arXiv:2107.13462.
"""

from __future__ import annotations

import numpy as np

from deepforecast.kernels import loess
from deepforecast.kernels.compilation import compile_notice, compiled, inner, inner_no_alloc
from deepforecast.kernels.interrupt import run_interruptible
from deepforecast.kernels.loess import Floats, Ints, Line, Window


def decompose(
    y: Floats, indptr: Ints, windows: Ints, loops: tuple[int, int, int], stop: Ints | None = None
) -> tuple[Floats, Floats]:
    """Trend (rows,) and seasons (seasons, rows) of series without missing values.

    `windows`: per season its length, and widths, degrees and jumps of the season, trend and
    low-pass smoothers (10 integers); seasons are removed in this order. A series shorter than two
    cycles of a season gets 0 for it; without any season the trend is the series. `loops`: inner and
    outer iterations of STL, and iterations of MSTL over the seasons. `stop`: one number; nonzero
    ends the work early.
    """
    stop = np.zeros(1, np.int64) if stop is None else stop
    y = np.require(y, np.float64, ["C", "W"])
    trend, seasons = np.empty(len(y)), np.zeros((len(windows), len(y)))
    bounds, windows = (np.require(array, np.int64, ["C", "W"]) for array in (indptr, windows))
    with compile_notice("the kernels of decomposition"):
        run_interruptible(_decompose_series, stop, y, bounds, windows, np.array(loops, np.int64), trend, seasons)
    return trend, seasons


@compiled
def _decompose_series(stop: Ints, y: Floats, indptr: Ints, windows: Ints, loops: Ints, trend: Floats, seasons: Floats) -> None:
    for i in range(len(indptr) - 1):
        begin, n = indptr[i], indptr[i + 1] - indptr[i]
        first = y[begin]
        deseasonalized, level, season = np.empty(n), np.empty(n), np.empty(n)
        for row in range(n):
            deseasonalized[row] = y[begin + row] - first  # exact for a constant series
            level[row] = deseasonalized[row]
        n_fitted = 0
        for season_index in range(len(windows)):
            n_fitted += windows[season_index, 0] > 1 and n >= 2 * windows[season_index, 0]
        for _ in range(loops[2] if n_fitted > 1 else 1):
            for season_index in range(len(windows)):
                if windows[season_index, 0] <= 1 or n < 2 * windows[season_index, 0]:
                    continue
                for row in range(n):
                    deseasonalized[row] += seasons[season_index, begin + row]
                _decompose_season(deseasonalized, windows, season_index, loops, level, season, stop)
                for row in range(n):
                    seasons[season_index, begin + row] = season[row]
                    deseasonalized[row] -= season[row]
        for row in range(n):
            trend[begin + row] = level[row] + first


@inner
def _decompose_season(
    y: Floats, windows: Ints, season_index: int, loops: Ints, trend: Floats, season: Floats, stop: Ints
) -> None:
    """STL of one season of one series.

    Inner loop: smooth the detrended cycle-subseries, subtract their low-pass filter to get the
    season, smooth the deseasonalized series to get the trend. Outer loop: robustness weights.
    """
    n, period = len(y), windows[season_index, 0]
    robust = loops[1] > 0
    season_window = Window(windows[season_index, 1], windows[season_index, 4], windows[season_index, 7], robust)
    trend_window = Window(windows[season_index, 2], windows[season_index, 5], windows[season_index, 8], robust)
    low_pass_window = Window(windows[season_index, 3], windows[season_index, 6], windows[season_index, 9], loops[1] < 0)
    trend_table, low_pass_table = _weight_table(n, trend_window), _weight_table(n, low_pass_window)
    weights, detrended, cycles = np.empty(n), np.empty(n + 2 * period), np.empty(n + 2 * period)
    filtered, buffer, kernel_weights = np.empty(n + 2 * period), np.empty(n + 2 * period), np.empty(n + 2 * period)
    for row in range(n):
        trend[row], season[row], weights[row] = 0.0, 0.0, 1.0
    for outer in range(loops[1] + 1):
        for _ in range(loops[0]):
            if stop[0] != 0:
                return
            for row in range(n):
                detrended[row] = y[row] - trend[row]
            _smooth_phases(detrended, weights, period, season_window, buffer, kernel_weights, cycles, stop)
            _low_pass(cycles, n, period, detrended, filtered)
            _smooth(filtered, weights, low_pass_window, low_pass_table, buffer, kernel_weights, detrended, stop)
            for row in range(n):
                season[row] = cycles[row + period] - detrended[row]
                filtered[row] = y[row] - season[row]
            _smooth(filtered, weights, trend_window, trend_table, buffer, kernel_weights, trend, stop)
        if outer < loops[1]:
            _robustness_weights(y, trend, season, weights, detrended)


@inner
def _weight_table(n: int, window: Window) -> Floats:
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
    n = len(weights)
    if len(table) > 0:
        loess.smooth_with_table(y, n, window, table, buffer, smooth, stop)
    else:
        loess.smooth_line(Line(y, weights, n - n, n // n, n), window, kernel_weights, smooth, n - n, n - n, stop)


@inner
def _smooth_phases(
    y: Floats, weights: Floats, period: int, window: Window, buffer: Floats, kernel_weights: Floats, smooth: Floats, stop: Ints
) -> None:
    """Smooth each cycle-subseries and extrapolate it by one cycle at both ends."""
    n = len(weights)
    n_longer = n % period
    if not window.weighted and min(window.jump, n // period) == 1:
        for group in range(2):
            start, end = (0, n_longer) if group == 0 else (n_longer, period)
            line = Line(y, weights, start, period, (n - 1 - start) // period + 1)
            if end > start:
                loess.smooth_phases(line, end - start, window, buffer, smooth)
        return
    for phase in range(period):
        line = Line(y, weights, phase, period, (n - 1 - phase) // period + 1)
        loess.smooth_line(line, window, kernel_weights, smooth, phase + period, period // period, stop)


@inner_no_alloc
def _low_pass(y: Floats, n: int, period: int, scratch: Floats, smooth: Floats) -> None:
    """Moving averages of lengths m, m and 3."""
    source, size = y, n + 2 * period
    for stage in range(3):
        width, target = (3 if stage == 2 else period), (scratch if stage == 1 else smooth)
        total = 0.0
        for row in range(width):
            total += source[row]
        target[0] = total / width
        for row in range(1, size - width + 1):
            total += source[row + width - 1] - source[row - 1]
            target[row] = total / width
        source, size = target, size - width + 1


@inner_no_alloc
def _robustness_weights(y: Floats, trend: Floats, season: Floats, weights: Floats, scratch: Floats) -> None:
    """Bisquare weights (1 - u^2)^2, u = |remainder| / (6 median |remainder|), 0 for u >= 1.

    All weights are 1 if the remainder is only rounding error.
    """
    n, largest = len(y), 0.0
    for row in range(n):
        weights[row] = abs(y[row] - trend[row] - season[row])
        scratch[row] = weights[row]
        largest = max(largest, abs(y[row]))
    limit = 3.0 * (_select_rank(scratch, n, n // 2) + _select_rank(scratch, n, n - n // 2 - 1))
    for row in range(n):
        relative_size = weights[row] / limit if limit > 1e-14 * largest else 0.0
        bisquare_base = 1.0 - relative_size * relative_size
        weights[row] = 1.0 if relative_size <= 0.001 else bisquare_base * bisquare_base if relative_size <= 0.999 else 0.0


@inner_no_alloc
def _select_rank(values: Floats, n: int, rank: int) -> float:
    """Value of this rank in ascending order (quickselect, in place)."""
    low, high = 0, n - 1
    while low < high:
        pivot, i, j = values[(low + high) // 2], low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
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
