"""What a series is scaled by before it is fitted, which of its seasons count, and its regressors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.parts import AUTO, REGRESSOR, Part, Parts, conditions
from deepforecast.errors import DataError

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet


@dataclass(frozen=True)
class Bounds:
    """Cap and floor at rows, in units of the values; 0 where there is none."""

    cap: Floats
    floor: Floats


def used_rows(model: Prophet, panel: Panel, parts: Parts) -> NDArray[np.bool_]:
    """Rows whose value is known, and each column that it is explained by."""
    found = ~np.isnan(panel.y)
    columns = {one.name for one in parts if one.kind == REGRESSOR} | {*conditions(parts)}
    for name in columns | {one for one in (model.cap, model.floor) if isinstance(one, str)}:
        one = panel.covariates[name]
        found &= ~np.isnan(one.values) if one.categories is None else np.ones(len(found), dtype=bool)
    return found


def bounds(model: Prophet, covariates: Mapping[str, Covariate], rows: int) -> Bounds:
    """Cap and floor at each row, as numbers or columns."""

    def one(said: float | str | None) -> Floats:
        if isinstance(said, str):
            return np.asarray(covariates[said].values.reshape(-1))
        return np.full(rows, 0.0 if said is None else float(said))

    return Bounds(one(model.cap), one(model.floor))


def refuse_crossed(model: Prophet, panel: Panel, held: Bounds, used: NDArray[np.bool_]) -> None:
    """The cap of a saturating trend lies above its floor."""
    wrong = np.flatnonzero(used & ~(held.cap > held.floor))
    if len(wrong):
        row = int(wrong[0])
        which = np.unique(np.searchsorted(panel.indptr, wrong, side="right") - 1)
        raise DataError(
            f"The cap of growth='logistic' lies above its floor (0 if not given); of series {panel.series.labels(which)} it "
            f"does not, first at {panel.stamp(row)}: cap {held.cap[row]:g}, floor {held.floor[row]:g}. Correct cap= or floor=."
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


def holds(part: Part, clock: Ints, per_day: int) -> bool:
    """Whether a season that is found by itself counts in a series: it spans enough days, and its rows are close enough."""
    if part.when != AUTO:
        return True
    close = part.apart == 0.0 or np.diff(clock).min() < part.apart * per_day
    return bool(close and clock[-1] - clock[0] >= part.span * per_day)


def standard(part: Part, columns: Floats) -> tuple[Floats, Floats]:
    """Centre and scale of a part's columns: of a regressor, unless it is a flag or never varies."""
    centre, scale = np.zeros(part.columns), np.ones(part.columns)
    if part.kind != REGRESSOR or part.standardize == "no":
        return centre, scale
    values = columns[:, 0]
    if values.min() == values.max() or (part.standardize == "auto" and flag(values)):
        return centre, scale
    deviation = float(values.std(ddof=1))
    return np.array([values.mean()]), np.array([deviation if deviation > 0.0 else 1.0])


def flag(values: Floats) -> bool:
    """Whether values are 0 and 1."""
    return bool(values.min() == 0.0 and values.max() == 1.0 and ((values == 0.0) | (values == 1.0)).all())
