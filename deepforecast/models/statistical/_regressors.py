"""Columns known ahead as numbers for a linear term: categories coded against their mean, so that an unknown one is average."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.state import State
from deepforecast.data.covariates import UNKNOWN, Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel, Series
from deepforecast.errors import say, some


def design(covariates: Mapping[str, Covariate]) -> Floats:
    """One row for each value of the columns, flattened; one column a number, one less than it has categories for others.

    NaN where a number is missing; a category that is missing or was never seen in fit counts as the average one.
    """
    columns = [column for one in covariates.values() for column in _coded(one)]
    return np.stack(columns, axis=-1) if columns else np.empty((0, 0))


def centred(matrix: Floats, indptr: Ints) -> tuple[Floats, Floats, Floats]:
    """The matrix with every column centred and scaled within each series, and centres and scales (series, columns).

    A column that never varies in a series tells nothing there: its scale is infinite, so that it counts as 0.
    """
    counts = np.diff(indptr)[:, None]
    known = np.where(np.isnan(matrix), 0.0, 1.0)
    seen = np.maximum(np.add.reduceat(known, indptr[:-1]), 1.0)
    centre = np.add.reduceat(np.where(known > 0, matrix, 0.0), indptr[:-1]) / seen
    away = matrix - np.repeat(centre, counts[:, 0], axis=0)
    scale = np.sqrt(np.add.reduceat(np.where(known > 0, away * away, 0.0), indptr[:-1]) / seen)
    flat = scale <= 1e-12 * np.maximum(np.abs(centre), np.finfo(float).tiny)
    scale = np.where(flat, np.inf, scale)
    return away / np.repeat(scale, counts[:, 0], axis=0), centre, scale


def effects_of(state: State, coefficients: Floats) -> dict[str, Floats]:
    """What one unit of each column known ahead adds, or each of its categories beside their mean, as `effect_<column>`: from
    the coefficients of `design`, (series, columns)."""
    found, place = {}, 0
    for name in state.series.columns.future:
        categories = state.categories.get(name)
        if categories is None:
            found[f"effect_{name}"] = coefficients[:, place]
            place += 1
            continue
        own = coefficients[:, place : place + len(categories) - 1]
        each = np.column_stack([own, -own.sum(axis=1)])
        found |= {f"effect_{name}_{label}": each[:, code] for code, label in enumerate(categories)}
        place += len(categories) - 1
    return found


def unvaried(panel: Panel) -> Floats:
    """The value of each column known ahead that a series never sees another of beside a value of its own, (series, columns).

    NaN where there are others, or none. Categories count by their code.
    """
    found = np.full((len(panel), len(panel.series.columns.future)), np.nan)
    for place, name in enumerate(panel.series.columns.future):
        values = panel.covariates[name].values
        known = ~(np.isnan(panel.y) | _missing(panel.covariates[name], values))
        low = np.minimum.reduceat(np.where(known, values, np.inf), panel.indptr[:-1])
        high = np.maximum.reduceat(np.where(known, values, -np.inf), panel.indptr[:-1])
        found[:, place] = np.where(low == high, low, np.nan)
    return found


def say_untold(name: str, held: Floats, future: Mapping[str, Covariate], series: Series) -> None:
    """Warn of columns that were `unvaried` in fit and differ ahead."""
    said = []
    for place, (column, one) in enumerate(future.items()):
        ahead = one.values.reshape(len(held), -1)
        before = held[:, place : place + 1]
        away = (ahead != before) & ~_missing(one, ahead) & ~np.isnan(before)
        which = np.flatnonzero(away.any(axis=1))
        said += [f"{column} of series {series.labels(which)}"] if len(which) else []
    if said:
        say(
            f"{name} learns what a column does from its changes, and in fit these never changed: {some(said)}. Their changes "
            "ahead count as nothing. Fit on histories in which they change, or leave them out."
        )


def _missing(one: Covariate, values: Floats) -> NDArray[np.bool_]:
    return np.isnan(values) if one.categories is None else values == UNKNOWN


def _coded(one: Covariate) -> list[Floats]:
    values = one.values.reshape(-1)
    if one.categories is None:
        return [values]
    last = values == len(one.categories) - 1
    return [(values == code).astype(np.float64) - last for code in range(len(one.categories) - 1)]
