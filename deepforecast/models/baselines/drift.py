"""The line through the first and the last value goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from deepforecast.core.monitor import Monitor
from deepforecast.core.registry import register
from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._arrays import Observed, reduced, root_mean_square
from deepforecast.models.baselines._base import Baseline
from deepforecast.models.baselines.naive import moved_last


@register
class Drift(Baseline):
    """Forecast the last value plus the average change a step: a random walk with drift.

    Interval: sigma * sqrt(h * (1 + h / (T - 1))), sigma over the T - 2 degrees of freedom that the drift leaves (Hyndman &
    Athanasopoulos, *Forecasting: Principles and Practice*, 3rd ed., 5.5; R's `rwf` divides by T - 1 for the noise, by T - 2 for
    the drift). Missing values are looked past; a change over k rows counts with variance k. `update` moves the last value;
    drift and sigma stay.

    Measured coverage of 80 % intervals at defaults: M1 yearly 57 %, M1 quarterly 67 %, M1 monthly
    87 %, M4 hourly (100 series) 83 %, NN5 daily 99 % (benchmarks/bench_coverage.py).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=4), "y": [1.0, 3.0, 2.0, 4.0]})
    >>> Drift(horizon=2).fit(frame).predict()
              ds  Drift
    0 2024-01-05    5.0
    1 2024-01-06    6.0
    """

    coverage_process: ClassVar[str] = "random_walk_with_drift"

    def _needs(self, panel: Panel) -> int:
        return 2

    def _fit(self, panel: Panel, monitor: Monitor) -> Learned:
        seen = Observed(panel.y, panel.indptr)
        last, age = seen.last()
        changes, rows = seen.steps()
        begin, end = seen.step_bounds()
        span = (end - begin).astype(np.float64) if rows is None else reduced(rows, begin, end)
        with np.errstate(over="ignore", invalid="ignore"):
            slope = (last - seen.values[seen.begin]) / span
            expected = np.repeat(slope, seen.count)[1:]
            wrong = changes - expected if rows is None else (changes - expected * rows) / np.sqrt(rows)
        deviation = root_mean_square(wrong, begin, end, lost=1)
        return Learned({"last": last, "age": age, "slope": slope, "span": span, "deviation": deviation})

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        return moved_last(learned, panel)

    def _needs_to_spread(self, learned: Learned) -> int:
        return 3

    def _mean(self, learned: Learned, steps: int) -> Floats:
        away = self._ahead_of_last(learned, steps)
        return np.asarray(learned["last"][:, None] + learned["slope"][:, None] * away)

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        level = np.repeat(learned["last"][:, None], steps, axis=1)
        return {"level": level, "trend": learned["slope"][:, None] * self._ahead_of_last(learned, steps)}

    def _spread(self, learned: Learned, steps: int) -> Floats:
        away = self._ahead_of_last(learned, steps)
        return np.asarray(np.sqrt(away * (1 + away / learned["span"][:, None])))

    def _paths(self, learned: Learned, common: Floats, shocks: Floats) -> Floats:
        away = self._ahead_of_last(learned, shocks.shape[-1])[:, None, :]
        slope_error = common[..., :1] * away / np.sqrt(learned["span"])[:, None, None]
        walked = common[..., 1:] * np.sqrt(learned["age"])[:, None, None]
        return np.asarray(slope_error + walked + np.cumsum(shocks, axis=-1))

    def _common_draws(self, learned: Learned) -> int:
        return 2  # the error of the drift, and the walk since the last value

    @staticmethod
    def _ahead_of_last(learned: Learned, steps: int) -> Floats:
        return np.asarray(learned["age"][:, None] + np.arange(1, steps + 1))
