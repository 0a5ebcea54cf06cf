"""Whether series have a season, and what it is: the test of the M competitions and classical decomposition, for many at once.

The values of the series follow each other, `lengths` of each; those of a season are counted from the first step ahead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import say
from deepforecast.models.baselines._arrays import reduced

CRITICAL = 1.645  # two-sided 90 %
SMALLEST_INDEX = 0.01  # of a multiplicative season; below it an additive one is taken, as R's forecTheta does


def seasons(y: Floats, indptr: Ints, season: int, kind: str, needed: int) -> tuple[Floats, Any]:
    """The season of each series (series, places), and whether it is to be added, not multiplied: 1 where there is none.

    kind: "additive", "multiplicative" (but additive where values are not all above 0), "auto" (also where an index is near 0).
    needed: how many seasons long a series must be to be tested, at least 2.
    """
    lengths, seen, y = np.diff(indptr), ~np.isnan(y), filled(y, indptr)
    index = np.ones((len(lengths), season))
    found = (lengths >= needed * season) & (season > 1)
    found[found] = correlated(y[np.repeat(found, lengths)], lengths[found], season)
    additive = found & ((reduced(y, indptr[:-1], indptr[1:], np.minimum) <= 0) | (kind == "additive"))

    def put(some: Any, adds: bool) -> None:
        rows = np.repeat(some, lengths)
        if rows.any():
            here, _ = decomposed(y[rows], lengths[some], season, additive=adds, seen=seen[rows])
            index[some] = np.where(np.isfinite(here).all(axis=1, keepdims=True), here, 0.0 if adds else 1.0)

    put(found & ~additive, False)
    if kind == "auto":
        additive |= index.min(axis=1) < SMALLEST_INDEX
    put(additive, True)
    return index, additive


def say_short(panel: Panel, season: int, who: str, needed: int, counts: Ints | None = None) -> None:
    """Name, in one warning for the panel, the series that `who` forecasts without their season: those of fewer than `needed`
    values (`counts`: other numbers than those of the rows). Nothing where there is no season to be found."""
    short = np.flatnonzero((panel.lengths if counts is None else counts) < needed)
    if season > 1 and len(short):
        say(
            f"{who}: a season of {season} steps needs {needed} values to be told from the rest; series "
            f"{panel.series.labels(short)} has fewer and goes without it. Give longer ones, or a smaller season_length."
        )


def correlated(y: Floats, lengths: Ints, season: int) -> Any:
    """The M4 organisers' test: |r_m| beyond 1.645 * sqrt((1 + 2 * sum of r_k^2 for k < m) / n)."""
    end = np.cumsum(lengths)
    begin = end - lengths
    with np.errstate(over="ignore", invalid="ignore"):
        away = y - np.repeat(y[begin], lengths)  # around a value first, so that a constant stays one
        away -= np.repeat(reduced(away, begin, end) / lengths, lengths)
        _, power = np.frexp(reduced(np.abs(away), begin, end, np.maximum))
        away = np.ldexp(away, -np.repeat(power, lengths))  # near 1, so that squares neither overflow nor vanish
        variance = reduced(away * away, begin, end)
        variance[variance == 0] = np.inf  # a constant has no season
        correlation, squares = np.zeros(len(end)), np.zeros(len(end))
        for lag in range(1, season + 1):
            squares += correlation**2  # of the lags before
            correlation = reduced(away[lag:] * away[:-lag], begin, np.maximum(end - lag, begin)) / variance
        return np.abs(correlation) > CRITICAL * np.sqrt((1 + 2 * squares) / lengths)


def decomposed(
    y: Floats, lengths: Ints, season: int, *, additive: bool = False, seen: Any = None
) -> tuple[Floats, Floats]:
    """Indices (series, places) by classical decomposition: averages of what goes with the centred moving average, 1 (or 0) in
    the mean; and that of each row. `seen`: rows that count for the averages; NaN where a place has none."""
    half, into = season // 2, np.arange(len(y)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    weights = np.full(season + 1 - season % 2, 1.0 / season)
    if season % 2 == 0:
        weights[[0, -1]] /= 2
    trend = np.zeros(len(y) - len(weights) + 1)
    for lag, weight in enumerate(weights):
        trend += weight * y[lag : lag + len(trend)]
    own = np.repeat(lengths, lengths)
    place = np.repeat(np.arange(len(lengths)) * season, lengths) + (into - own) % season
    inside = (into >= half) & (into < own - half)
    middle = np.flatnonzero(inside if seen is None else inside & seen)
    part = y[middle] - trend[middle - half] if additive else y[middle] / trend[middle - half]
    at, places = place[middle], len(lengths) * season
    with np.errstate(invalid="ignore"):
        index = (np.bincount(at, part, places) / np.bincount(at, minlength=places)).reshape(-1, season)
    mean = index.mean(axis=1, keepdims=True)
    index = index - mean if additive else index / mean
    return index, index.reshape(-1)[place]


def filled(y: Floats, indptr: Ints) -> Floats:
    """Missing values on straight lines between their neighbours, level before the first and after the last."""
    missing = np.isnan(y)
    if not missing.any():
        return y
    found = y.copy()
    rows = np.arange(len(y))
    before = np.maximum.accumulate(np.where(missing, -1, rows))
    after = np.minimum.accumulate(np.where(missing, len(y), rows)[::-1])[::-1]
    series = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[missing]
    before, after = before[missing], after[missing]
    before = np.where(before < indptr[series], after, before)
    after = np.where(after >= indptr[series + 1], before, after)
    share = (rows[missing] - before) / np.maximum(after - before, 1)
    found[missing] = y[before] + share * (y[after] - y[before])
    return found
