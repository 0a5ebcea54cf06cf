"""Estimation of exponential smoothing by statsmodels."""

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
from deepforecast.models.statistical import _form_selection as ets

if TYPE_CHECKING:
    from deepforecast.models.statistical._single_form import Smoothing


def statsmodels_capabilities(declared: Capabilities) -> Capabilities:
    """Capabilities with statsmodels' `ETSModel`: no covariates and no missing values."""
    return replace(declared, future=False, categorical=False, missing=False, precision=1e-2)


def fit_by_statsmodels(model: Smoothing, panel: Panel, y: Floats, season: int, forms: Sequence[Form]) -> Any:
    """Fit each series by statsmodels; the result is that of the kernels' `fit`."""
    from deepforecast.kernels.ets.estimation import Fits
    from deepforecast.models.statistical._statsmodels_ets import estimate_ets

    if any(model._fixed_parameters()) or model.parameter_bounds == "admissible":
        raise ParameterError(
            f"{model.name}: engine='statsmodels' cannot fix parameters or initial states, or use parameter_bounds="
            "'admissible'. Leave these out, or use engine='kernels'."
        )
    size, width = (len(panel), 1), 2 + season
    fits = Fits(np.ones((*size, 4)), np.zeros((*size, width)), np.zeros((*size, 0)), np.full(size, -np.inf), np.zeros(size))
    constant_values = ets.constant_levels(y, panel.indptr)
    for number in np.flatnonzero(np.isnan(constant_values)):
        values = y[panel.indptr[number] : panel.indptr[number + 1]]
        rates, states, likelihood = estimate_ets(values, forms[0], season)
        fits.rates[number, 0], fits.states[number, 0], fits.log_likelihood[number, 0] = rates, states, likelihood
    return fits
