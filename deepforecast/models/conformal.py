"""Conformal prediction intervals for any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from deepforecast.core.backtest import pooled_absolute_errors, series_errors
from deepforecast.core.conformal import Calibration, Method
from deepforecast.core.encoding import SkopsSerializer
from deepforecast.core.forecast import Forecast
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import SILENT, Monitor
from deepforecast.core.params import param
from deepforecast.core.registry import Capabilities, register
from deepforecast.core.state import LearnedState, State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, format_value


@register
class Conformal(Forecaster):
    """Conformal prediction intervals around the point forecasts of another model.

    The model is fitted on rolling windows, and its errors on the steps that follow each window are
    the calibration errors. For each series and step the interval of level L is the finite-sample
    L-quantile of the absolute errors at that step: it covers at least L % if future errors are
    exchangeable with the calibration errors. `method="adaptive"` widens intervals that missed
    recent calibration windows; with few windows it loses some coverage (34 observations without any
    change: 76 % for 80 %).

    A level that the number of errors cannot support is refused. `pool=True` shares the errors of
    all series, each divided by the mean absolute change of its series before the cutoff, so that
    many short series support high levels. Coverage then holds over all series that vary, not for
    each of them; a constant series has no scale, so its interval has width 0 and its errors are not
    shared.

    Interval widths are those of `fit`: `update` and `predict(frame=...)` only move the point
    forecasts; a new `fit` or `fine_tune` calibrates again.

    Measured coverage of 80 % intervals with model=AutoETS(): M4 hourly (100 series) 86 %, NN5 daily
    89 % (benchmarks/bench_coverage.py).

    References
    ----------
    Lei, J., G'Sell, M., Rinaldo, A., Tibshirani, R. J. and Wasserman, L. (2018). Distribution-free
    predictive inference for regression. *Journal of the American Statistical Association* 113.
    arXiv:1604.04173

    Gibbs, I. and Candès, E. (2021). Adaptive conformal inference under distribution shift.
    *NeurIPS*. arXiv:2106.00170

    Examples
    --------
    >>> from deepforecast import Naive, datasets
    >>> model = Conformal(Naive(), horizon=2).fit(datasets.load("air_passengers"))
    >>> list(model.predict(level=80).columns)
    ['unique_id', 'ds', 'Conformal', 'Conformal-lo-80', 'Conformal-hi-80']
    """

    coverage_process: ClassVar[str] = "process_of_model"

    capabilities = Capabilities(distribution="analytic")
    always_calibrates = True

    model: Forecaster = param(kw_only=False, help="model whose point forecasts get intervals")
    method: Method = param(
        default="split",
        help="'split': all calibration errors have equal weight; 'adaptive': intervals become wider after calibration "
        "windows that they did not cover, and narrower after the others",
    )
    n_windows: int | None = param(
        default=None,
        at_least=1,
        help="maximum number of calibration windows per series; None: 100 (pool=True: 1000 in total)",
    )
    adaptation_rate: float = param(
        default=0.05, above=0, at_most=1,
        help="step size (gamma) of the online update of the miscoverage level; method='adaptive' only",
    )
    pool: bool = param(
        default=False, help="whether all series share their calibration errors, each divided by the scale of its series"
    )

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Parameters for the contract checks: errors per series and pooled."""
        return [{}, {"pool": True}]

    @property
    def default_horizon(self) -> int | None:
        """`horizon`, or that of the inner model if it is None."""
        return self.horizon or self.model.default_horizon

    @property
    def missing_method(self) -> str:
        """`missing`, or that of the inner model if it is 'auto'."""
        return self.missing if self.missing != "auto" else self.model.missing_method

    @property
    def point_kind(self) -> str:
        """`point`, or that of the inner model if it is 'auto'."""
        return self.point if self.point != "auto" else self.model.point_kind

    def _narrow(self, declared: Capabilities) -> Capabilities:
        """Capabilities of the inner model, with calibrated intervals and without sample paths."""
        inner: Capabilities = self.model.capabilities
        if self.pool:
            inner = replace(inner, local=False, pooled=inner.by_series)
        return replace(inner, distribution="analytic", learns_distribution=False, simulates=False)

    def _inner(self) -> Forecaster:
        """A new copy of the inner model, without intervals and with the settings of this model."""
        return self.model.clone(
            horizon=self.default_horizon, missing=self.missing_method, point=self.point_kind, intervals=None, on_failure="raise"
        )

    def _fit_panel(self, panel: Panel, monitor: Monitor = SILENT) -> State:
        """See `Forecaster`; raises for parameters of the inner model that have no effect."""
        for name, default in (("bounds", None), ("on_failure", "raise")):
            value = getattr(self.model, name)
            if value != default:
                raise ParameterError(
                    f"`{name}` has no effect on the model of Conformal, got {name}={format_value(value)}.",
                    hint=f"Set it on Conformal: Conformal(model, {name}=...).",
                    parameter=name,
                    value=value,
                )
        return super()._fit_panel(panel, monitor)

    def _calibrate(self, panel: Panel) -> Calibration:
        """Errors of the inner model in rolling windows; `ParameterError` for pool=True with method='adaptive'."""
        if self.default_horizon is None:
            raise ParameterError(
                "`horizon` must be set, because Conformal calibrates each step.",
                hint="Pass Conformal(model, horizon=...).",
                parameter="horizon",
            )
        if not self.pool:
            calibration = series_errors(self._inner(), panel, self.default_horizon, self.n_windows)
            return replace(calibration, method=self.method, rate=self.adaptation_rate)
        if self.method != "split":
            raise ParameterError(
                f"pool=True cannot be combined with method={self.method!r}, which adapts to the coverage of each series "
                "separately.",
                hint="Use method='split' or pool=False.",
                parameter="pool",
            )
        return pooled_absolute_errors(self._inner(), panel, self.default_horizon, self.n_windows)

    def _min_observations(self, panel: Panel) -> int:
        return self._inner()._min_observations(panel)

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        return self._inner()._fit(panel, monitor)

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        return self._inner()._advance(learned, panel, from_start)

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

    def _drop_histories(self, learned: LearnedState) -> LearnedState:
        return self._inner()._drop_histories(learned)

    def _fine_tune(self, learned: LearnedState, panel: Panel) -> LearnedState:
        return self._inner()._fine_tune(learned, panel)
