"""Columns known ahead that never change in a history: what they do is not told by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.statistical._regressors import unvaried

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet


def held_still(model: Prophet, panel: Panel) -> Floats:
    """The value of each column known ahead that a series never sees another of, (series, columns); NaN of others, of bounds,
    and of a condition that always holds: a season that stops is known."""
    found = unvaried(panel)
    conditions = {one.get("condition") for one in (model.seasonalities or {}).values()}
    for place, name in enumerate(panel.series.columns.future):
        if name in (model.cap, model.floor):
            found[:, place] = np.nan
        elif name in conditions:
            found[:, place] = np.where(found[:, place] == 1.0, np.nan, found[:, place])
    return found
