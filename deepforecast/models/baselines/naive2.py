"""Naive2, the seasonally adjusted naive method of the M competitions."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from deepforecast.core.arrays import blocks, segment_reduce, segment_rms
from deepforecast.core.monitor import Monitor
from deepforecast.core.registry import Capabilities, register
from deepforecast.core.seasonality import decompose, is_seasonal, resolve_season
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._base import Seasonal

MIN_CYCLES = 3  # number of seasons from which on a series is tested for seasonality


@register
class Naive2(Seasonal):
    """`Naive` on the seasonally adjusted series, the benchmark of the M4 competition.

    A series is adjusted if it has at least three seasons, only positive values, and an
    autocorrelation at the seasonal lag beyond its 90 % limit; the indices are those of a classical
    multiplicative decomposition. Otherwise it is forecast by `Naive`. (The organisers' script
    computes the autocorrelation only up to lag 10 log10(T), R's default, and takes shorter series
    as non-seasonal; here a season of any length is tested. In M4 that makes no difference.)

    Interval: that of `Naive` on the adjusted series, multiplied by the seasonal index. `update` moves the last
    value; indices and sigma stay.

    Measured coverage of 80 % intervals at defaults: M1 yearly 46 %, M1 quarterly 54 %, M1 monthly
    85 %, M4 hourly (100 series) 86 %, NN5 daily 99 % (benchmarks/bench_coverage.py).

    See Also
    --------
    Naive : The same without seasonal adjustment.

    References
    ----------
    Makridakis, S., Spiliotis, E. and Assimakopoulos, V. (2020). The M4 competition: 100,000 time
    series and 61 forecasting methods. *International Journal of Forecasting* 36.
    doi:10.1016/j.ijforecast.2019.04.014

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=24), "y": 12 * [1.0, 3.0]})
    >>> Naive2(horizon=2, season_length=2).fit(frame).predict()
              ds  Naive2
    0 2024-01-25     1.0
    1 2024-01-26     3.0
    """

    coverage_process: ClassVar[str] = "seasonally_adjusted_random_walk"

    capabilities = Capabilities(distribution="analytic", simulates=True, explains=True, scale_equivariant=True)

    def _min_observations(self, panel: Panel) -> int:
        return 1  # shorter series are forecast without a season

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        """The last adjusted value, the seasonal indices by calendar phase, the phase of the first step ahead, and sigma."""
        length = resolve_season(self.season_length, panel, self, "season_length")
        last = np.empty(len(panel))
        deviation = np.empty(len(panel))
        index = np.empty((len(panel), length))
        for chunk, y, indptr in blocks(panel.y, panel.indptr):
            adjusted, index[chunk] = _seasonally_adjust(y, indptr, length)
            last[chunk] = adjusted[indptr[1:] - 1]
            with np.errstate(over="ignore"):
                changes = np.diff(adjusted)
            deviation[chunk] = segment_rms(changes, indptr[:-1], indptr[1:] - 1)
        phase = (panel.series.last // panel.series.calendar.step + 1) % length  # of the first step ahead, by its time
        index = np.take_along_axis(index, (np.arange(length) - phase[:, None]) % length, axis=1)
        return LearnedState({"last": last, "index": index, "phase": phase, "deviation": deviation})

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        index = learned["index"]
        phase = (panel.series.last // panel.series.calendar.step + 1) % index.shape[1]  # `panel` may end at any phase
        last = panel.y[panel.indptr[1:] - 1] / index[np.arange(len(index)), phase - 1]
        return LearnedState({**learned.by_series, "last": last, "phase": phase})

    def _mean(self, learned: LearnedState, steps: int) -> Floats:
        return np.asarray(learned["last"][:, None] * _future_index(learned, steps))

    def _level(self, learned: LearnedState) -> Floats:
        return np.asarray(learned["last"])

    def _deviation_factor(self, learned: LearnedState, steps: int) -> Floats:
        return np.sqrt(np.arange(1, steps + 1)) * _future_index(learned, steps)

    def _path_errors(self, learned: LearnedState, shared_draws: Floats, shocks: Floats) -> Floats:
        return np.asarray(np.cumsum(shocks, axis=-1) * _future_index(learned, shocks.shape[-1])[:, None, :])


def _future_index(learned: LearnedState, steps: int) -> Floats:
    """Seasonal index of each step ahead, (series, steps)."""
    length = learned["index"].shape[1]
    return np.take_along_axis(learned["index"], (learned["phase"][:, None] + np.arange(steps)) % length, axis=1)


def _seasonally_adjust(y: Floats, indptr: Ints, length: int) -> tuple[Floats, Floats]:
    """Values divided by multiplicative seasonal indices, and the indices (series, phases), all 1 if non-seasonal.

    Phase 0 is that of the first step ahead.
    """
    lengths = np.diff(indptr)
    index = np.ones((len(lengths), length))
    has_season = (lengths >= MIN_CYCLES * length) & (length > 1)
    has_season &= segment_reduce(y, indptr[:-1], indptr[1:], np.minimum) > 0
    has_season[has_season] = is_seasonal(y[np.repeat(has_season, lengths)], lengths[has_season], length)
    rows = np.repeat(has_season, lengths)
    if rows.any():
        y = y.copy()
        index[has_season], row_index = decompose(y[rows], lengths[has_season], length)
        y[rows] /= row_index
    return y, index
