"""Models that break a rule each, to be caught by their name and the rule's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast import Panel, register
from deepforecast.core.forecast import Forecast, PointForecast
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from dummy_forecasts.pooled import PooledRegression


@register
class Forgetful(PooledRegression):
    """Forgets the covariates known ahead."""

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        zeros = {name: Covariate(np.zeros_like(one.values), one.categories) for name, one in future.items()}
        return super()._forecast(learned, steps, zeros)


@register
class Restless(PooledRegression):
    """Another forecast every time it is asked."""

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        forecast = super()._forecast(learned, steps, future)
        return PointForecast(forecast.mean + np.random.default_rng().normal(size=forecast.mean.shape), self.name)


@register
class Headstrong(PooledRegression):
    """Changes a parameter of its own in fit."""

    def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
        self.lags = 5
        return super()._fit(panel, monitor)
