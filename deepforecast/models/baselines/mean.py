"""The mean of the past goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast.core.registry import register
from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._arrays import Observed, means, root_mean_square, spread_over
from deepforecast.models.baselines._base import Baseline


@register
class Mean(Baseline):
    """Forecast the mean of all values. The best there is for noise around a constant.

    Interval: sigma * sqrt(1 + 1 / T), sigma over T - 1 degrees of freedom (Hyndman & Athanasopoulos, *Forecasting: Principles and
    Practice*, 3rd ed., 5.5). `update` moves the mean on; sigma stays.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=4), "y": [1.0, 3.0, 2.0, 4.0]})
    >>> Mean(horizon=1).fit(frame).predict()
              ds  Mean
    0 2024-01-05   2.5
    """

    def _fit(self, panel: Panel, monitor: Any) -> Learned:
        seen = Observed(panel.y, panel.indptr)
        mean = means(seen.values, seen.begin, seen.end)
        away = seen.values - spread_over(mean, seen.begin, seen.end, len(seen.values))
        deviation = root_mean_square(away, seen.begin, seen.end, lost=1)
        return Learned({"mean": mean, "count": seen.count.astype(np.float64), "deviation": deviation})

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        seen = Observed(panel.y, panel.indptr)
        mean = means(seen.values, seen.begin, seen.end)
        if fresh:
            return Learned({**learned.by_series, "mean": mean, "count": seen.count.astype(np.float64)})
        count = learned["count"] + seen.count
        moved = learned["mean"] + np.where(seen.count > 0, (mean - learned["mean"]) * (seen.count / count), 0.0)
        return Learned({**learned.by_series, "mean": moved, "count": count})

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        return {"level": np.repeat(learned["mean"][:, None], steps, axis=1)}

    def _spread(self, learned: Learned, steps: int) -> Floats:
        return np.repeat(np.sqrt(1 + 1 / learned["count"])[:, None], steps, axis=1)

    def _paths(self, learned: Learned, common: Floats, shocks: Floats) -> Floats:
        return common / np.sqrt(learned["count"])[:, None, None] + shocks
