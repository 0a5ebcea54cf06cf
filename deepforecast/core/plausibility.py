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
from deepforecast.core.forecast import level_probabilities
from deepforecast.data.frames import Floats, Ints
from deepforecast.errors import say

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.state import State
    from deepforecast.data.panel import Panel

WIDEST, FARTHEST = 20.0, 3.0
ROUNDING = 1e-6
"""The range of a constant series, relative to its value: what optimisers and rounding leave."""


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
    if state.value_range is None:
        return
    (name, point), *others = columns.items()
    lowest, highest = state.value_range.T[:, :, None]
    steps = point.reshape(len(highest), -1)
    with np.errstate(over="ignore"):
        extent = highest - lowest
        extent = np.where(extent > 0.0, extent, ROUNDING * np.abs(highest))
        outside = np.maximum(steps - highest, lowest - steps) > FARTHEST * extent
        for number, level in enumerate(levels):
            (_, lower), (_, upper) = others[2 * number : 2 * number + 2]
            width = (upper - lower).reshape(steps.shape)
            outside |= width > _widest(level_probabilities(level)[1]) * extent
        for probability, (_, values) in zip(quantiles, others[2 * len(levels) :], strict=True):
            distance = np.abs(values - point).reshape(steps.shape)
            outside |= 2.0 * distance > _widest(probability) * extent
    series = np.flatnonzero(outside.any(axis=1))
    if len(series):
        say(
            f"{name}: forecasts of series {state.series.labels(series)} lie far outside the history: a 95 % interval is wider "
            f"than {WIDEST:g} times the range of the history, or a point lies outside of it by more than {FARTHEST:g} times "
            "that range. Use a shorter horizon or another model for these series."
        )


def _widest(probability: float) -> float:
    """The widest plausible central interval with an end at this quantile, in units of the range of the history."""
    ratio = abs(NormalDist().inv_cdf(probability)) / NormalDist().inv_cdf(0.975)
    return max(WIDEST * ratio, 2.0 * FARTHEST)
