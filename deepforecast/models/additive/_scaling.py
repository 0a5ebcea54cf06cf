"""Scaling of values and regressors, used rows, bounds, and selection of automatic seasonality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.components import AUTO, REGRESSOR, ComponentSpec, ComponentSpecs, condition_columns
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet


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


def is_active(component: ComponentSpec, clock: Ints, per_day: int) -> bool:
    """Whether a component is used: always, unless it is an automatic seasonality.

    Then the history must span `min_span` days and have two rows less than `max_gap` days apart.
    `clock`: sorted times of the rows, in units of which a day has `per_day`.
    """
    if component.when != AUTO:
        return True
    is_dense = component.max_gap == 0.0 or np.diff(clock).min() < component.max_gap * per_day
    return bool(is_dense and clock[-1] - clock[0] >= component.min_span * per_day)


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


def is_flag(values: Floats) -> bool:
    """Whether the values are a 0/1 indicator with both values."""
    return bool(values.min() == 0.0 and values.max() == 1.0 and ((values == 0.0) | (values == 1.0)).all())
