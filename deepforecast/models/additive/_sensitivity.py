"""Derivatives of the forecast with respect to the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.calendar import timestamps_at
from deepforecast.data.components import column_slices, time_component_columns
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.models.additive._columns import component_columns
from deepforecast.models.additive._row_components import RowComponents, learned_components

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet


def sensitivity(
    model: Prophet, learned: LearnedState, row_components: RowComponents, steps: int, future: Mapping[str, Covariate]
) -> Floats:
    """Derivatives of the mean (series, steps, parameters), in units of the data.

    The order of the parameters is that of `_posterior.covariance_factor`: rate, offset, coefficients and slope changes.
    """
    series = np.repeat(np.arange(len(learned["rate"])), steps)
    n_columns = learned["coefficients"].shape[1]
    derivatives = np.zeros((len(series), 2 + n_columns + model.max_changepoints))
    slope_factor = row_components.trend_slope_factor * row_components.multiplier
    is_logistic = model.growth == "logistic"
    derivatives[:, 0] = slope_factor * (row_components.time - learned["offset"][series] if is_logistic else row_components.time)
    derivatives[:, 1] = slope_factor * (-learned["rate"][series] if is_logistic else 1.0)
    elapsed = np.maximum(row_components.time[:, None] - learned["changes"][series], 0.0)
    derivatives[:, 2 + n_columns :] = slope_factor[:, None] * elapsed
    _fill_column_derivatives(model, learned, row_components, future, derivatives[:, 2 : 2 + n_columns])
    return derivatives.reshape(-1, steps, derivatives.shape[1])


def _fill_column_derivatives(
    model: Prophet,
    learned: LearnedState,
    row_components: RowComponents,
    future: Mapping[str, Covariate],
    derivatives: Floats,
) -> None:
    """Set the derivatives (rows, columns) with respect to the coefficients, in place."""
    components = learned_components(learned)
    steps = len(derivatives) // len(learned["rate"])
    series = np.repeat(np.arange(len(learned["rate"])), steps)
    positions = learned.series.calendar.next_positions(learned.series.last, steps)  # type: ignore[union-attr]
    timestamps = timestamps_at(learned.series.calendar, positions)  # type: ignore[union-attr]
    time_columns, slices = time_component_columns(components, timestamps, model.country), column_slices(components)
    for component in components:
        component_slice = slices[component.name]
        columns = component_columns(component, time_columns, timestamps.index, future, slice(None))
        columns = (columns - learned["centre"][series, component_slice]) / learned["unit"][series, component_slice]
        factor = row_components.scaled_trend if component.multiplicative else learned["scale"][series]
        derivatives[:, component_slice] = columns * factor[:, None]
