"""The last season goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.baselines._arrays import Observed, by_phase, root_mean_square
from deepforecast.models.baselines._base import Baseline, every_phase_seen, resolved_season, rotated


@register
class SeasonalNaive(Baseline):
    """Forecast the value of one season ago: last Monday's for Monday, last May's for May.

    Interval: sigma * sqrt(k + 1), k the whole seasons before the step, sigma the root mean square of the changes from season to
    season (Hyndman & Athanasopoulos, *Forecasting: Principles and Practice*, 3rd ed., 5.5). A missing value is replaced by that of
    a season earlier, and the interval widens as if the season had passed.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=6), "y": [1.0, 2.0, 3.0, 2.0, 3.0, 4.0]})
    >>> SeasonalNaive(horizon=3, season_length=3).fit(frame).predict()
              ds  SeasonalNaive
    0 2024-01-07            2.0
    1 2024-01-08            3.0
    2 2024-01-09            4.0
    """

    season_length: int | str = param("auto", at_least=1, choices=("auto",), positional=True, help="steps after which the season repeats")

    def _needs(self, panel: Panel) -> int:
        return resolved_season(self.season_length, panel, self)

    def _fit(self, panel: Panel, monitor: Any) -> Learned:
        length = resolved_season(self.season_length, panel, self)
        if panel.missing().any():
            season, age, deviation = _looking_past(panel, length)
        else:
            season, age = panel.padded(length), np.zeros((len(panel), length))
            changes = panel.y[length:] - panel.y[:-length]
            deviation = root_mean_square(changes, panel.indptr[:-1], np.maximum(panel.indptr[1:] - length, panel.indptr[:-1]))
        return Learned({"season": every_phase_seen(season, panel, self), "age": age, "deviation": deviation})

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        length = learned["season"].shape[1]
        season, age = _last_season(panel.y, panel.indptr, length)
        if fresh:
            every_phase_seen(season, panel, self)
        passed = -(-(panel.lengths[:, None] - np.arange(length)) // length)  # seasons gone by at each phase of the old state
        old_age = rotated(learned["age"] + passed, panel.lengths)
        none = np.isnan(season)
        season = np.where(none, rotated(learned["season"], panel.lengths), season)
        return Learned({**learned.by_series, "season": season, "age": np.where(none, old_age, age)})

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        season = learned["season"]
        level = season[:, :1] + np.mean(season - season[:, :1], axis=1, keepdims=True)
        values = season[:, np.arange(steps) % season.shape[1]]
        return {"level": np.repeat(level, steps, axis=1), "season": values - level}

    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Any:
        from deepforecast.core.forecast import NormalForecast

        values = learned["season"][:, np.arange(steps) % learned["season"].shape[1]]  # as they were: level + season would round
        return NormalForecast(values, self._spread(learned, steps) * learned["deviation"][:, None])

    def _spread(self, learned: Learned, steps: int) -> Floats:
        length = learned["season"].shape[1]
        ahead = np.arange(steps)
        return np.sqrt(ahead // length + 1 + learned["age"][:, ahead % length])

    def _paths(self, learned: Learned, common: Floats, shocks: Floats) -> Floats:
        length = learned["season"].shape[1]
        paths = np.array(shocks)
        paths[..., :length] *= np.sqrt(1 + learned["age"][:, None, : paths.shape[-1]])
        for step in range(length, paths.shape[-1]):
            paths[..., step] += paths[..., step - length]
        return paths


def _last_season(y: Floats, indptr: Ints, length: int) -> tuple[Floats, Floats]:
    """The last value seen at each phase and how many seasons ago beyond the last; NaN where there is none."""
    values, groups = by_phase(y, indptr, length)
    season, age = Observed(values, groups).last() if len(values) else (np.full(len(groups) - 1, np.nan), np.zeros(len(groups) - 1))
    return season.reshape(-1, length), age.reshape(-1, length)


def _looking_past(panel: Panel, length: int) -> tuple[Floats, Floats, Floats]:
    """Season, age and deviation where values are missing: every phase is a series of its own."""
    values, groups = by_phase(panel.y, panel.indptr, length)
    seen = Observed(values, groups)
    season, age = seen.last()
    changes, rows = seen.steps()
    inside = np.ones(len(changes), dtype=bool)
    inside[(seen.bounds[1:-1] - 1)[(seen.bounds[1:-1] > 0) & (seen.bounds[1:-1] <= len(changes))]] = False
    scaled = (changes / np.sqrt(rows) if rows is not None else changes)[inside]
    bounds = np.concatenate([[0], np.cumsum(np.maximum(seen.count - 1, 0))])[::length]
    deviation = root_mean_square(scaled, bounds[:-1], bounds[1:])
    return season.reshape(-1, length), age.reshape(-1, length), deviation
