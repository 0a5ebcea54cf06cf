"""The columns of the design: what parts of time alone are at each row, and what covariates add."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from deepforecast.data.components import REGRESSOR, ComponentSpec
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints


def component_columns(
    component: ComponentSpec, time_columns: Mapping[str, Floats], timestamp_index: Ints, covariates: Mapping[str, Covariate], rows: Ints | slice
) -> Floats:
    """The columns of a part at some rows, (rows, columns); regressors in their own units. `timestamp_index`: which stamp each has."""
    if component.kind == REGRESSOR:
        return _covariate_columns(component, covariates[component.name].values.reshape(-1)[rows])
    columns = time_columns[component.name][timestamp_index]
    if component.condition:
        columns = columns * covariates[component.condition].values.reshape(-1)[rows][:, None]
    return np.asarray(columns)


def component_column(
    component: ComponentSpec, number: int, time_columns: Mapping[str, Floats], timestamp_index: Ints, covariates: Mapping[str, Covariate]
) -> Floats:
    """One column of a part at all rows."""
    if component.kind == REGRESSOR:
        return _covariate_columns(component, covariates[component.name].values.reshape(-1))[:, number]
    column = time_columns[component.name][:, number][timestamp_index]
    return column * covariates[component.condition].values.reshape(-1) if component.condition else column


def _covariate_columns(component: ComponentSpec, values: Floats) -> Floats:
    if not component.names:
        return np.asarray(values[:, None])
    return np.asarray(values[:, None] == np.arange(len(component.names)), dtype=np.float64)
