"""Columns of the design matrix, from time and covariates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from deepforecast.data.components import REGRESSOR, ComponentSpec
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints


def component_columns(
    component: ComponentSpec,
    time_columns: Mapping[str, Floats],
    timestamp_index: Ints,
    covariates: Mapping[str, Covariate],
    rows: Ints | slice,
) -> Floats:
    """The columns of a component (rows, columns); regressors are not standardized.

    `time_columns` has one row per distinct timestamp; `timestamp_index` maps rows to timestamps.
    """
    if component.kind == REGRESSOR:
        return _covariate_columns(component, covariates[component.name].values.reshape(-1)[rows])
    columns = time_columns[component.name][timestamp_index]
    if component.condition:
        columns = columns * covariates[component.condition].values.reshape(-1)[rows][:, None]
    return np.asarray(columns)


def component_column(
    component: ComponentSpec,
    number: int,
    time_columns: Mapping[str, Floats],
    timestamp_index: Ints,
    covariates: Mapping[str, Covariate],
) -> Floats:
    """One column of a component at all rows."""
    if component.kind == REGRESSOR:
        return _covariate_columns(component, covariates[component.name].values.reshape(-1))[:, number]
    column = time_columns[component.name][:, number][timestamp_index]
    return column * covariates[component.condition].values.reshape(-1) if component.condition else column


def _covariate_columns(component: ComponentSpec, values: Floats) -> Floats:
    if not component.names:
        return np.asarray(values[:, None])
    return np.asarray(values[:, None] == np.arange(len(component.names)), dtype=np.float64)
