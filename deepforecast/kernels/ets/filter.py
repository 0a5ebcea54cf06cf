"""One pass over histories with given parameters: fitted values and final states.

At a missing value eps is 0. The returned states are those after the last observed value, with the
number of rows since (`age`), so that forecasts start from the last observation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arrays import as_read_only
from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc, inlined, inner_no_alloc
from deepforecast.kernels.ets.recursion import ZERO

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_DIVISOR = 1e-300  # smallest absolute value of a divisor


class Model(NamedTuple):
    """Form, rates and states of each series; the first seasonal state is that of the next row."""

    forms: Ints  # (series, 4): error, trend, damped, season, as in `Form`
    rates: Floats  # (series, 4): alpha, beta, gamma, phi
    states: Floats  # (series, 2 + season): level, slope, seasonal states
    age: Ints  # (series,): missing rows since the states were updated


def model_arrays(forms: Ints, rates: Floats, states: Floats, age: Ints) -> Model:
    """Convert to the contiguous arrays that the kernels expect."""
    rates, states = np.ascontiguousarray(rates, np.float64), np.ascontiguousarray(states, np.float64)
    return Model(np.ascontiguousarray(forms, np.int64), rates, states, np.ascontiguousarray(age, np.int64))


def filter_series(begin: Model, y: Floats, offsets: Floats, indptr: Ints) -> tuple[Floats, Model]:
    """One-step-ahead forecasts, and the model after the last row. `offsets`: effect of regressors
    per row.
    """
    fitted, states, age = np.empty(len(y)), begin.states.copy(), begin.age.copy()
    with compile_notice("exponential smoothing"):
        _filter_series(
            begin, as_read_only(y), as_read_only(offsets), np.ascontiguousarray(indptr, np.int64), fitted, states, age
        )
    return fitted, begin._replace(states=states, age=age)


@compiled_no_alloc
def _filter_series(begin: Model, y: Floats, offsets: Floats, indptr: Ints, fitted: Floats, states: Floats, age: Ints) -> None:
    season = states.shape[1] - 2
    for i in range(len(indptr) - 1):
        form, rates, series_states = begin.forms[i], begin.rates[i], states[i]
        level, slope, season_states = series_states[0], series_states[1], series_states[2:]
        observed_level, observed_slope, rows_since, phase = level, slope, age[i], 0
        for _ in range(age[i]):
            level, slope = advance_trend(form[1], rates[3], level, slope)
            phase = (phase + 1) % season
        for t in range(indptr[i], indptr[i + 1]):
            base, damped_slope = advance_trend(form[1], rates[3], level, slope)
            factor = season_states[phase]
            mean = combine_season(form[3], base, factor)
            fitted[t] = mean + offsets[t]
            rows_since += 1
            if math.isnan(y[t]) or math.isnan(offsets[t]):
                level, slope = base, damped_slope
            else:
                error = y[t] - fitted[t]
                level, slope, season_states[phase] = update_states(form, rates, level, base, damped_slope, factor, error)
                observed_level, observed_slope, rows_since = level, slope, 0
            phase = (phase + 1) % season
        series_states[0], series_states[1], age[i] = observed_level, observed_slope, rows_since
        _rotate_season(season_states, (phase - rows_since) % season)


@inner_no_alloc
def advance_trend(trend: int, phi: float, level: float, slope: float) -> tuple[float, float]:
    """Return q = l + phi b (or l b^phi), and the damped slope phi b (or b^phi)."""
    if trend == 2:
        damped_slope = max(slope, MIN_DIVISOR) ** phi
        return level * damped_slope, damped_slope
    return level + phi * slope, phi * slope


@inner_no_alloc
def combine_season(season: int, base: float, factor: float) -> float:
    """Return mu without regressors: q + s, or q s."""
    return base * factor if season == 2 else base + factor


@inner_no_alloc
def update_states(
    form: Ints, rates: Floats, level: float, base: float, damped_slope: float, factor: float, error: float
) -> tuple[float, float, float]:
    """Level, slope and seasonal state after residual `error`, by the equations of the package."""
    level_error, season_error = error, error
    if form[3] == 2:
        level_error, season_error = error / _nonzero(factor), error / _nonzero(base)
    if form[1] == 2:
        return (
            base + rates[0] * level_error,
            damped_slope + rates[1] * level_error / _nonzero(level),
            factor + rates[2] * season_error,
        )
    return base + rates[0] * level_error, damped_slope + rates[1] * level_error, factor + rates[2] * season_error


@inner_no_alloc
def _nonzero(value: float) -> float:
    if abs(value) >= MIN_DIVISOR:
        return value
    return MIN_DIVISOR if value >= 0.0 else -MIN_DIVISOR


@inlined
def _rotate_season(season_states: Floats, count: int) -> None:
    """Rotate in place so that index `count` comes first, by three reversals."""
    _reverse(season_states, ZERO, count)
    _reverse(season_states, count, len(season_states))
    _reverse(season_states, ZERO, len(season_states))


@inner_no_alloc
def _reverse(season_states: Floats, first: int, last: int) -> None:
    last -= 1
    while first < last:
        season_states[first], season_states[last] = season_states[last], season_states[first]
        first += 1
        last -= 1
