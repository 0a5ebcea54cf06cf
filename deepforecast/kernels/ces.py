"""Complex exponential smoothing: the four models as one recursion.

A pair (x, z), the real and imaginary part of the state, with complex smoothing parameter p0 + i p1
and error e follows

    x' = x - (1 - p1) z + (p0 - p1) e
    z' = x + (1 - p0) z + (p0 + p1) e

The level is a pair at lag 1, the season one at lag m; e = y - x(level) - x(season). Models: none
(level only), simple (season only, which includes the level), full (both), and partial (level, and a
real season: x' = x + p0 e, z = 0). At a missing value e = 0.

References
----------
Svetunkov, Kourentzes & Ord (2022), Complex exponential smoothing, *Naval Research Logistics* 69,
doi:10.1002/nav.22074.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arrays import as_read_only
from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc, inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NONE, SIMPLE, PARTIAL, FULL = range(4)


class Workspace(NamedTuple):
    """Work arrays and results of a run."""

    gains: Floats
    zero_state: Floats  # two pairs that stay 0
    fitted: Floats


def backcast_states(y: Floats, indptr: Ints, forms: Ints, parameters: Floats, index: Floats) -> tuple[Floats, Floats]:
    """Initial level (series, 2) and season (series, m, 2; that of the first row first) by
    backcasting.

    The recursion runs forward from heuristic states and backward to the first row.
    """
    level, season = np.zeros((len(forms), 2)), np.zeros((*index.shape, 2))
    _run_recursion(y, indptr, forms, parameters, index, level, season)
    return level, season


def filter_series(
    y: Floats, indptr: Ints, forms: Ints, parameters: Floats, level: Floats, season: Floats
) -> tuple[Floats, Floats, Floats]:
    """One-step-ahead forecasts, and level and season (of the next row first) after the last row."""
    level, season = level.copy(), season.copy()
    fitted = _run_recursion(y, indptr, forms, parameters, np.empty((len(forms), 0)), level, season)
    season_order = (np.arange(season.shape[1]) + np.diff(indptr)[:, None]) % season.shape[1]
    return fitted, level, np.take_along_axis(season, season_order[:, :, None], axis=1)


def forecast_components(forms: Ints, parameters: Floats, level: Floats, season: Floats, steps: int) -> tuple[Floats, Floats]:
    """Contributions of level and season to the forecasts, (series, steps) each."""
    missing = np.full((len(forms), steps), np.nan)
    return (
        _forecast(missing, forms, parameters, level, 0.0 * season),
        _forecast(missing, forms, parameters, 0.0 * level, season),
    )


def impulse_response(forms: Ints, parameters: Floats, season: int, steps: int) -> Floats:
    """Effect of a unit shock at the first step on each step (series, steps)."""
    shock = np.full((len(forms), steps), np.nan)
    shock[:, 0] = 1.0  # zero states: the first error is the value 1
    states = np.zeros((len(forms), 2)), np.zeros((len(forms), season, 2))
    response = _forecast(shock, forms, parameters, *states)
    response[:, 0] = 1.0
    return response


def _forecast(y: Floats, forms: Ints, parameters: Floats, level: Floats, season: Floats) -> Floats:
    """Forecasts (series, steps) from copies of the states."""
    series, steps = y.shape
    indptr, index = np.arange(series + 1) * steps, np.empty((series, 0))
    forecasts = _run_recursion(y.reshape(-1), indptr, forms, parameters, index, level.copy(), season.copy())
    return forecasts.reshape(y.shape)


def _run_recursion(
    y: Floats, indptr: Ints, forms: Ints, parameters: Floats, index: Floats, level: Floats, season: Floats
) -> Floats:
    """Filter the rows, or with `index` backcast to the initial states; in place. Return the
    forecasts.
    """
    workspace = Workspace(np.empty(14), np.zeros((2, 2)), np.empty(len(y)))
    with compile_notice("complex exponential smoothing"):
        _run_series(as_read_only(y), indptr, forms, parameters, index, level, season, workspace)
    return workspace.fitted


@inner_no_alloc
def fill_gains(form: int, parameters: Floats, coefficients: Floats) -> None:
    """Coefficients of both pairs, 7 each: z, e in x'; x, z, e in z'; 1 if p0 affects x; 1 if z is
    used.
    """
    for number in range(14):
        coefficients[number] = 0.0
    for pair in range(2):
        p0, p1, offset = parameters[2 * pair], parameters[2 * pair + 1], 7 * pair
        if pair == 1 and form == PARTIAL:
            coefficients[8], coefficients[12] = p0, 1.0
        elif form >= PARTIAL or form == pair:  # NONE has only the first pair, SIMPLE the second
            coefficients[offset], coefficients[offset + 1], coefficients[offset + 2] = p1 - 1.0, p0 - p1, 1.0
            coefficients[offset + 3], coefficients[offset + 4], coefficients[offset + 5], coefficients[offset + 6] = (
                1.0 - p0,
                p0 + p1,
                1.0,
                1.0,
            )


@inner_no_alloc
def set_initial_states(values: Floats, form: int, index: Floats, level: Floats, season: Floats) -> None:
    """Heuristic states: means and seasonal indices, imaginary part 1/1.1 of the real one."""
    period, rows = len(index), len(values)
    first, total, count = period, 0.0, 0.0
    if form == NONE and first < 10:
        first = 10
    for t in range(rows):
        if (t < first or count == 0.0) and not math.isnan(values[t]):
            total, count = total + values[t], count + 1.0
    mean = total / count
    level[0] = 0.0 if form == SIMPLE else mean
    level[1] = level[0] / 1.1
    for phase in range(period):
        value = 0.0 if form == NONE else index[phase]
        if form == SIMPLE:
            value = values[phase] if phase < rows else mean
            if math.isnan(value):
                value = mean
        season[phase, 0], season[phase, 1] = value, 0.0 if form == PARTIAL else value / 1.1


@inner_no_alloc
def _step(level: Floats, season: Floats, g: Floats, error: float) -> None:
    """Advance both pairs by one row."""
    x, z = level[0], level[1]
    level[0] = x + g[0] * z + g[1] * error
    level[1] = g[2] * x + g[3] * z + g[4] * error
    x, z = season[0], season[1]
    season[0] = x + g[7] * z + g[8] * error
    season[1] = g[9] * x + g[10] * z + g[11] * error


@inner_no_alloc
def _filter_rows(values: Floats, backward: bool, level: Floats, season: Floats, g: Floats, fitted: Floats) -> None:
    """Filter all rows, forward or backward."""
    for step in range(len(values)):
        row = len(values) - 1 - step if backward else step
        phase = row % len(season)
        fitted[row] = level[0] + season[phase, 0]
        _step(level, season[phase], g, 0.0 if math.isnan(values[row]) else values[row] - fitted[row])


@compiled_no_alloc
def _run_series(
    y: Floats, indptr: Ints, forms: Ints, parameters: Floats, index: Floats, level: Floats, season: Floats, workspace: Workspace
) -> None:
    g, zero_state, fitted = workspace
    backcasting = index.shape[1] > 0
    for i in range(len(forms)):
        begin, end = indptr[i], indptr[i + 1]
        fill_gains(forms[i], parameters[i], g)
        if backcasting:
            set_initial_states(y[begin:end], forms[i], index[i], level[i], season[i])
        for direction in range(2 if backcasting else 1):
            _filter_rows(y[begin:end], direction == 1, level[i], season[i], g, fitted[begin:end])
            if not backcasting:
                continue
            _step(level[i], zero_state[0], g, 0.0)  # one extra row without error before turning
            for phase in range(index.shape[1]):
                _step(zero_state[1], season[i, phase], g, 0.0)
