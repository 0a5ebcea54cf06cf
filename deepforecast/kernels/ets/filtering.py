"""One pass over histories with given parameters: fitted values, and the states after the last value that was seen.

A missing value moves the states as their forecast does: its eps counts as 0. The states kept are those after the last value
seen, with the number of rows since: so forecasts know how long ago that was.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arrays import only_read
from deepforecast.kernels.compiling import announced, bare, lean, part
from deepforecast.kernels.ets.lanes import NOTHING

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SMALLEST = 1e-300  # that is divided by


class Model(NamedTuple):
    """Series with their forms, rates and states; `states` begin with the factor of the next row, `age` rows later."""

    forms: Ints  # (series, 4): error, trend, damped, season, as in `fitting.Form`
    rates: Floats  # (series, 4): alpha, beta, gamma, phi
    states: Floats  # (series, 2 + season): level, slope, factors in turn
    age: Ints  # rows since the states were so


def model(forms: Ints, rates: Floats, states: Floats, age: Ints) -> Model:
    """The arrays as the kernels take them."""
    rates, states = np.ascontiguousarray(rates, np.float64), np.ascontiguousarray(states, np.float64)
    return Model(np.ascontiguousarray(forms, np.int64), rates, states, np.ascontiguousarray(age, np.int64))


def follow(begin: Model, y: Floats, offsets: Floats, indptr: Ints) -> tuple[Floats, Model]:
    """One-step-ahead forecasts of the rows, and the model after them. `offsets`: what regressors add to each row."""
    fitted, states, age = np.empty(len(y)), begin.states.copy(), begin.age.copy()
    with announced("exponential smoothing"):
        _follow(begin, only_read(y), only_read(offsets), np.ascontiguousarray(indptr, np.int64), fitted, states, age)
    return fitted, begin._replace(states=states, age=age)


@lean
def _follow(begin: Model, y: Floats, offsets: Floats, indptr: Ints, fitted: Floats, states: Floats, age: Ints) -> None:
    season = states.shape[1] - 2
    for i in range(len(indptr) - 1):
        form, rates, own = begin.forms[i], begin.rates[i], states[i]
        level, slope, ring = own[0], own[1], own[2:]
        seen_level, seen_slope, since, place = level, slope, age[i], 0
        for _ in range(age[i]):
            level, slope = ahead(form[1], rates[3], level, slope)
            place = (place + 1) % season
        for t in range(indptr[i], indptr[i + 1]):
            base, grown = ahead(form[1], rates[3], level, slope)
            factor = ring[place]
            mean = combined(form[3], base, factor)
            fitted[t] = mean + offsets[t]
            since += 1
            if math.isnan(y[t]) or math.isnan(offsets[t]):
                level, slope = base, grown
            else:
                miss = y[t] - fitted[t]
                level, slope, ring[place] = moved(form, rates, level, base, grown, factor, miss)
                seen_level, seen_slope, since = level, slope, 0
            place = (place + 1) % season
        own[0], own[1], age[i] = seen_level, seen_slope, since
        _rotate(ring, (place - since) % season)


@bare
def ahead(trend: int, phi: float, level: float, slope: float) -> tuple[float, float]:
    """q, and the slope it was reached with."""
    if trend == 2:
        grown = max(slope, SMALLEST) ** phi
        return level * grown, grown
    return level + phi * slope, phi * slope


@bare
def combined(season: int, base: float, factor: float) -> float:
    """mu without regressors."""
    return base * factor if season == 2 else base + factor


@bare
def moved(
    form: Ints, rates: Floats, level: float, base: float, grown: float, factor: float, miss: float
) -> tuple[float, float, float]:
    """Level, slope and factor after a value that missed its forecast by so much."""
    up, across = miss, miss
    if form[3] == 2:
        up, across = miss / _away(factor), miss / _away(base)
    if form[1] == 2:
        return base + rates[0] * up, grown + rates[1] * up / _away(level), factor + rates[2] * across
    return base + rates[0] * up, grown + rates[1] * up, factor + rates[2] * across


@bare
def _away(value: float) -> float:
    """The value, kept off 0."""
    if abs(value) >= SMALLEST:
        return value
    return SMALLEST if value >= 0.0 else -SMALLEST


@part
def _rotate(ring: Floats, count: int) -> None:
    """Turn the ring so that place `count` comes first: three reversals, no room needed."""
    _reverse(ring, NOTHING, count)
    _reverse(ring, count, len(ring))
    _reverse(ring, NOTHING, len(ring))


@bare
def _reverse(ring: Floats, first: int, last: int) -> None:
    last -= 1
    while first < last:
        ring[first], ring[last] = ring[last], ring[first]
        first += 1
        last -= 1
