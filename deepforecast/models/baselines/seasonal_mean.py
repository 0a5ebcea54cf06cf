"""The mean of each place in the season goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._arrays import Observed, by_phase, means, root_mean_square, spread_over
from deepforecast.models.baselines._base import Baseline, every_phase_seen, resolved_season, rotated


@register
class SeasonalMean(Baseline):
    """Forecast the mean of all past values at the same place in the season: of all Mondays, of all Mays.

    Interval: sigma * sqrt(1 + 1 / K), K the values behind that mean, sigma over T - m degrees of freedom: the mean's formula of
    Hyndman & Athanasopoulos, *Forecasting: Principles and Practice*, 3rd ed., 5.5, with one mean a place.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=4), "y": [1.0, 3.0, 2.0, 4.0]})
    >>> SeasonalMean(horizon=2, season_length=2).fit(frame).predict()
              ds  SeasonalMean
    0 2024-01-05           1.5
    1 2024-01-06           3.5
    """

    season_length: int | str = param("auto", at_least=1, choices=("auto",), positional=True, help="steps after which the season repeats")

    def _needs(self, panel: Panel) -> int:
        return resolved_season(self.season_length, panel, self)

    def _fit(self, panel: Panel, monitor: Any) -> Learned:
        length = resolved_season(self.season_length, panel, self)
        values, groups = by_phase(panel.y, panel.indptr, length)
        seen = Observed(values, groups)
        season = means(seen.values, seen.begin, seen.end)
        every_phase_seen(season.reshape(-1, length), panel, self)
        away = seen.values - spread_over(season, seen.begin, seen.end, len(seen.values))
        bounds = seen.bounds[::length]
        deviation = root_mean_square(away, bounds[:-1], bounds[1:], lost=length)
        count = seen.count.astype(np.float64).reshape(-1, length)
        return Learned({"season": season.reshape(-1, length), "count": count, "deviation": deviation})

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        length = learned["season"].shape[1]
        values, groups = by_phase(panel.y, panel.indptr, length)
        seen = Observed(values, groups)
        mean, new = means(seen.values, seen.begin, seen.end).reshape(-1, length), seen.count.reshape(-1, length)
        if fresh:
            every_phase_seen(mean, panel, self)
            return Learned({**learned.by_series, "season": mean, "count": new.astype(np.float64)})
        season, count = rotated(learned["season"], panel.lengths), rotated(learned["count"], panel.lengths)
        season = season + np.where(new > 0, (mean - season) * (new / (count + new)), 0.0)
        return Learned({**learned.by_series, "season": season, "count": count + new})

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        season = learned["season"]
        level = season[:, :1] + np.mean(season - season[:, :1], axis=1, keepdims=True)
        return {"level": np.repeat(level, steps, axis=1), "season": season[:, np.arange(steps) % season.shape[1]] - level}

    def _spread(self, learned: Learned, steps: int) -> Floats:
        return np.sqrt(1 + 1 / learned["count"][:, np.arange(steps) % learned["count"].shape[1]])

    def _paths(self, learned: Learned, common: Floats, shocks: Floats) -> Floats:
        place = np.arange(shocks.shape[-1]) % learned["count"].shape[1]
        return shocks + (common / np.sqrt(learned["count"])[:, None, :])[..., place]  # the error of a place's mean comes round with it

    def _common_draws(self, learned: Learned) -> int:
        return int(learned["count"].shape[1])
