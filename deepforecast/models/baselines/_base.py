"""Base classes of the baselines: closed forms with normal intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from deepforecast.core.forecast import Forecast, NormalForecast, seeded_normal
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import param
from deepforecast.core.registry import Capabilities
from deepforecast.core.seasonality import resolve_season
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError


class Baseline(Forecaster):
    """Base class of models in closed form, with one residual standard deviation per series.

    `learned["deviation"]` is this standard deviation, NaN if there are too few residuals. Prediction
    intervals assume that it is known: with fewer than about 30 residuals they are too narrow.
    `Conformal(model)` does not assume this.
    """

    capabilities = Capabilities(
        missing=True, distribution="analytic", simulates=True, explains=True, scale_equivariant=True, shift_equivariant=True,
        new_values="followed",
    )  # fmt: skip

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        with np.errstate(over="ignore", invalid="ignore"):  # `predict` refuses values that are not finite
            return NormalForecast(
                self._mean(learned, steps), self._deviation_factor(learned, steps) * learned["deviation"][:, None]
            )

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        """Sample paths (series, samples, steps), seeded by the learned state of each series."""
        n_shared = self._n_shared_draws(learned)
        state = np.column_stack([np.asarray(array, np.float64) for _, array in sorted(learned.by_series.items())])
        # Drawn step by step, so that paths of a longer horizon start with those of a shorter one.
        draws = seeded_normal(seed, state, (n_shared + steps, samples)).swapaxes(1, 2)
        errors = self._path_errors(learned, draws[..., :n_shared], draws[..., n_shared:])
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self._mean(learned, steps)[:, None, :] + learned["deviation"][:, None, None] * errors)

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        return {"level": self._mean(learned, steps)}

    def _min_observations_for_spread(self, learned: LearnedState) -> int:
        return 2  # for one residual

    def _mean(self, learned: LearnedState, steps: int) -> Floats:
        """Point forecasts, (series, steps)."""
        raise NotImplementedError

    def _deviation_factor(self, learned: LearnedState, steps: int) -> Floats:
        """Standard deviations of the forecast errors, divided by `deviation`: (series or 1, steps)."""
        raise NotImplementedError

    def _path_errors(self, learned: LearnedState, shared_draws: Floats, shocks: Floats) -> Floats:
        """Errors of sample paths, divided by `deviation`: (series, samples, steps).

        Both arguments are standard normal draws: `shared_draws` (series, samples, draws) are shared
        by all steps of a path, `shocks` (series, samples, steps) has one per step.
        """
        raise NotImplementedError

    def _n_shared_draws(self, learned: LearnedState) -> int:
        """Number of random draws that all steps of a path share, e.g. for the error of an estimated mean."""
        return 0


class Seasonal(Baseline):
    """Base class of seasonal baselines; the forecast is explained by level and season."""

    season_length: int | Literal["auto"] = param(
        default="auto", at_least=1,
        help="number of time steps per season; 'auto': inferred from the frequency of the data",
    )

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        """Level and deviation of the season from it; their sum equals the forecast without rounding error."""
        mean = self._mean(learned, steps)
        level = np.repeat(self._level(learned)[:, None], steps, axis=1)
        season = mean - level
        return {"level": level, "season": season + (mean - (level + season))}  # plus the rounding error of the sum

    def _level(self, learned: LearnedState) -> Floats:
        """Mean of the season of each series; relative to its first value, so that it is exact for constants."""
        season = learned["season"]
        return np.asarray(season[:, 0] + np.mean(season - season[:, :1], axis=1))

    def _min_observations(self, panel: Panel) -> int:
        return resolve_season(self.season_length, panel, self, "season_length")

    def _require_complete(self, season: Floats, panel: Panel) -> Floats:
        """Return `season` (series, phases); `DataError` if it is NaN at some phase, where a series has no value."""
        is_unobserved = np.isnan(season)
        if is_unobserved.any():
            series = np.flatnonzero(is_unobserved.any(axis=1))
            raise DataError(
                f"{self.name}: each series must have a value at each of the {season.shape[1]} steps of the season "
                f"(season_length); missing for series: {panel.series.labels(series)} ({is_unobserved[series[0]].sum()} of "
                f"{season.shape[1]} steps in {panel.series.label(series[0])}).",
                hint="Pass longer series, a smaller season_length, or "
                "missing='interpolate'.",
                series=panel.series.id_texts(series),
            )
        return season
