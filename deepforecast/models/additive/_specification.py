"""Components of an additive model, from its parameters and a panel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data.components import ALWAYS, AUTO, ComponentSpec, ComponentSpecs
from deepforecast.data.components import EVENT as EVENT_KIND
from deepforecast.data.components import HOLIDAY as HOLIDAY_KIND
from deepforecast.data.components import REGRESSOR as REGRESSOR_KIND
from deepforecast.data.components import SEASON as SEASON_KIND
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, format_list
from deepforecast.models.additive._declarations import EVENT, REGRESSOR, SEASON, day_numbers, read_declarations

if TYPE_CHECKING:
    from deepforecast.data.covariates import Covariate
    from deepforecast.models.additive._base import AdditiveForecaster

DEFAULT_SEASONS = {"yearly": (365.25, 10, 730.0, 0.0), "weekly": (7.0, 3, 14.0, 7.0), "daily": (1.0, 4, 2.0, 1.0)}
"""Automatic seasonality: period in days, order, minimum span and maximum gap in days (0: any)."""

STANDARDIZE_CODES: dict[Any, str] = {"auto": "auto", True: "yes", False: "no"}


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
