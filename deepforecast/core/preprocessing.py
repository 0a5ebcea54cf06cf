"""A panel as a model takes it: its roles usable, its missing values filled, masked aloud, or refused; long enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.capabilities import Capabilities
from deepforecast.data import imputation as gaps
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import CalibrationError, CapabilityError, DataError, format_list, warn

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

ROLES = ("future", "past", "static")
MissingRows = Mapping[str, NDArray[np.bool_]]  # column -> which of its rows


def preprocess(model: Forecaster, panel: Panel, continues: bool = False) -> Panel:
    """The panel for this model, with no value from outside of it; or what speaks against that. Where it `continues` from what the
    model knows, a series may have no value in it, unless there is something to be filled from it."""
    columns, capabilities = panel.series.columns, model.capabilities
    for role in ROLES:
        names = getattr(columns, role)
        if names and not capabilities.can_use(role):
            raise CapabilityError(
                f"{model.name} cannot use {role} covariates ({format_list(names)}). Leave them out of columns=, or choose a model "
                f"whose capabilities.{role} is true; compare() runs models without what they cannot use."
            )
    categorical = [name for name, covariate in {**panel.covariates, **panel.static}.items() if covariate.categories is not None]
    if categorical and not capabilities.categorical:
        raise CapabilityError(f"{model.name} cannot use categorical covariates ({format_list(categorical)}). Encode them as numbers.")
    filled_panel = _handle_missing(model, panel, continues)
    refuse_out_of_domain(model, filled_panel, None if filled_panel is panel else panel.missing())
    return filled_panel


def drop_unusable(panel: Panel, capabilities: Capabilities) -> tuple[Panel, list[str]]:
    """The panel without the covariates a model cannot use, and their names."""
    columns = panel.series.columns
    dropped = [name for role in ROLES if not capabilities.can_use(role) for name in getattr(columns, role)]
    if not capabilities.categorical:
        covariates = {**panel.covariates, **panel.static}
        dropped += [name for name, covariate in covariates.items() if covariate.categories is not None and name not in dropped]
    if not dropped:
        return panel, []
    future, past, static = (tuple(name for name in getattr(columns, role) if name not in dropped) for role in ROLES)
    panel = replace(
        panel,
        series=replace(panel.series, columns=replace(columns, future=future, past=past, static=static)),
        covariates={name: covariate for name, covariate in panel.covariates.items() if name not in dropped},
        static={name: covariate for name, covariate in panel.static.items() if name not in dropped},
    )
    return panel, dropped


def refuse_short_series(
    model: Forecaster, panel: Panel, min_observations: int, description: str = "values", error_class: type[DataError] = DataError
) -> None:
    """Every series has the values the model needs."""
    short = np.flatnonzero(panel.observed < min_observations)
    if len(short):
        raise error_class(
            f"{model.name} needs at least {min_observations} {description} a series; series {describe_short(panel, short)}. Leave such series out, give "
            "longer ones, or choose a simpler model."
        )


def refuse_too_short_to_fit(model: Forecaster, panel: Panel, min_observations: int) -> None:
    """Every series has the values a fit needs, which calibrates prediction intervals where they are asked for."""
    calibration = int(panel.observed.min()) >= model._min_observations(panel)  # the model itself could be fitted
    refuse_short_series(model, panel, min_observations, error_class=CalibrationError if calibration else DataError)


def describe_short(panel: Panel, short: Ints) -> str:
    """Which series have too few values, and how many each."""
    counts = panel.observed[short]
    if (counts == counts[0]).all():
        return f"{panel.series.labels(short)} has {counts[0]}"
    return format_list([f"{panel.series.label(int(number))} has {panel.observed[number]}" for number in short[:5]], len(short))


def refuse_out_of_domain(model: Forecaster, panel: Panel, imputed: NDArray[np.bool_] | None = None) -> None:
    """Every value lies in the domain that the model declares; those of the rows `imputed` were not given but filled in."""
    domain = model.capabilities.domain
    if domain == "real":
        return
    outside = panel.y < 0 if domain == "nonnegative" else panel.y <= 0
    observed_outside = outside if imputed is None else outside & ~imputed
    if outside.any() and not observed_outside.any():
        raise DataError(
            f"{model.name} takes {domain} values; missing={model.missing_method!r} puts others in: "
            f"{_describe_missing(panel, {panel.series.columns.target: outside})}. Say another missing=, such as 'interpolate' or 'ffill', "
            "or choose a model whose capabilities.domain is 'real'."
        )
    outside = observed_outside
    if outside.any():
        row = int(np.argmax(outside))
        series = _series_with_rows(panel, outside)
        raise DataError(
            f"{model.name} takes {domain} values; column {panel.series.columns.target} has others in series "
            f"{panel.series.labels(series)}, first {panel.y[row]:g} at {panel.format_timestamp(row)}{_first_series_label(panel, series)}. Leave "
            "these series out, or choose a model whose capabilities.domain is 'real'."
        )


def drop_unseen_categories(panel: Panel) -> Panel:
    """The panel with those categories only that occur in it: what a fit on these very rows would know."""

    covariates = {name: occurring_categories(covariate) for name, covariate in panel.covariates.items()}
    return replace(panel, covariates=covariates, static={name: occurring_categories(covariate) for name, covariate in panel.static.items()})


def occurring_categories(covariate: Covariate) -> Covariate:
    """A covariate with those categories only that occur in it."""
    if covariate.categories is None:
        return covariate
    occurs = np.zeros(len(covariate.categories) + 1, dtype=bool)  # the last place is that of the unknown code, -1
    occurs[covariate.values.astype(np.int64)] = True
    return covariate.recode(tuple(name for name, has_rows in zip(covariate.categories, occurs[:-1], strict=True) if has_rows))


def _handle_missing(model: Forecaster, panel: Panel, continues: bool) -> Panel:
    if panel.complete and not panel.covariates:
        return panel
    target = panel.series.columns.target
    missing_by_column = {target: panel.missing()} | {name: covariate.missing() for name, covariate in panel.covariates.items()}
    missing = {name: rows for name, rows in missing_by_column.items() if rows.any()}
    if not missing:
        return panel
    if model.missing_method != "auto":
        return _fill_missing(model, panel, missing, continues)
    if target in missing and not continues:
        _refuse_all_missing(panel, {target: missing[target]})
    if not model.capabilities.missing:
        raise DataError(
            f"{model.name} needs complete data; {_describe_missing(panel, missing)} (rows absent from the frame count as missing). Say "
            "missing='interpolate', 'ffill' or 'zero': filled inside each training window, so that nothing crosses a cutoff."
        )
    if model.capabilities.by_series and not continues:
        _refuse_few_complete_rows(model, panel)
    warn(f"{model.name} forecasts through missing values: {_describe_missing(panel, missing)}.")
    return panel


def _refuse_few_complete_rows(model: Forecaster, panel: Panel) -> None:
    """A model of each series alone learns nothing from observations without their future covariates."""
    complete_rows = ~panel.missing()
    for name in panel.series.columns.future:
        if panel.covariates[name].categories is None:  # a missing category counts as the average one
            complete_rows &= ~panel.covariates[name].missing()
    complete, min_observations = np.add.reduceat(complete_rows, panel.indptr[:-1], dtype=np.int64), model._min_observations(panel)
    short = np.flatnonzero((complete < min_observations) & (panel.observed >= min_observations))
    if len(short):
        raise DataError(
            f"{model.name} needs at least {min_observations} observations of a series with all future covariates "
            f"({format_list(panel.series.columns.future)}); series {panel.series.labels(short)} has {complete[short[0]]}. Fill these "
            "columns, or leave them or these series out."
        )


def _fill_missing(model: Forecaster, panel: Panel, missing: MissingRows, continues: bool) -> Panel:
    target, covariates = panel.series.columns.target, dict(panel.covariates)
    numbers = {name: rows for name, rows in missing.items() if name == target or covariates[name].categories is None}
    to_refuse = numbers if model.missing_method != "zero" else {} if continues else {n: numbers[n] for n in numbers if n == target}
    _refuse_all_missing(panel, to_refuse)
    unknown = {name: rows for name, rows in missing.items() if name not in numbers}
    if unknown:
        warn(f"{model.name} takes missing categories for unknown ones: {_describe_missing(panel, unknown)}.")
    y = gaps.fill_missing(panel.y, panel.indptr, model.missing_method) if target in numbers else panel.y
    for name in numbers:
        if name != target:
            covariates[name] = replace(covariates[name], values=gaps.fill_missing(covariates[name].values, panel.indptr, model.missing_method))
    return replace(panel, y=y, covariates=covariates)


def _refuse_all_missing(panel: Panel, missing: MissingRows) -> None:
    """No series lacks a column altogether: there is nothing to fill it from."""
    for name, rows in missing.items():
        empty = np.flatnonzero(np.add.reduceat(~rows, panel.indptr[:-1], dtype=np.int64) == 0)
        if len(empty):
            raise DataError(
                f"Every series has at least one value; column {name} is missing throughout in series "
                f"{panel.series.labels(empty)}, from {panel.format_timestamp(int(panel.indptr[empty[0]]))} to "
                f"{panel.format_timestamp(int(panel.indptr[empty[0] + 1]) - 1)}{_first_series_label(panel, empty)}. Leave these series out or give "
                "longer histories."
            )


def _describe_missing(panel: Panel, missing: MissingRows) -> str:
    """Which column is missing where; the first of several in full."""
    name, rows = next(iter(missing.items()))
    series = _series_with_rows(panel, rows)
    more = f" (so are rows of {format_list(list(missing)[1:])})" if len(missing) > 1 else ""
    return (
        f"column {name} is missing in {int(rows.sum())} rows of series {panel.series.labels(series)}, first at "
        f"{panel.format_timestamp(int(np.argmax(rows)))}{_first_series_label(panel, series)}{more}"
    )


def _series_with_rows(panel: Panel, rows: NDArray[np.bool_]) -> Ints:
    """The series that some of these rows belong to."""
    return np.unique(np.searchsorted(panel.indptr, np.flatnonzero(rows), side="right") - 1)


def _first_series_label(panel: Panel, series: Ints) -> str:
    """Whose the value is that stands before: where several series are named, the first one's."""
    return f" (series {panel.series.label(int(series[0]))})" if len(series) > 1 else ""
