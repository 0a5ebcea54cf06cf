"""No number that is not finite leaves a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.errors import DataError

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.state import State


def finite(values: Floats, state: State, name: str, spread_of: Forecaster | None = None) -> Floats:
    """The values, shape (series, ...), if all are finite, else a `DataError` that says why they are not.

    `spread_of`: the model whose distribution they are of, where they are not its points.
    """
    if np.isfinite(values).all():
        return values
    axes = tuple(range(1, values.ndim))
    none = np.isnan(values).any(axis=axes)
    bad = np.flatnonzero(none if none.any() else np.isinf(values).any(axis=axes))  # those of one cause
    target = state.series.columns.target
    why = f"the values of column {target} are too large for float64. Rescale them, or leave these series out"
    if none.any() and spread_of is None:
        why = "the model gives no number (NaN) for it. Leave these series out, or use another model"
    elif none.any() and spread_of is not None:
        needed = spread_of._needs_to_spread(state.learned)
        count = "" if needed is None else f": at least {needed} are needed, and in fit there were {needed - 1}"
        why = f"the values of column {target} are too few to know their spread{count}. Fit longer series, or ask for no level"
    raise DataError(f"Forecasts must be finite; those of {name} for series {state.series.labels(bad)} are not: {why}.")
