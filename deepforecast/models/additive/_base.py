"""The base class of Prophet and NeuralProphet: parameters of trend, seasonality and events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import param
from deepforecast.errors import ParameterError, format_list
from deepforecast.models.additive._declarations import holidays_as_events, plain_events

if TYPE_CHECKING:
    from deepforecast.core.state import State
    from deepforecast.data.covariates import Covariate
    from deepforecast.data.frames import Frame

SEASONALITY = (
    "number of Fourier terms, True for the default number, False for none; 'auto': if the "
    "series is long and dense enough"
)


def _has_trend(values: Mapping[str, Any]) -> bool:
    return bool(values["growth"] != "flat")


def _places_changepoints(values: Mapping[str, Any]) -> bool:
    return _has_trend(values) and values["changepoints"] is None


def _has_events(values: Mapping[str, Any]) -> bool:
    return bool(values["holidays"] is not None or values["events"])


class AdditiveForecaster(Forecaster):
    """Base class of additive models: trend, seasonality, holidays, events and regressors.

    A subclass defines `growth` and the estimation.
    """

    warm_up_params: ClassVar[dict[str, Any]] = {}  # see evaluation.warm_up
    dateless: ClassVar[dict[str, Any]] = dict.fromkeys(("yearly_seasonality", "weekly_seasonality", "daily_seasonality"), False)

    growth: str = param(default="linear", help="kind of trend")
    changepoints: list[Any] | None = param(
        default=None,
        help="dates of possible changes of the slope; None: n_changepoints evenly spaced ones",
    )
    n_changepoints: int = param(
        default=25, at_least=0, at_most=1000, low=5, high=50, when=_places_changepoints,
        help="number of potential changepoints",
    )
    changepoint_range: float = param(
        default=0.8, at_least=0, at_most=1, low=0.7, high=0.95, when=_places_changepoints,
        help="fraction of the history, from its start, that contains the changepoints",
    )
    changepoint_prior_scale: float = param(
        default=0.05, above=0, low=0.001, high=0.5, log=True, when=_has_trend,
        help="scale of the Laplace prior on changes of the slope (smaller: smoother trend)",
    )
    yearly_seasonality: int | bool | Literal["auto"] = param(
        default="auto", at_least=0, at_most=1000, help=SEASONALITY,
    )
    weekly_seasonality: int | bool | Literal["auto"] = param(
        default="auto", at_least=0, at_most=1000, help=SEASONALITY,
    )
    daily_seasonality: int | bool | Literal["auto"] = param(
        default="auto", at_least=0, at_most=1000, help=SEASONALITY,
    )
    seasonality_mode: Literal["additive", "multiplicative"] = param(
        default="additive", search=("additive", "multiplicative"),
        help="additive or multiplicative seasonality",
    )  # fmt: skip
    seasonality_prior_scale: float = param(
        default=10.0, above=0, low=0.01, high=10.0, log=True,
        help="scale of the normal prior on seasonal coefficients",
    )
    seasonalities: dict[str, dict[str, Any]] | None = param(
        default=None,
        help="additional seasonalities: name -> dict of period (days) and order, optionally "
        "prior_scale, mode, condition (name of a future covariate)",
    )
    holidays: str | dict[str, Any] | None = param(
        default=None, convert=holidays_as_events,
        help="country ('DE') or subdivision ('DE-BY') with public holidays, a dict as in events, "
        "or a DataFrame as in Prophet",
    )
    holidays_prior_scale: float = param(
        default=10.0, above=0, low=0.01, high=10.0, log=True, when=_has_events,
        help="scale of the normal prior on effects of holidays, events and regressors",
    )
    holidays_mode: Literal["additive", "multiplicative"] | None = param(
        default=None, help="additive or multiplicative holiday effects; None: as seasonality_mode"
    )
    events: dict[str, Any] | None = param(
        default=None, convert=plain_events,
        help="events: name -> list of dates, or dict of dates, optionally lower_window, "
        "upper_window, prior_scale, mode",
    )
    regressors: dict[str, dict[str, Any]] | None = param(
        default=None,
        help="options of future covariates: name -> dict of prior_scale, standardize, mode",
    )

    @property
    def country(self) -> str | None:
        """Country or subdivision of the public holidays, or None."""
        return self.holidays if isinstance(self.holidays, str) else None

    @property
    def dated_events(self) -> dict[str, Any]:
        """Events and holidays with dates, by name."""
        holidays = {} if self.holidays is None or isinstance(self.holidays, str) else self.holidays
        duplicates = [name for name in holidays if name in (self.events or {})]
        if duplicates:
            raise ParameterError(
                f"`holidays` and `events` cannot both have {format_list(duplicates)}. Rename it in one of them."
            )
        return {**holidays, **(self.events or {})}

    @property
    def max_changepoints(self) -> int:
        """Number of potential changepoints."""
        if self.growth == "flat":
            return 0
        return self.n_changepoints if self.changepoints is None else len(self.changepoints)

    @property
    def bound_columns(self) -> tuple[str, ...]:
        """Future covariates that are bounds (cap, floor) and not regressors."""
        return ()

    @property
    def reserved_names(self) -> tuple[str, ...]:
        """Names of components that are always present."""
        return ("trend",)

    def _future_covariates(self, state: State, steps: int, future: Frame | None) -> Mapping[str, Covariate]:
        from deepforecast.models.additive._specification import check_future_conditions

        covariates = super()._future_covariates(state, steps, future)
        check_future_conditions(self, covariates)
        return covariates
