"""The last value goes on."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from deepforecast.core.monitor import Monitor
from deepforecast.core.registry import register
from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._arrays import Observed
from deepforecast.models.baselines._base import Baseline


@register
class Naive(Baseline):
    """Forecast the last value. The best there is for a random walk, and the yardstick of every other method.

    Interval: sigma * sqrt(h), sigma the root mean square of the one-step changes (Hyndman & Athanasopoulos, *Forecasting:
    Principles and Practice*, 3rd ed., 5.5). Missing values are looked past; a change over k rows counts with variance k.

    Measured coverage of 80 % intervals at defaults: M1 yearly 46 %, M1 quarterly 64 %, M1 monthly
    87 %, M4 hourly (100 series) 82 %, NN5 daily 99 % (benchmarks/bench_coverage.py).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=4), "y": [1.0, 3.0, 2.0, 4.0]})
    >>> print(Naive(horizon=2).fit(frame).predict(level=80).set_index("ds").round(2).reset_index().to_string(index=False))
            ds  Naive  Naive-lo-80  Naive-hi-80
    2024-01-05    4.0         1.78         6.22
    2024-01-06    4.0         0.86         7.14
    """

    coverage_process: ClassVar[str] = "random_walk"

    def _fit(self, panel: Panel, monitor: Monitor) -> Learned:
        seen = Observed(panel.y, panel.indptr)
        last, age = seen.last()
        return Learned({"last": last, "age": age, "deviation": seen.step_deviation()})

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        return moved_last(learned, panel)

    def _mean(self, learned: Learned, steps: int) -> Floats:
        return np.repeat(learned["last"][:, None], steps, axis=1)

    def _spread(self, learned: Learned, steps: int) -> Floats:
        return np.asarray(np.sqrt(learned["age"][:, None] + np.arange(1, steps + 1)))

    def _paths(self, learned: Learned, common: Floats, shocks: Floats) -> Floats:
        return np.asarray(np.sqrt(learned["age"])[:, None, None] * common + np.cumsum(shocks, axis=-1))

    def _common_draws(self, learned: Learned) -> int:
        return 1


def moved_last(learned: Learned, panel: Panel) -> Learned:
    """`last` and `age`, the rows passed since, at the end of more rows; they may hold no value."""
    last, age = Observed(panel.y, panel.indptr).last()
    none = np.isnan(last)
    last = np.where(none, learned["last"], last)
    return Learned({**learned.by_series, "last": last, "age": np.where(none, learned["age"] + panel.lengths, age)})
