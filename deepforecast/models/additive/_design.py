"""The columns of the design: what parts of time alone are at each row, and what covariates add."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.parts import REGRESSOR, Part


def rows_of(
    part: Part, held: Mapping[str, Floats], place: Ints, covariates: Mapping[str, Covariate], rows: Ints | slice
) -> Floats:
    """The columns of a part at some rows, (rows, columns); regressors in their own units. `place`: which stamp each has."""
    if part.kind == REGRESSOR:
        return _of_covariate(part, covariates[part.name].values.reshape(-1)[rows])
    found = held[part.name][place]
    if part.condition:
        found = found * covariates[part.condition].values.reshape(-1)[rows][:, None]
    return np.asarray(found)


def column_of(
    part: Part, number: int, held: Mapping[str, Floats], place: Ints, covariates: Mapping[str, Covariate]
) -> Floats:
    """One column of a part at all rows."""
    if part.kind == REGRESSOR:
        return _of_covariate(part, covariates[part.name].values.reshape(-1))[:, number]
    found = held[part.name][:, number][place]
    return found * covariates[part.condition].values.reshape(-1) if part.condition else found


def _of_covariate(part: Part, values: Floats) -> Floats:
    if not part.names:
        return np.asarray(values[:, None])
    return np.asarray(values[:, None] == np.arange(len(part.names)), dtype=np.float64)
