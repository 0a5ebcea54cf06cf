"""Preparation of a panel for a model: checks of covariates, domain and length, and imputation of missing values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.registry import Capabilities
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Ints
from deepforecast.data.panel import Panel, fill_missing
from deepforecast.errors import (
    CalibrationError,
    CapabilityError,
    DataError,
    DeepForecastError,
    format_list,
    format_value,
    pluralize,
    warn,
)

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

ROLES = ("future", "past", "static")
ON_FAILURE_HINT = "Set on_failure='fallback' or 'drop', leave these series out, pass longer series, or use a simpler model."
MissingRows = Mapping[str, NDArray[np.bool_]]  # column name -> mask of its rows


def preprocess(model: Forecaster, panel: Panel, continues: bool = False) -> Panel:
    """The panel with missing values imputed as the model requires, from values of the panel alone.

    Raises if the model cannot use the panel: its covariates, missing values or the domain of the
    target. With `continues` the panel follows known observations, so a series may have no value in
    it, unless one is needed for imputation.
    """
    columns, capabilities = panel.series.columns, model.capabilities
    for role in ROLES:
        names = getattr(columns, role)
        if names and not capabilities.can_use(role):
            raise CapabilityError(
                f"{model.name} cannot use {role} covariates ({format_list(names)}).",
                hint="Remove them from columns=, or use a model "
                f"whose capabilities.{role} is true; compare() drops covariates that a model cannot use.",
                parameter="columns",
                value=names,
            )
    categorical = [name for name, covariate in {**panel.covariates, **panel.static}.items() if covariate.categories is not None]
    if categorical and not capabilities.categorical:
        raise CapabilityError(
            f"{model.name} cannot use categorical covariates ({format_list(categorical)}).",
            hint="Encode them as numbers, or use a model whose capabilities.categorical is true.",
            parameter="columns",
            value=tuple(categorical),
        )
    if panel.weight is not None and not capabilities.weights:
        raise CapabilityError(
            f"{model.name} cannot use observation weights (column {format_value(columns.weight)}).",
            hint="Remove `weight` from columns=, or use a model whose capabilities.weights is true, such as a regression model or "
            "a network; compare() drops weights that a model cannot use.",
            parameter="columns",
            value=columns.weight,
        )
    filled_panel = _handle_missing(model, panel, continues)
    refuse_out_of_domain(model, filled_panel, None if filled_panel is panel else panel.missing())
    return filled_panel


def drop_unusable(panel: Panel, capabilities: Capabilities) -> tuple[Panel, list[str]]:
    """The panel without the covariates and the weights a model cannot use, and the names of these columns."""
    columns = panel.series.columns
    dropped = [name for role in ROLES if not capabilities.can_use(role) for name in getattr(columns, role)]
    if not capabilities.categorical:
        covariates = {**panel.covariates, **panel.static}
        dropped += [name for name, covariate in covariates.items() if covariate.categories is not None and name not in dropped]
    if columns.weight is not None and not capabilities.weights:
        dropped.append(columns.weight)
        columns, panel = replace(columns, weight=None), replace(panel, weight=None)
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
    model: Forecaster,
    panel: Panel,
    min_observations: int,
    description: str = "values",
    error_class: type[DataError] = DataError,
) -> None:
    """Raise if a series has fewer observations than `min_observations`; `description` says of what, in the plural."""
    short = np.flatnonzero(panel.observed < min_observations)
    if len(short):
        raise error_class(
            f"{model.name} requires at least {min_observations} {description} per series, but series "
            f"{describe_short(panel, short)}.",
            hint=ON_FAILURE_HINT,
            series=panel.series.id_texts(short),
            reason=reason_for_short(model, min_observations, description),
        )


@contextmanager
def hints_without_on_failure() -> Iterator[None]:
    """Errors raised in the block do not suggest `on_failure`, which is set, but there is no series that can be fitted."""
    try:
        yield
    except DeepForecastError as error:
        if error.hint is ON_FAILURE_HINT:
            error.hint = "Pass longer series, or use a simpler model."
        raise


def reason_for_short(model: Forecaster, min_observations: int, description: str = "values") -> str:
    """The reason in `failures_` of a series with fewer observations."""
    return f"It has fewer than the {min_observations} {description} that {model.name} requires."


def refuse_too_short_to_fit(model: Forecaster, panel: Panel, min_observations: int) -> None:
    """Raise if a series has fewer observations than `fit` requires, calibration of intervals included.

    The error is a `CalibrationError` if all series are long enough for the model itself.
    """
    model_could_be_fitted = int(panel.observed.min()) >= model._min_observations(panel)
    refuse_short_series(model, panel, min_observations, error_class=CalibrationError if model_could_be_fitted else DataError)


def describe_short(panel: Panel, short: Ints) -> str:
    """The series in `short` and how many observations they have, e.g. "A, B have 3 each", to follow "series"."""
    n_observed = panel.observed[short]
    if (n_observed == n_observed[0]).all():
        verb, each = ("has", "") if len(short) == 1 else ("have", " each")
        return f"{panel.series.labels(short)} {verb} {n_observed[0]}{each}"
    return format_list([f"{panel.series.label(int(number))} has {panel.observed[number]}" for number in short[:5]], len(short))


def refuse_out_of_domain(model: Forecaster, panel: Panel, imputed: NDArray[np.bool_] | None = None) -> None:
    """Raise if a value is outside the domain of the model; `imputed` masks the rows that were filled in."""
    domain = model.capabilities.domain
    if domain == "real":
        return
    outside = panel.y < 0 if domain == "nonnegative" else panel.y <= 0
    observed_outside = outside if imputed is None else outside & ~imputed
    if outside.any() and not observed_outside.any():
        raise DataError(
            f"{model.name} cannot be used with missing={model.missing_method!r}, as its values must be {domain}, but "
            f"{_describe_missing(panel, {panel.series.columns.target: outside})}.",
            hint="Set missing='interpolate' or 'ffill', or use a model whose capabilities.domain is 'real'.",
            parameter="missing",
            value=model.missing_method,
        )
    outside = observed_outside
    if outside.any():
        row = int(np.argmax(outside))
        series = _series_with_rows(panel, outside)
        raise DataError(
            f"Column {panel.series.columns.target} must be {domain} for {model.name}, got {panel.y[row]:g} at "
            f"{panel.format_timestamp(row)}{_first_series_label(panel, series)} in series {panel.series.labels(series)}.",
            hint="Leave these series out, or use a model whose capabilities.domain is 'real'.",
            series=panel.series.id_texts(series),
            reason=f"Its values are not all {domain}, as {model.name} requires.",
        )


def drop_unseen_categories(panel: Panel) -> Panel:
    """The panel without categories that do not occur in it, as in a fit on exactly these rows."""
    covariates = {name: occurring_categories(covariate) for name, covariate in panel.covariates.items()}
    return replace(
        panel, covariates=covariates, static={name: occurring_categories(covariate) for name, covariate in panel.static.items()}
    )


def occurring_categories(covariate: Covariate) -> Covariate:
    """The covariate without categories that do not occur in it."""
    if covariate.categories is None:
        return covariate
    occurs = np.zeros(len(covariate.categories) + 1, dtype=bool)  # the last element is for the code -1, unknown
    occurs[covariate.values.astype(np.int64)] = True
    return covariate.recode(tuple(name for name, has_rows in zip(covariate.categories, occurs[:-1], strict=True) if has_rows))


def _handle_missing(model: Forecaster, panel: Panel, continues: bool) -> Panel:
    """The panel with missing values filled if the model imputes, else unchanged, with a warning; raises if it cannot use them."""
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
            f"{model.name} cannot handle missing values, but {_describe_missing(panel, missing)} (rows absent from the frame "
            "count as missing).",
            hint="Set missing='interpolate', 'ffill' or 'zero' to fill them within each training window.",
            parameter="missing",
            value=model.missing_method,
            series=panel.series.id_texts(_series_with_rows(panel, np.logical_or.reduce(list(missing.values())))),
            reason=f"It has missing values, which {model.name} cannot handle.",
        )
    if model.capabilities.by_series and not continues:
        _refuse_few_complete_rows(model, panel)
    warn(f"{model.name} forecasts through missing values: {_describe_missing(panel, missing)}.", subject=model.name)
    return panel


def _refuse_few_complete_rows(model: Forecaster, panel: Panel) -> None:
    """Raise if a local model has too few observations whose numeric future covariates are all observed."""
    complete_rows = ~panel.missing()
    for name in panel.series.columns.future:
        if panel.covariates[name].categories is None:  # a missing category is not fatal: it gets an average effect
            complete_rows &= ~panel.covariates[name].missing()
    n_complete = np.add.reduceat(complete_rows, panel.indptr[:-1], dtype=np.int64)
    min_observations = model._min_observations(panel)
    short = np.flatnonzero((n_complete < min_observations) & (panel.observed >= min_observations))
    if len(short):
        raise DataError(
            f"{model.name} requires at least {min_observations} observations per series with values of all future covariates "
            f"({format_list(panel.series.columns.future)}); too few: series {panel.series.labels(short)}; series "
            f"{panel.series.label(int(short[0]))} has {n_complete[short[0]]}.",
            hint="Fill in these columns, or leave them or these series out.",
            series=panel.series.id_texts(short),
            reason=f"It has fewer than the {min_observations} observations with all future covariates that {model.name} requires.",
        )


def _fill_missing(model: Forecaster, panel: Panel, missing: MissingRows, continues: bool) -> Panel:
    """Fill the target and numeric covariates by the model's method; missing categories become unknown, with a warning.

    A column without any value in a series raises `DataError`. With method "zero" only the target
    requires a value, and nothing if the panel continues known observations.
    """
    target, covariates = panel.series.columns.target, dict(panel.covariates)
    numeric = {name: rows for name, rows in missing.items() if name == target or covariates[name].categories is None}
    requires_value = numeric
    if model.missing_method == "zero":
        requires_value = {} if continues else {name: rows for name, rows in numeric.items() if name == target}
    _refuse_all_missing(panel, requires_value)
    categorical = {name: rows for name, rows in missing.items() if name not in numeric}
    if categorical:
        warn(f"{model.name} treats missing categories as unknown: {_describe_missing(panel, categorical)}.", subject=model.name)
    y = fill_missing(panel.y, panel.indptr, model.missing_method) if target in numeric else panel.y
    for name in numeric:
        if name != target:
            covariates[name] = replace(
                covariates[name], values=fill_missing(covariates[name].values, panel.indptr, model.missing_method)
            )
    return replace(panel, y=y, covariates=covariates)


def _refuse_all_missing(panel: Panel, missing: MissingRows) -> None:
    """Raise if a column has no value at all in a series."""
    for name, rows in missing.items():
        empty = np.flatnonzero(np.add.reduceat(~rows, panel.indptr[:-1], dtype=np.int64) == 0)
        if len(empty):
            raise DataError(
                f"Every series must have at least one value in each column, but all values of column {name} are missing in series "
                f"{panel.series.labels(empty)}, from {panel.format_timestamp(int(panel.indptr[empty[0]]))} to "
                f"{panel.format_timestamp(int(panel.indptr[empty[0] + 1]) - 1)}{_first_series_label(panel, empty)}.",
                hint="Leave these series out, or pass longer histories.",
                series=panel.series.id_texts(empty),
            )


def _describe_missing(panel: Panel, missing: MissingRows) -> str:
    """Where values are missing, as a clause: number of rows, series and first timestamp of the first column, then the others."""
    name, rows = next(iter(missing.items()))
    series = _series_with_rows(panel, rows)
    more = f" (also in {format_list(list(missing)[1:])})" if len(missing) > 1 else ""
    return (
        f"column {name} is missing in {pluralize(int(rows.sum()), 'row')} of series {panel.series.labels(series)}, first at "
        f"{panel.format_timestamp(int(np.argmax(rows)))}{_first_series_label(panel, series)}{more}"
    )


def _series_with_rows(panel: Panel, rows: NDArray[np.bool_]) -> Ints:
    """The numbers of the series that the masked rows belong to."""
    return np.unique(np.searchsorted(panel.indptr, np.flatnonzero(rows), side="right") - 1)


def _first_series_label(panel: Panel, series: Ints) -> str:
    """The first series, in parentheses, if there are several."""
    return f" (series {panel.series.label(int(series[0]))})" if len(series) > 1 else ""
