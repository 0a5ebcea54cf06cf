"""Columns known ahead as numbers for a linear term: categories coded against their mean, so that an unknown one is average."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.state import State
from deepforecast.data.covariates import UNKNOWN, Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel, Series
from deepforecast.errors import format_list, warn


def design_matrix(covariates: Mapping[str, Covariate]) -> Floats:
    """One row for each value of the columns, flattened; one column a number, one less than it has categories for others.

    NaN where a number is missing; a category that is missing or was never seen in fit counts as the average one.
    """
    columns = [column for covariate in covariates.values() for column in _encode(covariate)]
    return np.stack(columns, axis=-1) if columns else np.empty((0, 0))


def standardize(matrix: Floats, indptr: Ints) -> tuple[Floats, Floats, Floats]:
    """The matrix with every column centred and scaled within each series, and centres and scales (series, columns).

    A column that never varies in a series tells nothing there: its scale is infinite, so that it counts as 0.
    """
    counts = np.diff(indptr)[:, None]
    is_present = np.where(np.isnan(matrix), 0.0, 1.0)
    n_present = np.maximum(np.add.reduceat(is_present, indptr[:-1]), 1.0)
    centre = np.add.reduceat(np.where(is_present > 0, matrix, 0.0), indptr[:-1]) / n_present
    deviation = matrix - np.repeat(centre, counts[:, 0], axis=0)
    scale = np.sqrt(np.add.reduceat(np.where(is_present > 0, deviation * deviation, 0.0), indptr[:-1]) / n_present)
    is_constant = scale <= 1e-12 * np.maximum(np.abs(centre), np.finfo(float).tiny)
    scale = np.where(is_constant, np.inf, scale)
    return deviation / np.repeat(scale, counts[:, 0], axis=0), centre, scale


def effect_columns(state: State, coefficients: Floats) -> dict[str, Floats]:
    """What one unit of each column known ahead adds, or each of its categories beside their mean, as `effect_<column>`: from
    the coefficients of `design_matrix`, (series, columns)."""
    effects, position = {}, 0
    for name in state.series.columns.future:
        categories = state.categories.get(name)
        if categories is None:
            effects[f"effect_{name}"] = coefficients[:, position]
            position += 1
            continue
        coded = coefficients[:, position : position + len(categories) - 1]
        by_category = np.column_stack([coded, -coded.sum(axis=1)])
        effects |= {f"effect_{name}_{label}": by_category[:, code] for code, label in enumerate(categories)}
        position += len(categories) - 1
    return effects


def constant_values(panel: Panel) -> Floats:
    """The value of each column known ahead that a series never sees another of beside a value of its own, (series, columns).

    NaN where there are others, or none. Categories count by their code.
    """
    constants = np.full((len(panel), len(panel.series.columns.future)), np.nan)
    for position, name in enumerate(panel.series.columns.future):
        values = panel.covariates[name].values
        is_observed = ~(np.isnan(panel.y) | _missing(panel.covariates[name], values))
        low = np.minimum.reduceat(np.where(is_observed, values, np.inf), panel.indptr[:-1])
        high = np.maximum.reduceat(np.where(is_observed, values, -np.inf), panel.indptr[:-1])
        constants[:, position] = np.where(low == high, low, np.nan)
    return constants


def warn_constant_in_fit(name: str, constants: Floats, future: Mapping[str, Covariate], series: Series) -> None:
    """Warn of columns that were `constant_values` in fit and differ ahead."""
    messages = []
    for position, (column, covariate) in enumerate(future.items()):
        future_values = covariate.values.reshape(len(constants), -1)
        constant = constants[:, position : position + 1]
        differs = (future_values != constant) & ~_missing(covariate, future_values) & ~np.isnan(constant)
        series_index = np.flatnonzero(differs.any(axis=1))
        messages += [f"{column} of series {series.labels(series_index)}"] if len(series_index) else []
    if messages:
        warn(
            f"{name} learns what a column does from its changes, and in fit these never changed: {format_list(messages)}. Their changes "
            "ahead count as nothing. Fit on histories in which they change, or leave them out."
        )


def _missing(covariate: Covariate, values: Floats) -> NDArray[np.bool_]:
    return np.isnan(values) if covariate.categories is None else values == UNKNOWN


def _encode(covariate: Covariate) -> list[Floats]:
    values = covariate.values.reshape(-1)
    if covariate.categories is None:
        return [values]
    last = values == len(covariate.categories) - 1
    return [(values == code).astype(np.float64) - last for code in range(len(covariate.categories) - 1)]
