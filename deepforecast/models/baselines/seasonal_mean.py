"""The seasonal mean method."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from deepforecast.core.arrays import ObservedValues, segment_means, segment_rms, split_phases
from deepforecast.core.monitor import Monitor
from deepforecast.core.registry import register
from deepforecast.core.seasonality import resolve_season, rotate_season
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._base import Seasonal
from deepforecast.models.baselines.mean import pool_means


@register
class SeasonalMean(Seasonal):
    """Forecast the mean of all past values of the same season: of all Mondays, or of all Mays.

    Interval: sigma * sqrt(1 + 1 / K), with K the number of values in that mean and sigma over T - m
    degrees of freedom, the formula of the mean method with one mean for each of the m seasons.
    Missing values are left out. `update` moves the means; sigma stays.

    Measured coverage of 80 % intervals at defaults: M1 yearly 17 %, M1 quarterly 35 %, M1 monthly
    55 %, M4 hourly (100 series) 63 %, NN5 daily 83 % (benchmarks/bench_coverage.py).

    See Also
    --------
    SeasonalNaive : Last value of the same season.

    References
    ----------
    Hyndman, R. J. and Athanasopoulos, G. (2021). *Forecasting: Principles and Practice*, 3rd ed.,
    section 5.5. https://otexts.com/fpp3/

    Examples
    --------
    >>> import pandas as pd
    >>> y = [1.0, 3.0, 2.0, 4.0]
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=4), "y": y})
    >>> SeasonalMean(horizon=2, season_length=2).fit(frame).predict()
              ds  SeasonalMean
    0 2024-01-05           1.5
    1 2024-01-06           3.5
    """

    coverage_process: ClassVar[str] = "seasonal_noise"

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        """Mean (season) and number of values (count) of each phase, (series, phases), and sigma."""
        length = resolve_season(self.season_length, panel, self, "season_length")
        observed = ObservedValues(*split_phases(panel.y, panel.indptr, length))
        season = segment_means(observed.values, observed.begin, observed.end)
        with np.errstate(over="ignore", invalid="ignore"):
            deviations = observed.values - np.repeat(season, observed.count)
        bounds = observed.bounds[::length]
        deviation = segment_rms(deviations, bounds[:-1], bounds[1:], ddof=length)
        count = observed.count.astype(np.float64).reshape(-1, length)
        return LearnedState(
            {"season": self._require_complete(season.reshape(-1, length), panel), "count": count, "deviation": deviation}
        )

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        """The state with means of the new rows alone or, unless `from_start`, pooled with the previous means."""
        length = learned["season"].shape[1]
        observed = ObservedValues(*split_phases(panel.y, panel.indptr, length))
        season = segment_means(observed.values, observed.begin, observed.end).reshape(-1, length)
        count = observed.count.astype(np.float64).reshape(-1, length)
        if from_start:
            season = self._require_complete(season, panel)
        else:
            previous = rotate_season(learned["season"], panel.lengths), rotate_season(learned["count"], panel.lengths)
            season, count = pool_means(*previous, season, count)
        return LearnedState({**learned.by_series, "season": season, "count": count})

    def _min_observations_for_spread(self, learned: LearnedState) -> int:
        return 1 + int(learned["season"].shape[1])  # one more than the number of means

    def _mean(self, learned: LearnedState, steps: int) -> Floats:
        return np.asarray(learned["season"][:, np.arange(steps) % learned["season"].shape[1]])

    def _deviation_factor(self, learned: LearnedState, steps: int) -> Floats:
        return np.asarray(np.sqrt(1 + 1 / learned["count"][:, np.arange(steps) % learned["count"].shape[1]]))

    def _path_errors(self, learned: LearnedState, shared_draws: Floats, shocks: Floats) -> Floats:
        phase = np.arange(shocks.shape[-1]) % learned["count"].shape[1]
        mean_error = shared_draws / np.sqrt(learned["count"])[:, None, :]  # the same error recurs in each season
        return np.asarray(shocks + mean_error[..., phase])

    def _n_shared_draws(self, learned: LearnedState) -> int:
        return int(learned["count"].shape[1])  # the error of the mean of each phase
