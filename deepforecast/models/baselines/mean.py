"""The mean of the past goes on."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from deepforecast.core.monitor import Monitor
from deepforecast.core.registry import register
from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._arrays import Observed, means, root_mean_square
from deepforecast.models.baselines._base import Baseline


@register
class Mean(Baseline):
    """Forecast the mean of all values. The best there is for noise around a constant.

    Interval: sigma * sqrt(1 + 1 / T), sigma over T - 1 degrees of freedom, times the normal quantile (Hyndman & Athanasopoulos,
    *Forecasting: Principles and Practice*, 3rd ed., 5.5; R's `meanf` takes the quantile of Student's t with T - 1 degrees of
    freedom, which is wider for short series). Missing values are left out. `update` moves the mean on; sigma stays.

    Measured coverage of 80 % intervals at defaults: M1 yearly 17 %, M1 quarterly 34 %, M1 monthly
    54 %, M4 hourly (100 series) 75 %, NN5 daily 77 % (benchmarks/bench_coverage.py).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=4), "y": [1.0, 3.0, 2.0, 4.0]})
    >>> Mean(horizon=1).fit(frame).predict()
              ds  Mean
    0 2024-01-05   2.5
    """

    coverage_process: ClassVar[str] = "white_noise"

    def _fit(self, panel: Panel, monitor: Monitor) -> Learned:
        seen = Observed(panel.y, panel.indptr)
        mean = means(seen.values, seen.begin, seen.end)
        with np.errstate(over="ignore", invalid="ignore"):
            away = seen.values - np.repeat(mean, seen.count)
        deviation = root_mean_square(away, seen.begin, seen.end, lost=1)
        return Learned({"mean": mean, "count": seen.count.astype(np.float64), "deviation": deviation})

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        seen = Observed(panel.y, panel.indptr)
        mean, count = means(seen.values, seen.begin, seen.end), seen.count.astype(np.float64)
        if not fresh:
            mean, count = pooled(learned["mean"], learned["count"], mean, count)
        return Learned({**learned.by_series, "mean": mean, "count": count})

    def _mean(self, learned: Learned, steps: int) -> Floats:
        return np.repeat(learned["mean"][:, None], steps, axis=1)

    def _spread(self, learned: Learned, steps: int) -> Floats:
        return np.repeat(np.sqrt(1 + 1 / learned["count"])[:, None], steps, axis=1)

    def _paths(self, learned: Learned, common: Floats, shocks: Floats) -> Floats:
        return np.asarray(common / np.sqrt(learned["count"])[:, None, None] + shocks)

    def _common_draws(self, learned: Learned) -> int:
        return 1  # the error of the mean


def pooled(mean: Floats, count: Floats, new_mean: Floats, new_count: Floats) -> tuple[Floats, Floats]:
    """Mean and count of two sets of values together; the second may be empty. A constant stays exact."""
    total = count + new_count
    return mean + np.where(new_count > 0, (new_mean - mean) * (new_count / total), 0.0), total
