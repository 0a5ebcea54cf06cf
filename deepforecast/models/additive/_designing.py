"""What is known of the rows of a series but for its values: time, changes of slope, and the columns that count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.parts import REGRESSOR, Part, Parts, places
from deepforecast.data.stamps import Stamps
from deepforecast.models.additive._clock import hinges, placed, scaled
from deepforecast.models.additive._design import rows_of
from deepforecast.models.additive._scaling import holds, standard

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet


@dataclass(frozen=True)
class Design:
    """What is known of the rows of a series but for its values: `features` are the columns `on` of all there are, `hinges` the
    changes of slope (at `changes`, from 0 to 1) on which precision has no say."""

    start: int
    span: int
    time: Floats
    changes: Floats
    hinges: Floats
    features: Floats
    on: Ints
    centre: Floats
    scale: Floats
    precision: Floats
    multiply: Floats
    per_day: int

    @property
    def straight(self) -> bool:
        """No feature multiplies the trend."""
        return not self.multiply.any()

    @property
    def nothing(self) -> Floats:
        """Parameters that are all 0."""
        return np.zeros(len(self.precision) + len(self.changes))


def designed(
    model: Prophet, parts: Parts, held: dict[str, Floats], stamps: Stamps, rows: Ints, panel: Panel
) -> Design:
    """The design of a series whose values lie at these rows."""
    place = stamps.place[rows]
    clock = stamps.clock[place]
    start, span = int(clock[0]), int(clock[-1] - clock[0])
    time = scaled(clock, start, span)
    changes = changes_of(model, time, start, span, stamps.per_day)
    every, columns = places(parts), sum(one.columns for one in parts)
    centre, scale, precision, multiply = np.zeros(columns), np.ones(columns), np.ones(columns), np.zeros(columns)
    on, features = [np.empty(0, dtype=np.int64)], [np.empty((len(rows), 0))]
    for one in parts:
        where = every[one.name]
        precision[where], multiply[where] = one.prior_scale**-2.0, float(one.multiplies)
        if not holds(one, clock, stamps.per_day):
            continue
        found = rows_of(one, held, place, panel.covariates, rows)
        centre[where], scale[where] = standard(one, found)
        seen = np.flatnonzero(told(one, found))
        on.append(where.start + seen)
        features.append(((found - centre[where]) / scale[where])[:, seen])
    there = np.concatenate(on)
    trend = np.full(1 if model.growth == "flat" else 2, 0.04)  # normal priors of deviation 5
    return Design(
        start, span, time, changes, hinges(time, changes), np.ascontiguousarray(np.concatenate(features, axis=1)), there,
        centre, scale, np.concatenate([trend, precision[there]]), multiply[there], stamps.per_day,
    )  # fmt: skip


def told(part: Part, columns: Floats) -> NDArray[np.bool_]:
    """Which columns of a part tell something: days that there were, and columns known ahead that change."""
    if part.kind == REGRESSOR:
        return np.asarray(columns.max(axis=0) > columns.min(axis=0))
    return np.asarray((columns != 0.0).any(axis=0))


def changes_of(model: Prophet, time: Floats, start: int, span: int, per_day: int) -> Floats:
    """When the slope may change: as said, or evenly among the first rows."""
    if model.growth == "flat":
        return np.empty(0)
    if model.changepoints is None:
        return placed(time, model.n_changepoints, model.changepoint_range)
    from deepforecast.models.additive._changepoints import said

    return scaled(said(model.changepoints, per_day), start, span)
