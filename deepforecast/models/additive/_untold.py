"""Columns known ahead that never change in a history: what they do is not told by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.state import State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.models.statistical._regressors import say_untold, unvaried

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


def say_unlearned(name: str, state: State, future: Mapping[str, Covariate]) -> None:
    """Warn of numbers that a network of all series has no weight for, as they never changed in fit, and that change ahead."""
    from deepforecast.models.neural._standing import channels_of

    centre, body = channels_of(state.learned).centre, state.learned["network"].body
    held, begin = np.full((len(state.series), len(future)), np.nan), 0
    for one in body.plan.terms:
        end = begin + one.columns.stop - one.columns.start
        if one.name in future and future[one.name].categories is None and not body.weight[begin:end].any():
            held[:, list(future).index(one.name)] = centre[one.name]
        begin = end
    say_untold(name, held, future, state.series)
