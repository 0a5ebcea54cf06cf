"""The NeuralProphet forecaster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.additive import AdditiveForecaster
from deepforecast.core.model_file import histories_required_error
from deepforecast.core.params import Not, param
from deepforecast.core.registry import Capabilities, register
from deepforecast.core.time_feature_records import check_time_features
from deepforecast.errors import CapabilityError
from deepforecast.models.neural._base import NEURAL, NeuralForecaster
from deepforecast.nn.names import LocationHeadName

if TYPE_CHECKING:
    from deepforecast.core.state import LearnedState, State
    from deepforecast.data.components import TimeFeatures
    from deepforecast.data.covariates import Covariate
    from deepforecast.data.frames import Floats
    from deepforecast.data.panel import Panel
    from deepforecast.data.windows import WindowColumns
    from deepforecast.models.neural._array_predictor import Predictor
    from deepforecast.nn.batch import InputSizes
    from deepforecast.nn.network import ForecastNetwork
    from deepforecast.nn.neural_prophet import NeuralProphetBody


@register
class NeuralProphet(AdditiveForecaster, NeuralForecaster):
    """NeuralProphet: the components of Prophet in a global network, with autoregression (AR-Net).

    One model for all series. Each series is scaled by its own training data, and time runs from 0
    to 1 over the history of all series. Components in `local` have additional coefficients per
    series; a series not seen in fit uses their mean.

    Lags enter as residuals from the other components, so a missing lag counts as the expected
    value; trend and seasonality depend on time alone. The priors are those of `Prophet`, in units
    of the series' scale: training minimizes the total loss minus the log prior. It starts from the
    maximum a posteriori coefficients of the linear components.

    Prediction intervals are trained on the training data and are too narrow if the future differs
    (80 % intervals covered 60 to 70 % of electricity prices); `intervals="conformal"` calibrates
    them on rolling forecasts. With integer time a step is a day, and only declared seasonalities
    are used.

    Measured coverage of 80 % intervals at defaults: M1 monthly 56 %, NN5 daily 70 %, EPF Nord Pool
    hourly 79 % (benchmarks/bench_coverage.py).

    See Also
    --------
    Prophet : The same components per series, without autoregression.

    References
    ----------
    Triebe et al. (2021), "NeuralProphet: Explainable forecasting at scale", arXiv:2111.15397.

    Examples
    --------
    >>> from deepforecast.datasets import generate
    >>> model = NeuralProphet(horizon=7, input_size=14, max_steps=20).fit(generate(2, 100))
    >>> sorted(set(model.explain()["component"]))
    ['ar', 'trend', 'weekly']
    """

    capabilities: ClassVar[Capabilities] = replace(NEURAL, static=False)
    # The linear components start from the estimates on all observations, so none are held out.
    forecasts_any_frequency: ClassVar[bool] = False  # trend and seasonality depend on the time itself
    calibrates_tail: ClassVar[bool] = False
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
        help="components with coefficients per series, from 'trend', 'seasons', 'events' (including holidays) and "
        "'regressors'; (): all coefficients are shared by all series",
    )
    input_size: int | Literal["auto"] = param(
        default="auto", at_least=0,
        help="number of lags of the target; 0: no autoregression; 'auto': from horizon and season length",
    )
    hidden_sizes: Sequence[int] = param(
        default=(), at_least=1, needs={"input_size": Not(0)},
        help="number of units of each hidden layer of the network applied to the lags; (): a linear autoregression",
    )
    lag_prior_scale: float | None = param(
        default=None, above=0, low=0.001, high=1.0, log=True, needs={"input_size": Not(0)},
        help="scale of the Laplace prior on lag weights (smaller: sparser); None: no prior",
    )  # fmt: skip
    scaler: Literal["standard", "robust", "min_max", "mean_abs", "none"] = param(default="standard")
    scaler_scope: Literal["series", "panel"] = param(default="series")
    calendar: None = param(
        default=None, help="calendar features; must be None, because seasonalities are components of the model"
    )
    head: LocationHeadName = param(default="quantiles")
    intervals: Literal["conformal"] | None = param(
        default=None,
        help="method for prediction intervals: None: those of the learned distribution as they are; 'conformal': calibrated on "
        "rolling forecasts during fit",
    )
    max_steps: int | Literal["auto"] = param(
        default=500,
    )
    batch_size: int | Literal["auto"] = param(default=256)
    learning_rate: float | Literal["find"] = param(default=1e-2)

    @property
    def family(self) -> str:
        """The name of its own family of architectures, because it has little in common with other networks."""
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
        """Raise `CapabilityError`, because arrays do not contain the ids of the series."""
        self.fitted_state()
        raise CapabilityError(
            f"{self.name} cannot forecast from arrays, because scales and coefficients are looked up by series id.",
            hint="Use "
            "predict(frame=...)."
        )

    @property
    def reserved_names(self) -> tuple[str, ...]:
        """Names of components that seasonalities, events and covariates cannot have."""
        from deepforecast.models.neural._additive import LAGS_NAME  # imports torch

        return ("trend", LAGS_NAME, "rest")

    def _narrow(self, declared: Capabilities) -> Capabilities:
        """Capabilities with these parameters, e.g. no past covariates without lags."""
        capabilities = super()._narrow(declared)
        if self.input_size == 0:
            capabilities = replace(capabilities, past=False, new_values="ignored")
        capabilities = replace(capabilities, partly_own=bool(self.local))
        return capabilities if self._is_additive() else replace(capabilities, shift_equivariant=False)

    def _is_additive(self) -> bool:
        """Whether no component is multiplicative."""
        modes = [self.seasonality_mode, self.holidays_mode]
        for declarations in (self.seasonalities, self.dated_events, self.regressors):
            modes += [fields.get("mode") for fields in (declarations or {}).values() if isinstance(fields, Mapping)]
        return "multiplicative" not in modes

    def _add_series_columns(self, panel: Panel, learned: LearnedState | None) -> Panel:
        from deepforecast.models.neural._additive import add_series_codes  # imports torch

        return add_series_codes(self, panel, learned)

    def _select_columns(self, columns: WindowColumns, panel: Panel) -> WindowColumns:
        # A condition that was constant in fit may change.
        scales = {name: scale or 1.0 for name, scale in columns.scale.items()}
        return replace(columns, time_features=self._time_features(panel), scale=scales)

    def _time_features(self, panel: Panel | None) -> TimeFeatures | None:
        from deepforecast.models.neural._additive import EXAMPLE, fit_time_features  # imports torch

        return EXAMPLE if panel is None else fit_time_features(self, panel)

    def _check_time_features(self, record: Any, future_names: list[str]) -> None:
        check_time_features(record, future_names, self.country)

    def _initialize(self, network: ForecastNetwork, panel: Panel, columns: WindowColumns, scale: tuple[Floats, Floats]) -> None:
        from deepforecast.models.neural._additive import initialize  # imports torch

        initialize(self, network, panel, columns, scale)

    def _body(self, sizes: InputSizes) -> NeuralProphetBody:
        from deepforecast.models.neural._additive import network_spec  # imports torch
        from deepforecast.nn.neural_prophet import NeuralProphetBody

        return NeuralProphetBody(sizes, network_spec(self, sizes.window_columns))

    def _check_future(self, state: State, future: Mapping[str, Covariate]) -> None:
        """Warn of covariates that were constant in fit and change now."""
        from deepforecast.models.neural._additive import warn_unlearned  # imports torch

        super()._check_future(state, future)
        if future:
            warn_unlearned(self.name, state, future)

    def _drop_histories(self, learned: LearnedState) -> LearnedState:
        raise histories_required_error(
            self, "scales and coefficients are looked up by series id, and its trend starts at the first timestamp"
        )

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        from deepforecast.models.neural._additive import merge_level  # imports torch

        return merge_level(super()._explain(learned, steps, future))
