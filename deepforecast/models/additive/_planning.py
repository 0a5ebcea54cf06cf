"""From the parameters of a model and a panel to the parts of its forecast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data.panel import Panel
from deepforecast.data.parts import ALWAYS, AUTO, Part, Parts
from deepforecast.data.parts import EVENT as AN_EVENT
from deepforecast.data.parts import HOLIDAY as A_HOLIDAY
from deepforecast.data.parts import REGRESSOR as A_REGRESSOR
from deepforecast.data.parts import SEASON as A_SEASON
from deepforecast.errors import DataError, ParameterError, some
from deepforecast.models.additive._declared import EVENT, REGRESSOR, SEASON, day_numbers, declared

if TYPE_CHECKING:
    from deepforecast.data.covariates import Covariate
    from deepforecast.models.additive._base import AdditiveForecaster

USUAL = {"yearly": (365.25, 10, 730.0, 0.0), "weekly": (7.0, 3, 14.0, 7.0), "daily": (1.0, 4, 2.0, 1.0)}
"""Seasons found by themselves: period in days, order, days a series must span, and days that rows lie less apart (0: any)."""


def planned(model: AdditiveForecaster, panel: Panel) -> Parts:
    """The parts, refused where their names or columns do not go together."""
    parts = (*_seasons(model, panel), *_holidays(model, panel), *_events(model, panel), *_regressors(model, panel))
    names = [*model.taken_names, *(one.name for one in parts)]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ParameterError(
            f"Each component of {model.name} has a name of its own; {some(twice)} would stand there twice ("
            f"{some(model.taken_names)} are taken). Rename the season, event or column."
        )
    return parts


def _seasons(model: AdditiveForecaster, panel: Panel) -> Iterator[Part]:
    own = declared(model.seasonalities, "seasonalities", SEASON)
    dated = bool(panel.calendar.frequency.base)
    usual = model.seasonality_mode == "multiplicative"
    for name, (period, order, span, apart) in USUAL.items():
        said = getattr(model, f"{name}_seasonality")
        if said in (False, 0) or name in own or (said == "auto" and not dated):
            continue
        if not dated:
            raise ParameterError(f"{name}_seasonality needs dates; time is counted in integers. Declare it in seasonalities=.")
        when, count = (AUTO, order) if said == "auto" else (ALWAYS, order if said is True else int(said))
        yield Part(
            name, A_SEASON, 2 * count, float(model.seasonality_prior_scale), usual, period, count, "", when, span, apart
        )
    for name, said in own.items():
        condition = said.get("condition", "")
        if condition:
            _check_condition(name, condition, panel)
        prior = float(said.get("prior_scale", model.seasonality_prior_scale))
        order = int(said["order"])
        yield Part(name, A_SEASON, 2 * order, prior, _multiplies(said, usual), float(said["period"]), order, condition)


def check_ahead(model: AdditiveForecaster, future: Mapping[str, Covariate]) -> None:
    """Conditions are flags ahead, too."""
    for said in declared(model.seasonalities, "seasonalities", SEASON).values():
        if said.get("condition") in future:
            _check_flag(said["condition"], future[said["condition"]])


def _check_condition(name: str, condition: str, panel: Panel) -> None:
    if condition not in panel.series.columns.future:
        raise ParameterError(
            f"seasonalities[{name!r}]: 'condition' names a column known ahead; {condition!r} is not declared as one. Say "
            f"columns={{'future': [..., {condition!r}]}}."
        )
    _check_flag(condition, panel.covariates[condition])


def _check_flag(condition: str, column: Covariate) -> None:
    values, named = column.values, column.categories is not None
    wrong = values[~(np.isnan(values) | (values == 0.0) | (values == 1.0))]
    if named or len(wrong):
        found = "categories" if named else f"{wrong[0]:g}"
        raise DataError(f"Column {condition} says by 1 and 0 where a season holds; it holds {found}. Make it a flag.")


def _holidays(model: AdditiveForecaster, panel: Panel) -> Iterator[Part]:
    if model.country is None:
        return
    from deepforecast.data.calendar_features import checked_country
    from deepforecast.data.holiday_days import names_of

    checked_country(model.country, panel.calendar)
    names = names_of(model.country)
    yield Part(
        "holidays", A_HOLIDAY, len(names), float(model.holidays_prior_scale), _holidays_multiply(model), names=names
    )


def _events(model: AdditiveForecaster, panel: Panel) -> Iterator[Part]:
    for name, said in declared(model.dated_events, "events", EVENT).items():
        days = day_numbers(said["dates"], f"events[{name!r}]", not panel.calendar.frequency.base)
        lower, upper = int(said.get("lower_window", 0)), int(said.get("upper_window", 0))
        prior = float(said.get("prior_scale", model.holidays_prior_scale))
        yield Part(
            name, AN_EVENT, upper - lower + 1, prior, _multiplies(said, _holidays_multiply(model)), days=days, lower=lower,
            upper=upper,
        )  # fmt: skip


def _regressors(model: AdditiveForecaster, panel: Panel) -> Iterator[Part]:
    own = declared(model.regressors, "regressors", REGRESSOR)
    future = panel.series.columns.future
    absent = [name for name in own if name not in future]
    if absent:
        raise ParameterError(
            f"regressors says how columns known ahead are used; {some(absent)} is not declared as one. Say "
            f"columns={{'future': {absent!r}}}."
        )
    bounds = model.named_bounds
    lacking = [one for one in bounds if one not in future]
    if lacking:
        raise ParameterError(
            f"cap and floor are numbers or columns known ahead; {some(lacking)} is not declared as one. Say "
            f"columns={{'future': {lacking!r}}}."
        )
    seasons = declared(model.seasonalities, "seasonalities", SEASON).values()
    taken = {*bounds, *(said.get("condition") for said in seasons)} - set(own)
    for name in future:
        if name in taken:
            continue
        said, categories = own.get(name, {}), panel.covariates[name].categories
        standardize = said.get("standardize", "auto")
        yield Part(
            name,
            A_REGRESSOR,
            1 if categories is None else len(categories),
            float(said.get("prior_scale", model.holidays_prior_scale)),
            _multiplies(said, model.seasonality_mode == "multiplicative"),
            names=() if categories is None else categories,
            standardize="no" if categories is not None else "auto" if standardize == "auto" else "yes" if standardize else "no",
        )


def _multiplies(said: dict[str, Any], otherwise: bool) -> bool:
    return bool(said["mode"] == "multiplicative") if "mode" in said else otherwise


def _holidays_multiply(model: AdditiveForecaster) -> bool:
    return bool((model.holidays_mode or model.seasonality_mode) == "multiplicative")
