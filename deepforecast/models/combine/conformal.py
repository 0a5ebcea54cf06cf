"""Calibrated intervals for any model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.conformal import METHODS, Calibration
from deepforecast.core.forecast import Forecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import SILENT, Monitor
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.core.rolling import errors
from deepforecast.core.state import Learned, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, quietly


@register
class Conformal(Forecaster):
    """Bands around another model's points, from the errors it made on rolling windows it was not fitted on.

    For each series and step the band of level L is the finite-sample L-quantile of the absolute errors at that step: it covers at
    least L % if errors to come are exchangeable with those. `method="adaptive"` follows the misses of the calibration windows and
    widens bands whose errors have grown (Gibbs & Candès 2021). A level that the number of errors cannot carry is refused.
    Reference: Lei, G'Sell, Rinaldo, Tibshirani & Wasserman (2018), Distribution-Free Predictive Inference for Regression.

    >>> from deepforecast import Naive, datasets
    >>> model = Conformal(Naive(), horizon=2).fit(datasets.load("air_passengers"))
    >>> list(model.predict(level=80).columns)
    ['unique_id', 'ds', 'Conformal', 'Conformal-lo-80', 'Conformal-hi-80']
    """

    capabilities = Capabilities(distribution="analytic")

    model: Forecaster = param(positional=True, help="the model whose points get bands")
    method: str = param("split", choices=METHODS, help="equal weight to all errors, or following the misses")
    n_windows: int | None = param(None, at_least=1, help="most calibration windows a series; all it has, up to 100, if not given")
    rate: float = param(0.05, above=0, at_most=1, help="how fast the adaptive miss rate moves")

    def _narrow(self, declared: Capabilities) -> Capabilities:
        inner = self.model.capabilities
        return replace(inner, distribution="analytic", learns_distribution=False)

    def _learn(self, panel: Panel, monitor: Monitor = SILENT) -> State:
        horizon = self.horizon or self.model.horizon
        if horizon is None:
            raise ParameterError("Conformal calibrates every step, so it needs a horizon: Conformal(model, horizon=...).")
        inner = self.model.clone(intervals=None, **self._own_missing())
        state = inner._learn(panel, monitor)
        prepared = replace(panel, series=state.series)
        with quietly():  # the fit itself has said what there is to say
            held = errors(inner, prepared, horizon, self.n_windows)
        return replace(state, calibration=Calibration(held, self.method, self.rate))

    def _own_missing(self) -> dict[str, Any]:
        return {} if self.missing == "auto" else {"missing": self.missing}

    def _needs(self, panel: Panel) -> int:
        return self.model._needs(panel)

    def _advance(self, learned: Learned, panel: Panel, fresh: bool) -> Learned:
        return self.model._advance(learned, panel, fresh)

    def _forecast(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        return self.model._forecast(learned, steps, future)

    def _simulate(self, learned: Learned, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        return self.model._simulate(learned, steps, samples, seed, future)

    def _explain(self, learned: Learned, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        return self.model._explain(learned, steps, future)

    def _refine(self, learned: Learned, panel: Panel) -> Learned:
        return self.model._refine(learned, panel)
