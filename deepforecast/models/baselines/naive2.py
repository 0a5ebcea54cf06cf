"""The deseasonalised last value goes on: the benchmark of the M competitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._arrays import means, reduced, root_mean_square, spread_over
from deepforecast.models.baselines._base import Baseline, resolved_season, rotated

CRITICAL = 1.645  # two-sided 90 %
SEASONS_NEEDED = 3


@register
class Naive2(Baseline):
    """`Naive` on the seasonally adjusted series, as the organisers of the M4 competition define it.

    A series is adjusted if it has at least three seasons, positive values throughout, and an autocorrelation at the seasonal lag
    beyond its 90 % limit; the indices are those of a classical multiplicative decomposition. Otherwise it is forecast by `Naive`.
    Interval: that of `Naive` on the adjusted series, times the index.
    Reference: Makridakis, Spiliotis & Assimakopoulos (2020), The M4 Competition, *International Journal of Forecasting* 36.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=24), "y": 12 * [1.0, 3.0]})
    >>> Naive2(horizon=2, season_length=2).fit(frame).predict()
              ds  Naive2
    0 2024-01-25     1.0
    1 2024-01-26     3.0
    """

    capabilities = Capabilities(distribution="analytic", simulates=True, explains=True, scale_equivariant=True)

    season_length: int | str = param("auto", at_least=1, choices=("auto",), positional=True, help="steps after which the season repeats")

    def _fit(self, panel: Panel, monitor: Any) -> Learned:
        length = resolved_season(self.season_length, panel, self)
        index, phase = np.ones((len(panel), length)), _next_phase(panel, length)
        seasonal = np.flatnonzero(_is_seasonal(panel.y, panel.indptr, length)) if length > 1 else np.empty(0, np.int64)
        if len(seasonal):
            index[seasonal] = _indices(panel.take(seasonal), length)
        begin, end = panel.indptr[:-1], panel.indptr[1:]
        adjusted = panel.y / _index_of_rows(panel, index) if len(seasonal) else panel.y
        deviation = root_mean_square(np.diff(adjusted), begin, end - 1)
        return Learned({"last": adjusted[end - 1], "index": rotated(index, -phase), "phase": phase, "deviation": deviation})

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        index, phase = learned["index"], _next_phase(panel, learned["index"].shape[1])
        last = panel.y[panel.indptr[1:] - 1] / index[np.arange(len(index)), phase - 1]
        return Learned({**learned.by_series, "last": last, "phase": phase})

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        level = np.repeat(learned["last"][:, None], steps, axis=1)
        return {"level": level, "season": level * (self._index(learned, steps) - 1)}

    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Any:
        from deepforecast.core.forecast import NormalForecast

        mean = learned["last"][:, None] * self._index(learned, steps)
        return NormalForecast(mean, self._spread(learned, steps) * learned["deviation"][:, None])

    def _spread(self, learned: Learned, steps: int) -> Floats:
        return np.sqrt(np.arange(1, steps + 1)) * self._index(learned, steps)

    def _paths(self, learned: Learned, common: Floats, shocks: Floats) -> Floats:
        return np.cumsum(shocks, axis=-1) * self._index(learned, shocks.shape[-1])[:, None, :]

    @staticmethod
    def _index(learned: Learned, steps: int) -> Floats:
        length = learned["index"].shape[1]
        return np.take_along_axis(learned["index"], (learned["phase"][:, None] + np.arange(steps)) % length, axis=1)


def _next_phase(panel: Panel, length: int) -> Ints:
    """The place in the season of the first step ahead, counted on the calendar: histories may end anywhere."""
    return (panel.series.last // panel.calendar.step + 1) % length


def _is_seasonal(y: Floats, indptr: Ints, length: int) -> Any:
    """The organisers' test: |r_m| beyond 1.645 * sqrt((1 + 2 * sum of r_k^2 for k < m) / n)."""
    begin, end = indptr[:-1], indptr[1:]
    count = end - begin
    away = y - spread_over(means(y, begin, end), begin, end, len(y))
    largest = reduced(np.abs(away), begin, end, np.maximum)
    away = away / spread_over(np.where(largest > 0, largest, 1.0), begin, end, len(y))
    variance = reduced(away * away, begin, end)
    variance[variance == 0] = np.inf  # a constant has no season
    limit = np.ones(len(count))
    correlation = limit
    for lag in range(1, length + 1):
        if lag > 1:
            limit = limit + 2 * correlation**2
        correlation = reduced(away[lag:] * away[:-lag], begin, np.maximum(end - lag, begin)) / variance
    positive = reduced(y, begin, end, np.minimum) > 0
    return (count >= SEASONS_NEEDED * length) & positive & (np.abs(correlation) > CRITICAL * np.sqrt(limit / count))


def _indices(panel: Panel, length: int) -> Floats:
    """Multiplicative indices (series, phases) by classical decomposition; phase 0 is that of the first step ahead."""
    y, begin, end = panel.y, panel.indptr[:-1], panel.indptr[1:]
    half = length // 2
    weights = np.full(length + 1 - length % 2, 1.0 / length)
    if length % 2 == 0:
        weights[[0, -1]] /= 2
    rows = len(y) - len(weights) + 1
    trend = sum(weight * y[lag : lag + rows] for lag, weight in enumerate(weights))
    ratio = np.full(len(y), np.nan)
    ratio[half : half + rows] = y[half : half + rows] / trend
    into = np.arange(len(y)) - np.repeat(begin, end - begin)
    outside = (into < half) | (into >= np.repeat(end - begin, end - begin) - half)
    ratio[outside] = np.nan
    group = np.repeat(np.arange(len(begin)), end - begin) * length + (np.arange(len(y)) - np.repeat(end, end - begin)) % length
    kept = ~outside
    total = np.bincount(group[kept], weights=ratio[kept], minlength=len(begin) * length).reshape(-1, length)
    index = total / np.bincount(group[kept], minlength=len(begin) * length).reshape(-1, length)
    return np.asarray(index / index.mean(axis=1, keepdims=True))


def _index_of_rows(panel: Panel, index: Floats) -> Floats:
    """The index of each row's phase."""
    lengths = panel.lengths
    phase = (np.arange(len(panel.y)) - np.repeat(panel.indptr[1:], lengths)) % index.shape[1]
    return index[np.repeat(np.arange(len(panel)), lengths), phase]
