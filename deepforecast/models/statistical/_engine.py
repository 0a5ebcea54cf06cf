"""Estimation of exponential smoothing by statsmodels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.registry import Capabilities
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
    """Fit one form to each series by statsmodels, except constant series; return `Fits` like the kernels' `fit`.

    Raise a `ParameterError` for options that statsmodels does not have.
    """
    from deepforecast.kernels.ets.estimation import Fits
    from deepforecast.models.statistical._statsmodels_ets import estimate_ets

    if any(model._is_fixed()) or model.parameter_bounds == "admissible":
        raise ParameterError(
            f"{model.name}: engine='statsmodels' cannot be used with fixed smoothing parameters or initial states, or with "
            "parameter_bounds='admissible'. Omit these parameters, or set engine='kernels'.",
            parameter="engine",
        )
    shape = (len(panel), 1)  # series, forms
    fits = Fits(
        rates=np.ones((*shape, 4)),
        states=np.zeros((*shape, 2 + season)),
        coefficients=np.zeros((*shape, 0)),
        log_likelihood=np.full(shape, -np.inf),
        evaluations=np.zeros(shape),
    )
    constant_values = ets.constant_levels(y, panel.indptr)
    for series_index in np.flatnonzero(np.isnan(constant_values)):
        values = y[panel.indptr[series_index] : panel.indptr[series_index + 1]]
        rates, states, log_likelihood = estimate_ets(values, forms[0], season)
        fits.rates[series_index, 0] = rates
        fits.states[series_index, 0] = states
        fits.log_likelihood[series_index, 0] = log_likelihood
    return fits
