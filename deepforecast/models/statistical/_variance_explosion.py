"""Exclusion of exponential smoothing forms whose forecast variance explodes within the horizon.

With multiplicative errors an error e of the level is a factor 1 + alpha e on all values to come,
and these factors compound. To first order the variance of log y_{t+h} is

    x_h = sigma^2 (1 + sum_{j<h} c_j^2),   c_j = alpha + beta (phi + ... + phi^j) + gamma [m divides j],

and the variance of y_{t+h} over its squared mean grows like exp(x_h) (Hyndman, Koehler, Ord &
Snyder 2008, section 6.3). Far above 1 nearly all sample paths fall to 0 while the rest grow without
bounds: the mean and the variance describe neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical import _form_selection as ets

LARGEST_VARIANCE = 1.5
"""Largest x_h of a form that may be selected."""
LENGTH_DIVISOR = 4
"""h is the horizon of the model, or the length of the series / LENGTH_DIVISOR if that is longer."""


def judged_steps(lengths: Ints, horizon: int | None) -> Ints:
    """The step h at which the variance of each series is examined."""
    return np.maximum(lengths // LENGTH_DIVISOR, 1 if horizon is None else horizon)


def exclude_explosive(
    scores: Floats, fits: Any, forms: Sequence[Form], panel: Panel, design: Floats, residual_df: Floats, steps: Ints
) -> Floats:
    """Set the scores (series, forms) of explosive forms to infinity, unless no other form is left.

    Only the best form of each series is examined; if it is explosive, the next best one.
    `residual_df`: residual degrees of freedom of each fit.
    """
    scores = np.where(np.isnan(scores), np.inf, scores)
    refused, table = scores.copy(), np.array(forms, np.int64).reshape(-1, 4)
    series = np.arange(len(scores))
    while len(series):
        best = np.argmin(refused[series], axis=1)
        examined = (table[best, 0] == 1) & np.isfinite(refused[series, best])
        series, best = series[examined], best[examined]
        if not len(series):
            break
        fit = {"rates": fits.rates[series, best], "start": fits.states[series, best], "form": table[best]}
        effects = fits.coefficients[series, best]
        errors, indptr = _relative_errors(fit, effects, panel, design, series)
        sigma = ets.root_mean_square(errors, indptr, residual_df[series, best])
        season = fits.states.shape[2] - 2
        explosive = log_variance(fit["form"], fit["rates"], sigma, season, steps[series]) > LARGEST_VARIANCE
        series, best = series[explosive], best[explosive]
        refused[series, best] = np.inf
    none_left = ~np.isfinite(refused).any(axis=1)
    refused[none_left] = scores[none_left]
    return refused


def log_variance(forms: Ints, rates: Floats, sigma: Floats, season: int, steps: Ints) -> Floats:
    """x_h of each series in closed form, with h = `steps`.

    Without the season c_j = constant + slope u_j, where u_j is j, or phi^j with a damped trend. A
    multiplicative season adds gamma^2 only, as its other terms belong to other indices.
    """
    alpha, beta, gamma, phi = rates.T
    count = steps - 1.0
    beta = np.where(forms[:, 1] > 0, beta, 0.0)
    damped = (forms[:, 1] > 0) & (forms[:, 2] == 1) & (phi < 1.0)
    phi = np.where(damped, phi, 0.5)
    limit = beta * phi / (1.0 - phi)
    constant = np.where(damped, alpha + limit, alpha)
    slope = np.where(damped, -limit, beta)
    first = np.where(damped, phi * (1.0 - phi**count) / (1.0 - phi), count * (count + 1.0) / 2.0)
    second = np.where(
        damped,
        phi**2 * (1.0 - phi ** (2.0 * count)) / (1.0 - phi**2),
        count * (count + 1.0) * (2.0 * count + 1.0) / 6.0,
    )
    total = count * constant**2 + 2.0 * constant * slope * first + slope**2 * second
    cycles = count // season
    at_season = np.where(  # the sum of u_j over whole cycles
        damped,
        phi**season * (1.0 - phi ** (season * cycles)) / (1.0 - phi**season),
        season * cycles * (cycles + 1.0) / 2.0,
    )
    added = 2.0 * gamma * (cycles * constant + slope * at_season)
    total += np.where(forms[:, 3] > 0, cycles * gamma**2, 0.0) + np.where(forms[:, 3] == 1, added, 0.0)
    return np.asarray(sigma**2 * (1.0 + total))


def _relative_errors(
    fit: dict[str, Any], effects: Floats, panel: Panel, design: Floats, series: Ints
) -> tuple[Floats, Ints]:
    """Relative one-step errors of these series, and their row pointers."""
    selected = panel if len(series) == len(panel) else panel.take(series)
    offsets = np.zeros(len(selected.y))
    if design.shape[1]:
        rows = np.isin(panel.row_series, series)
        offsets = np.sum(design[rows] * np.repeat(effects, selected.lengths, axis=0), axis=1)
    begin = ets.kernel_model({**fit, "age": np.zeros(len(series), np.int64)}, "start")
    mean = ets.filter_series(begin, selected.y, offsets, selected.indptr)[0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(np.isfinite(mean), (selected.y - mean) / mean, np.nan), selected.indptr
