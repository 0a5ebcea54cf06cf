"""The design matrix of a series, and the jobs of a fit.

The matrix has columns of time, changepoints and components, at the used rows of the series. Series
with the same timestamps and covariates share one design matrix: they are one job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.component_options import read_changepoints
from deepforecast.data.calendar import Timestamps, timestamps_at
from deepforecast.data.components import (
    REGRESSOR,
    ComponentSpec,
    ComponentSpecs,
    column_slices,
    condition_columns,
    is_active,
    is_flag,
    time_component_columns,
)
from deepforecast.data.covariates import Covariate
from deepforecast.data.features import hinges, place_changepoints, scale_time
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError

if TYPE_CHECKING:
    from deepforecast.models.prophet.prophet import Prophet

TREND_PRECISION = 0.04  # of the normal priors of rate and offset, sigma = 5 as in Prophet
BLOCK = 250  # maximum number of series per job, so that jobs can run in parallel


@dataclass(frozen=True)
class Bounds:
    """Cap and floor at each row, in units of the data; 0 if there is none."""

    cap: Floats
    floor: Floats


def used_rows(model: Prophet, panel: Panel, components: ComponentSpecs) -> NDArray[np.bool_]:
    """Mask of the rows without missing values in target, numeric regressors, conditions and bounds."""
    used = ~np.isnan(panel.y)
    columns = {column.name for column in components if column.kind == REGRESSOR} | {*condition_columns(components)}
    for name in columns | {column for column in (model.cap, model.floor) if isinstance(column, str)}:
        column = panel.covariates[name]
        used &= ~np.isnan(column.values) if column.categories is None else np.ones(len(used), dtype=bool)
    return used


def bounds(model: Prophet, covariates: Mapping[str, Covariate], n_rows: int) -> Bounds:
    """Cap and floor at each row, from numbers or covariates."""

    def expand(bound: float | str | None) -> Floats:
        if isinstance(bound, str):
            return np.asarray(covariates[bound].values.reshape(-1))
        return np.full(n_rows, 0.0 if bound is None else float(bound))

    return Bounds(expand(model.cap), expand(model.floor))


def refuse_crossed_bounds(model: Prophet, panel: Panel, limits: Bounds, used: NDArray[np.bool_]) -> None:
    """Raise `DataError` unless the cap is above the floor in all used rows."""
    crossed = np.flatnonzero(used & ~(limits.cap > limits.floor))
    if len(crossed):
        row = int(crossed[0])
        series = np.unique(np.searchsorted(panel.indptr, crossed, side="right") - 1)
        raise DataError(
            "`cap` must be above `floor` (default 0) with growth='logistic', got "
            f"cap {limits.cap[row]:g} and floor {limits.floor[row]:g} at {panel.format_timestamp(row)} (the first such row); "
            f"series with such rows: {panel.series.labels(series)}.",
            hint="Set a larger `cap` or a smaller `floor`.",
            parameter="cap",
            series=panel.series.id_texts(series),
        )


def value_scale(model: Prophet, y: Floats, cap: Floats, floor: Floats) -> tuple[float, float]:
    """Shift and scale of the values of a series at its used rows; with a logistic trend the floor is subtracted, too."""
    if model.growth == "logistic" and model.floor is not None:
        if model.scaling == "minmax":
            return 0.0, float(cap.max() - floor.min()) or 1.0
        return 0.0, float(np.abs(y - floor).max()) or 1.0
    if model.scaling == "minmax":
        return float(y.min()), float(y.max() - y.min()) or 1.0
    return 0.0, float(np.abs(y).max()) or 1.0


def standardization(component: ComponentSpec, columns: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the columns of regressors to be standardized; otherwise 0 and 1.

    They are also 0 and 1 for constant regressors, and with "auto" for 0/1 indicators.
    """
    centre, scale = np.zeros(component.columns), np.ones(component.columns)
    if component.kind != REGRESSOR or component.standardize == "no":
        return centre, scale
    values = columns[:, 0]
    if values.min() == values.max() or (component.standardize == "auto" and is_flag(values)):
        return centre, scale
    deviation = float(values.std(ddof=1))
    return np.array([values.mean()]), np.array([deviation if deviation > 0.0 else 1.0])


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
    return scale_time(read_changepoints(model.changepoints, per_day), start, span)


@dataclass(frozen=True)
class Job:
    """Series with the same design: their indices in the panel, and values, caps and floors at the used rows."""

    design: Design
    series_indices: list[int]
    values: list[Floats]
    caps: list[Floats]
    floors: list[Floats]


@dataclass(frozen=True)
class FitData:
    """A panel with its design columns per distinct timestamp (`time_columns`), and a mask of the used rows."""

    panel: Panel
    components: ComponentSpecs
    timestamps: Timestamps
    time_columns: dict[str, Floats]
    used_rows: NDArray[np.bool_]
    bounds: Bounds

    def rows(self, index: int) -> Ints:
        """Indices of the used rows of a series in the panel."""
        start, stop = self.panel.indptr[index], self.panel.indptr[index + 1]
        return np.asarray(start + np.flatnonzero(self.used_rows[start:stop]))

    def groups(self) -> list[list[int]]:
        """The indices of the series in each job: at most `BLOCK` series with the same timestamps and covariates."""
        open_groups: dict[bytes, list[int]] = {}
        groups: list[list[int]] = []
        for index in range(len(self.panel)):
            key = self._key(self.rows(index))
            if key not in open_groups or len(open_groups[key]) == BLOCK:
                open_groups[key] = []
                groups.append(open_groups[key])
            open_groups[key].append(index)
        return groups

    def job(self, model: Prophet, series_indices: list[int]) -> Job:
        """Build the job of a group of series; the design is that of the first of them."""
        rows = [self.rows(index) for index in series_indices]
        design = build_design(model, self.components, self.time_columns, self.timestamps, rows[0], self.panel)
        values, caps, floors = (
            [column[series_rows] for series_rows in rows] for column in (self.panel.y, self.bounds.cap, self.bounds.floor)
        )
        return Job(design, series_indices, values, caps, floors)

    def _key(self, rows: Ints) -> bytes:
        """Hash of timestamps, conditions and regressors at `rows`; series with equal keys have the same design."""
        digest = blake2b(self.timestamps.index[rows].tobytes(), digest_size=16)
        for name in (
            *condition_columns(self.components),
            *(component.name for component in self.components if component.kind == REGRESSOR),
        ):
            digest.update(np.ascontiguousarray(self.panel.covariates[name].values[rows]).tobytes())
        return digest.digest()


def prepare_fit(model: Prophet, panel: Panel, components: ComponentSpecs) -> FitData:
    """Compute what the jobs of a fit share; `DataError` if cap and floor cross with a logistic trend."""
    timestamps = timestamps_at(panel.calendar, panel.row_positions)
    used = used_rows(model, panel, components)
    row_bounds = bounds(model, panel.covariates, len(panel.y))
    if model.growth == "logistic":
        refuse_crossed_bounds(model, panel, row_bounds, used)
    time_columns = time_component_columns(components, timestamps, model.country)
    return FitData(panel, components, timestamps, time_columns, used_rows=used, bounds=row_bounds)
