"""Components of the fitted values or forecasts at any rows, and derivatives of the forecast by the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.calendar import Calendar, Timestamps, timestamps_at
from deepforecast.data.components import ComponentSpecs, column_slices, from_dicts, time_component_columns
from deepforecast.data.covariates import Covariate
from deepforecast.data.features import scale_time
from deepforecast.data.frames import Floats, Ints
from deepforecast.models.prophet._design_matrix import Bounds, bounds, component_column, component_columns

if TYPE_CHECKING:
    from deepforecast.models.prophet.prophet import Prophet


@dataclass(frozen=True)
class RowComponents:
    """Components at rows, arrays (rows,) in units of the data.

    mean = trend + scaled_trend * sum(multiplicative_terms) + sum(additive_terms), where trend is
    base + scaled_trend and multiplier is 1 + sum(multiplicative_terms). `line` is the piecewise
    linear function of time, before the logistic function; `trend_slope_factor` is d trend / d line.
    """

    time: Floats
    line: Floats
    trend: Floats
    scaled_trend: Floats
    trend_slope_factor: Floats
    multiplier: Floats
    multiplicative_terms: Mapping[str, Floats]
    additive_terms: Mapping[str, Floats]
    cap: Floats
    bounds: Bounds

    @property
    def components(self) -> dict[str, Floats]:
        """Additive contribution (rows,) of each component; their sum is `mean`."""
        multiplicative = {
            name: self.scaled_trend * term for name, term in self.multiplicative_terms.items()
        }
        return {"trend": self.trend, **multiplicative, **self.additive_terms}

    @property
    def mean(self) -> Floats:
        """Sum of the components."""
        return np.asarray(sum(self.components.values()))


def learned_components(learned: LearnedState) -> ComponentSpecs:
    """The components of a fitted model."""
    return from_dicts(learned["parts"])


def evaluate_rows(
    model: Prophet,
    learned: LearnedState,
    calendar: Calendar,
    series: Ints,
    positions: Ints,
    covariates: Mapping[str, Covariate],
) -> RowComponents:
    """Evaluate the components at rows; `series` is the index of the series of each row, `positions` its time."""
    components = learned_components(learned)
    timestamps = timestamps_at(calendar, positions)
    time = scale_time(timestamps.local_time_of_rows, learned["start"][series], learned["span"][series])
    row_bounds = bounds(model, covariates, len(series))
    scale = learned["scale"][series]
    base = learned["shift"][series] + (row_bounds.floor if model.growth == "logistic" else 0.0)
    cap = (row_bounds.cap - base) / scale
    line = trend_line(model, learned, series, time)
    scaled_trend = saturate(line, cap) if model.growth == "logistic" else line
    slope_factor = scaled_trend * (1.0 - scaled_trend / cap) if model.growth == "logistic" else np.ones(len(line))
    multiplicative_terms, additive_terms = _evaluate_terms(model, learned, components, timestamps, series, covariates)
    constant_value = learned["steady"][series]  # NaN unless the series is constant
    is_constant = ~np.isnan(constant_value)
    return RowComponents(
        time=time,
        line=line,
        trend=np.where(is_constant, constant_value, base + scale * scaled_trend),
        scaled_trend=np.where(is_constant, 0.0, scale * scaled_trend),
        trend_slope_factor=scale * slope_factor,
        multiplier=1.0 + sum(multiplicative_terms.values(), np.zeros(len(series))),
        multiplicative_terms=multiplicative_terms,
        additive_terms={name: scale * values for name, values in additive_terms.items()},
        cap=cap,
        bounds=row_bounds,
    )


def trend_line(model: Prophet, learned: LearnedState, series: Ints, time: Floats) -> Floats:
    """The piecewise linear trend k t + m (k (t - m) if logistic) + sum_j delta_j max(t - s_j, 0), (rows,)."""
    rate, offset = learned["rate"][series], learned["offset"][series]
    line = rate * (time - offset) if model.growth == "logistic" else rate * time + offset
    for changepoint in range(learned["delta"].shape[1]):
        delta = learned["delta"][series, changepoint]
        if delta.any():
            line = line + delta * np.maximum(time - learned["changes"][series, changepoint], 0.0)
    return np.asarray(line)


def saturate(line: Floats, cap: Floats) -> Floats:
    """Logistic trend cap / (1 + exp(-line)), with `line` limited to where exp does not overflow."""
    return cap / (1.0 + np.exp(-np.clip(line, -500.0, 500.0)))


def _evaluate_terms(
    model: Prophet,
    learned: LearnedState,
    components: ComponentSpecs,
    timestamps: Timestamps,
    series: Ints,
    covariates: Mapping[str, Covariate],
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Values (rows,) of the multiplicative and of the additive components, before multiplication by the scale."""
    time_columns, slices = time_component_columns(components, timestamps, model.country), column_slices(components)
    multiplicative_terms: dict[str, Floats] = {}
    additive_terms: dict[str, Floats] = {}
    for component in components:
        columns, values = slices[component.name], np.zeros(len(series))
        if learned["coefficients"][:, columns].any():
            for offset in range(component.columns):  # one column at a time to save memory
                index = columns.start + offset
                column = component_column(component, offset, time_columns, timestamps.index, covariates)
                centre, unit = learned["centre"][series, index], learned["unit"][series, index]
                values += learned["coefficients"][series, index] * ((column - centre) / unit)
        terms = multiplicative_terms if component.multiplicative else additive_terms
        terms[component.name] = values
    return multiplicative_terms, additive_terms


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
