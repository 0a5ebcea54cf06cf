"""Seasonality test of the M competitions and classical decomposition, for many series at once.

`y` is the concatenation of all series; phase 0 of a season is that of the first step ahead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.core.arrays import segment_reduce
from deepforecast.core.forecaster import Forecaster
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.frequency import season_length
from deepforecast.data.panel import Panel, fill_missing
from deepforecast.errors import ParameterError, warn

CRITICAL_VALUE = 1.645  # two-sided 90 %
MIN_INDEX = 0.01  # smallest multiplicative index; below it the decomposition is additive, as in R's forecTheta


def seasonal_indices(y: Floats, indptr: Ints, season: int, decomposition: str, min_seasons: int) -> tuple[Floats, Any]:
    """Seasonal indices (series, phases), all 1 if non-seasonal, and whether they are additive (series,).

    Parameters
    ----------
    y, indptr
        Values of all series and their row pointers; missing values are interpolated.
    season
        Seasonal period in time steps.
    decomposition : {"additive", "multiplicative", "auto"}
        "multiplicative" falls back to additive for series with values of 0 or less, "auto" also if
        an index is near 0.
    min_seasons : int
        Number of seasons, at least 2, from which on a series is tested.
    """
    lengths = np.diff(indptr)
    is_observed = ~np.isnan(y)
    y = fill_missing(y, indptr, "interpolate")
    index = np.ones((len(lengths), season))
    has_season = (lengths >= min_seasons * season) & (season > 1)
    has_season[has_season] = is_seasonal(y[np.repeat(has_season, lengths)], lengths[has_season], season)
    additive = has_season & ((segment_reduce(y, indptr[:-1], indptr[1:], np.minimum) <= 0) | (decomposition == "additive"))

    def fill_indices(selected: Any, is_additive: bool) -> None:
        """Set the indices of the selected series; neutral ones (0 or 1) if some cannot be computed."""
        rows = np.repeat(selected, lengths)
        if rows.any():
            indices, _ = decompose(y[rows], lengths[selected], season, additive=is_additive, is_observed=is_observed[rows])
            index[selected] = np.where(np.isfinite(indices).all(axis=1, keepdims=True), indices, 0.0 if is_additive else 1.0)

    fill_indices(has_season & ~additive, False)
    if decomposition == "auto":
        additive |= index.min(axis=1) < MIN_INDEX
    fill_indices(additive, True)
    return index, additive


def warn_short_series(panel: Panel, season: int, model_name: str, min_observations: int, n_values: Ints | None = None) -> None:
    """Warn once of all series that are too short for their season and are modelled as non-seasonal.

    `n_values`: number of values per series, if it is not the number of rows. No warning if `season` is 1.
    """
    short = np.flatnonzero((panel.lengths if n_values is None else n_values) < min_observations)
    if season > 1 and len(short):
        warn(
            f"{model_name}: season_length={season} requires at least {min_observations} values per series; shorter series are "
            f"modelled as non-seasonal: {panel.series.labels(short)}. Pass longer series, or set a smaller season_length.",
            subject=model_name,
        )


def is_seasonal(y: Floats, lengths: Ints, season: int) -> Any:
    """Whether each series is seasonal by the test of the M4 organisers, with Bartlett's standard error.

    |r_m| > 1.645 sqrt((1 + 2 sum_{k<m} r_k^2) / n), where r_k is the autocorrelation at lag k and m the season.
    """
    end = np.cumsum(lengths)
    start = end - lengths
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = y - np.repeat(y[start], lengths)  # relative to a value first: exact for constants
        deviations -= np.repeat(segment_reduce(deviations, start, end) / lengths, lengths)
        _, exponent = np.frexp(segment_reduce(np.abs(deviations), start, end, np.maximum))
        deviations = np.ldexp(deviations, -np.repeat(exponent, lengths))  # near 1: squares neither overflow nor underflow
        variance = segment_reduce(deviations * deviations, start, end)
        variance[variance == 0] = np.inf  # constants are non-seasonal
        correlation = np.zeros(len(end))
        squares = np.zeros(len(end))  # sum of r_k^2 for k < lag
        for lag in range(1, season + 1):
            squares += correlation**2
            correlation = segment_reduce(deviations[lag:] * deviations[:-lag], start, np.maximum(end - lag, start)) / variance
        return np.abs(correlation) > CRITICAL_VALUE * np.sqrt((1 + 2 * squares) / lengths)


def decompose(
    y: Floats, lengths: Ints, season: int, *, additive: bool = False, is_observed: Any = None
) -> tuple[Floats, Floats]:
    """Seasonal indices of the classical decomposition: (series, phases), and the index of each row.

    An index is the mean ratio (additive: difference) of the values to their centred moving average
    over the rows `is_observed`, normalized to mean 1 (additive: 0) over the phases; NaN if a phase
    has no such row. Phase 0 is that of the first step ahead.
    """
    half = season // 2
    position = np.arange(len(y)) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # row number within the series
    weights = np.full(season + 1 - season % 2, 1.0 / season)
    if season % 2 == 0:
        weights[[0, -1]] /= 2
    trend = np.zeros(len(y) - len(weights) + 1)
    for lag, weight in enumerate(weights):
        trend += weight * y[lag : lag + len(trend)]
    row_length = np.repeat(lengths, lengths)
    slot = np.repeat(np.arange(len(lengths)) * season, lengths) + (position - row_length) % season
    has_trend = (position >= half) & (position < row_length - half)
    rows = np.flatnonzero(has_trend if is_observed is None else has_trend & is_observed)
    seasonal_part = y[rows] - trend[rows - half] if additive else y[rows] / trend[rows - half]
    slots = slot[rows]
    n_slots = len(lengths) * season
    with np.errstate(invalid="ignore"):
        index = (np.bincount(slots, seasonal_part, n_slots) / np.bincount(slots, minlength=n_slots)).reshape(-1, season)
    mean = index.mean(axis=1, keepdims=True)
    index = index - mean if additive else index / mean
    return index, index.reshape(-1)[slot]


def resolve_season(season: Any, panel: Panel, model: Forecaster, name: str) -> int:
    """Number of time steps per season; "auto": that of the frequency.

    `ParameterError` for "auto" with integer time; `name` is that of the parameter in the message.
    """
    if season != "auto":
        return int(season)
    frequency = panel.series.calendar.frequency
    if not frequency.base:
        raise ParameterError(
            f"{model.name}: {name}='auto' cannot be inferred from integer time.",
            hint=f"Pass {name} as a number of steps (1: non-seasonal).",
        )
    return season_length(frequency)


def rotate_season(season: Floats, n_rows: Ints) -> Floats:
    """Rotate the seasons (series, phases) by `n_rows[i]` steps, so that phase 0 is again the first step ahead."""
    length = season.shape[1]
    return np.take_along_axis(season, (np.arange(length) + n_rows[:, None]) % length, axis=1)
