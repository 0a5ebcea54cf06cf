"""What the Prophet family shares: its components, declared as data."""

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

SEASONALITY = "True, False, how many sines and cosines, or 'auto': where a history is long and dense enough for it"


def _has_trend(values: Mapping[str, Any]) -> bool:
    return bool(values["growth"] != "flat")


def _places_changepoints(values: Mapping[str, Any]) -> bool:
    return _has_trend(values) and values["changepoints"] is None


def _has_events(values: Mapping[str, Any]) -> bool:
    return bool(values["holidays"] is not None or values["events"])


class AdditiveForecaster(Forecaster):
    """A trend whose slope changes, seasons, holidays, events and regressors; a model adds `growth` and how they are found."""

    warm_up_params: ClassVar[dict[str, Any]] = {}  # see evaluation.warm_up
    dateless: ClassVar[dict[str, Any]] = dict.fromkeys(("yearly_seasonality", "weekly_seasonality", "daily_seasonality"), False)

    growth: str = param(default="linear", help="how the trend goes on")
    changepoints: list[Any] | None = param(
        default=None, help="dates on which the slope may change, in place of evenly placed ones",
    )
    n_changepoints: int = param(
        default=25, at_least=0, at_most=1000, low=5, high=50, when=_places_changepoints,
        help="how many changes of slope there may be",
    )
    changepoint_range: float = param(
        default=0.8, at_least=0, at_most=1, low=0.7, high=0.95, when=_places_changepoints,
        help="share of a history they lie in",
    )
    changepoint_prior_scale: float = param(
        default=0.05, above=0, low=0.001, high=0.5, log=True, when=_has_trend,
        help="how much the slope may change",
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
        help="whether seasons add to the trend or multiply it",
    )  # fmt: skip
    seasonality_prior_scale: float = param(
        default=10.0, above=0, low=0.01, high=10.0, log=True, help="how large seasons may be",
    )
    seasonalities: dict[str, dict[str, Any]] | None = param(
        default=None,
        help="more seasons: name -> period (days), order, and if wanted prior_scale, mode, condition (a column)",
    )
    holidays: str | dict[str, Any] | None = param(
        default=None, convert=holidays_as_events,
        help="a country ('DE') or a part of one ('DE-BY') whose holidays have effects; or a dict as events, or Prophet's frame",
    )
    holidays_prior_scale: float = param(
        default=10.0, above=0, low=0.01, high=10.0, log=True, when=_has_events,
        help="how large these and other effects may be",
    )
    holidays_mode: Literal["additive", "multiplicative"] | None = param(
        default=None, help="whether they add or multiply; as seasons do if not given"
    )
    events: dict[str, Any] | None = param(
        default=None, convert=plain_events,
        help="own days: name -> list of dates, or dict of dates and if wanted lower_window, upper_window, prior_scale, mode",
    )
    regressors: dict[str, dict[str, Any]] | None = param(
        default=None,
        help="how columns known ahead are used: name -> prior_scale, standardize, mode",
    )

    @property
    def country(self) -> str | None:
        """The country or part of one whose holidays have effects."""
        return self.holidays if isinstance(self.holidays, str) else None

    @property
    def dated_events(self) -> dict[str, Any]:
        """Events and own holidays by name."""
        holidays = {} if self.holidays is None or isinstance(self.holidays, str) else self.holidays
        duplicates = [name for name in holidays if name in (self.events or {})]
        if duplicates:
            raise ParameterError(f"`holidays` and `events` cannot both have {format_list(duplicates)}. Rename it in one of them.")
        return {**holidays, **(self.events or {})}

    @property
    def max_changepoints(self) -> int:
        """How many changes of slope there may be."""
        if self.growth == "flat":
            return 0
        return self.n_changepoints if self.changepoints is None else len(self.changepoints)

    @property
    def bound_columns(self) -> tuple[str, ...]:
        """Columns known ahead that are no regressors, as they say how much there can be."""
        return ()

    @property
    def reserved_names(self) -> tuple[str, ...]:
        """Components it has whatever is declared."""
        return ("trend",)

    def _future_covariates(self, state: State, steps: int, future: Frame | None) -> Mapping[str, Covariate]:
        from deepforecast.models.additive._specification import check_future_conditions

        covariates = super()._future_covariates(state, steps, future)
        check_future_conditions(self, covariates)
        return covariates
