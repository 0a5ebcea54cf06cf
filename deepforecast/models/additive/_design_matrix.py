"""The design matrix of a series: time, changepoints, and the columns of its components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.components import REGRESSOR, ComponentSpec, ComponentSpecs, column_slices
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.timestamps import Timestamps
from deepforecast.models.additive._columns import component_columns
from deepforecast.models.additive._scaling import is_active, standardization
from deepforecast.models.additive._time import hinges, place_changepoints, scale_time

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet


@dataclass(frozen=True)
class Design:
    """The design matrix of a series.

    `time` runs from 0 to 1. `features` (rows, active) are the standardized columns `active_columns`
    of all columns of the components. `hinges` (rows, changepoints) are max(time - changepoint, 0).
    `precision` is that of the normal priors of trend and features; the changes of the slope have a
    Laplace prior instead.
    """

    start: int
    span: int
    time: Floats
    changepoints: Floats
    hinges: Floats
    features: Floats
    active_columns: Ints
    centre: Floats
    scale: Floats
    precision: Floats
    multiplicative: Floats
    per_day: int

    @property
    def is_linear(self) -> bool:
        """Whether all features are additive."""
        return not self.multiplicative.any()

    @property
    def zero_parameters(self) -> Floats:
        """A parameter vector of zeros."""
        return np.zeros(len(self.precision) + len(self.changepoints))


def build_design(
    model: Prophet,
    components: ComponentSpecs,
    time_columns: dict[str, Floats],
    timestamps: Timestamps,
    rows: Ints,
    panel: Panel,
) -> Design:
    """Build the design matrix of the series with observations at these rows."""
    timestamp_index = timestamps.index[rows]
    clock = timestamps.local_time[timestamp_index]
    start, span = int(clock[0]), int(clock[-1] - clock[0])
    time = scale_time(clock, start, span)
    changepoints = changepoint_times(model, time, start, span, timestamps.per_day)
    slices, n_columns = column_slices(components), sum(component.columns for component in components)
    centre, scale, precision, multiplicative = np.zeros(n_columns), np.ones(n_columns), np.ones(n_columns), np.zeros(n_columns)
    active_blocks, features = [np.empty(0, dtype=np.int64)], [np.empty((len(rows), 0))]
    for component in components:
        component_slice = slices[component.name]
        precision[component_slice], multiplicative[component_slice] = (
            component.prior_scale**-2.0,
            float(component.multiplicative),
        )
        if not is_active(component, clock, timestamps.per_day):
            continue
        values = component_columns(component, time_columns, timestamp_index, panel.covariates, rows)
        centre[component_slice], scale[component_slice] = standardization(component, values)
        informative = np.flatnonzero(informative_columns(component, values))
        active_blocks.append(component_slice.start + informative)
        features.append(((values - centre[component_slice]) / scale[component_slice])[:, informative])
    active_columns = np.concatenate(active_blocks)
    trend = np.full(1 if model.growth == "flat" else 2, 0.04)  # normal priors, sigma = 5
    return Design(
        start,
        span,
        time,
        changepoints,
        hinges(time, changepoints),
        np.ascontiguousarray(np.concatenate(features, axis=1)),
        active_columns,
        centre,
        scale,
        np.concatenate([trend, precision[active_columns]]),
        multiplicative[active_columns],
        timestamps.per_day,
    )


def informative_columns(component: ComponentSpec, columns: Floats) -> NDArray[np.bool_]:
    """Which columns can be estimated: indicators that occur, and regressors that vary."""
    if component.kind == REGRESSOR:
        return np.asarray(columns.max(axis=0) > columns.min(axis=0))
    return np.asarray((columns != 0.0).any(axis=0))


def changepoint_times(model: Prophet, time: Floats, start: int, span: int, per_day: int) -> Floats:
    """Potential changepoints from 0 to 1: as declared, or evenly spaced."""
    if model.growth == "flat":
        return np.empty(0)
    if model.changepoints is None:
        return place_changepoints(time, model.n_changepoints, model.changepoint_range)
    from deepforecast.models.additive._changepoints import read_changepoints

    return scale_time(read_changepoints(model.changepoints, per_day), start, span)
