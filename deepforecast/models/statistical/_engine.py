"""Exponential smoothing estimated by statsmodels, one series at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical import _ets as ets

if TYPE_CHECKING:
    from deepforecast.models.statistical._smoothing import Smoothing


def without_regressors(able: Capabilities) -> Capabilities:
    """What is left where statsmodels estimates: its `ETSModel` knows no regressors and no missing values."""
    return replace(able, future=False, categorical=False, missing=False, precision=1e-2)


def by_statsmodels(model: Smoothing, panel: Panel, y: Floats, season: int, forms: Sequence[Form]) -> Any:
    """The same as the kernels' `fit`."""
    from deepforecast.kernels.ets.fitting import Fits
    from deepforecast.models.statistical._ets_statsmodels import estimated

    if any(model._settings_given()) or model.parameter_bounds == "admissible":
        raise ParameterError(f"{model.name}: engine='statsmodels' estimates all rates and states, in the usual bounds.")
    size, width = (len(panel), 1), 2 + season
    found = Fits(np.ones((*size, 4)), np.zeros((*size, width)), np.zeros((*size, 0)), np.full(size, -np.inf), np.zeros(size))
    flat = ets.constant(y, panel.indptr)
    for number in np.flatnonzero(np.isnan(flat)):
        values = y[panel.indptr[number] : panel.indptr[number + 1]]
        rates, states, likelihood = estimated(values, forms[0], season)
        found.rates[number, 0], found.states[number, 0], found.log_likelihood[number, 0] = rates, states, likelihood
    return found
