"""Check that forecasts are finite, with the cause in the error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.errors import DataError

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster
    from deepforecast.core.state import State


def check_finite(values: Floats, state: State, name: str, distribution_model: Forecaster | None = None) -> Floats:
    """Return the values, shape (series, ...), if all are finite; otherwise raise `DataError` with the cause.

    `distribution_model` is the model, if the values are quantiles or samples rather than point
    forecasts.
    """
    if np.isfinite(values).all():
        return values
    axes = tuple(range(1, values.ndim))
    has_nan = np.isnan(values).any(axis=axes)
    # one cause per message: NaN before infinity
    bad_series = np.flatnonzero(has_nan if has_nan.any() else np.isinf(values).any(axis=axes))
    target = state.series.columns.target
    reason = f"the values of column {target} are too large for float64. Rescale them, or leave these series out"
    if has_nan.any() and distribution_model is None:
        reason = "the model returned NaN. Leave these series out, or use another model"
    elif has_nan.any() and distribution_model is not None:
        min_observations = distribution_model._min_observations_for_spread(state.learned)
        counts_text = ""
        if min_observations is not None:
            counts_text = f": at least {min_observations} are required, and fit had {min_observations - 1}"
        reason = (
            f"the values of column {target} are too few to estimate the error variance{counts_text}. "
            "Fit longer series, or leave out level="
        )
    raise DataError(
        f"Forecasts must be finite, but those of {name} for series {state.series.labels(bad_series)} are not: {reason}."
    )
