"""A panel as a model takes it: its roles usable, its missing values filled, masked aloud, or refused; long enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.capabilities import Capabilities
from deepforecast.data import missing as gaps
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import CalibrationError, CapabilityError, DataError, say, some

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

ROLES = ("future", "past", "static")
Missing = Mapping[str, NDArray[np.bool_]]  # column -> which of its rows


def prepared(model: Forecaster, panel: Panel, goes_on: bool = False) -> Panel:
    """The panel for this model, with no value from outside of it; or what speaks against that. Where it `goes_on` from what the
    model knows, a series may have no value in it, unless there is something to be filled from it."""
    columns, able = panel.series.columns, model.capabilities
    for role in ROLES:
        names = getattr(columns, role)
        if names and not able.can_use(role):
            raise CapabilityError(
                f"{model.name} cannot use {role} covariates ({some(names)}). Leave them out of columns=, or choose a model "
                f"whose capabilities.{role} is true; compare() runs models without what they cannot use."
            )
    named = [name for name, one in {**panel.covariates, **panel.static}.items() if one.categories is not None]
    if named and not able.categorical:
        raise CapabilityError(f"{model.name} cannot use categorical covariates ({some(named)}). Encode them as numbers.")
    whole = _without_missing(model, panel, goes_on)
    refuse_outside(model, whole, None if whole is panel else panel.missing())
    return whole


def usable(panel: Panel, able: Capabilities) -> tuple[Panel, list[str]]:
    """The panel without the covariates a model cannot use, and their names."""
    columns = panel.series.columns
    dropped = [name for role in ROLES if not able.can_use(role) for name in getattr(columns, role)]
    if not able.categorical:
        held = {**panel.covariates, **panel.static}
        dropped += [name for name, one in held.items() if one.categories is not None and name not in dropped]
    if not dropped:
        return panel, []
    future, past, static = (tuple(name for name in getattr(columns, role) if name not in dropped) for role in ROLES)
    panel = replace(
        panel,
        series=replace(panel.series, columns=replace(columns, future=future, past=past, static=static)),
        covariates={name: one for name, one in panel.covariates.items() if name not in dropped},
        static={name: one for name, one in panel.static.items() if name not in dropped},
    )
    return panel, dropped


def refuse_short(
    model: Forecaster, panel: Panel, needed: int, what: str = "values", error: type[DataError] = DataError
) -> None:
    """Every series has the values the model needs."""
    short = np.flatnonzero(panel.observed < needed)
    if len(short):
        raise error(
            f"{model.name} needs at least {needed} {what} a series; series {fewer(panel, short)}. Leave such series out, give "
            "longer ones, or choose a simpler model."
        )


def refuse_short_to_fit(model: Forecaster, panel: Panel, needed: int) -> None:
    """Every series has the values a fit needs, which calibrates prediction intervals where they are asked for."""
    calibration = int(panel.observed.min()) >= model._needs(panel)  # the model itself could be fitted
    refuse_short(model, panel, needed, error=CalibrationError if calibration else DataError)


def fewer(panel: Panel, short: Ints) -> str:
    """Which series have too few values, and how many each."""
    counts = panel.observed[short]
    if (counts == counts[0]).all():
        return f"{panel.series.labels(short)} has {counts[0]}"
    return some([f"{panel.series.label(int(one))} has {panel.observed[one]}" for one in short[:5]], len(short))


def refuse_outside(model: Forecaster, panel: Panel, made: NDArray[np.bool_] | None = None) -> None:
    """Every value lies in the domain that the model declares; those of the rows `made` were not given but filled in."""
    domain = model.capabilities.domain
    if domain == "real":
        return
    outside = panel.y < 0 if domain == "nonnegative" else panel.y <= 0
    given = outside if made is None else outside & ~made
    if outside.any() and not given.any():
        raise DataError(
            f"{model.name} takes {domain} values; missing={model.filling!r} puts others in: "
            f"{_where(panel, {panel.series.columns.target: outside})}. Say another missing=, such as 'interpolate' or 'ffill', "
            "or choose a model whose capabilities.domain is 'real'."
        )
    outside = given
    if outside.any():
        row = int(np.argmax(outside))
        series = _series_of(panel, outside)
        raise DataError(
            f"{model.name} takes {domain} values; column {panel.series.columns.target} has others in series "
            f"{panel.series.labels(series)}, first {panel.y[row]:g} at {panel.stamp(row)}{_of_first(panel, series)}. Leave "
            "these series out, or choose a model whose capabilities.domain is 'real'."
        )


def as_seen(panel: Panel) -> Panel:
    """The panel with those categories only that occur in it: what a fit on these very rows would know."""

    covariates = {name: occurring(one) for name, one in panel.covariates.items()}
    return replace(panel, covariates=covariates, static={name: occurring(one) for name, one in panel.static.items()})


def occurring(one: Covariate) -> Covariate:
    """A covariate with those categories only that occur in it."""
    if one.categories is None:
        return one
    there = np.zeros(len(one.categories) + 1, dtype=bool)  # the last place is that of the unknown code, -1
    there[one.values.astype(np.int64)] = True
    return one.recoded(tuple(name for name, is_there in zip(one.categories, there[:-1], strict=True) if is_there))


def _without_missing(model: Forecaster, panel: Panel, goes_on: bool) -> Panel:
    if panel.complete and not panel.covariates:
        return panel
    target = panel.series.columns.target
    every = {target: panel.missing()} | {name: one.missing() for name, one in panel.covariates.items()}
    missing = {name: rows for name, rows in every.items() if rows.any()}
    if not missing:
        return panel
    if model.filling != "auto":
        return _filled(model, panel, missing, goes_on)
    if target in missing and not goes_on:
        _refuse_empty(panel, {target: missing[target]})
    if not model.capabilities.missing:
        raise DataError(
            f"{model.name} needs complete data; {_where(panel, missing)} (rows absent from the frame count as missing). Say "
            "missing='interpolate', 'ffill' or 'zero': filled inside each training window, so that nothing crosses a cutoff."
        )
    if model.capabilities.by_series and not goes_on:
        _refuse_few_complete(model, panel)
    say(f"{model.name} forecasts through missing values: {_where(panel, missing)}.")
    return panel


def _refuse_few_complete(model: Forecaster, panel: Panel) -> None:
    """A model of each series alone learns nothing from observations without their future covariates."""
    known = ~panel.missing()
    for name in panel.series.columns.future:
        if panel.covariates[name].categories is None:  # a missing category counts as the average one
            known &= ~panel.covariates[name].missing()
    complete, needed = np.add.reduceat(known, panel.indptr[:-1], dtype=np.int64), model._needs(panel)
    few = np.flatnonzero((complete < needed) & (panel.observed >= needed))
    if len(few):
        raise DataError(
            f"{model.name} needs at least {needed} observations of a series with all future covariates "
            f"({some(panel.series.columns.future)}); series {panel.series.labels(few)} has {complete[few[0]]}. Fill these "
            "columns, or leave them or these series out."
        )


def _filled(model: Forecaster, panel: Panel, missing: Missing, goes_on: bool) -> Panel:
    target, held = panel.series.columns.target, dict(panel.covariates)
    numbers = {name: rows for name, rows in missing.items() if name == target or held[name].categories is None}
    to_refuse = numbers if model.filling != "zero" else {} if goes_on else {n: numbers[n] for n in numbers if n == target}
    _refuse_empty(panel, to_refuse)
    unknown = {name: rows for name, rows in missing.items() if name not in numbers}
    if unknown:
        say(f"{model.name} takes missing categories for unknown ones: {_where(panel, unknown)}.")
    y = gaps.filled(panel.y, panel.indptr, model.filling) if target in numbers else panel.y
    for name in numbers:
        if name != target:
            held[name] = replace(held[name], values=gaps.filled(held[name].values, panel.indptr, model.filling))
    return replace(panel, y=y, covariates=held)


def _refuse_empty(panel: Panel, missing: Missing) -> None:
    """No series lacks a column altogether: there is nothing to fill it from."""
    for name, rows in missing.items():
        empty = np.flatnonzero(np.add.reduceat(~rows, panel.indptr[:-1], dtype=np.int64) == 0)
        if len(empty):
            raise DataError(
                f"Every series has at least one value; column {name} is missing throughout in series "
                f"{panel.series.labels(empty)}, from {panel.stamp(int(panel.indptr[empty[0]]))} to "
                f"{panel.stamp(int(panel.indptr[empty[0] + 1]) - 1)}{_of_first(panel, empty)}. Leave these series out or give "
                "longer histories."
            )


def _where(panel: Panel, missing: Missing) -> str:
    """Which column is missing where; the first of several in full."""
    name, rows = next(iter(missing.items()))
    series = _series_of(panel, rows)
    more = f" (so are rows of {some(list(missing)[1:])})" if len(missing) > 1 else ""
    return (
        f"column {name} is missing in {int(rows.sum())} rows of series {panel.series.labels(series)}, first at "
        f"{panel.stamp(int(np.argmax(rows)))}{_of_first(panel, series)}{more}"
    )


def _series_of(panel: Panel, rows: NDArray[np.bool_]) -> Ints:
    """The series that some of these rows belong to."""
    return np.unique(np.searchsorted(panel.indptr, np.flatnonzero(rows), side="right") - 1)


def _of_first(panel: Panel, series: Ints) -> str:
    """Whose the value is that stands before: where several series are named, the first one's."""
    return f" (series {panel.series.label(int(series[0]))})" if len(series) > 1 else ""
