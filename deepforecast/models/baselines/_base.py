"""What the baselines share: closed forms over the whole panel at once, normal intervals from one residual deviation a series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.forecast import Forecast, NormalForecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.noise import standard_normal
from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.frequency import season_length
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError

CLOSED_FORM = Capabilities(
    missing=True, distribution="analytic", simulates=True, explains=True, scale_equivariant=True, shift_equivariant=True
)


class Baseline(Forecaster):
    """A closed form. A subclass gives `_explain` (components, whose sum is the forecast), `_spread` and `_paths` (its errors)."""

    capabilities = CLOSED_FORM

    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        parts = list(self._explain(learned, steps, future).values())
        mean = parts[0] if len(parts) == 1 else np.sum(parts, axis=0)
        return NormalForecast(mean, self._spread(learned, steps) * learned["deviation"][:, None])

    def _simulate(self, learned: Learned, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        mean = self._forecast(learned, steps, future).mean
        common = self._common_draws(learned)
        noise = standard_normal(seed, mean, (samples, common + steps))
        return mean[:, None, :] + learned["deviation"][:, None, None] * self._paths(learned, noise[..., :common], noise[..., common:])

    def _spread(self, learned: Learned, steps: int) -> Floats:
        """Standard deviations of the error of each step over the residual deviation, shape (series or 1, steps)."""
        raise NotImplementedError

    def _paths(self, learned: Learned, common: Floats, shocks: Floats) -> Floats:
        """Errors of sample paths from standard normal draws: `common` to a path (series, samples, draws) and one a step."""
        raise NotImplementedError

    def _common_draws(self, learned: Learned) -> int:
        """How many draws the steps of a path share."""
        return 1


def resolved_season(season: Any, panel: Panel, model: Forecaster) -> int:
    """`season_length`, with "auto" by the frequency's table."""
    if season != "auto":
        return int(season)
    if not panel.calendar.frequency.base:
        raise ParameterError(f"{model.name}: integer time has no season to infer. Give season_length (1 for none).")
    return season_length(panel.calendar.frequency)


def every_phase_seen(season: Floats, panel: Panel, model: Forecaster) -> Floats:
    """`season` (series, phases), or a `DataError` that names the series with a phase no value was seen of."""
    unseen = np.flatnonzero(np.isnan(season).any(axis=1))
    if len(unseen):
        raise DataError(
            f"{model.name} needs a value at each of {season.shape[1]} places of the season; series {panel.series.labels(unseen)} has none "
            f"at {int(np.isnan(season[unseen[0]]).sum())} of them. Give longer series, a smaller season_length, or missing='interpolate'."
        )
    return season


def rotated(season: Floats, rows: Any) -> Floats:
    """Seasons (series, phases) after `rows[i]` more rows: phase 0 stays that of the first step ahead."""
    length = season.shape[1]
    return np.take_along_axis(season, (np.arange(length) + np.asarray(rows)[:, None]) % length, axis=1)
