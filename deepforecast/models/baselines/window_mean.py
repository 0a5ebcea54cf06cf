"""The moving average method."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from deepforecast.core.arrays import ObservedValues, segment_rms
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.core.seasonality import resolve_season
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._base import Baseline


@register
class WindowMean(Baseline):
    """Forecast the mean of the last `window` values.

    Intervals have the same width at every step: sigma is the root mean square of the one-step errors
    of this rule on the history, which contain both the noise and the error of the window mean.
    Missing values are left out, so the window then reaches further back.

    Measured coverage of 80 % intervals at defaults: M1 yearly 32 %, M1 quarterly 42 %, M1 monthly
    62 %, M4 hourly (100 series) 75 %, NN5 daily 76 % (benchmarks/bench_coverage.py).

    See Also
    --------
    Mean : Mean of all values.

    Examples
    --------
    >>> import pandas as pd
    >>> y = [1.0, 3.0, 2.0, 4.0]
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=4), "y": y})
    >>> WindowMean(horizon=1, window=2).fit(frame).predict()
              ds  WindowMean
    0 2024-01-05         3.0
    """

    coverage_process: ClassVar[str] = "white_noise"

    window: int | Literal["auto"] = param(
        default="auto",
        at_least=1,
        low=2,
        high=60,
        log=True,
        help="number of last values that are averaged; 'auto': the season length inferred from the frequency",
    )

    def _min_observations(self, panel: Panel) -> int:
        return resolve_season(self.window, panel, self, "window")

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        """The values of the last window (tail), and the root mean square of the one-step errors."""
        width = self._min_observations(panel)
        observed = ObservedValues(panel.y, panel.indptr)
        errors = _one_step_errors(observed.values, width)
        deviation = segment_rms(errors, observed.begin, np.maximum(observed.end - width, observed.begin))
        return LearnedState({"tail": _last_values(observed, width), "deviation": deviation})

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        """The state with the last values after new rows; previous values fill up the window if there are too few."""
        width = learned["tail"].shape[1]
        tail = _last_values(ObservedValues(panel.y, panel.indptr), width)
        n_new = np.sum(~np.isnan(tail), axis=1)[:, None]
        joined = np.concatenate([learned["tail"], tail], axis=1)
        position = np.arange(width)
        # First the last previous values, then the new ones, which are at the end of `joined`.
        column = np.where(position < width - n_new, position + n_new, position + width)
        return LearnedState({**learned.by_series, "tail": np.take_along_axis(joined, column, axis=1)})

    def _min_observations_for_spread(self, learned: LearnedState) -> int:
        return 1 + int(learned["tail"].shape[1])  # for one one-step error

    def _mean(self, learned: LearnedState, steps: int) -> Floats:
        tail = learned["tail"]
        level = tail[:, -1] + np.mean(tail - tail[:, -1:], axis=1)  # relative to a value: exact for constants
        return np.repeat(level[:, None], steps, axis=1)

    def _deviation_factor(self, learned: LearnedState, steps: int) -> Floats:
        return np.ones((1, steps))

    def _path_errors(self, learned: LearnedState, shared_draws: Floats, shocks: Floats) -> Floats:
        width = learned["tail"].shape[1]
        return np.asarray((shared_draws / np.sqrt(width) + shocks) / np.sqrt(1 + 1 / width))

    def _n_shared_draws(self, learned: LearnedState) -> int:
        return 1  # the error of the mean of the window


def _one_step_errors(values: Floats, width: int) -> Floats:
    """Mean of the `width` values before each value, minus this value, for all values of the flat array but the first `width`.

    The first errors of a series include values of the previous series and must be left out. Exact for constants.
    """
    targets = values[width:]
    error_sums = np.zeros(len(targets))
    with np.errstate(over="ignore", invalid="ignore"):
        for offset in range(width):
            error_sums += values[offset : offset + len(targets)] - targets
    return error_sums / width


def _last_values(observed: ObservedValues, width: int) -> Floats:
    """The last `width` observed values of each series, (series, width), padded with NaN on the left."""
    if not len(observed.values):
        return np.full((len(observed.count), width), np.nan)
    row = observed.end[:, None] - width + np.arange(width)
    is_inside = row >= observed.begin[:, None]
    return np.where(is_inside, observed.values[np.where(is_inside, row, 0)], np.nan)
