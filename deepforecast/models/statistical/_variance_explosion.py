"""Exclusion of exponential smoothing forms whose forecast variance explodes within the horizon.

With multiplicative errors an error e multiplies the level of all later values by 1 + alpha e, and
these factors compound. To first order the variance of log y_{t+h} is

    x_h = sigma^2 (1 + sum_{j<h} c_j^2),   c_j = alpha + beta (phi + ... + phi^j) + gamma [m divides j],

and the variance of y_{t+h} over its squared mean grows like exp(x_h) (Hyndman, Koehler, Ord &
Snyder 2008, section 6.3). Far above 1 nearly all sample paths fall to 0 while the others grow without
bounds, and mean and variance describe neither of them.
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


def examined_steps(lengths: Ints, horizon: int | None) -> Ints:
    """The step h at which the forecast variance of each series is examined; `horizon`: that of the model, or None."""
    return np.maximum(lengths // LENGTH_DIVISOR, 1 if horizon is None else horizon)


def exclude_explosive(
    criteria: Floats, fits: Any, forms: Sequence[Form], panel: Panel, design: Floats, residual_df: Floats, steps: Ints
) -> Floats:
    """Copy of the criteria (series, forms) with those of explosive forms set to infinity.

    Only the form with the smallest criterion is examined; if it is explosive, the next one, and so
    on. If no form of a series is left, its criteria are unchanged. `residual_df`: residual degrees
    of freedom, (series, forms); `steps`: the step of each series at which the variance is examined.
    """
    criteria = np.where(np.isnan(criteria), np.inf, criteria)
    remaining = criteria.copy()
    form_table = np.array(forms, np.int64).reshape(-1, 4)
    series = np.arange(len(criteria))  # series whose currently best form has not been examined
    while len(series):
        best_form = np.argmin(remaining[series], axis=1)
        has_relative_errors = form_table[best_form, ets.ERROR] == ets.MULTIPLICATIVE_ERROR
        is_examined = has_relative_errors & np.isfinite(remaining[series, best_form])
        series, best_form = series[is_examined], best_form[is_examined]
        if not len(series):
            break
        fit = {
            "rates": fits.rates[series, best_form],
            "start": fits.states[series, best_form],
            "form": form_table[best_form],
        }
        errors, indptr = _relative_errors(fit, fits.coefficients[series, best_form], panel, design, series)
        sigma = ets.root_mean_square(errors, indptr, residual_df[series, best_form])
        season = fits.states.shape[2] - 2
        is_explosive = log_variance(fit["form"], fit["rates"], sigma, season, steps[series]) > LARGEST_VARIANCE
        series, best_form = series[is_explosive], best_form[is_explosive]
        remaining[series, best_form] = np.inf
    none_left = ~np.isfinite(remaining).any(axis=1)
    remaining[none_left] = criteria[none_left]
    return remaining


def log_variance(forms: Ints, rates: Floats, sigma: Floats, season: int, steps: Ints) -> Floats:
    """x_h of each series in closed form, with h = `steps`.

    Without the season c_j = constant + slope u_j, where u_j is j, or phi^j with a damped trend. A
    multiplicative season adds gamma^2 only, as its other terms belong to other indices.
    """
    alpha, beta, gamma, phi = rates.T
    n_terms = steps - 1.0  # j = 1 ... h - 1
    has_trend = forms[:, ets.TREND] > 0
    beta = np.where(has_trend, beta, 0.0)
    is_damped = has_trend & (forms[:, ets.DAMPED] == 1) & (phi < 1.0)
    phi = np.where(is_damped, phi, 0.5)  # any value below 1 avoids a division by 0 where it is not used
    limit = beta * phi / (1.0 - phi)
    constant = np.where(is_damped, alpha + limit, alpha)
    slope = np.where(is_damped, -limit, beta)
    u_sum = np.where(is_damped, phi * (1.0 - phi**n_terms) / (1.0 - phi), n_terms * (n_terms + 1.0) / 2.0)
    u_square_sum = np.where(
        is_damped,
        phi**2 * (1.0 - phi ** (2.0 * n_terms)) / (1.0 - phi**2),
        n_terms * (n_terms + 1.0) * (2.0 * n_terms + 1.0) / 6.0,
    )
    squares = n_terms * constant**2 + 2.0 * constant * slope * u_sum + slope**2 * u_square_sum
    n_cycles = n_terms // season
    u_sum_at_season = np.where(  # sum of u_j over the whole cycles, j = m, 2 m, ...
        is_damped,
        phi**season * (1.0 - phi ** (season * n_cycles)) / (1.0 - phi**season),
        season * n_cycles * (n_cycles + 1.0) / 2.0,
    )
    cross_terms = 2.0 * gamma * (n_cycles * constant + slope * u_sum_at_season)
    is_additive = forms[:, ets.SEASON] == ets.COMPONENT_CODES["additive"]
    squares += np.where(forms[:, ets.SEASON] > 0, n_cycles * gamma**2, 0.0) + np.where(is_additive, cross_terms, 0.0)
    return np.asarray(sigma**2 * (1.0 + squares))


def _relative_errors(
    fit: dict[str, Any], effects: Floats, panel: Panel, design: Floats, series: Ints
) -> tuple[Floats, Ints]:
    """Relative one-step errors of the rows of these series (NaN if not finite), and their row pointers."""
    selected = panel if len(series) == len(panel) else panel.take(series)
    offsets = np.zeros(len(selected.y))
    if design.shape[1]:
        rows = np.isin(panel.row_series, series)
        offsets = np.sum(design[rows] * np.repeat(effects, selected.lengths, axis=0), axis=1)
    begin = ets.kernel_model({**fit, "age": np.zeros(len(series), np.int64)}, "start")
    mean = ets.filter_series(begin, selected.y, offsets, selected.indptr)[0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(np.isfinite(mean), (selected.y - mean) / mean, np.nan), selected.indptr
