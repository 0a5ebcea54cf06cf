"""Design matrix of future covariates, with sum-to-zero coding of categories."""

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
    """Design matrix (values, columns): one column per number, n - 1 columns per n categories.

    Missing numbers are NaN; missing and unknown categories have the average effect.
    """
    columns = [column for covariate in covariates.values() for column in _encode(covariate)]
    return np.stack(columns, axis=-1) if columns else np.empty((0, 0))


def standardize(matrix: Floats, indptr: Ints) -> tuple[Floats, Floats, Floats]:
    """Standardize each column within each series; return centres and scales (series, columns) too.

    The scale of constant columns is infinite, so that they become 0.
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
    """Effects of future covariates, `effect_<column>`, from the coefficients of `design_matrix`.

    Per unit of a number, or of each category relative to their mean.
    """
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
    """Values of future covariates that are constant over the observed rows of a series.

    (series, columns); NaN for the others. Categories are given by code.
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
    """Warn of covariates that were constant in the fit and differ in the future."""
    messages = []
    for position, (column, covariate) in enumerate(future.items()):
        future_values = covariate.values.reshape(len(constants), -1)
        constant = constants[:, position : position + 1]
        differs = (future_values != constant) & ~_missing(covariate, future_values) & ~np.isnan(constant)
        series_index = np.flatnonzero(differs.any(axis=1))
        messages += [f"{column} of series {series.labels(series_index)}"] if len(series_index) else []
    if messages:
        warn(
            f"{name} cannot estimate the effect of covariates that are constant in the training data: "
            f"{format_list(messages)}. Their changes in the future have no effect. Pass histories in which they vary, or "
            "leave them out."
        )


def _missing(covariate: Covariate, values: Floats) -> NDArray[np.bool_]:
    return np.isnan(values) if covariate.categories is None else values == UNKNOWN


def _encode(covariate: Covariate) -> list[Floats]:
    values = covariate.values.reshape(-1)
    if covariate.categories is None:
        return [values]
    last = values == len(covariate.categories) - 1
    return [(values == code).astype(np.float64) - last for code in range(len(covariate.categories) - 1)]
