"""Future covariates that were constant in fit, so that their effect is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.arrays import constant_values, warn_constant_in_fit
from deepforecast.core.state import State
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet


def constant_covariate_values(model: Prophet, panel: Panel) -> Floats:
    """The value of each future covariate that is constant in a series, (series, columns), else NaN.

    Also NaN for bounds, and for conditions that are always 1: their seasonality is estimated.
    """
    values = constant_values(panel)
    conditions = {season.get("condition") for season in (model.seasonalities or {}).values()}
    for index, name in enumerate(panel.series.columns.future):
        if name in (model.cap, model.floor):
            values[:, index] = np.nan
        elif name in conditions:
            values[:, index] = np.where(values[:, index] == 1.0, np.nan, values[:, index])
    return values


def warn_unlearned(name: str, state: State, future: Mapping[str, Covariate]) -> None:
    """Warn of numeric regressors of NeuralProphet that were constant in fit and have other values in `future`.

    These are the ones whose weights are all zero. `name` is that of the model in the message.
    """
    from deepforecast.models.neural._series_state import window_columns

    loc = window_columns(state.learned).loc
    body = state.learned["network"].body
    fit_values = np.full((len(state.series), len(future)), np.nan)
    start = 0
    for component in body.spec.components:
        stop = start + component.columns.stop - component.columns.start
        has_zero_weights = not body.weight[start:stop].any()
        if component.name in future and future[component.name].categories is None and has_zero_weights:
            fit_values[:, list(future).index(component.name)] = loc[component.name]
        start = stop
    warn_constant_in_fit(name, fit_values, future, state.series)
