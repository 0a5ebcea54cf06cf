"""Season, trend and remainder by loess (STL), with one season or several (MSTL), of many series.

Reference: Cleveland, Cleveland, McRae & Terpenning (1990), STL: A Seasonal-Trend Decomposition Procedure Based on Loess,
*Journal of Official Statistics* 6; Bandara, Hyndman & Bergmeir (2021), MSTL, arXiv:2107.13462.
"""

from __future__ import annotations

import numpy as np

from deepforecast.kernels import loess
from deepforecast.kernels.compiling import announced, bare, compiled, inner
from deepforecast.kernels.interrupting import interruptible
from deepforecast.kernels.loess import Floats, Ints, Line, Window


def decomposed(
    y: Floats, indptr: Ints, windows: Ints, loops: tuple[int, int, int], stop: Ints | None = None
) -> tuple[Floats, Floats]:
    """Trend, shape (rows,), and seasons, shape (seasons, rows), of series without missing values.

    `windows`: for each season its length, and the widths, degrees and jumps of the smoothers of season, trend and low-pass (10
    whole numbers); the season is taken out in this order. A series shorter than two seasons does without that one (its part is
    0); without any the trend is the series. `loops`: inner and outer ones of STL, and of MSTL over the seasons. `stop`: one
    number; the work ends soon after it is no longer 0.
    """
    stop = np.zeros(1, np.int64) if stop is None else stop
    y = np.require(y, np.float64, ["C", "W"])
    trend, seasons = np.empty(len(y)), np.zeros((len(windows), len(y)))
    bounds, windows = (np.require(one, np.int64, ["C", "W"]) for one in (indptr, windows))
    with announced("the kernels of decomposition"):
        interruptible(_decompose, stop, y, bounds, windows, np.array(loops, np.int64), trend, seasons)
    return trend, seasons


@compiled
def _decompose(stop: Ints, y: Floats, indptr: Ints, windows: Ints, loops: Ints, trend: Floats, seasons: Floats) -> None:
    for i in range(len(indptr) - 1):
        begin, n = indptr[i], indptr[i + 1] - indptr[i]
        first = y[begin]
        rest, level, season = np.empty(n), np.empty(n), np.empty(n)
        for row in range(n):
            rest[row] = y[begin + row] - first  # so that a constant is 0 throughout, and its trend exact
            level[row] = rest[row]
        fitting = 0
        for one in range(len(windows)):
            fitting += windows[one, 0] > 1 and n >= 2 * windows[one, 0]
        for _ in range(loops[2] if fitting > 1 else 1):
            for one in range(len(windows)):
                if windows[one, 0] <= 1 or n < 2 * windows[one, 0]:
                    continue
                for row in range(n):
                    rest[row] += seasons[one, begin + row]
                _stl(rest, windows, one, loops, level, season, stop)
                for row in range(n):
                    seasons[one, begin + row] = season[row]
                    rest[row] -= season[row]
        for row in range(n):
            trend[begin + row] = level[row] + first


@inner
def _stl(y: Floats, windows: Ints, one: int, loops: Ints, trend: Floats, season: Floats, stop: Ints) -> None:
    """One season of one series."""
    n, period = len(y), windows[one, 0]
    robust = loops[1] > 0
    cycle = Window(windows[one, 1], windows[one, 4], windows[one, 7], robust)
    slow = Window(windows[one, 2], windows[one, 5], windows[one, 8], robust)
    low = Window(windows[one, 3], windows[one, 6], windows[one, 9], loops[1] < 0)
    of_slow, of_low = _table(n, slow), _table(n, low)
    weights, left, cycles = np.empty(n), np.empty(n + 2 * period), np.empty(n + 2 * period)
    passed, between, own = np.empty(n + 2 * period), np.empty(n + 2 * period), np.empty(n + 2 * period)
    for row in range(n):
        trend[row], season[row], weights[row] = 0.0, 0.0, 1.0
    for turn in range(loops[1] + 1):
        for _ in range(loops[0]):
            if stop[0] != 0:
                return
            for row in range(n):
                left[row] = y[row] - trend[row]
            _cycles(left, weights, period, cycle, between, own, cycles, stop)
            _low_pass(cycles, n, period, left, passed)
            _smooth(passed, weights, low, of_low, between, own, left, stop)
            for row in range(n):
                season[row] = cycles[row + period] - left[row]
                passed[row] = y[row] - season[row]
            _smooth(passed, weights, slow, of_slow, between, own, trend, stop)
        if turn < loops[1]:
            _weigh_remainders(y, trend, season, weights, left)


@inner
def _table(n: int, window: Window) -> Floats:
    if not loess.is_tabled(n, window):
        return np.empty(0)
    table = np.empty(min(n, window.width) * (loess.edge_of(n, window) + 1))
    loess.lay_down(n, window, table)
    return table


@bare
def _smooth(
    y: Floats, weights: Floats, window: Window, table: Floats, between: Floats, own: Floats, out: Floats, stop: Ints
) -> None:
    n = len(weights)
    if len(table) > 0:
        loess.smooth_all(y, n, window, table, between, out, stop)
    else:
        loess.smooth_line(Line(y, weights, n - n, n // n, n), window, own, out, n - n, n - n, stop)


@inner
def _cycles(
    y: Floats, weights: Floats, period: int, window: Window, between: Floats, own: Floats, out: Floats, stop: Ints
) -> None:
    """Smooth each phase of the season from cycle to cycle, and go one cycle beyond both ends."""
    n = len(weights)
    more = n % period
    if not window.weighted and min(window.jump, n // period) == 1:
        for part in range(2):
            start, end = (0, more) if part == 0 else (more, period)
            line = Line(y, weights, start, period, (n - 1 - start) // period + 1)
            if end > start:
                loess.smooth_phases(line, end - start, window, between, out)
        return
    for phase in range(period):
        line = Line(y, weights, phase, period, (n - 1 - phase) // period + 1)
        loess.smooth_line(line, window, own, out, phase + period, period // period, stop)


@bare
def _low_pass(y: Floats, n: int, period: int, scratch: Floats, out: Floats) -> None:
    """Moving averages over a season, a season, and 3 values."""
    source, size = y, n + 2 * period
    for turn in range(3):
        width, target = (3 if turn == 2 else period), (scratch if turn == 1 else out)
        total = 0.0
        for row in range(width):
            total += source[row]
        target[0] = total / width
        for row in range(1, size - width + 1):
            total += source[row + width - 1] - source[row - 1]
            target[row] = total / width
        source, size = target, size - width + 1


@bare
def _weigh_remainders(y: Floats, trend: Floats, season: Floats, weights: Floats, scratch: Floats) -> None:
    """Weights that fall with the size of what is left over (bisquare), to 0 at six times its median.

    What is left over from rounding alone tells nothing: all weights are 1 then.
    """
    n, largest = len(y), 0.0
    for row in range(n):
        weights[row] = abs(y[row] - trend[row] - season[row])
        scratch[row] = weights[row]
        largest = max(largest, abs(y[row]))
    limit = 3.0 * (_ranked(scratch, n, n // 2) + _ranked(scratch, n, n - n // 2 - 1))
    for row in range(n):
        share = weights[row] / limit if limit > 1e-14 * largest else 0.0
        rest = 1.0 - share * share
        weights[row] = 1.0 if share <= 0.001 else rest * rest if share <= 0.999 else 0.0


@bare
def _ranked(values: Floats, n: int, rank: int) -> float:
    """The value with `rank` others before it in order; puts smaller ones before it."""
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
