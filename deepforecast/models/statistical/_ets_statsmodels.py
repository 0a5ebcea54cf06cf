"""statsmodels' `ETSModel` of one series: estimated, or rebuilt at known parameters. Imported where it is called."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from deepforecast.core.state import Learned
from deepforecast.data.frames import Floats
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, shown
from deepforecast.kernels.ets.forms import Form

WORDS = (None, "add", "mul")


def made(y: Floats, form: Form, season: int) -> Any:
    """statsmodels' model of a series in a form."""
    return ETSModel(
        y,
        error=WORDS[form.error + 1],
        trend=WORDS[form.trend],
        damped_trend=bool(form.damped),
        seasonal=WORDS[form.season],
        seasonal_periods=season if form.season else None,
    )


def estimated(y: Floats, form: Form, season: int) -> tuple[Floats, Floats, float]:
    """Rates, first states and log-likelihood as statsmodels finds them, on a scale of its liking."""
    _, power = np.frexp(float(np.std(y / np.max(np.abs(y)))) * np.max(np.abs(y)))
    small = np.ldexp(y, -power)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # that it did not converge is seen in the likelihood, which is its own
        result = made(small, form, season).fit(disp=False, maxiter=2000)
    rates, states = np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(2 + season)
    states[1], states[2:] = float(form.trend == 2), float(form.season == 2)
    given = list(np.asarray(result.params, np.float64))
    for place, there in enumerate((True, form.trend > 0, form.season > 0, form.damped)):
        if there:
            rates[place] = given.pop(0)
    states[0] = np.ldexp(given.pop(0), power)
    if form.trend:
        states[1] = given.pop(0) if form.trend == 2 else np.ldexp(given.pop(0), power)
    if form.season:
        states[2:] = given[::-1] if form.season == 2 else np.ldexp(given[::-1], power)
    return rates, states, float(result.llf) - len(y) * float(power) * float(np.log(2.0))


def params_of(learned: Learned, number: int) -> list[float]:
    """A series' parameters in statsmodels' order."""
    form, rates, start = Form(*learned["form"][number].tolist()), learned["rates"][number], learned["start"][number]
    has = (True, form.trend > 0, form.season > 0, bool(form.damped))
    found = [float(rate) for rate, there in zip(rates, has, strict=True) if there] + [float(start[0])]
    found += [float(start[1])] if form.trend else []
    return found + ([float(factor) for factor in start[:1:-1]] if form.season else [])


def summary(panel: Panel, learned: Learned, unique_id: Any, estimates: Mapping[str, Any]) -> str:
    """statsmodels' summary of a series at the parameters learned, with the criteria of `estimates`, the columns of
    `parameters()`; only these where statsmodels has no such model."""
    ids = [None] if panel.series.ids is None else list(panel.series.ids)
    if not (unique_id is None and len(ids) == 1) and unique_id not in ids:
        raise ParameterError(f"unique_id names a series of the fit, as {panel.series.label(0)}; got {shown(unique_id)}.")
    number = 0 if unique_id is None else ids.index(unique_id)
    y = panel.y[panel.indptr[number] : panel.indptr[number + 1]]
    if np.isnan(learned["criteria"][number, 0]):
        raise DataError(f"Series {panel.series.label(number)} never varies: there is nothing to sum up.")
    observed = int(np.count_nonzero(~np.isnan(y)))
    own = {name: values[number] for name, values in estimates.items()}
    if learned["effects"].shape[1] or observed < len(y) or not np.isnan(learned["power"][number]):
        return _listed({"series": panel.series.label(number), "observations": observed, "missing": len(y) - observed, **own})
    form = Form(*learned["form"][number].tolist())
    season = learned["start"].shape[1] - 2
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of derivatives at the bounds
        found = made(y, form, season).smooth(params_of(learned, number)).summary()
    # statsmodels counts all seasonal states; one of them follows from the others and the level, as in R
    hqic = -2 * own["log_likelihood"] + 2 * (own["parameters"] + 1) * np.log(np.log(observed))
    return with_values(found, {"AIC": own["aic"], "BIC": own["bic"], "HQIC": hqic})


def with_values(summary: Any, values: Mapping[str, int | float]) -> str:
    """The text of a summary of statsmodels with other values beside these labels of its first table."""
    for row in summary.tables[0]:
        for label, cell in pairwise(row):
            name = str(label.data).strip().rstrip(":")
            if name in values:
                cell.data = str(values[name]) if isinstance(values[name], int) else f"{values[name]:.3f}"
    return str(summary)


def _listed(estimates: Mapping[str, Any]) -> str:
    """Names and values, a line each."""
    width = max(map(len, estimates))
    lines = ["ETS Results", "=" * (width + 14)]
    for name, value in estimates.items():
        text = str(value) if isinstance(value, str | int) else f"{value:.6g}"
        lines.append(f"{name:<{width}}  {text}")
    return "\n".join(lines)
