"""Whether series have a season, and what it is: the test of the M competitions and classical decomposition, for many at once.

The values of the series follow each other, `lengths` of each; those of a season are counted from the first step ahead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import warn
from deepforecast.models.baselines._arrays import segment_reduce

CRITICAL_VALUE = 1.645  # two-sided 90 %
MIN_INDEX = 0.01  # of a multiplicative season; below it an additive one is taken, as R's forecTheta does


def seasonal_indices(y: Floats, indptr: Ints, season: int, decomposition: str, min_seasons: int) -> tuple[Floats, Any]:
    """The season of each series (series, places), and whether it is to be added, not multiplied: 1 where there is none.

    kind: "additive", "multiplicative" (but additive where values are not all above 0), "auto" (also where an index is near 0).
    needed: how many seasons long a series must be to be tested, at least 2.
    """
    lengths, is_observed, y = np.diff(indptr), ~np.isnan(y), interpolate(y, indptr)
    index = np.ones((len(lengths), season))
    has_season = (lengths >= min_seasons * season) & (season > 1)
    has_season[has_season] = is_seasonal(y[np.repeat(has_season, lengths)], lengths[has_season], season)
    additive = has_season & ((segment_reduce(y, indptr[:-1], indptr[1:], np.minimum) <= 0) | (decomposition == "additive"))

    def fill_indices(selected: Any, is_additive: bool) -> None:
        rows = np.repeat(selected, lengths)
        if rows.any():
            indices, _ = decompose(y[rows], lengths[selected], season, additive=is_additive, is_observed=is_observed[rows])
            index[selected] = np.where(np.isfinite(indices).all(axis=1, keepdims=True), indices, 0.0 if is_additive else 1.0)

    fill_indices(has_season & ~additive, False)
    if decomposition == "auto":
        additive |= index.min(axis=1) < MIN_INDEX
    fill_indices(additive, True)
    return index, additive


def warn_short_series(panel: Panel, season: int, model_name: str, min_observations: int, counts: Ints | None = None) -> None:
    """Name, in one warning for the panel, the series that `model_name` forecasts without their season: those of fewer than `min_observations`
    values (`counts`: other numbers than those of the rows). Nothing where there is no season to be found."""
    short = np.flatnonzero((panel.lengths if counts is None else counts) < min_observations)
    if season > 1 and len(short):
        warn(
            f"{model_name}: a season of {season} steps needs {min_observations} values to be told from the rest; series "
            f"{panel.series.labels(short)} has fewer and goes without it. Give longer ones, or a smaller season_length."
        )


def is_seasonal(y: Floats, lengths: Ints, season: int) -> Any:
    """The M4 organisers' test: |r_m| beyond 1.645 * sqrt((1 + 2 * sum of r_k^2 for k < m) / n)."""
    end = np.cumsum(lengths)
    start = end - lengths
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = y - np.repeat(y[start], lengths)  # around a value first, so that a constant stays one
        deviations -= np.repeat(segment_reduce(deviations, start, end) / lengths, lengths)
        _, exponent = np.frexp(segment_reduce(np.abs(deviations), start, end, np.maximum))
        deviations = np.ldexp(deviations, -np.repeat(exponent, lengths))  # near 1, so that squares neither overflow nor vanish
        variance = segment_reduce(deviations * deviations, start, end)
        variance[variance == 0] = np.inf  # a constant has no season
        correlation, squares = np.zeros(len(end)), np.zeros(len(end))
        for lag in range(1, season + 1):
            squares += correlation**2  # of the lags before
            correlation = segment_reduce(deviations[lag:] * deviations[:-lag], start, np.maximum(end - lag, start)) / variance
        return np.abs(correlation) > CRITICAL_VALUE * np.sqrt((1 + 2 * squares) / lengths)


def decompose(
    y: Floats, lengths: Ints, season: int, *, additive: bool = False, is_observed: Any = None
) -> tuple[Floats, Floats]:
    """Indices (series, places) by classical decomposition: averages of what goes with the centred moving average, 1 (or 0) in
    the mean; and that of each row. `is_observed`: rows that count for the averages; NaN where a place has none."""
    half, position = season // 2, np.arange(len(y)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
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
    slots, n_slots = slot[rows], len(lengths) * season
    with np.errstate(invalid="ignore"):
        index = (np.bincount(slots, seasonal_part, n_slots) / np.bincount(slots, minlength=n_slots)).reshape(-1, season)
    mean = index.mean(axis=1, keepdims=True)
    index = index - mean if additive else index / mean
    return index, index.reshape(-1)[slot]


def interpolate(y: Floats, indptr: Ints) -> Floats:
    """Missing values on straight lines between their neighbours, level before the first and after the last."""
    missing = np.isnan(y)
    if not missing.any():
        return y
    interpolated = y.copy()
    rows = np.arange(len(y))
    previous = np.maximum.accumulate(np.where(missing, -1, rows))
    following = np.minimum.accumulate(np.where(missing, len(y), rows)[::-1])[::-1]
    series = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[missing]
    previous, following = previous[missing], following[missing]
    previous = np.where(previous < indptr[series], following, previous)
    following = np.where(following >= indptr[series + 1], previous, following)
    weight = (rows[missing] - previous) / np.maximum(following - previous, 1)
    interpolated[missing] = y[previous] + weight * (y[following] - y[previous])
    return interpolated
