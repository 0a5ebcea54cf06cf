"""What a series is scaled by before it is fitted, which of its seasons count, and its regressors."""

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
    """Cap and floor at rows, in units of the values; 0 where there is none."""

    cap: Floats
    floor: Floats


def used_rows(model: Prophet, panel: Panel, components: ComponentSpecs) -> NDArray[np.bool_]:
    """Rows whose value is known, and each column that it is explained by."""
    used = ~np.isnan(panel.y)
    columns = {column.name for column in components if column.kind == REGRESSOR} | {*condition_columns(components)}
    for name in columns | {column for column in (model.cap, model.floor) if isinstance(column, str)}:
        column = panel.covariates[name]
        used &= ~np.isnan(column.values) if column.categories is None else np.ones(len(used), dtype=bool)
    return used


def bounds(model: Prophet, covariates: Mapping[str, Covariate], rows: int) -> Bounds:
    """Cap and floor at each row, as numbers or columns."""

    def expand(setting: float | str | None) -> Floats:
        if isinstance(setting, str):
            return np.asarray(covariates[setting].values.reshape(-1))
        return np.full(rows, 0.0 if setting is None else float(setting))

    return Bounds(expand(model.cap), expand(model.floor))


def refuse_crossed_bounds(model: Prophet, panel: Panel, limits: Bounds, used: NDArray[np.bool_]) -> None:
    """The cap of a saturating trend lies above its floor."""
    crossed = np.flatnonzero(used & ~(limits.cap > limits.floor))
    if len(crossed):
        row = int(crossed[0])
        series = np.unique(np.searchsorted(panel.indptr, crossed, side="right") - 1)
        raise DataError(
            f"The cap of growth='logistic' lies above its floor (0 if not given); of series {panel.series.labels(series)} it "
            f"does not, first at {panel.format_timestamp(row)}: cap {limits.cap[row]:g}, floor {limits.floor[row]:g}. Correct cap= or floor=."
        )


def value_scale(model: Prophet, y: Floats, cap: Floats, floor: Floats) -> tuple[float, float]:
    """What is taken from the values of a series beside its floor, and what they are divided by."""
    if model.growth == "logistic" and model.floor is not None:
        if model.scaling == "minmax":
            return 0.0, float(cap.max() - floor.min()) or 1.0
        return 0.0, float(np.abs(y - floor).max()) or 1.0
    if model.scaling == "minmax":
        return float(y.min()), float(y.max() - y.min()) or 1.0
    return 0.0, float(np.abs(y).max()) or 1.0


def is_active(component: ComponentSpec, clock: Ints, per_day: int) -> bool:
    """Whether a season that is found by itself counts in a series: it spans enough days, and its rows are close enough."""
    if component.when != AUTO:
        return True
    close = component.max_gap == 0.0 or np.diff(clock).min() < component.max_gap * per_day
    return bool(close and clock[-1] - clock[0] >= component.min_span * per_day)


def standardization(component: ComponentSpec, columns: Floats) -> tuple[Floats, Floats]:
    """Centre and scale of a part's columns: of a regressor, unless it is a flag or never varies."""
    centre, scale = np.zeros(component.columns), np.ones(component.columns)
    if component.kind != REGRESSOR or component.standardize == "no":
        return centre, scale
    values = columns[:, 0]
    if values.min() == values.max() or (component.standardize == "auto" and is_flag(values)):
        return centre, scale
    deviation = float(values.std(ddof=1))
    return np.array([values.mean()]), np.array([deviation if deviation > 0.0 else 1.0])


def is_flag(values: Floats) -> bool:
    """Whether values are 0 and 1."""
    return bool(values.min() == 0.0 and values.max() == 1.0 and ((values == 0.0) | (values == 1.0)).all())
