"""How the steps ahead move with each parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.state import Learned
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.parts import places
from deepforecast.data.stamps import stamps_at
from deepforecast.data.time_columns import table
from deepforecast.models.additive._design import rows_of
from deepforecast.models.additive._evaluating import Laid, parts_of

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet


def sensitivity(
    model: Prophet, learned: Learned, laid: Laid, steps: int, future: Mapping[str, Covariate]
) -> Floats:
    """Derivatives (series, steps, parameters) by rate, offset, coefficients and changes, in units of the values."""
    series = np.repeat(np.arange(len(learned["rate"])), steps)
    columns = learned["coefficients"].shape[1]
    found = np.zeros((len(series), 2 + columns + model.most_changes))
    by = laid.moved * laid.grown
    bends = model.growth == "logistic"
    found[:, 0] = by * (laid.time - learned["offset"][series] if bends else laid.time)
    found[:, 1] = by * (-learned["rate"][series] if bends else 1.0)
    past = np.maximum(laid.time[:, None] - learned["changes"][series], 0.0)
    found[:, 2 + columns :] = by[:, None] * past
    _features(model, learned, laid, future, found[:, 2 : 2 + columns])
    return found.reshape(-1, steps, found.shape[1])


def _features(model: Prophet, learned: Learned, laid: Laid, future: Mapping[str, Covariate], found: Floats) -> None:
    parts = parts_of(learned)
    steps = len(found) // len(learned["rate"])
    series = np.repeat(np.arange(len(learned["rate"])), steps)
    positions = learned.series.calendar.following(learned.series.last, steps)  # type: ignore[union-attr]
    stamps = stamps_at(learned.series.calendar, positions)  # type: ignore[union-attr]
    held, every = table(parts, stamps, model.country), places(parts)
    for one in parts:
        where = every[one.name]
        columns = rows_of(one, held, stamps.place, future, slice(None))
        columns = (columns - learned["centre"][series, where]) / learned["unit"][series, where]
        found[:, where] = columns * (laid.moving if one.multiplies else learned["scale"][series])[:, None]
