"""Forecasts far outside the history of their series: a `DataWarning` names these series.

A forecast is implausible if a 95 % prediction interval is wider than WIDEST times the range of the history, or if a point
forecast lies outside of it by more than FARTHEST times that range. Intervals of other levels are held against the width that a
normal distribution has there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.finite import finite
from deepforecast.core.forecast import SampledForecast, columns_of, level_probabilities
from deepforecast.data.frames import Floats, Ints
from deepforecast.errors import say

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.state import State
    from deepforecast.data.panel import Panel, Series

LIMITS = WIDEST, FARTHEST = 20.0, 3.0
ROUNDING = 1e-6
"""The range of a constant series, relative to its value: what optimisers and rounding leave."""
TINY = 1e-300  # the range of a series of zeros
LEAST_PATHS = 20
MOST_SHOWN = 1000


def value_range(panel: Panel, known: Floats | None = None, numbers: Ints | None = None) -> Floats:
    """The smallest and the largest value of each series, shape (series, 2).

    With `known`, those of another panel count too; `numbers` gives the row of each series there, -1 for a new one.
    """
    begin = panel.indptr[:-1]
    extremes = np.stack([np.fmin.reduceat(panel.y, begin), np.fmax.reduceat(panel.y, begin)], axis=1)
    if known is not None and numbers is not None:
        old = np.where(numbers[:, None] >= 0, known[numbers], np.nan)
        extremes[:, 0] = np.fmin(extremes[:, 0], old[:, 0])
        extremes[:, 1] = np.fmax(extremes[:, 1], old[:, 1])
    return extremes


def checked_columns(
    columns: Mapping[str, Floats], state: State, model: Forecaster, levels: Sequence[float], quantiles: Sequence[float]
) -> None:
    """Refuse forecasts that are not finite, and warn of the series whose forecasts are implausible.

    `columns` is what `columns_of` returns for these levels and quantiles.
    """
    for label, values in columns.items():
        if not np.isfinite(values).all():
            spread_of = None if label == model.name else model
            finite(values.reshape(len(state.series), -1), state, label, spread_of=spread_of)
    warn_of_far_forecasts(model.name, state.series, excess(columns, state.value_range, levels, quantiles))


def checked_paths(paths: Floats, state: State, model: Forecaster) -> Floats:
    """Sample paths, shape (series, samples, steps), flat; refused or warned of as forecasts with a 95 % interval are.

    From LEAST_PATHS on their means and quantiles tell what is implausible.
    """
    flat = finite(paths.reshape(len(state.series), -1), state, model.name, spread_of=model).reshape(-1)
    if state.value_range is not None and paths.shape[1] >= LEAST_PATHS:
        lowest, highest = state.value_range.T
        farthest = FARTHEST * (highest - lowest)
        outside = (paths.max(axis=(1, 2)) - highest > farthest) | (lowest - paths.min(axis=(1, 2)) > farthest)
        series = np.flatnonzero(outside)  # of the others neither limit can be broken
        if len(series):
            columns = columns_of(SampledForecast(paths[series]), model.name, "mean", [95.0], [])
            ratios = np.zeros((len(outside), 2))
            ratios[series] = excess(columns, state.value_range[series], [95.0])
            warn_of_far_forecasts(model.name, state.series, ratios)
    return flat


def excess(
    columns: Mapping[str, Floats], extremes: Floats | None, levels: Sequence[float], quantiles: Sequence[float] = ()
) -> Floats:
    """The widest 95 % interval and the farthest point of each series, in units of the range of its history; (series, 2).

    An interval of another level counts as one of 95 % that is as wide in relation to the limit. NaN where a forecast is NaN,
    and where the `extremes` are not known.
    """
    point, *others = columns.values()
    if extremes is None:
        return np.full((1, 2), np.nan)
    lowest, highest = extremes.T[:, :, None]
    shape = (len(highest), -1)
    with np.errstate(over="ignore", invalid="ignore"):
        extent = highest - lowest
        extent = np.where(extent > 0.0, extent, np.maximum(ROUNDING * np.abs(highest), TINY))
        steps = point.reshape(shape)
        distance = np.maximum(steps - highest, lowest - steps) / extent
        width = np.zeros_like(distance)
        for number, level in enumerate(levels):
            lower, upper = others[2 * number : 2 * number + 2]
            of_level = (upper - lower).reshape(shape) / extent
            width = np.maximum(width, of_level * (WIDEST / _widest(level_probabilities(level)[1])))
        for probability, values in zip(quantiles, others[2 * len(levels) :], strict=True):
            to_quantile = 2.0 * np.abs(values - point).reshape(shape) / extent
            width = np.maximum(width, to_quantile * (WIDEST / _widest(probability)))
    return np.asarray(np.stack([width, distance], axis=1).max(axis=2, initial=0.0))


def warn_of_far_forecasts(name: str, series: Series, ratios: Floats) -> None:
    """Warn of the series that break a limit, by what `excess` returned of them."""
    far = ratios > LIMITS
    numbers = np.flatnonzero(far.any(axis=1))
    if not len(numbers):
        return
    worst = [f"over {MOST_SHOWN:,}" if one > MOST_SHOWN else f"up to {one:.2g}" for one in np.nanmax(ratios, axis=0)]
    broken = [f"95 % intervals are {worst[0]} times as wide as its range"] if far[:, 0].any() else []
    broken += [f"points lie outside of it by {worst[1]} times its range"] if far[:, 1].any() else []
    say(
        f"{name}: forecasts of series {series.labels(numbers)} lie far outside the history: {' and '.join(broken)}. Use a "
        "shorter horizon or another model for these series."
    )


def _widest(probability: float) -> float:
    """The widest plausible central interval with an end at this quantile, in units of the range of the history."""
    ratio = abs(NormalDist().inv_cdf(probability)) / NormalDist().inv_cdf(0.975)
    return max(WIDEST * ratio, 2.0 * FARTHEST)
