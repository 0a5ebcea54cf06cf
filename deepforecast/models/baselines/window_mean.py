"""The mean of the last few values goes on."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._arrays import Observed, root_mean_square
from deepforecast.models.baselines._base import Baseline, resolved_season


@register
class WindowMean(Baseline):
    """Forecast the mean of the last `window` values: a level that is believed for that long.

    Interval: sigma at every step, sigma the root mean square of the one-step errors of that very rule over the past, which hold
    both the noise and the error of the window's mean. Missing values are left out: the window then reaches further back.

    Measured coverage of 80 % intervals at defaults: M1 yearly 32 %, M1 quarterly 42 %, M1 monthly
    62 %, M4 hourly (100 series) 75 %, NN5 daily 76 % (benchmarks/bench_coverage.py).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=4), "y": [1.0, 3.0, 2.0, 4.0]})
    >>> WindowMean(horizon=1, window=2).fit(frame).predict()
              ds  WindowMean
    0 2024-01-05         3.0
    """

    coverage_process: ClassVar[str] = "white_noise"

    window: int | Literal["auto"] = param(
        default="auto", at_least=1, low=2, high=60, log=True, help="values averaged, or a season"
    )

    def _needs(self, panel: Panel) -> int:
        return resolved_season(self.window, panel, self, "window")

    def _fit(self, panel: Panel, monitor: Monitor) -> Learned:
        width = self._needs(panel)
        seen = Observed(panel.y, panel.indptr)
        wrong = _errors(seen.values, width)
        deviation = root_mean_square(wrong, seen.begin, np.maximum(seen.end - width, seen.begin))
        return Learned({"tail": _tail(seen, width), "deviation": deviation})

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        width = learned["tail"].shape[1]
        tail = _tail(Observed(panel.y, panel.indptr), width)
        count = np.sum(~np.isnan(tail), axis=1)[:, None]
        joined = np.concatenate([learned["tail"], tail], axis=1)
        place = np.arange(width)
        take = np.where(place < width - count, place + count, place + width)
        return Learned({**learned.by_series, "tail": np.take_along_axis(joined, take, axis=1)})

    def _needs_to_spread(self, learned: Learned) -> int:
        return 1 + int(learned["tail"].shape[1])

    def _mean(self, learned: Learned, steps: int) -> Floats:
        tail = learned["tail"]
        level = tail[:, -1] + np.mean(tail - tail[:, -1:], axis=1)  # around a value: exact for constants
        return np.repeat(level[:, None], steps, axis=1)

    def _spread(self, learned: Learned, steps: int) -> Floats:
        return np.ones((1, steps))

    def _paths(self, learned: Learned, common: Floats, shocks: Floats) -> Floats:
        width = learned["tail"].shape[1]
        return np.asarray((common / np.sqrt(width) + shocks) / np.sqrt(1 + 1 / width))

    def _common_draws(self, learned: Learned) -> int:
        return 1  # the error of the window's mean


def _errors(values: Floats, width: int) -> Floats:
    """What the rule misses each value after the first `width` by, in the flat array; around the value: exact for constants."""
    ahead = values[width:]
    total = np.zeros(len(ahead))
    with np.errstate(over="ignore", invalid="ignore"):
        for lag in range(width):
            total += values[lag : lag + len(ahead)] - ahead
    return total / width


def _tail(seen: Observed, width: int) -> Floats:
    """The last `width` values, NaN on the left where there are fewer."""
    if not len(seen.values):
        return np.full((len(seen.count), width), np.nan)
    place = seen.end[:, None] - width + np.arange(width)
    inside = place >= seen.begin[:, None]
    return np.where(inside, seen.values[np.where(inside, place, 0)], np.nan)
