"""The deseasonalised last value goes on: the benchmark of the M competitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.monitor import Monitor
from deepforecast.core.registry import register
from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._arrays import blocks, gathered, means, reduced, root_mean_square_change
from deepforecast.models.baselines._base import Seasonal, rotated

CRITICAL = 1.645  # two-sided 90 %
SEASONS_NEEDED = 3


@register
class Naive2(Seasonal):
    """`Naive` on the seasonally adjusted series, as the organisers of the M4 competition define it.

    A series is adjusted if it has at least three seasons, positive values throughout, and an autocorrelation at the seasonal
    lag beyond its 90 % limit; the indices are those of a classical multiplicative decomposition. Otherwise it is forecast by
    `Naive`. (The organisers' script knows the autocorrelation only up to lag 10 log10(T), R's default, and takes a series too
    short for that as not seasonal; here the season is looked at whatever its length. In M4 that makes no difference.)
    Interval: that of `Naive` on the adjusted series, times the index. `update` moves the last value; indices and sigma stay.
    Reference: Makridakis, Spiliotis & Assimakopoulos (2020), The M4 Competition, *International Journal of Forecasting* 36.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=24), "y": 12 * [1.0, 3.0]})
    >>> Naive2(horizon=2, season_length=2).fit(frame).predict()
              ds  Naive2
    0 2024-01-25     1.0
    1 2024-01-26     3.0
    """

    capabilities = Capabilities(distribution="analytic", simulates=True, explains=True, scale_equivariant=True)

    def _fit(self, panel: Panel, monitor: Monitor) -> Learned:
        length = self._length(panel)
        last, index, deviation = np.empty(len(panel)), np.empty((len(panel), length)), np.empty(len(panel))
        for some, y, indptr in blocks(panel.y, panel.indptr):
            index[some] = _indices(y, indptr, length)
            adjusted = y / _by_row(index[some], indptr)
            last[some], deviation[some] = adjusted[indptr[1:] - 1], root_mean_square_change(adjusted, indptr, 1)
        phase = _next_phase(panel, length)
        return Learned({"last": last, "index": rotated(index, -phase), "phase": phase, "deviation": deviation})

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        index, phase = learned["index"], _next_phase(panel, learned["index"].shape[1])
        last = panel.y[panel.indptr[1:] - 1] / index[np.arange(len(index)), phase - 1]
        return Learned({**learned.by_series, "last": last, "phase": phase})

    def _mean(self, learned: Learned, steps: int) -> Floats:
        return np.asarray(learned["last"][:, None] * _ahead(learned, steps))

    def _level(self, learned: Learned) -> Floats:
        return np.asarray(learned["last"])

    def _spread(self, learned: Learned, steps: int) -> Floats:
        return np.sqrt(np.arange(1, steps + 1)) * _ahead(learned, steps)

    def _paths(self, learned: Learned, common: Floats, shocks: Floats) -> Floats:
        return np.asarray(np.cumsum(shocks, axis=-1) * _ahead(learned, shocks.shape[-1])[:, None, :])


def _ahead(learned: Learned, steps: int) -> Floats:
    """The index of each step ahead."""
    length = learned["index"].shape[1]
    return np.take_along_axis(learned["index"], (learned["phase"][:, None] + np.arange(steps)) % length, axis=1)


def _next_phase(panel: Panel, length: int) -> Ints:
    """The place in the season of the first step ahead, counted on the calendar: histories may end anywhere."""
    return np.asarray((panel.series.last // panel.calendar.step + 1) % length)


def _indices(y: Floats, indptr: Ints, length: int) -> Floats:
    """The season of each series (series, phases), all 1 where there is none; phase 0 is that of the first step ahead."""
    begin, end = indptr[:-1], indptr[1:]
    found = np.ones((len(begin), length))
    long = np.flatnonzero(end - begin >= SEASONS_NEEDED * length) if length > 1 else np.empty(0, np.int64)
    able = long[reduced(y, begin[long], end[long], np.minimum) > 0]
    seasonal = able[_correlated(*gathered(y, begin[able], end[able]), length)]
    if len(seasonal):
        found[seasonal] = _decomposed(*gathered(y, begin[seasonal], end[seasonal]), length)
    return found


def _correlated(y: Floats, indptr: Ints, length: int) -> Any:
    """The organisers' test: |r_m| beyond 1.645 * sqrt((1 + 2 * sum of r_k^2 for k < m) / n)."""
    begin, end = indptr[:-1], indptr[1:]
    count = end - begin
    with np.errstate(over="ignore", invalid="ignore"):
        away = y - np.repeat(means(y, begin, end), count)
        _, power = np.frexp(reduced(np.abs(away), begin, end, np.maximum))
        away = np.ldexp(away, -np.repeat(power, count))  # near 1, so that squares neither overflow nor vanish
        variance = reduced(away * away, begin, end)
        variance[variance == 0] = np.inf  # a constant has no season
        squares = np.zeros(len(count))
        for lag in range(1, length):
            squares += (_products(away, begin, end, lag) / variance) ** 2
        limit = CRITICAL * np.sqrt((1 + 2 * squares) / count)
        return np.abs(_products(away, begin, end, length) / variance) > limit


def _products(away: Floats, begin: Ints, end: Ints, lag: int) -> Floats:
    return np.asarray(reduced(away[lag:] * away[:-lag], begin, np.maximum(end - lag, begin)))


def _decomposed(y: Floats, indptr: Ints, length: int) -> Floats:
    """Multiplicative indices by classical decomposition."""
    lengths, half = np.diff(indptr), length // 2
    weights = np.full(length + 1 - length % 2, 1.0 / length)
    if length % 2 == 0:
        weights[[0, -1]] /= 2
    rows = len(y) - len(weights) + 1
    trend = sum(weight * y[lag : lag + rows] for lag, weight in enumerate(weights))
    into = np.arange(len(y)) - np.repeat(indptr[:-1], lengths)
    middle = np.flatnonzero((into >= half) & (into < np.repeat(lengths, lengths) - half))
    ratio = y[middle] / trend[middle - half]
    places = len(lengths) * length
    place = _place_of_rows(indptr, length)[middle]
    index = np.bincount(place, ratio, places) / np.bincount(place, minlength=places)
    index = index.reshape(-1, length)
    return np.asarray(index / index.mean(axis=1, keepdims=True))


def _by_row(index: Floats, indptr: Ints) -> Floats:
    """The index of each row's phase."""
    return np.asarray(index.reshape(-1)[_place_of_rows(indptr, index.shape[1])])


def _place_of_rows(indptr: Ints, length: int) -> Ints:
    """Series times `length` plus phase, for each row."""
    lengths = np.diff(indptr)
    into = np.arange(indptr[-1]) - np.repeat(indptr[1:], lengths)
    return np.asarray(np.repeat(np.arange(len(lengths)) * length, lengths) + into % length)
