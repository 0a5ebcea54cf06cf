"""The line through the first and the last value goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast.core.registry import register
from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._arrays import Observed, reduced, root_mean_square, spread_over
from deepforecast.models.baselines._base import Baseline


@register
class Drift(Baseline):
    """Forecast the last value plus the average change a step: a random walk with drift.

    Interval: sigma * sqrt(h * (1 + h / (T - 1))), sigma over T - 2 degrees of freedom (Hyndman & Athanasopoulos, *Forecasting:
    Principles and Practice*, 3rd ed., 5.5).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=4), "y": [1.0, 3.0, 2.0, 4.0]})
    >>> Drift(horizon=2).fit(frame).predict()
              ds  Drift
    0 2024-01-05    5.0
    1 2024-01-06    6.0
    """

    def _needs(self, panel: Panel) -> int:
        return 2

    def _fit(self, panel: Panel, monitor: Any) -> Learned:
        seen = Observed(panel.y, panel.indptr)
        last, age = seen.last()
        changes, rows = seen.steps()
        begin, end = seen.step_bounds()
        span = (end - begin).astype(np.float64) if rows is None else reduced(rows, begin, end)
        slope = (last - seen.values[seen.begin]) / span
        expected = spread_over(slope, seen.begin, seen.end, len(seen.values))[1:]
        wrong = changes - expected if rows is None else (changes - expected * rows) / np.sqrt(rows)
        deviation = root_mean_square(wrong, begin, end, lost=1)
        return Learned({"last": last, "age": age, "slope": slope, "span": span, "deviation": deviation})

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        last, age = Observed(panel.y, panel.indptr).last()
        none = np.isnan(last)
        before = (learned["last"], learned["age"] + panel.lengths)
        return Learned({**learned.by_series, "last": np.where(none, before[0], last), "age": np.where(none, before[1], age)})

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        level = np.repeat(learned["last"][:, None], steps, axis=1)
        return {"level": level, "trend": learned["slope"][:, None] * self._ahead_of_last(learned, steps)}

    def _spread(self, learned: Learned, steps: int) -> Floats:
        away = self._ahead_of_last(learned, steps)
        return np.sqrt(away * (1 + away / learned["span"][:, None]))

    def _paths(self, learned: Learned, common: Floats, shocks: Floats) -> Floats:
        away = self._ahead_of_last(learned, shocks.shape[-1])[:, None, :]
        steps = np.arange(1, shocks.shape[-1] + 1)
        slope_error = np.sqrt((away - steps) + away**2 / learned["span"][:, None, None])  # age and slope: known to the path, not to us
        return slope_error * common + np.cumsum(shocks, axis=-1)

    @staticmethod
    def _ahead_of_last(learned: Learned, steps: int) -> Floats:
        return learned["age"][:, None] + np.arange(1, steps + 1)
