"""The base class of Prophet and NeuralProphet: parameters of trend, seasonality and events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import Not, param
from deepforecast.errors import ParameterError, format_list
from deepforecast.models.additive._declarations import holidays_as_events, plain_events

if TYPE_CHECKING:
    from deepforecast.core.state import State
    from deepforecast.data.covariates import Covariate

SEASONALITY = (
    "number of Fourier terms (pairs of sine and cosine); True: the default number; False: no such seasonality; 'auto': "
    "the default number if the history spans two periods and the observations are dense enough, else none"
)


def _has_events(values: Mapping[str, Any]) -> bool:
    return bool(values["holidays"] is not None or values["events"])


class AdditiveForecaster(Forecaster):
    """Base class of additive models: trend, seasonality, holidays, events and regressors.

    A subclass defines the choices of `growth` and the estimation.
    """

    warm_up_params: ClassVar[dict[str, Any]] = {}  # see evaluation.warm_up
    dateless: ClassVar[dict[str, Any]] = dict.fromkeys(("yearly_seasonality", "weekly_seasonality", "daily_seasonality"), False)

    growth: str = param(default="linear", help="type of trend")
    changepoints: list[Any] | None = param(
        default=None, needs={"growth": Not("flat")},
        help="dates of possible changes of the slope; None: n_changepoints dates, evenly spaced over the observations",
    )
    n_changepoints: int = param(
        default=25, at_least=0, at_most=1000, low=5, high=50, needs={"growth": Not("flat"), "changepoints": None},
        help="number of potential changepoints",
    )
    changepoint_range: float = param(
        default=0.8, at_least=0, at_most=1, low=0.7, high=0.95, needs={"growth": Not("flat"), "changepoints": None},
        help="fraction of the history, from its start, that contains the changepoints",
    )
    changepoint_prior_scale: float = param(
        default=0.05, above=0, low=0.001, high=0.5, log=True, needs={"growth": Not("flat")},
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
        help="default mode of seasonalities and of effects: 'additive', or 'multiplicative' (proportional to the trend)",
    )  # fmt: skip
    seasonality_prior_scale: float = param(
        default=10.0, above=0, low=0.01, high=10.0, log=True,
        help="scale of the normal prior on seasonal coefficients",
    )
    seasonalities: dict[str, dict[str, Any]] | None = param(
        default=None,
        help="additional seasonalities: name -> dict with the keys period (in days) and order (number of Fourier terms), "
        "optionally prior_scale, mode, condition (name of a future covariate of 0 and 1); None: no additional ones",
    )
    holidays: str | dict[str, Any] | None = param(
        default=None, convert=holidays_as_events,
        help="country ('DE') or subdivision ('DE-BY') whose public holidays have effects, a dict as in events, or a "
        "DataFrame with the columns holiday and ds, as in Prophet; None: no holidays",
    )
    holidays_prior_scale: float = param(
        default=10.0, above=0, low=0.01, high=10.0, log=True, when=_has_events,
        help="scale of the normal prior on effects of holidays, events and regressors",
    )
    holidays_mode: Literal["additive", "multiplicative"] | None = param(
        default=None,
        help="mode of holiday and event effects, 'additive' or 'multiplicative'; None: same as seasonality_mode",
    )
    events: dict[str, Any] | None = param(
        default=None, convert=plain_events,
        help="events: name -> list of dates, or dict with the key dates, optionally lower_window and upper_window (days "
        "before and after with effects of their own), prior_scale, mode; None: no events",
    )
    regressors: dict[str, dict[str, Any]] | None = param(
        default=None,
        help="options of future covariates: name -> dict with the optional keys prior_scale, standardize, mode; None: "
        "defaults for all of them",
    )

    @property
    def country(self) -> str | None:
        """Country or subdivision of the public holidays; None if `holidays` is None or has dates."""
        return self.holidays if isinstance(self.holidays, str) else None

    @property
    def dated_events(self) -> dict[str, Any]:
        """Events and holidays with dates, by name; `ParameterError` if a name is in both."""
        holidays = {} if self.holidays is None or isinstance(self.holidays, str) else self.holidays
        duplicates = [name for name in holidays if name in (self.events or {})]
        if duplicates:
            raise ParameterError(
                f"`holidays` and `events` must have different names, but both contain: {format_list(duplicates)}.",
                hint="Rename them "
                "in one of the two.",
                parameter="holidays",
            )
        return {**holidays, **(self.events or {})}

    @property
    def max_changepoints(self) -> int:
        """Maximum number of changepoints: that of the parameters, 0 for a flat trend; short series have fewer."""
        if self.growth == "flat":
            return 0
        return self.n_changepoints if self.changepoints is None else len(self.changepoints)

    @property
    def bound_columns(self) -> tuple[str, ...]:
        """Names of the future covariates that are bounds (cap, floor) and not regressors."""
        return ()

    @property
    def reserved_names(self) -> tuple[str, ...]:
        """Names of components that seasonalities, events and covariates cannot have."""
        return ("trend",)

    def _check_future(self, state: State, future: Mapping[str, Covariate]) -> None:
        """Raise `DataError` if a condition of a seasonality has other values than 0 and 1."""
        from deepforecast.models.additive._specification import check_future_conditions

        super()._check_future(state, future)
        check_future_conditions(self, future)
