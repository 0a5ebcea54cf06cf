"""Heuristic initial states: season from the first cycles, level and slope from the first values.

See Hyndman et al. (2008), section 2.6.1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compiled_no_alloc, inlined, inner_no_alloc
from deepforecast.kernels.ets.recursion import ZERO

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_CYCLES = 5  # number of seasonal cycles used
MIN_LINE_VALUES = 10  # number of values that the line is fitted to


@compiled_no_alloc
def guess_initial_states(y: Floats, is_observed: Floats, indptr: Ints, season: int, guesses: Floats) -> None:
    """Fill `guesses` (series, 2, 2 + m): level, slope, seasonal states; row 0 additive, 1
    multiplicative.
    """
    for i in range(len(indptr) - 1):
        begin, end = indptr[i], indptr[i + 1]
        for product in range(2):
            states = guesses[i, product]
            _guess_season(y[begin:end], is_observed[begin:end], season, product == 1, states[2:])
            _fit_line(y[begin:end], is_observed[begin:end], season, product == 1, states)


@inlined
def _guess_season(y: Floats, is_observed: Floats, season: int, product: bool, factors: Floats) -> None:
    """Mean deviation of each phase from the cycle mean, which is interpolated linearly over cycles."""
    for j in range(season):
        factors[j] = 1.0 if product else 0.0
    n_cycles = min(len(y) // season, MAX_CYCLES)
    for t in range(n_cycles * season):
        if is_observed[t] == 0.0:
            n_cycles = t // season  # cycles with missing values have no mean
            break
    if season == 1 or n_cycles < 1:
        return
    slope = (_cycle_mean(y, season, n_cycles - 1) - _cycle_mean(y, season, ZERO)) / (max(n_cycles - 1, 1) * season)
    total = 0.0
    for cycle in range(n_cycles):
        cycle_mean = _cycle_mean(y, season, cycle)
        for j in range(season):
            mean, value = cycle_mean + slope * (j - 0.5 * (season - 1)), y[cycle * season + j]
            deviation = value - mean
            if product:
                deviation = value / mean - 1.0 if mean > 0.0 and value > 0.0 else 0.0
            factors[j] += deviation / n_cycles
            total += deviation / n_cycles
    for j in range(season):
        factors[j] = factors[j] * season / (season + total) if product else factors[j] - total / season


@inner_no_alloc
def _cycle_mean(y: Floats, season: int, cycle: int) -> float:
    total = 0.0
    for j in range(season):
        total += y[cycle * season + j]
    return total / season


@inlined
def _fit_line(y: Floats, is_observed: Floats, season: int, product: bool, states: Floats) -> None:
    """Least-squares line through the first deseasonalized values; the level is that at time 0."""
    most = max(MIN_LINE_VALUES, 2 * season)
    count, time, value, square, cross = 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(len(y)):
        if is_observed[t] > 0.0:
            factor = states[2 + t % season]
            level = y[t] / factor if product else y[t] - factor
            count += 1.0
            time += t + 1.0
            value += level
            square += (t + 1.0) * (t + 1.0)
            cross += (t + 1.0) * level
            if count == most:
                break
    variation = square - time * time / count
    states[1] = (cross - time * value / count) / variation if count > 1.0 else 0.0
    states[0] = (value - states[1] * time) / count
