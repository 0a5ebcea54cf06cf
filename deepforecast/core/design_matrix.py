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
    """Design matrix (values, columns): one column per numeric covariate, n - 1 columns for n categories.

    Missing numbers are NaN; missing and unknown categories are all 0, which is the average effect.
    """
    columns = [column for covariate in covariates.values() for column in _encode(covariate)]
    return np.stack(columns, axis=-1) if columns else np.empty((0, 0))


def standardize(matrix: Floats, indptr: Ints) -> tuple[Floats, Floats, Floats]:
    """Standardize each column within each series; return it with the centres and scales, (series, columns) each.

    The scale of constant columns is infinite, so that they become 0. NaN stays NaN.
    """
    lengths = np.diff(indptr)
    is_present = np.where(np.isnan(matrix), 0.0, 1.0)
    n_present = np.maximum(np.add.reduceat(is_present, indptr[:-1]), 1.0)
    centre = np.add.reduceat(np.where(is_present > 0, matrix, 0.0), indptr[:-1]) / n_present
    deviation = matrix - np.repeat(centre, lengths, axis=0)
    scale = np.sqrt(np.add.reduceat(np.where(is_present > 0, deviation * deviation, 0.0), indptr[:-1]) / n_present)
    is_constant = scale <= 1e-12 * np.maximum(np.abs(centre), np.finfo(float).tiny)
    scale = np.where(is_constant, np.inf, scale)
    return deviation / np.repeat(scale, lengths, axis=0), centre, scale


def effect_columns(state: State, coefficients: Floats) -> dict[str, Floats]:
    """Columns `effect_<column>` from the coefficients (series, columns) of `design_matrix`.

    Numeric covariates: effect per unit; categorical ones: `effect_<column>_<category>`, relative to the mean of all
    categories.
    """
    effects, position = {}, 0
    for name in state.series.columns.future:
        categories = state.categories.get(name)
        if categories is None:
            effects[f"effect_{name}"] = coefficients[:, position]
            position += 1
            continue
        coded = coefficients[:, position : position + len(categories) - 1]
        by_category = np.column_stack([coded, -coded.sum(axis=1)])  # sum-to-zero coding
        effects |= {f"effect_{name}_{label}": by_category[:, code] for code, label in enumerate(categories)}
        position += len(categories) - 1
    return effects


def constant_values(panel: Panel) -> Floats:
    """Value of each future covariate that is constant where the target is observed, (series, columns); else NaN.

    Categories are given by code.
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
    """Warn of covariates that were constant in the training data of a series and have other values in the future.

    `constants`: the result of `constant_values`.
    """
    descriptions = []
    for position, (column, covariate) in enumerate(future.items()):
        future_values = covariate.values.reshape(len(constants), -1)
        constant = constants[:, position : position + 1]
        differs = (future_values != constant) & ~_missing(covariate, future_values) & ~np.isnan(constant)
        affected_series = np.flatnonzero(differs.any(axis=1))
        if len(affected_series):
            descriptions.append(f"{column} of series {series.labels(affected_series)}")
    if descriptions:
        warn(
            f"{name} cannot estimate the effect of covariates that are constant in the training data: "
            f"{format_list(descriptions)}. Their changes in the future have no effect. Pass histories in which they vary, "
            "or drop these covariates.",
            subject=name,
        )


def _missing(covariate: Covariate, values: Floats) -> NDArray[np.bool_]:
    return np.isnan(values) if covariate.categories is None else values == UNKNOWN


def _encode(covariate: Covariate) -> list[Floats]:
    """Columns of the design matrix of one covariate; categories have sum-to-zero coding, -1 for the last one."""
    values = covariate.values.reshape(-1)
    if covariate.categories is None:
        return [values]
    is_last_category = values == len(covariate.categories) - 1
    return [(values == code).astype(np.float64) - is_last_category for code in range(len(covariate.categories) - 1)]
