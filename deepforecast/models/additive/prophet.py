"""Prophet: a trend that changes its slope, seasons, holidays and effects, for one series or a hundred thousand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.monitor import SILENT, Monitor
from deepforecast.core.params import param
from deepforecast.core.registry import register
from deepforecast.core.state import LearnedState, State
from deepforecast.models.additive._base import AdditiveForecaster

if TYPE_CHECKING:
    from deepforecast.core.forecast import Forecast
    from deepforecast.core.skops_objects import SkopsSerializer
    from deepforecast.data.covariates import Covariate
    from deepforecast.data.frames import Floats, Frame
    from deepforecast.data.panel import Panel

@register
class Prophet(AdditiveForecaster):
    """A trend whose slope changes, seasons of sines and cosines, holidays, events and effects of columns known ahead.

    Parameters are the likeliest under Prophet's priors, found exactly by a compiled solver, thousands of series at a time.
    Bands are those of noise and of a trend whose slope goes on changing as often and as much as it did, by formula; with
    `uncertainty="laplace"` the parameters are uncertain, too. Columns known ahead are regressors, unless `cap`, `floor` or the
    `condition` of a season names them. Values after the fit do not change the forecast: `update` moves on in time, and
    `fine_tune` fits anew. With growth="linear" or "flat", `cap` and `floor` cut forecasts off; with "logistic" the trend lies
    between them. A series that never changes is forecast as it is. Rows may be missing; irregular stamps lie on a finer freq,
    up to 12 steps a row. Where time is counted in integers, a step is a day, and seasons are those that are declared.
    Reference: Taylor & Letham (2018), Forecasting at Scale, *The American Statistician* 72.

    Measured coverage of 80 % intervals at defaults: M1 monthly 40 %, NN5 daily 84 %
    (benchmarks/bench_coverage.py).

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
        default="linear", help="how the trend goes on",
    )
    cap: float | str | None = param(
        default=None, help="the most there can be: a number, or a column known ahead",
    )
    floor: float | str | None = param(
        default=None, help="the least there can be: a number, or a column known ahead",
    )
    errors: Literal["normal", "student"] = param(
        default="normal", search=("normal", "student"),
        help="errors: 'student' for some that are far out (Student's t, 3 degrees of freedom)",
    )
    scaling: Literal["absmax", "minmax"] = param(
        default="absmax", help="what values are divided by before the priors hold",
    )
    uncertainty: Literal["map", "laplace"] = param(
        default="map", help="'laplace': bands count that parameters are not known exactly"
    )

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """With which parameters the contract is checked."""
        return [
            {},
            {"seasonality_mode": "multiplicative", "n_changepoints": 5, "uncertainty": "laplace"},
            {"growth": "flat", "errors": "student"},
        ]

    @property
    def coverage_process(self) -> str:
        """The process that its intervals are checked on."""
        return "seasonal_noise" if self.growth == "flat" else "trend_and_season"

    @property
    def bound_columns(self) -> tuple[str, ...]:
        """Columns that say how much there can be."""
        return tuple(bound for bound in (self.cap, self.floor) if isinstance(bound, str))

    @property
    def reserved_names(self) -> tuple[str, ...]:
        """Components it has whatever is declared."""
        return ("trend", "bounds")

    def parameters(self) -> Frame:
        """What was estimated, a row a series: trend, deviation of the errors, and the coefficient of each column."""
        from deepforecast.models.additive._tables import parameters

        return parameters(self)

    def components(self, frame: Frame | None = None) -> Frame:
        """The rows of the fit, or of these histories, taken apart as `explain` does the steps ahead."""
        from deepforecast.models.additive._tables import history_components

        return history_components(self, frame)

    def _narrow(self, declared: Capabilities) -> Capabilities:
        is_bounded = self.growth == "logistic" or isinstance(self.cap, (int, float)) or isinstance(self.floor, (int, float))
        return replace(declared, scale_equivariant=False) if is_bounded else declared

    def _min_observations(self, panel: Panel) -> int:
        return 2

    def _fit_panel(self, panel: Panel, monitor: Monitor = SILENT) -> State:
        state = super()._fit_panel(panel, monitor)
        if not panel.series.columns.future:
            return state
        from deepforecast.models.additive._constant_covariates import constant_covariate_values

        learned = replace(state.learned, by_series={**state.learned.by_series, "unvaried": constant_covariate_values(self, panel)})
        return replace(state, learned=learned)

    def _future_covariates(self, state: State, steps: int, future: Frame | None) -> Mapping[str, Covariate]:
        from deepforecast.models.statistical._regressors import warn_constant_in_fit

        covariates = super()._future_covariates(state, steps, future)
        if covariates and "unvaried" in state.learned.by_series:
            warn_constant_in_fit(self.name, state.learned["unvaried"], covariates, state.series)
        return covariates

    def _fit(self, panel: Panel, monitor: Monitor) -> LearnedState:
        from deepforecast.models.additive._fit import fit_panel

        return fit_panel(self, panel, None)

    def _fine_tune(self, learned: LearnedState, panel: Panel) -> LearnedState:
        from deepforecast.models.additive._fit import fit_panel

        return fit_panel(self, panel, learned)

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        return replace(learned, history=panel) if fresh else learned

    def _deserialize(self, learned: LearnedState, foreign: SkopsSerializer) -> LearnedState:
        from deepforecast.models.additive._serialization import check_prophet

        check_prophet(learned, self.country, self.growth)
        return learned

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        from deepforecast.models.additive._predict import forecast

        return forecast(self, learned, steps, future)

    def _simulate(self, learned: LearnedState, steps: int, samples: int, seed: int, future: Mapping[str, Covariate]) -> Floats:
        from deepforecast.models.additive._predict import simulate_paths

        return simulate_paths(self, learned, steps, samples, seed, future)

    def _explain(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> dict[str, Floats]:
        from deepforecast.models.additive._predict import components

        return components(self, learned, steps, future)


