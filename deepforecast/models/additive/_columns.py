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
    """The columns of a component at `rows`, (rows, columns); regressors are not standardized.

    `time_columns` has one row per distinct timestamp; `timestamp_index` is the index of the timestamp
    of each of `rows`. Columns are 0 where the condition of the component is.
    """
    if component.kind == REGRESSOR:
        return _covariate_columns(component, covariates[component.name].values.reshape(-1)[rows])
    columns = time_columns[component.name][timestamp_index]
    if component.condition:
        columns = columns * covariates[component.condition].values.reshape(-1)[rows][:, None]
    return np.asarray(columns)


def component_column(
    component: ComponentSpec,
    index: int,
    time_columns: Mapping[str, Floats],
    timestamp_index: Ints,
    covariates: Mapping[str, Covariate],
) -> Floats:
    """Column `index` of `component_columns` at all rows, (rows,), in less memory."""
    if component.kind == REGRESSOR:
        return _covariate_columns(component, covariates[component.name].values.reshape(-1))[:, index]
    column = time_columns[component.name][:, index][timestamp_index]
    return column * covariates[component.condition].values.reshape(-1) if component.condition else column


def _covariate_columns(component: ComponentSpec, values: Floats) -> Floats:
    """A numeric covariate as one column, a categorical one as an indicator per category."""
    if not component.names:
        return np.asarray(values[:, None])
    return np.asarray(values[:, None] == np.arange(len(component.names)), dtype=np.float64)
