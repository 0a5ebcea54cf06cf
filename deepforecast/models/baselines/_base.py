"""What the baselines share: closed forms over the whole panel at once, normal intervals from one residual deviation a series.

Baseline        the forecast `_mean`, its errors `_spread` (standard deviations) and `_paths` (samples), both over the deviation
└── Seasonal    has a `season_length`; its forecast is taken apart into level and season
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast, NormalForecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.noise import standard_normal
from deepforecast.core.params import param
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.frequency import season_length
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError


class Baseline(Forecaster):
    """A closed form. `learned["deviation"]` is the residual deviation of each series, NaN where no residual tells it.

    Intervals take that deviation for the true one, as the formulae do: with fewer than about 30 residuals they are narrower
    than they say. `Conformal(model)` makes no such assumption, and refuses a level its errors cannot carry.
    """

    capabilities = Capabilities(
        missing=True, distribution="analytic", simulates=True, explains=True, scale_equivariant=True, shift_equivariant=True,
        new_values="followed",
    )  # fmt: skip

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by name on its way out
            return NormalForecast(self._mean(learned, steps), self._deviation_factor(learned, steps) * learned["deviation"][:, None])

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        n_shared = self._n_shared_draws(learned)
        state = np.column_stack([np.asarray(array, np.float64) for _, array in sorted(learned.by_series.items())])
        draws = standard_normal(seed, state, (n_shared + steps, samples)).swapaxes(1, 2)  # by step: a longer path goes on
        errors = self._path_errors(learned, draws[..., :n_shared], draws[..., n_shared:])
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self._mean(learned, steps)[:, None, :] + learned["deviation"][:, None, None] * errors)

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        return {"level": self._mean(learned, steps)}

    def _min_observations_for_spread(self, learned: LearnedState) -> int:
        return 2  # two values make the first residual

    def _mean(self, learned: LearnedState, steps: int) -> Floats:
        """The forecast, shape (series, steps)."""
        raise NotImplementedError

    def _deviation_factor(self, learned: LearnedState, steps: int) -> Floats:
        """Standard deviations of the error of each step over the residual deviation, shape (series or 1, steps)."""
        raise NotImplementedError

    def _path_errors(self, learned: LearnedState, shared_draws: Floats, shocks: Floats) -> Floats:
        """Errors of sample paths from standard normal draws: `shared_draws` to a path (series, samples, draws) and one a step."""
        raise NotImplementedError

    def _n_shared_draws(self, learned: LearnedState) -> int:
        """How many draws the steps of a path share."""
        return 0


class Seasonal(Baseline):
    """A baseline that knows a season. `_level` is what its season goes around."""

    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1, help="steps after which the season repeats"
    )

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        mean = self._mean(learned, steps)
        level = np.repeat(self._level(learned)[:, None], steps, axis=1)
        season = mean - level
        return {"level": level, "season": season + (mean - (level + season))}  # the sum is the forecast, as far as digits go

    def _level(self, learned: LearnedState) -> Floats:
        season = learned["season"]
        return np.asarray(season[:, 0] + np.mean(season - season[:, :1], axis=1))

    def _min_observations(self, panel: Panel) -> int:
        return resolve_season(self.season_length, panel, self, "season_length")

    def _require_complete(self, season: Floats, panel: Panel) -> Floats:
        """`season` (series, places), or a `DataError` that names the series with a place no value was seen at."""
        is_unobserved = np.isnan(season)
        if is_unobserved.any():
            series = np.flatnonzero(is_unobserved.any(axis=1))
            labels, n_lacking = panel.series.labels(series), int(is_unobserved[series[0]].sum())
            problem = f"{labels} have places without one: the first, {panel.series.label(series[0])}, has none at {n_lacking}"
            raise DataError(
                f"{self.name} needs a value at each of the {season.shape[1]} places of its season (season_length); series "
                f"{problem if len(series) > 1 else f'{labels} has none at {n_lacking}'} of them. Give longer series, a smaller "
                "season_length, or missing='interpolate'."
            )
        return season


def resolve_season(season: Any, panel: Panel, model: Forecaster, name: str) -> int:
    """A number of steps, with "auto" by the frequency's table; `name` is the parameter's."""
    if season != "auto":
        return int(season)
    frequency = panel.series.calendar.frequency
    if not frequency.base:
        raise ParameterError(
            f"{model.name}: {name}='auto' follows from dates; integer time has no season to infer. Give {name} (1 for none)."
        )
    return season_length(frequency)


def rotate_season(season: Floats, rows: Ints) -> Floats:
    """Seasons (series, places) after `rows[i]` more rows: place 0 stays that of the first step ahead."""
    length = season.shape[1]
    return np.take_along_axis(season, (np.arange(length) + rows[:, None]) % length, axis=1)
