"""The naive method."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from deepforecast.core.arrays import ObservedValues
from deepforecast.core.monitor import Monitor
from deepforecast.core.registry import register
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._base import Baseline


@register
class Naive(Baseline):
    """Forecast the last value: optimal for a random walk, and the usual benchmark.

    Interval: sigma * sqrt(h), with sigma the root mean square of the one-step changes. Missing
    values are skipped; a change over k steps counts with variance k.

    Measured coverage of 80 % intervals at defaults: M1 yearly 46 %, M1 quarterly 64 %, M1 monthly
    87 %, M4 hourly (100 series) 82 %, NN5 daily 99 % (benchmarks/bench_coverage.py).

    See Also
    --------
    SeasonalNaive : Last value of the same season.
    Drift : Last value plus the mean change per step.

    References
    ----------
    Hyndman, R. J. and Athanasopoulos, G. (2021). *Forecasting: Principles and Practice*, 3rd ed.,
    section 5.5. https://otexts.com/fpp3/

    Examples
    --------
    >>> import pandas as pd
    >>> y = [1.0, 3.0, 2.0, 4.0]
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=4), "y": y})
    >>> print(Naive(horizon=2).fit(frame).predict(level=80).set_index("ds").round(2).reset_index().to_string(index=False))
            ds  Naive  Naive-lo-80  Naive-hi-80
    2024-01-05    4.0         1.78         6.22
    2024-01-06    4.0         0.86         7.14
    """

    coverage_process: ClassVar[str] = "random_walk"

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        observed = ObservedValues(panel.y, panel.indptr)
        last, age = observed.last()
        return LearnedState({"last": last, "age": age, "deviation": observed.step_deviation()})

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        return update_last(learned, panel)

    def _mean(self, learned: LearnedState, steps: int) -> Floats:
        return np.repeat(learned["last"][:, None], steps, axis=1)

    def _deviation_factor(self, learned: LearnedState, steps: int) -> Floats:
        return np.asarray(np.sqrt(learned["age"][:, None] + np.arange(1, steps + 1)))

    def _path_errors(self, learned: LearnedState, shared_draws: Floats, shocks: Floats) -> Floats:
        return np.asarray(np.sqrt(learned["age"])[:, None, None] * shared_draws + np.cumsum(shocks, axis=-1))

    def _n_shared_draws(self, learned: LearnedState) -> int:
        return 1  # the error of the random walk since the last value


def update_last(learned: LearnedState, panel: Panel) -> LearnedState:
    """The state with `last` (last value) and `age` (number of rows since then) after new rows, which may all be missing."""
    last, age = ObservedValues(panel.y, panel.indptr).last()
    is_missing = np.isnan(last)
    last = np.where(is_missing, learned["last"], last)
    return LearnedState({**learned.by_series, "last": last, "age": np.where(is_missing, learned["age"] + panel.lengths, age)})
