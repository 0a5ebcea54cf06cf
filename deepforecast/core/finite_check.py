"""No number that is not finite leaves a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.errors import DataError

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.state import State


def check_finite(values: Floats, state: State, name: str, distribution_model: Forecaster | None = None) -> Floats:
    """The values, shape (series, ...), if all are finite, else a `DataError` that says why they are not.

    `distribution_model`: the model whose distribution they are of, where they are not its points.
    """
    if np.isfinite(values).all():
        return values
    axes = tuple(range(1, values.ndim))
    has_nan = np.isnan(values).any(axis=axes)
    bad_series = np.flatnonzero(has_nan if has_nan.any() else np.isinf(values).any(axis=axes))  # those of one cause
    target = state.series.columns.target
    reason = f"the values of column {target} are too large for float64. Rescale them, or leave these series out"
    if has_nan.any() and distribution_model is None:
        reason = "the model gives no number (NaN) for it. Leave these series out, or use another model"
    elif has_nan.any() and distribution_model is not None:
        min_observations = distribution_model._min_observations_for_spread(state.learned)
        count = "" if min_observations is None else f": at least {min_observations} are needed, and in fit there were {min_observations - 1}"
        reason = f"the values of column {target} are too few to know their spread{count}. Fit longer series, or ask for no level"
    raise DataError(f"Forecasts must be finite; those of {name} for series {state.series.labels(bad_series)} are not: {reason}.")
