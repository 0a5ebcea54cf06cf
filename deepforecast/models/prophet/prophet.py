"""The Prophet forecaster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from deepforecast.core.additive import AdditiveForecaster
from deepforecast.core.monitor import Monitor
from deepforecast.core.params import param
from deepforecast.core.registry import Capabilities, register
from deepforecast.core.state import MAX_SIMULATED_GAP, LearnedState, State, check_floats, check_gaps, check_integers

if TYPE_CHECKING:
    from deepforecast.core.encoding import SkopsSerializer
    from deepforecast.core.forecast import Forecast
    from deepforecast.data.covariates import Covariate
    from deepforecast.data.frames import Floats, Frame
    from deepforecast.data.panel import Panel

MAX_SIMULATED_STEPS = 10_000  # steps since the fit with a logistic trend, which requires sample paths


@register
class Prophet(AdditiveForecaster):
    """Prophet: trend with changepoints, Fourier seasonality, holidays, events and regressors.

    The parameters are the maximum a posteriori estimates under Prophet's priors, computed per
    series by a compiled solver. Prediction intervals combine the noise with future changes of the
    slope, at the frequency and mean size of the past ones; `uncertainty="laplace"` adds parameter
    uncertainty.

    Future covariates are regressors unless `cap`, `floor` or the `condition` of a seasonality names
    them. With growth="logistic" the trend lies between `floor` and `cap`; otherwise they clip the
    forecast. Values after `fit` do not change the parameters: `update` only moves the start of the
    forecast, and `fine_tune` estimates the parameters again. A constant series is forecast by its
    value.

    Values may be missing; irregular timestamps must lie on a finer frequency, with up to 12 steps
    between observations. With integer time a step is a day, and only declared seasonalities are
    used.

    Measured coverage of 80 % intervals at defaults: M1 monthly 40 %, NN5 daily 84 %
    (benchmarks/bench_coverage.py).

    See Also
    --------
    NeuralProphet : The same components in a global network, with autoregression.

    References
    ----------
    Taylor, Letham (2018), "Forecasting at scale", The American Statistician 72(1),
    doi:10.1080/00031305.2017.1380080.

    Examples
    --------
    >>> from deepforecast import datasets
    >>> model = Prophet(horizon=12, seasonality_mode="multiplicative").fit(datasets.load("air_passengers"))
    >>> model.predict(level=80).columns.tolist()
    ['unique_id', 'ds', 'Prophet', 'Prophet-lo-80', 'Prophet-hi-80']
    >>> sorted(set(model.explain()["component"]))
    ['trend', 'yearly']
    """

    capabilities = Capabilities(
        future=True,
        categorical=True,
        missing=True,
        distribution="analytic",
        scale_equivariant=True,
        precision=1e-6,
        new_values="ignored",
        simulates=True,
        explains=True,
    )

    growth: Literal["linear", "logistic", "flat"] = param(
        default="linear",
        help="type of trend: 'linear' or 'logistic' (saturating at cap), each with changepoints, or 'flat' (constant)",
    )
    cap: float | str | None = param(
        default=None,
        help="upper bound, a number or the name of a future covariate: the saturation level if growth='logistic', else a "
        "limit to which forecasts are clipped; None: no bound",
    )
    floor: float | str | None = param(
        default=None,
        help="lower bound, a number or the name of a future covariate: the lower saturation level if growth='logistic', "
        "else a limit to which forecasts are clipped; None: no bound (0 if growth='logistic')",
    )
    errors: Literal["normal", "student"] = param(
        default="normal", search=("normal", "student"),
        help="error distribution: 'normal'; 'student': Student's t with 3 degrees of freedom, robust to outliers",
    )
    scaling: Literal["absmax", "minmax"] = param(
        default="absmax",
        help="scaling of the values before fitting, to which the priors apply; 'absmax': divided by the largest absolute "
        "value; 'minmax': to the range from 0 to 1",
    )
    uncertainty: Literal["map", "laplace"] = param(
        default="map",
        help="parameter uncertainty in prediction intervals; 'map': none, parameters are fixed at their estimates; "
        "'laplace': Laplace approximation of the posterior",
    )

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Parameters for the contract checks."""
        return [
            {},
            {"seasonality_mode": "multiplicative", "n_changepoints": 5, "uncertainty": "laplace"},
            {"growth": "flat", "errors": "student"},
        ]

    @property
    def coverage_process(self) -> str:
        """Name of the simulated process for the check of interval coverage."""
        return "seasonal_noise" if self.growth == "flat" else "trend_and_season"

    @property
    def bound_columns(self) -> tuple[str, ...]:
        """Names of the future covariates that are bounds (cap, floor) and not regressors."""
        return tuple(bound for bound in (self.cap, self.floor) if isinstance(bound, str))

    @property
    def reserved_names(self) -> tuple[str, ...]:
        """Names of components that seasonalities, events and covariates cannot have."""
        return ("trend", "bounds")

    def parameters(self) -> Frame:
        """Return the estimated parameters.

        Returns
        -------
        DataFrame
            One row per series: trend `rate` and `offset`, standard `deviation` of the errors,
            `scale` of the values, changes of the slope `change_1`, ..., and one column per
            coefficient. Deviation, trend and changes are in units of `scale`, with time from 0 to 1
            over the history.
        """
        from deepforecast.models.prophet._tables import parameters

        return parameters(self)

    def components(self, frame: Frame | None = None) -> Frame:
        """Decompose the history into components, as `explain` does for forecasts.

        Parameters
        ----------
        frame : DataFrame, optional
            Histories to decompose. Defaults to the training data.

        Returns
        -------
        DataFrame
            One row per series, time and `component`, with its `value`.

        Raises
        ------
        DataError
            If the model has no history, e.g. after loading it from a file, and `frame` is not
            passed.
        """
        from deepforecast.models.prophet._tables import history_components

        return history_components(self, frame)

    def _narrow(self, declared: Capabilities) -> Capabilities:
        is_bounded = self.growth == "logistic" or isinstance(self.cap, (int, float)) or isinstance(self.floor, (int, float))
        return replace(declared, scale_equivariant=False) if is_bounded else declared

    def _min_observations(self, panel: Panel) -> int:
        return 2

    def _add_covariate_facts(self, learned: LearnedState, panel: Panel) -> LearnedState:
        """Add the values of covariates that are constant in fit, for warnings when they change."""
        if not panel.series.columns.future:
            return learned
        from deepforecast.models.prophet._fit import constant_covariate_values

        constants = constant_covariate_values(self, panel)
        return replace(learned, by_series={**learned.by_series, "constant_covariates": constants})

    def _check_future(self, state: State, future: Mapping[str, Covariate]) -> None:
        """Warn of covariates that were constant in fit and change now."""
        from deepforecast.core.arrays import warn_constant_in_fit

        super()._check_future(state, future)
        if future and "constant_covariates" in state.learned.by_series:
            warn_constant_in_fit(self.name, state.learned["constant_covariates"], future, state.series)

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        from deepforecast.models.prophet._fit import fit_panel

        return fit_panel(self, panel, None)

    def _fine_tune(self, learned: LearnedState, panel: Panel) -> LearnedState:
        from deepforecast.models.prophet._fit import fit_panel

        return fit_panel(self, panel, learned)

    def _advance(self, learned: LearnedState, panel: Panel, from_start: bool) -> LearnedState:
        return replace(learned, history=panel) if from_start else learned

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        """Check that arrays match the components, and that not too many steps have passed since the fit."""
        from deepforecast.core.time_feature_records import MAX_CLOCK, check_components

        columns = check_components(learned["parts"], None, self.country)
        check_floats(learned, ["coefficients", "centre", "unit"], (columns,))
        check_floats(learned, ["delta", "changes"], learned["delta"].shape[1:2])
        check_floats(learned, ["rate", "offset", "size", "shift", "scale", "deviation", "objective", "steady"], ())
        for name in ("start", "end"):
            check_integers(learned, name, -MAX_CLOCK, MAX_CLOCK)
        check_integers(learned, "span", 0, MAX_CLOCK)
        check_integers(learned, "count", 0, MAX_CLOCK)
        series = learned.series
        if series is not None:
            steps_since_fit = (series.last - learned["end"]) // series.calendar.step
            check_gaps(
                replace(learned, by_series={"age": steps_since_fit}),
                MAX_SIMULATED_STEPS if self.growth == "logistic" else MAX_SIMULATED_GAP,
            )
        return learned

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        from deepforecast.models.prophet._predict import forecast

        return forecast(self, learned, steps, future)

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        from deepforecast.models.prophet._predict import simulate_paths

        return simulate_paths(self, learned, steps, samples, seed, future)

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        from deepforecast.models.prophet._predict import components

        return components(self, learned, steps, future)
