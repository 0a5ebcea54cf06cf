"""`ETSModel` of statsmodels. Import this module lazily: it imports statsmodels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, format_value
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical._form_selection import MULTIPLICATIVE

COMPONENT_NAMES = (None, "add", "mul")  # of statsmodels, by the codes of `Form.trend` and `Form.season`


def build_model(y: Floats, form: Form, season: int) -> Any:
    """statsmodels' ETSModel of a form."""
    return ETSModel(
        y,
        error=COMPONENT_NAMES[form.error + 1],  # errors are coded from 0
        trend=COMPONENT_NAMES[form.trend],
        damped_trend=bool(form.damped),
        seasonal=COMPONENT_NAMES[form.season],
        seasonal_periods=season if form.season else None,
    )


def estimate_ets(y: Floats, form: Form, season: int) -> tuple[Floats, Floats, float]:
    """Smoothing parameters (4,), initial states (2 + season,) and log-likelihood by statsmodels, in units of the data.

    The values are divided by a power of two near their standard deviation first.
    """
    _, power = np.frexp(float(np.std(y / np.max(np.abs(y)))) * np.max(np.abs(y)))
    scaled = np.ldexp(y, -power)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about convergence
        fit = build_model(scaled, form, season).fit(disp=False, maxiter=2000)
    rates, states = np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(2 + season)
    has_growth_factor, has_seasonal_factors = form.trend == MULTIPLICATIVE, form.season == MULTIPLICATIVE
    states[1], states[2:] = float(has_growth_factor), float(has_seasonal_factors)
    estimates = list(np.asarray(fit.params, np.float64))  # smoothing parameters, level, slope, seasonal states backwards
    for position, is_present in enumerate((True, form.trend > 0, form.season > 0, form.damped)):
        if is_present:
            rates[position] = estimates.pop(0)
    states[0] = np.ldexp(estimates.pop(0), power)
    if form.trend:
        slope = estimates.pop(0)
        states[1] = slope if has_growth_factor else np.ldexp(slope, power)
    if form.season:
        states[2:] = estimates[::-1] if has_seasonal_factors else np.ldexp(estimates[::-1], power)
    return rates, states, float(fit.llf) - len(y) * float(power) * float(np.log(2.0))


def statsmodels_parameters(learned: LearnedState, series_index: int) -> list[float]:
    """Parameters of a series in the order of statsmodels: smoothing parameters, level, slope, seasonal states backwards."""
    form = Form(*learned["form"][series_index].tolist())
    rates, start = learned["rates"][series_index], learned["start"][series_index]
    has_rate = (True, form.trend > 0, form.season > 0, bool(form.damped))
    parameters = [float(rate) for rate, is_present in zip(rates, has_rate, strict=True) if is_present] + [float(start[0])]
    parameters += [float(start[1])] if form.trend else []
    return parameters + ([float(factor) for factor in start[:1:-1]] if form.season else [])


def summary(panel: Panel, learned: LearnedState, unique_id: Any, estimates: Mapping[str, Any]) -> str:
    """statsmodels' summary of a series at the learned parameters, with the criteria of `parameters()`.

    `estimates`: the columns of `parameters()`; they are listed instead if statsmodels has no such
    model (covariates, missing values, a transformation). Raise a `DataError` for constant series.
    """
    ids = [None] if panel.series.ids is None else list(panel.series.ids)
    if not (unique_id is None and len(ids) == 1) and unique_id not in ids:
        raise ParameterError(
            f"`unique_id` must be a series seen in fit, such as {panel.series.label(0)}, got {format_value(unique_id)}.",
            parameter="unique_id",
            value=unique_id,
        )
    series_index = 0 if unique_id is None else ids.index(unique_id)
    y = panel.y[panel.indptr[series_index] : panel.indptr[series_index + 1]]
    if np.isnan(learned["criteria"][series_index, 0]):
        raise DataError(
            f"Series {panel.series.label(series_index)} cannot be summarized, because its training data never varies.",
            hint="Pass the unique_id of another series.",
        )
    n_observed = int(np.count_nonzero(~np.isnan(y)))
    series_estimates = {name: values[series_index] for name, values in estimates.items()}
    if learned["effects"].shape[1] or n_observed < len(y) or not np.isnan(learned["power"][series_index]):
        counts = {"observations": n_observed, "missing": len(y) - n_observed}
        return _format_list({"series": panel.series.label(series_index), **counts, **series_estimates})
    form = Form(*learned["form"][series_index].tolist())
    season = learned["start"].shape[1] - 2
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about derivatives at the bounds
        statsmodels_summary = build_model(y, form, season).smooth(statsmodels_parameters(learned, series_index)).summary()
    # statsmodels counts all seasonal states, R all but one
    hqic = -2 * series_estimates["log_likelihood"] + 2 * (series_estimates["parameters"] + 1) * np.log(np.log(n_observed))
    return replace_values(statsmodels_summary, {"AIC": series_estimates["aic"], "BIC": series_estimates["bic"], "HQIC": hqic})


def replace_values(summary: Any, values: Mapping[str, int | float]) -> str:
    """Text of a statsmodels summary, with the values of these labels in its first table replaced in place."""
    for row in summary.tables[0]:
        for label, cell in pairwise(row):
            name = str(label.data).strip().rstrip(":")
            if name in values:
                cell.data = str(values[name]) if isinstance(values[name], int) else f"{values[name]:.3f}"
    return str(summary)


def _format_list(estimates: Mapping[str, Any]) -> str:
    """One line per name and value, under a heading."""
    width = max(map(len, estimates))
    lines = ["ETS Results", "=" * (width + 14)]
    for name, value in estimates.items():
        text = str(value) if isinstance(value, str | int) else f"{value:.6g}"
        lines.append(f"{name:<{width}}  {text}")
    return "\n".join(lines)
