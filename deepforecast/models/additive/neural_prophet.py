"""NeuralProphet: Prophet's components learned by gradients, with auto-regression and columns of the past."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.models.additive._base import AdditiveForecaster
from deepforecast.models.neural._base import NEURAL, NeuralForecaster
from deepforecast.models.neural._fit import LocationHead

if TYPE_CHECKING:
    from deepforecast.core.state import LearnedState, State
    from deepforecast.data.covariates import Covariate
    from deepforecast.data.frames import Floats, Frame
    from deepforecast.data.panel import Panel
    from deepforecast.data.time_features import TimeFeatures
    from deepforecast.data.windows import WindowColumns
    from deepforecast.models.neural._array_predictor import Predictor
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.network import ForecastNetwork
    from deepforecast.nn.neural_prophet import NeuralProphetBody

LOCAL_COMPONENTS = ("trend", "seasons", "events", "regressors")
LAGS_NAME = "ar"
PLACEMENT_PARAMETERS = ("n_changepoints", "changepoint_range")


def _uses_lags(values: Mapping[str, Any]) -> bool:
    return bool(values["input_size"] != 0)


@register
class NeuralProphet(AdditiveForecaster, NeuralForecaster):
    """Trend, seasons, holidays, events and columns known ahead as in `Prophet`, and what the last rows add (AR-Net).

    One model for all series, each on its own scale, which stays the one of the fit; time runs from 0 to 1 over the history of
    all. Components of `local` have coefficients for each series beside those of all; a series not seen in fit has their mean.
    Lags count by how far they were from the other components, so a missing one counts as expected; trend and seasons hang on
    time alone. Priors are those of `Prophet`, in units of the series' scale: what is made least is the loss of all values minus
    their logarithm. Learning starts from the straight components' likeliest coefficients. Bands are
    learned on the fit's own rows and are narrow where what comes differs (80 % bands held 60 to 70 % of electricity prices);
    `intervals="conformal"` calibrates them on rolling forecasts. Where time is counted in integers, a
    step is a day, and seasons are those that are declared. Triebe et al. 2021, "NeuralProphet: Explainable Forecasting at
    Scale".

    Measured coverage of 80 % intervals at defaults: M1 monthly 56 %, NN5 daily 70 %, EPF Nord Pool
    hourly 79 % (benchmarks/bench_coverage.py).

    >>> from deepforecast.datasets import generate
    >>> model = NeuralProphet(horizon=7, input_size=14, max_steps=20).fit(generate(2, 100))
    >>> sorted(set(model.explain()["component"]))
    ['ar', 'trend', 'weekly']
    """

    capabilities: ClassVar[Capabilities] = replace(NEURAL, static=False)
    warns_overfitting: ClassVar[bool] = False
    has_components: ClassVar[bool] = True
    uses_series_id: ClassVar[bool] = True
    keeps_series_scale: ClassVar[bool] = True

    warm_up_params: ClassVar[dict[str, Any]] = NeuralForecaster.warm_up_params
    learning_example: ClassVar[dict[str, Any]] = {**NeuralForecaster.learning_example, "lag_prior_scale": None}
    coverage_example: ClassVar[dict[str, Any]] = {**NeuralForecaster.coverage_example, "learning_rate": 3e-2}

    growth: Literal["linear", "flat"] = param(default="linear")
    n_changepoints: int = param(default=10)
    changepoint_prior_scale: float = param(default=0.5, low=0.01, high=5.0)
    local: Sequence[str] = param(
        default=(), search=((), ("trend",), ("trend", "seasons")),
        help="components each series has its own of: trend, seasons, events (and holidays), regressors",
    )
    input_size: int | Literal["auto"] = param(
        default="auto", at_least=0,
        help="rows up to the cutoff that lags are taken from; 0: no lags",
    )
    hidden_sizes: Sequence[int] = param(
        default=(), at_least=1, when=_uses_lags,
        help="widths of hidden layers behind lags; (): linear",
    )
    lag_prior_scale: float | None = param(
        default=None, above=0, low=0.001, high=1.0, log=True, when=_uses_lags,
        help="how large weights of lags may be (Laplace: most are small); None: any",
    )  # fmt: skip
    scaler: Literal["standard", "robust", "min_max", "mean_abs", "none"] = param(default="standard")
    scaler_scope: Literal["series", "panel"] = param(default="series")
    calendar: None = param(default=None, help="none: seasons are declared")
    head: LocationHead = param(default="quantiles")
    max_steps: int | Literal["auto"] = param(
        default=500,
    )
    batch_size: int | Literal["auto"] = param(default=256)
    learning_rate: float | Literal["find"] = param(default=1e-2)

    @property
    def family(self) -> str:
        """Its own family: its components share little with other networks."""
        return "NeuralProphet"

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Small networks for the contract checks."""
        small = {"max_steps": 12, "batch_size": 32}
        return [
            {"input_size": 14, **small},
            {"input_size": 7, "hidden_sizes": [8], "local": ["trend", "seasons"], "lag_prior_scale": 0.1, **small},
            {"input_size": 0, "seasonality_mode": "multiplicative", "head": "normal", "learning_rate": 1e-3, **small},
        ]

    def predictor(self, quantiles: Sequence[float] = ()) -> Predictor:
        """Refused: scales and components belong to series by name, which arrays have not."""
        from deepforecast.errors import CapabilityError

        self.fitted_state()
        raise CapabilityError(
            f"{self.name} knows series by name and forecasts them on the scale of the fit, and arrays have no names. Say "
            "predict(frame=...)."
        )

    @property
    def reserved_names(self) -> tuple[str, ...]:
        """Components it has whatever is declared."""
        return ("trend", LAGS_NAME, "rest")

    def _narrow(self, declared: Capabilities) -> Capabilities:
        capabilities = super()._narrow(declared)
        if self.input_size == 0:
            capabilities = replace(capabilities, past=False, new_values="ignored")
        capabilities = replace(capabilities, partly_own=bool(self.local))
        return capabilities if self._is_additive() else replace(capabilities, shift_equivariant=False)

    def _is_additive(self) -> bool:
        """Whether no component multiplies the trend."""
        modes = [self.seasonality_mode, self.holidays_mode]
        for declarations in (self.seasonalities, self.dated_events, self.regressors):
            modes += [fields.get("mode") for fields in (declarations or {}).values() if isinstance(fields, Mapping)]
        return "multiplicative" not in modes

    def _idle(self) -> Iterator[tuple[str, str]]:
        if self.input_size == 0:
            reason = "with input_size=0, which looks at no lags: leave it out, or say input_size="
            yield from (("hidden_sizes", reason), ("lag_prior_scale", reason))
        if self.growth == "flat":
            reason = "with growth='flat': leave it out, or say growth='linear'"
            yield from ((name, reason) for name in (*PLACEMENT_PARAMETERS, "changepoints", "changepoint_prior_scale"))
        elif self.changepoints is not None:
            reason = "beside changepoints, which are given: leave one of the two out"
            yield from ((name, reason) for name in PLACEMENT_PARAMETERS)

    def _add_series_columns(self, panel: Panel, learned: LearnedState | None) -> Panel:
        from deepforecast.models.additive._networks import add_series_codes

        return add_series_codes(self, panel, learned)

    def _select_columns(self, columns: WindowColumns, panel: Panel) -> WindowColumns:
        scales = {name: scale or 1.0 for name, scale in columns.scale.items()}  # a condition that held may end
        return replace(columns, time_features=self._time_features(panel), scale=scales)

    def _time_features(self, panel: Panel | None) -> TimeFeatures | None:
        from deepforecast.models.additive._networks import EXAMPLE, fit_moments

        return EXAMPLE if panel is None else fit_moments(self, panel)

    def _check_time_features(self, record: Any, future_names: list[str]) -> None:
        from deepforecast.models.additive._serialization import check_moments

        check_moments(record, future_names, self.country)

    def _initialize(self, network: ForecastNetwork, panel: Panel, columns: WindowColumns, scale: tuple[Floats, Floats]) -> None:
        from deepforecast.models.additive._initialization import initialize

        initialize(self, network, panel, columns, scale)

    def _body(self, sizes: InputSizes) -> NeuralProphetBody:
        from deepforecast.models.additive._networks import network_spec
        from deepforecast.nn.neural_prophet import NeuralProphetBody

        return NeuralProphetBody(sizes, network_spec(self, sizes.window_columns))

    def _future_covariates(self, state: State, steps: int, future: Frame | None) -> Mapping[str, Covariate]:
        from deepforecast.models.additive._constant_covariates import warn_unlearned

        covariates = super()._future_covariates(state, steps, future)
        if covariates:
            warn_unlearned(self.name, state, covariates)
        return covariates

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        from deepforecast.models.additive._networks import merge_level

        return merge_level(super()._explain(learned, steps, future))
