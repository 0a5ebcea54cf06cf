"""One pass over histories with given parameters: fitted values and final states.

At a missing value eps is 0. The returned states are those after the last observed value, with the
number of time steps since then (`age`), so that forecasts start from the last observation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arrays import as_read_only
from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc, inlined, inner_no_alloc
from deepforecast.kernels.ets.coordinates import ALPHA, BETA, GAMMA, PHI
from deepforecast.kernels.ets.recursion import ZERO
from deepforecast.kernels.ets.workspace import SEASON, TREND

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_DIVISOR = 1e-300  # smallest absolute value of a divisor
MULTIPLICATIVE = 2  # trend or season of a form


class Model(NamedTuple):
    """Form, rates and states of each series; the first seasonal state is that of the next time step."""

    forms: Ints  # (series, 4): error, trend, damped, season, as in `Form`
    rates: Floats  # (series, 4): alpha, beta, gamma, phi
    states: Floats  # (series, 2 + season): level, slope, seasonal states
    age: Ints  # (series,): missing values since the states were updated


def model_arrays(forms: Ints, rates: Floats, states: Floats, age: Ints) -> Model:
    """Convert to the contiguous arrays that the kernels expect."""
    rates, states = np.ascontiguousarray(rates, np.float64), np.ascontiguousarray(states, np.float64)
    return Model(np.ascontiguousarray(forms, np.int64), rates, states, np.ascontiguousarray(age, np.int64))


def filter_series(model: Model, y: Floats, offsets: Floats, indptr: Ints) -> tuple[Floats, Model]:
    """One-step-ahead forecasts, and the model after the last time step; `model` itself is not changed.

    `offsets`: effect of regressors per time step, 0 without regressors; NaN counts as a missing value.
    """
    fitted, states, age = np.empty(len(y)), model.states.copy(), model.age.copy()
    with compile_notice("exponential smoothing"):
        _filter_series(
            model, as_read_only(y), as_read_only(offsets), np.ascontiguousarray(indptr, np.int64), fitted, states, age
        )
    return fitted, model._replace(states=states, age=age)


@compiled_no_alloc
def _filter_series(model: Model, y: Floats, offsets: Floats, indptr: Ints, fitted: Floats, states: Floats, age: Ints) -> None:
    """Write forecasts to `fitted`; update `states` and `age` in place.

    After `age` missing values the recursion continues from the states at the last observation.
    `phase` is the index of the current seasonal state; at the end the states are rotated so that the
    first one is that of the step after the last observation.
    """
    season_length = states.shape[1] - 2
    for i in range(len(indptr) - 1):
        form = model.forms[i]
        rates = model.rates[i]
        series_states = states[i]
        level = series_states[0]
        slope = series_states[1]
        season_states = series_states[2:]
        observed_level = level
        observed_slope = slope
        steps_since = age[i]
        phase = 0
        for _ in range(age[i]):
            level, slope = advance_trend(form[TREND], rates[PHI], level, slope)
            phase = (phase + 1) % season_length
        for t in range(indptr[i], indptr[i + 1]):
            base, damped_slope = advance_trend(form[TREND], rates[PHI], level, slope)
            seasonal = season_states[phase]
            mean = combine_season(form[SEASON], base, seasonal)
            fitted[t] = mean + offsets[t]
            steps_since += 1
            if math.isnan(y[t]) or math.isnan(offsets[t]):
                level, slope = base, damped_slope
            else:
                error = y[t] - fitted[t]
                level, slope, season_states[phase] = update_states(form, rates, level, base, damped_slope, seasonal, error)
                observed_level = level
                observed_slope = slope
                steps_since = 0
            phase = (phase + 1) % season_length
        series_states[0] = observed_level
        series_states[1] = observed_slope
        age[i] = steps_since
        _rotate_season(season_states, (phase - steps_since) % season_length)


@inner_no_alloc
def advance_trend(trend: int, phi: float, level: float, slope: float) -> tuple[float, float]:
    """Return q = l + phi b (or l b^phi), and the damped slope phi b (or b^phi)."""
    if trend == MULTIPLICATIVE:
        damped_slope = max(slope, MIN_DIVISOR) ** phi
        return level * damped_slope, damped_slope
    return level + phi * slope, phi * slope


@inner_no_alloc
def combine_season(season: int, base: float, seasonal: float) -> float:
    """Return mu without regressors: q + s, or q s."""
    return base * seasonal if season == MULTIPLICATIVE else base + seasonal


@inner_no_alloc
def update_states(
    form: Ints, rates: Floats, level: float, base: float, damped_slope: float, seasonal: float, error: float
) -> tuple[float, float, float]:
    """Level, slope and seasonal state after residual `error`, by the equations of the package docstring.

    `level` is l before the step, `base` is q and `damped_slope` is phi b (or b^phi), `seasonal` is s.
    """
    level_error, season_error = error, error
    if form[SEASON] == MULTIPLICATIVE:
        level_error, season_error = error / _nonzero(seasonal), error / _nonzero(base)
    if form[TREND] == MULTIPLICATIVE:
        return (
            base + rates[ALPHA] * level_error,
            damped_slope + rates[BETA] * level_error / _nonzero(level),
            seasonal + rates[GAMMA] * season_error,
        )
    return base + rates[ALPHA] * level_error, damped_slope + rates[BETA] * level_error, seasonal + rates[GAMMA] * season_error


@inner_no_alloc
def _nonzero(value: float) -> float:
    if abs(value) >= MIN_DIVISOR:
        return value
    return MIN_DIVISOR if value >= 0.0 else -MIN_DIVISOR


@inlined
def _rotate_season(season_states: Floats, new_start: int) -> None:
    """Rotate in place so that the element at index `new_start` comes first, by three reversals."""
    _reverse(season_states, ZERO, new_start)
    _reverse(season_states, new_start, len(season_states))
    _reverse(season_states, ZERO, len(season_states))


@inner_no_alloc
def _reverse(values: Floats, begin: int, end: int) -> None:
    """Reverse the elements from index `begin` up to, but not including, `end` in place."""
    end -= 1
    while begin < end:
        values[begin], values[end] = values[end], values[begin]
        begin += 1
        end -= 1
