"""Columns known ahead as numbers for a linear term: categories coded against their mean, so that an unknown one is average."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints


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


def _coded(one: Covariate) -> list[Floats]:
    values = one.values.reshape(-1)
    if one.categories is None:
        return [values]
    last = values == len(one.categories) - 1
    return [(values == code).astype(np.float64) - last for code in range(len(one.categories) - 1)]
