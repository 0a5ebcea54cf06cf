"""Heuristic initial states: season from the first cycles, level and slope from the first values.

As in Hyndman et al. (2008), section 2.6.1, with cycle means in place of a moving average.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compiled_no_alloc, inlined, inner_no_alloc
from deepforecast.kernels.ets.recursion import ZERO

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_CYCLES = 5  # largest number of seasonal cycles used
MIN_LINE_VALUES = 10  # the line is fitted to this number of values, or to 2 cycles if these are longer


@compiled_no_alloc
def guess_initial_states(y: Floats, is_observed: Floats, indptr: Ints, season_length: int, guesses: Floats) -> None:
    """Fill `guesses` (series, 2, 2 + m): level, slope, seasonal states; row 0 additive, row 1 multiplicative.

    Level and slope belong to the time before the first value; the first seasonal state is that of the
    first value. `y` is 0 where `is_observed` is 0.
    """
    for i in range(len(indptr) - 1):
        begin, end = indptr[i], indptr[i + 1]
        for row in range(2):
            states = guesses[i, row]
            _guess_season(y[begin:end], is_observed[begin:end], season_length, row == 1, states[2:])
            _fit_line(y[begin:end], is_observed[begin:end], season_length, row == 1, states)


@inlined
def _guess_season(y: Floats, is_observed: Floats, season_length: int, multiplicative: bool, seasonal_states: Floats) -> None:
    """Write the mean deviation of each phase from the cycle means to `seasonal_states`.

    Cycle means are interpolated by a line from the first to the last one. Deviations are differences,
    or ratios if `multiplicative`; the states are normalized to the sum 0, or m. Only the first
    MAX_CYCLES complete cycles before a missing value are used; neutral states (0 or 1) without any.
    """
    for j in range(season_length):
        seasonal_states[j] = 1.0 if multiplicative else 0.0
    n_cycles = min(len(y) // season_length, MAX_CYCLES)
    for t in range(n_cycles * season_length):
        if is_observed[t] == 0.0:
            n_cycles = t // season_length  # cycles with missing values have no mean
            break
    if season_length == 1 or n_cycles < 1:
        return
    slope = (_cycle_mean(y, season_length, n_cycles - 1) - _cycle_mean(y, season_length, ZERO)) / (
        max(n_cycles - 1, 1) * season_length
    )
    sum_of_deviations = 0.0
    for cycle in range(n_cycles):
        cycle_mean = _cycle_mean(y, season_length, cycle)
        for j in range(season_length):
            mean = cycle_mean + slope * (j - 0.5 * (season_length - 1))
            value = y[cycle * season_length + j]
            deviation = value - mean
            if multiplicative:
                deviation = value / mean - 1.0 if mean > 0.0 and value > 0.0 else 0.0
            seasonal_states[j] += deviation / n_cycles
            sum_of_deviations += deviation / n_cycles
    for j in range(season_length):
        seasonal_states[j] = (
            seasonal_states[j] * season_length / (season_length + sum_of_deviations)
            if multiplicative
            else seasonal_states[j] - sum_of_deviations / season_length
        )


@inner_no_alloc
def _cycle_mean(y: Floats, season_length: int, cycle: int) -> float:
    cycle_sum = 0.0
    for j in range(season_length):
        cycle_sum += y[cycle * season_length + j]
    return cycle_sum / season_length


@inlined
def _fit_line(y: Floats, is_observed: Floats, season_length: int, multiplicative: bool, states: Floats) -> None:
    """Write level and slope of the least-squares line through the first deseasonalized values to `states`.

    Missing values are skipped. The level is that at time 0, one step before the first value.
    """
    n_values = max(MIN_LINE_VALUES, 2 * season_length)
    n_used, sum_times, sum_levels, sum_squared_times, sum_products = 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(len(y)):
        if is_observed[t] > 0.0:
            seasonal = states[2 + t % season_length]
            level = y[t] / seasonal if multiplicative else y[t] - seasonal
            n_used += 1.0
            sum_times += t + 1.0
            sum_levels += level
            sum_squared_times += (t + 1.0) * (t + 1.0)
            sum_products += (t + 1.0) * level
            if n_used == n_values:
                break
    squared_deviation = sum_squared_times - sum_times * sum_times / n_used
    states[1] = (sum_products - sum_times * sum_levels / n_used) / squared_deviation if n_used > 1.0 else 0.0
    states[0] = (sum_levels - states[1] * sum_times) / n_used
