"""Base class of additive models (Prophet, NeuralProphet): their parameters, and the components declared by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from deepforecast.core.component_options import (
    EVENT,
    REGRESSOR,
    SEASON,
    day_numbers,
    holidays_as_events,
    plain_events,
    read_declarations,
)
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.params import Not, param
from deepforecast.data.components import ALWAYS, AUTO, ComponentSpec, ComponentSpecs
from deepforecast.data.components import EVENT as EVENT_KIND
from deepforecast.data.components import HOLIDAY as HOLIDAY_KIND
from deepforecast.data.components import REGRESSOR as REGRESSOR_KIND
from deepforecast.data.components import SEASON as SEASON_KIND
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, format_list

if TYPE_CHECKING:
    from deepforecast.core.state import State
    from deepforecast.data.covariates import Covariate

SEASONALITY = (
    "number of Fourier terms (pairs of sine and cosine); True: the default number; False: no such seasonality; 'auto': "
    "the default number if the history spans two periods and the observations are dense enough, else none"
)

DEFAULT_SEASONS = {"yearly": (365.25, 10, 730.0, 0.0), "weekly": (7.0, 3, 14.0, 7.0), "daily": (1.0, 4, 2.0, 1.0)}
"""Automatic seasonality: period in days, order, minimum span and maximum gap in days (0: any)."""
STANDARDIZE_CODES: dict[Any, str] = {"auto": "auto", True: "yes", False: "no"}


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
        super()._check_future(state, future)
        check_future_conditions(self, future)


def build_components(model: AdditiveForecaster, panel: Panel) -> ComponentSpecs:
    """Build the components: seasonalities, holidays, events and regressors, in this order.

    `ParameterError` for duplicate names, invalid declarations or missing covariates.
    """
    components = (*_seasons(model, panel), *_holidays(model, panel), *_events(model, panel), *_regressors(model, panel))
    names = [*model.reserved_names, *(component.name for component in components)]
    duplicates = [name for index, name in enumerate(names) if name in names[:index]]
    if duplicates:
        raise ParameterError(
            f"Components of {model.name} must have unique names other than {format_list(model.reserved_names)}; reserved or "
            f"used more than once: {format_list(duplicates)}.",
            hint="Rename the seasonality, event or covariate."
        )
    return components


def _seasons(model: AdditiveForecaster, panel: Panel) -> Iterator[ComponentSpec]:
    """Yield the seasonalities: yearly, weekly and daily, unless declared or switched off, then the declared ones."""
    declarations = read_declarations(model.seasonalities, "seasonalities", SEASON)
    dated = bool(panel.calendar.frequency.base)
    is_multiplicative = model.seasonality_mode == "multiplicative"
    for name, (period, order, min_span, max_gap) in DEFAULT_SEASONS.items():
        setting = getattr(model, f"{name}_seasonality")
        if setting in (False, 0) or name in declarations or (setting == "auto" and not dated):
            continue
        if not dated:
            raise ParameterError(
                f"`{name}_seasonality` cannot be used with integer time.",
                hint="Use `seasonalities` instead.",
                parameter=f"{name}_seasonality",
            )
        n_terms = order if setting == "auto" or setting is True else int(setting)
        yield ComponentSpec(
            name,
            SEASON_KIND,
            columns=2 * n_terms,
            prior_scale=float(model.seasonality_prior_scale),
            multiplicative=is_multiplicative,
            period=period,
            order=n_terms,
            when=AUTO if setting == "auto" else ALWAYS,
            min_span=min_span,
            max_gap=max_gap,
        )
    for name, setting in declarations.items():
        condition = setting.get("condition", "")
        if condition:
            _check_condition(name, condition, panel)
        order = int(setting["order"])
        yield ComponentSpec(
            name,
            SEASON_KIND,
            columns=2 * order,
            prior_scale=float(setting.get("prior_scale", model.seasonality_prior_scale)),
            multiplicative=_is_multiplicative(setting, is_multiplicative),
            period=float(setting["period"]),
            order=order,
            condition=condition,
        )


def check_future_conditions(model: AdditiveForecaster, future: Mapping[str, Covariate]) -> None:
    """Raise `DataError` unless the conditions among the future covariates contain only 0 and 1."""
    for fields in read_declarations(model.seasonalities, "seasonalities", SEASON).values():
        if fields.get("condition") in future:
            _check_flag(fields["condition"], future[fields["condition"]])


def _check_condition(name: str, condition: str, panel: Panel) -> None:
    """Raise unless the condition of the seasonality `name` is a future covariate of 0 and 1."""
    if condition not in panel.series.columns.future:
        raise ParameterError(
            f"seasonalities[{name!r}]: 'condition' must be a future covariate, got "
            f"{condition!r}.",
            hint=f"Pass columns={{'future': [..., {condition!r}]}} to `fit`.",
            parameter="seasonalities",
        )
    _check_flag(condition, panel.covariates[condition])


def _check_flag(condition: str, column: Covariate) -> None:
    """Raise `DataError` unless the observed values of a numeric column are 0 or 1."""
    values, is_categorical = column.values, column.categories is not None
    invalid = values[~(np.isnan(values) | (values == 0.0) | (values == 1.0))]
    if is_categorical or len(invalid):
        content = "categories" if is_categorical else f"{invalid[0]:g}"
        raise DataError(
            f"Column {condition}, the condition of a seasonality, must contain only 0 and 1, got {content}.",
            hint="Convert it to a "
            "numeric column of 0 and 1."
        )


def _holidays(model: AdditiveForecaster, panel: Panel) -> Iterator[ComponentSpec]:
    """Yield one component with a column per public holiday of the country, if there is a country."""
    if model.country is None:
        return
    from deepforecast.data.features import country_holiday_names, validate_country

    validate_country(model.country, panel.calendar)
    names = country_holiday_names(model.country)
    yield ComponentSpec(
        "holidays",
        HOLIDAY_KIND,
        columns=len(names),
        prior_scale=float(model.holidays_prior_scale),
        multiplicative=_has_multiplicative_holidays(model),
        names=names,
    )


def _events(model: AdditiveForecaster, panel: Panel) -> Iterator[ComponentSpec]:
    """Yield a component per event, with a column per day of its window."""
    for name, fields in read_declarations(model.dated_events, "events", EVENT).items():
        days = day_numbers(fields["dates"], f"events[{name!r}]", not panel.calendar.frequency.base)
        lower, upper = int(fields.get("lower_window", 0)), int(fields.get("upper_window", 0))
        yield ComponentSpec(
            name,
            EVENT_KIND,
            columns=upper - lower + 1,
            prior_scale=float(fields.get("prior_scale", model.holidays_prior_scale)),
            multiplicative=_is_multiplicative(fields, _has_multiplicative_holidays(model)),
            days=days,
            lower=lower,
            upper=upper,
        )


def _regressors(model: AdditiveForecaster, panel: Panel) -> Iterator[ComponentSpec]:
    """Yield a component per future covariate, unless it is a bound or the condition of a seasonality.

    Bounds and conditions are regressors, too, if they are declared in `regressors`.
    """
    declarations = read_declarations(model.regressors, "regressors", REGRESSOR)
    future = panel.series.columns.future
    absent = [name for name in declarations if name not in future]
    if absent:
        raise ParameterError(
            f"`regressors` must have names of future covariates as keys, but these are none: {format_list(absent)}.",
            hint="Pass "
            f"columns={{'future': {absent!r}}} to `fit`.",
            parameter="regressors",
        )
    bounds = model.bound_columns
    missing = [column for column in bounds if column not in future]
    if missing:
        raise ParameterError(
            "`cap` and `floor` must be numbers or names of future covariates, got "
            f"{format_list(missing)}.",
            hint=f"Pass columns={{'future': {missing!r}}} to `fit`.",
            parameter="cap",
        )
    seasons = read_declarations(model.seasonalities, "seasonalities", SEASON).values()
    excluded = {*bounds, *(fields.get("condition") for fields in seasons)} - set(declarations)
    for name in future:
        if name in excluded:
            continue
        fields = declarations.get(name, {})
        categories = panel.covariates[name].categories
        standardize = fields.get("standardize", "auto") if categories is None else False
        yield ComponentSpec(
            name,
            REGRESSOR_KIND,
            columns=1 if categories is None else len(categories),
            prior_scale=float(fields.get("prior_scale", model.holidays_prior_scale)),
            multiplicative=_is_multiplicative(fields, model.seasonality_mode == "multiplicative"),
            names=() if categories is None else categories,
            standardize=STANDARDIZE_CODES[standardize],
        )


def _is_multiplicative(fields: dict[str, Any], default: bool) -> bool:
    """Whether the declared mode is multiplicative; `default` if there is none."""
    return bool(fields["mode"] == "multiplicative") if "mode" in fields else default


def _has_multiplicative_holidays(model: AdditiveForecaster) -> bool:
    return bool((model.holidays_mode or model.seasonality_mode) == "multiplicative")
