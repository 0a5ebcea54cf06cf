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

COMPONENT_NAMES = (None, "add", "mul")


def build_model(y: Floats, form: Form, season: int) -> Any:
    return ETSModel(
        y,
        error=COMPONENT_NAMES[form.error + 1],
        trend=COMPONENT_NAMES[form.trend],
        damped_trend=bool(form.damped),
        seasonal=COMPONENT_NAMES[form.season],
        seasonal_periods=season if form.season else None,
    )


def estimate_ets(y: Floats, form: Form, season: int) -> tuple[Floats, Floats, float]:
    """Rates, initial states and log-likelihood; values are scaled by a power of two."""
    _, power = np.frexp(float(np.std(y / np.max(np.abs(y)))) * np.max(np.abs(y)))
    small = np.ldexp(y, -power)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about convergence
        fit = build_model(small, form, season).fit(disp=False, maxiter=2000)
    rates, states = np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(2 + season)
    states[1], states[2:] = float(form.trend == 2), float(form.season == 2)
    estimates = list(np.asarray(fit.params, np.float64))
    for position, is_present in enumerate((True, form.trend > 0, form.season > 0, form.damped)):
        if is_present:
            rates[position] = estimates.pop(0)
    states[0] = np.ldexp(estimates.pop(0), power)
    if form.trend:
        states[1] = estimates.pop(0) if form.trend == 2 else np.ldexp(estimates.pop(0), power)
    if form.season:
        states[2:] = estimates[::-1] if form.season == 2 else np.ldexp(estimates[::-1], power)
    return rates, states, float(fit.llf) - len(y) * float(power) * float(np.log(2.0))


def statsmodels_parameters(learned: LearnedState, number: int) -> list[float]:
    """Parameters of a series in the order of statsmodels."""
    form, rates, start = Form(*learned["form"][number].tolist()), learned["rates"][number], learned["start"][number]
    has_rate = (True, form.trend > 0, form.season > 0, bool(form.damped))
    parameters = [float(rate) for rate, is_present in zip(rates, has_rate, strict=True) if is_present] + [float(start[0])]
    parameters += [float(start[1])] if form.trend else []
    return parameters + ([float(factor) for factor in start[:1:-1]] if form.season else [])


def summary(panel: Panel, learned: LearnedState, unique_id: Any, estimates: Mapping[str, Any]) -> str:
    """statsmodels' summary of a series at the learned parameters, with the criteria of `estimates`.

    Lists `estimates`, the columns of `parameters()`, if statsmodels has no such model.
    """
    ids = [None] if panel.series.ids is None else list(panel.series.ids)
    if not (unique_id is None and len(ids) == 1) and unique_id not in ids:
        raise ParameterError(
            f"`unique_id` must be a series of the fit, such as {panel.series.label(0)}, got {format_value(unique_id)}."
        )
    number = 0 if unique_id is None else ids.index(unique_id)
    y = panel.y[panel.indptr[number] : panel.indptr[number + 1]]
    if np.isnan(learned["criteria"][number, 0]):
        raise DataError(f"A summary cannot be made of series {panel.series.label(number)}, which never varies.")
    observed = int(np.count_nonzero(~np.isnan(y)))
    series_estimates = {name: values[number] for name, values in estimates.items()}
    if learned["effects"].shape[1] or observed < len(y) or not np.isnan(learned["power"][number]):
        return _format_list(
            {"series": panel.series.label(number), "observations": observed, "missing": len(y) - observed, **series_estimates}
        )
    form = Form(*learned["form"][number].tolist())
    season = learned["start"].shape[1] - 2
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about derivatives at the bounds
        statsmodels_summary = build_model(y, form, season).smooth(statsmodels_parameters(learned, number)).summary()
    # statsmodels counts all seasonal states, R all but one
    hqic = -2 * series_estimates["log_likelihood"] + 2 * (series_estimates["parameters"] + 1) * np.log(np.log(observed))
    return replace_values(statsmodels_summary, {"AIC": series_estimates["aic"], "BIC": series_estimates["bic"], "HQIC": hqic})


def replace_values(summary: Any, values: Mapping[str, int | float]) -> str:
    """Text of a statsmodels summary with the values of these labels of its first table replaced."""
    for row in summary.tables[0]:
        for label, cell in pairwise(row):
            name = str(label.data).strip().rstrip(":")
            if name in values:
                cell.data = str(values[name]) if isinstance(values[name], int) else f"{values[name]:.3f}"
    return str(summary)


def _format_list(estimates: Mapping[str, Any]) -> str:
    width = max(map(len, estimates))
    lines = ["ETS Results", "=" * (width + 14)]
    for name, value in estimates.items():
        text = str(value) if isinstance(value, str | int) else f"{value:.6g}"
        lines.append(f"{name:<{width}}  {text}")
    return "\n".join(lines)
