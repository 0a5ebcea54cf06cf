"""The design matrix of a series: time, changepoints, and the columns of its components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.calendar import Timestamps
from deepforecast.data.components import REGRESSOR, ComponentSpec, ComponentSpecs, column_slices
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.models.additive._columns import component_columns
from deepforecast.models.additive._scaling import is_active, standardization
from deepforecast.models.additive._time import hinges, place_changepoints, scale_time

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet


TREND_PRECISION = 0.04  # of the normal priors of rate and offset, sigma = 5 as in Prophet


@dataclass(frozen=True)
class Design:
    """The design matrix of a series: trend, `features` and `hinges`, in this order.

    start, span: first time and length of the history, in clock units. per_day: clock units per day.
    time: from 0 to 1 over the history. changepoints: on the scale of `time`.
    hinges: max(time - changepoint, 0), (rows, changepoints).
    features: the standardized `active_columns` of all columns of the components, (rows, active columns).
    centre, scale: of the standardization of all columns.
    precision: of the normal priors of trend and features, 1 / prior_scale^2; changes of the slope have a
    Laplace prior instead. multiplicative: 1 for multiplicative features, 0 for additive ones.
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
    """Build the design matrix of the series whose used rows in the panel are `rows`.

    Automatic seasonality that is not active, and columns that do not vary, are left out of `features`.
    """
    timestamp_index = timestamps.index[rows]
    clock = timestamps.local_time[timestamp_index]
    start, span = int(clock[0]), int(clock[-1] - clock[0])
    time = scale_time(clock, start, span)
    changepoints = changepoint_times(model, time, start, span, timestamps.per_day)
    slices = column_slices(components)
    n_columns = sum(component.columns for component in components)
    centre = np.zeros(n_columns)
    scale = np.ones(n_columns)
    precision = np.ones(n_columns)
    multiplicative = np.zeros(n_columns)
    active_blocks = [np.empty(0, dtype=np.int64)]
    features = [np.empty((len(rows), 0))]
    for component in components:
        component_slice = slices[component.name]
        precision[component_slice] = component.prior_scale**-2.0
        multiplicative[component_slice] = float(component.multiplicative)
        if not is_active(component, clock, timestamps.per_day):
            continue
        values = component_columns(component, time_columns, timestamp_index, panel.covariates, rows)
        centre[component_slice], scale[component_slice] = standardization(component, values)
        informative = np.flatnonzero(informative_columns(component, values))
        active_blocks.append(component_slice.start + informative)
        features.append(((values - centre[component_slice]) / scale[component_slice])[:, informative])
    active_columns = np.concatenate(active_blocks)
    trend_precision = np.full(1 if model.growth == "flat" else 2, TREND_PRECISION)
    return Design(
        start=start,
        span=span,
        time=time,
        changepoints=changepoints,
        hinges=hinges(time, changepoints),
        features=np.ascontiguousarray(np.concatenate(features, axis=1)),
        active_columns=active_columns,
        centre=centre,
        scale=scale,
        precision=np.concatenate([trend_precision, precision[active_columns]]),
        multiplicative=multiplicative[active_columns],
        per_day=timestamps.per_day,
    )


def informative_columns(component: ComponentSpec, columns: Floats) -> NDArray[np.bool_]:
    """Mask of the columns whose coefficients can be estimated: regressors that vary, others that are not all 0."""
    if component.kind == REGRESSOR:
        return np.asarray(columns.max(axis=0) > columns.min(axis=0))
    return np.asarray((columns != 0.0).any(axis=0))


def changepoint_times(model: Prophet, time: Floats, start: int, span: int, per_day: int) -> Floats:
    """Potential changepoints on the scale of `time`: those of the parameters, or evenly spaced ones."""
    if model.growth == "flat":
        return np.empty(0)
    if model.changepoints is None:
        return place_changepoints(time, model.n_changepoints, model.changepoint_range)
    from deepforecast.models.additive._changepoints import read_changepoints

    return scale_time(read_changepoints(model.changepoints, per_day), start, span)
