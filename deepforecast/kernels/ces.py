"""Complex exponential smoothing: the four models as one recursion.

A pair (x, z), the real and imaginary part of the state, with complex smoothing parameter p0 + i p1
and error e follows

    x' = x - (1 - p1) z + (p0 - p1) e
    z' = x + (1 - p0) z + (p0 + p1) e

The level is a pair at lag 1, the season one at lag m; e = y - x(level) - x(season). Models: none
(level only), simple (season only, which includes the level), full (both), and partial (level, and a
real season: x' = x + p0 e, z = 0). At a missing value e = 0.

Arrays: `forms` (series,) of the constants below; `parameters` (series, 4): p0, p1 of the level, p0, p1
of the season; `level` (series, 2) and `season` (series, m, 2): pairs (x, z), the season as a ring buffer
whose element t mod m belongs to time t; `gains` (14,): see `fill_gains`.

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
N_GAINS = 14  # gains of both pairs, 7 each
IMAGINARY_RATIO = 1.1  # real over imaginary part of heuristic initial states
MIN_LEVEL_VALUES = 10  # smallest number of values whose mean is the initial level of NONE


class Workspace(NamedTuple):
    """Work arrays and results of a run."""

    gains: Floats
    zero_state: Floats  # two pairs that stay 0
    fitted: Floats


def backcast_states(y: Floats, indptr: Ints, forms: Ints, parameters: Floats, seasonal_index: Floats) -> tuple[Floats, Floats]:
    """Initial level (series, 2) and season (series, m, 2; that of the first time step first) by backcasting.

    The recursion runs forward from heuristic states and backward to the first value. `seasonal_index`
    (series, m): initial seasonal indices, that of the first time step first.
    """
    level, season = np.zeros((len(forms), 2)), np.zeros((*seasonal_index.shape, 2))
    _run_recursion(y, indptr, forms, parameters, seasonal_index, level, season)
    return level, season


def filter_series(
    y: Floats, indptr: Ints, forms: Ints, parameters: Floats, level: Floats, season: Floats
) -> tuple[Floats, Floats, Floats]:
    """One-step-ahead forecasts, and level and season after the last time step.

    The first element of the season returned is that of the next time step.
    """
    level, season = level.copy(), season.copy()
    fitted = _run_recursion(y, indptr, forms, parameters, np.empty((len(forms), 0)), level, season)
    season_order = (np.arange(season.shape[1]) + np.diff(indptr)[:, None]) % season.shape[1]
    return fitted, level, np.take_along_axis(season, season_order[:, :, None], axis=1)


def forecast_components(forms: Ints, parameters: Floats, level: Floats, season: Floats, n_steps: int) -> tuple[Floats, Floats]:
    """Contributions of level and season to the forecasts, (series, n_steps) each; their sum is the forecast."""
    missing = np.full((len(forms), n_steps), np.nan)
    return (
        _forecast(missing, forms, parameters, level, 0.0 * season),
        _forecast(missing, forms, parameters, 0.0 * level, season),
    )


def impulse_response(forms: Ints, parameters: Floats, season_length: int, n_steps: int) -> Floats:
    """Effect of a unit shock at the first step on each step (series, n_steps); 1 at the first."""
    shock = np.full((len(forms), n_steps), np.nan)
    shock[:, 0] = 1.0  # zero states: the first error is the value 1
    states = np.zeros((len(forms), 2)), np.zeros((len(forms), season_length, 2))
    response = _forecast(shock, forms, parameters, *states)
    response[:, 0] = 1.0
    return response


def _forecast(y: Floats, forms: Ints, parameters: Floats, level: Floats, season: Floats) -> Floats:
    """One-step forecasts (series, n_steps) of `y`, with missing values forecast further, from copies of the states."""
    n_series, n_steps = y.shape
    indptr, no_index = np.arange(n_series + 1) * n_steps, np.empty((n_series, 0))
    forecasts = _run_recursion(y.reshape(-1), indptr, forms, parameters, no_index, level.copy(), season.copy())
    return forecasts.reshape(y.shape)


def _run_recursion(
    y: Floats, indptr: Ints, forms: Ints, parameters: Floats, seasonal_index: Floats, level: Floats, season: Floats
) -> Floats:
    """Filter the values, updating `level` and `season` in place; return the one-step forecasts.

    With `seasonal_index` (unless it has no columns) both are first set to heuristic states and end as
    the backcast initial states.
    """
    workspace = Workspace(gains=np.empty(N_GAINS), zero_state=np.zeros((2, 2)), fitted=np.empty(len(y)))
    with compile_notice("complex exponential smoothing"):
        _run_series(as_read_only(y), indptr, forms, parameters, seasonal_index, level, season, workspace)
    return workspace.fitted


@inner_no_alloc
def fill_gains(form: int, parameters: Floats, gains: Floats) -> None:
    """Write the coefficients of both pairs (level, season), 7 each, in the order

        of z, e in x';  of x, z, e in z';  1 if p0 affects x;  1 if z is used.

    All are 0 for a pair that the form lacks.
    """
    for index in range(14):
        gains[index] = 0.0
    for pair in range(2):
        p0, p1, offset = parameters[2 * pair], parameters[2 * pair + 1], 7 * pair
        if pair == 1 and form == PARTIAL:
            gains[offset + 1], gains[offset + 5] = p0, 1.0
        elif form >= PARTIAL or form == pair:  # NONE has only the first pair, SIMPLE the second
            gains[offset], gains[offset + 1] = p1 - 1.0, p0 - p1
            gains[offset + 2], gains[offset + 3], gains[offset + 4] = 1.0, 1.0 - p0, p0 + p1
            gains[offset + 5], gains[offset + 6] = 1.0, 1.0


@inner_no_alloc
def set_initial_states(values: Floats, form: int, seasonal_index: Floats, level: Floats, season: Floats) -> None:
    """Write heuristic states: the mean of the first values and the seasonal indices; 0 for a missing pair.

    The season of SIMPLE starts at the first values themselves. If all first values are missing, the
    first observed one is the mean.
    """
    period, n_values = len(seasonal_index), len(values)
    n_first = period
    sum_of_values, n_observed = 0.0, 0.0
    if form == NONE and n_first < MIN_LEVEL_VALUES:
        n_first = MIN_LEVEL_VALUES
    for t in range(n_values):
        if (t < n_first or n_observed == 0.0) and not math.isnan(values[t]):
            sum_of_values, n_observed = sum_of_values + values[t], n_observed + 1.0
    mean = sum_of_values / n_observed
    level[0] = 0.0 if form == SIMPLE else mean
    level[1] = level[0] / IMAGINARY_RATIO
    for phase in range(period):
        value = 0.0 if form == NONE else seasonal_index[phase]
        if form == SIMPLE:
            value = values[phase] if phase < n_values else mean
            if math.isnan(value):
                value = mean
        season[phase, 0], season[phase, 1] = value, 0.0 if form == PARTIAL else value / IMAGINARY_RATIO


@inner_no_alloc
def _step(level: Floats, season: Floats, gains: Floats, error: float) -> None:
    """Advance both pairs, given as (x, z), by one time step with this error."""
    x, z = level[0], level[1]
    level[0] = x + gains[0] * z + gains[1] * error
    level[1] = gains[2] * x + gains[3] * z + gains[4] * error
    x, z = season[0], season[1]
    season[0] = x + gains[7] * z + gains[8] * error
    season[1] = gains[9] * x + gains[10] * z + gains[11] * error


@inner_no_alloc
def _filter_steps(values: Floats, backward: bool, level: Floats, season: Floats, gains: Floats, fitted: Floats) -> None:
    """Filter all values, forward or `backward`, updating the states; write the one-step forecasts to `fitted`."""
    for n_done in range(len(values)):
        t = len(values) - 1 - n_done if backward else n_done
        phase = t % len(season)
        fitted[t] = level[0] + season[phase, 0]
        _step(level, season[phase], gains, 0.0 if math.isnan(values[t]) else values[t] - fitted[t])


@compiled_no_alloc
def _run_series(
    y: Floats,
    indptr: Ints,
    forms: Ints,
    parameters: Floats,
    seasonal_index: Floats,
    level: Floats,
    season: Floats,
    workspace: Workspace,
) -> None:
    """Run the recursion for each series, see `_run_recursion`.

    Backcasting: forward, one step without error, backward, one step without error.
    """
    gains, zero_state, fitted = workspace
    backcasting = seasonal_index.shape[1] > 0
    for i in range(len(forms)):
        begin, end = indptr[i], indptr[i + 1]
        fill_gains(forms[i], parameters[i], gains)
        if backcasting:
            set_initial_states(y[begin:end], forms[i], seasonal_index[i], level[i], season[i])
        for direction in range(2 if backcasting else 1):
            _filter_steps(y[begin:end], direction == 1, level[i], season[i], gains, fitted[begin:end])
            if not backcasting:
                continue
            _step(level[i], zero_state[0], gains, 0.0)  # one extra step without error before turning
            for phase in range(seasonal_index.shape[1]):
                _step(zero_state[1], season[i, phase], gains, 0.0)
