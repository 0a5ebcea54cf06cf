"""Calibrated intervals for any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from deepforecast.core.calibration import pooled_errors, series_errors
from deepforecast.core.capabilities import Capabilities
from deepforecast.core.conformal import Calibration, Method
from deepforecast.core.forecast import Forecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.core.skops_objects import SkopsSerializer
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError


@register
class Conformal(Forecaster):
    """Bands around another model's points, from the errors it made on rolling windows it was not fitted on.

    For each series and step the band of level L is the finite-sample L-quantile of the absolute errors at that step: it
    covers at least L % if errors to come are exchangeable with those. `method="adaptive"` follows the misses of the
    calibration windows and widens bands whose errors have grown (Gibbs & Candès 2021); on few windows that costs some of the
    level (34 rows, no change at all: 76 % for 80). A level that the number of errors
    cannot carry is refused; `pool=True` shares the errors of all series, each over the mean absolute change of its series
    before the cutoff, so that many short series carry high levels: coverage then holds over all series that move, not for
    each (a constant one has no scale: its band has width 0, and its errors are not shared). Bands are those of the fit:
    `update` and `predict(frame=...)` move what they stand around, a new `fit` or `fine_tune` learns from new errors.
    Reference: Lei, G'Sell, Rinaldo, Tibshirani & Wasserman (2018), Distribution-Free Predictive Inference for Regression.

    Measured coverage of 80 % intervals with model=AutoETS(): M4 hourly (100 series) 86 %, NN5 daily
    89 % (benchmarks/bench_coverage.py).

    >>> from deepforecast import Naive, datasets
    >>> model = Conformal(Naive(), horizon=2).fit(datasets.load("air_passengers"))
    >>> list(model.predict(level=80).columns)
    ['unique_id', 'ds', 'Conformal', 'Conformal-lo-80', 'Conformal-hi-80']
    """

    coverage_process: ClassVar[str] = "process_of_model"

    capabilities = Capabilities(distribution="analytic")
    always_calibrates = True

    model: Forecaster = param(kw_only=False, help="the model whose points get bands")
    method: Method = param(
        default="split",
        help="equal weight to all errors, or following the misses",
    )
    n_windows: int | None = param(
        default=None, at_least=1,
        help="most windows a series; up to 100 (pool: 1000 in all) if not given",
    )
    adaptation_rate: float = param(
        default=0.05, above=0, at_most=1, help="how fast the adaptive miss rate moves",
    )
    pool: bool = param(default=False, help="share scaled errors among all series")

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """What the contract checks try: bands from a series' own errors, and from those of all."""
        return [{}, {"pool": True}]

    @property
    def default_horizon(self) -> int | None:
        """Its own, or that of the model."""
        return self.horizon or self.model.default_horizon

    @property
    def missing_method(self) -> str:
        """Its own, or that of the model."""
        return self.missing if self.missing != "auto" else self.model.missing_method

    @property
    def point_kind(self) -> str:
        """Its own, or that of the model."""
        return self.point if self.point != "auto" else self.model.point_kind

    def _narrow(self, declared: Capabilities) -> Capabilities:
        inner: Capabilities = self.model.capabilities
        if self.pool:
            inner = replace(inner, local=False, pooled=inner.by_series)
        return replace(inner, distribution="analytic", learns_distribution=False, simulates=False)

    def _inner(self) -> Forecaster:
        """The model as it is fitted here."""
        return self.model.clone(horizon=self.default_horizon, missing=self.missing_method, point=self.point_kind, intervals=None)

    def _calibrate(self, panel: Panel) -> Calibration:
        if self.default_horizon is None:
            raise ParameterError("Conformal calibrates every step, so it needs a horizon: Conformal(model, horizon=...).")
        if not self.pool:
            calibration = series_errors(self._inner(), panel, self.default_horizon, self.n_windows)
            return replace(calibration, method=self.method, rate=self.adaptation_rate)
        if self.method != "split":
            raise ParameterError(f"method={self.method!r} follows the misses of each series; pool=True is for method='split'.")
        return pooled_errors(self._inner(), panel, self.default_horizon, self.n_windows)

    def _min_observations(self, panel: Panel) -> int:
        return self._inner()._min_observations(panel)

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        return self._inner()._fit(panel, monitor)

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        return self._inner()._advance(learned, panel, fresh)

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        return self._inner()._forecast(learned, steps, future)

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        return self._inner()._explain(learned, steps, future)

    def _attention_maps(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Sequence[Any]:
        return self._inner()._attention_maps(learned, steps, future)

    def _serialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        return self._inner()._serialize(learned, foreign)

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        return self._inner()._deserialize(learned, foreign)

    def _fine_tune(self, learned: LearnedState, panel: Panel) -> LearnedState:
        return self._inner()._fine_tune(learned, panel)
