"""Candidate forms of exponential smoothing, their selection, and kernel calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.state import LearnedState, check_floats, check_gaps, check_integers, check_vectors
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.kernels.ets.forms import Form
from deepforecast.models.statistical._perfect_fit import RESIDUAL_ARRAYS

if TYPE_CHECKING:
    from deepforecast.kernels.ets.filter import Model

LONGEST_SAMPLED_GAP = 10_000  # missing values at the end, for forms with sampled quantiles
LONGEST_SQUARED_GAP = 50_000  # for multiplicative errors, whose cost is quadratic in the gap
ERROR_CODES = {"additive": 0, "multiplicative": 1}  # values of `Form.error`
COMPONENT_CODES = {None: 0, "additive": 1, "multiplicative": 2}  # values of `Form.trend` and `Form.season`
MULTIPLICATIVE_ERROR = ERROR_CODES["multiplicative"]
MULTIPLICATIVE = COMPONENT_CODES["multiplicative"]
ERROR, TREND, DAMPED, SEASON = range(4)
"""Columns of `learned["form"]`, the fields of `Form`."""


def possible_forms(forms: Sequence[Form], season: int) -> list[Form]:
    """The distinct forms for a season of this length; with 1 step seasonal forms become non-seasonal."""
    return list(dict.fromkeys(form._replace(season=0) if season == 1 else form for form in forms))


def additive_forms(forms: Sequence[Form]) -> list[Form]:
    """The additive forms among these; if there are none, their additive counterparts."""
    additive = [form for form in forms if not form.is_multiplicative]
    return additive or list(dict.fromkeys(Form(0, min(form.trend, 1), form.damped, min(form.season, 1)) for form in forms))


def count_parameters(form: Form, season: int, is_fixed: Sequence[bool] = (False,) * 5) -> int:
    """Number of estimated smoothing parameters and initial states, without sigma, as in R.

    `is_fixed`: whether alpha, beta, gamma, phi and the initial states are given.
    """
    *is_rate_fixed, are_states_fixed = is_fixed
    has_rate = (True, form.trend > 0, form.season > 0, form.damped == 1)
    n_rates = sum(is_present and not is_given for is_present, is_given in zip(has_rate, is_rate_fixed, strict=True))
    n_seasonal_states = season - 1 if form.season else 0  # the last one follows from the sum
    return n_rates + (0 if are_states_fixed else 1 + (form.trend > 0) + n_seasonal_states)


def count_observed(y: Floats, design: Floats, indptr: Ints) -> Floats:
    """Number of values of each series that are observed together with all regressors."""
    is_observed = ~np.isnan(y)
    if design.shape[1]:
        is_observed &= ~np.isnan(design).any(axis=1)
    return np.add.reduceat(is_observed.astype(np.float64), indptr[:-1])


def constant_levels(y: Floats, indptr: Ints) -> Floats:
    """The value of each constant series, NaN for the others."""
    lowest = np.minimum.reduceat(np.where(np.isnan(y), np.inf, y), indptr[:-1])
    highest = np.maximum.reduceat(np.where(np.isnan(y), -np.inf, y), indptr[:-1])
    return np.where(lowest == highest, lowest, np.nan)


def select_best(fits: Any, forms: Sequence[Form], criteria: Floats) -> dict[str, Any]:
    """The arrays of the form with the smallest criterion of each series; the first form if none is finite.

    `criteria`: (series, forms). `form_index` is the position of the selected form in `forms`.
    """
    form_index = np.argmin(np.where(np.isnan(criteria), np.inf, criteria), axis=1)
    series = np.arange(len(form_index))
    return {
        "form_index": form_index,
        "form": np.array(forms, np.int64).reshape(-1, 4)[form_index],
        "rates": fits.rates[series, form_index],
        "start": fits.states[series, form_index],
        "effects": fits.coefficients[series, form_index],
        "log_likelihood": fits.log_likelihood[series, form_index],
    }


def set_constant(arrays: dict[str, Any], constant_values: Floats, form: Form) -> None:
    """Set the arrays of constant series in place: `form`, the constant level, no trend, season or covariate effects.

    `constant_values`: the level of each constant series, NaN for the others.
    """
    series = np.flatnonzero(~np.isnan(constant_values))
    arrays["form_index"][series] = 0
    arrays["form"][series] = form
    arrays["rates"][series] = (1.0, 0.0, 0.0, 1.0)  # alpha, beta, gamma, phi of a random walk
    arrays["start"][series, 0] = constant_values[series]
    arrays["start"][series, 1] = 1.0 if form.trend == MULTIPLICATIVE else 0.0
    arrays["start"][series, 2:] = 1.0 if form.season == MULTIPLICATIVE else 0.0
    arrays["effects"][series] = 0.0


def check_forms(learned: LearnedState) -> None:
    """Raise `InvalidManifest` if a model file has invalid forms, or too many missing values at the end for its forms."""
    form = check_integers(learned, "form", [0, 0, 0, 0], [1, 2, 1, 2])  # ranges of error, trend, damped, season
    check_floats(learned, ["start", "state"], (max(learned["state"].shape[-1], 3),))  # level, slope, seasonal factors
    check_floats(learned, ["rates"], (4,))
    check_floats(learned, ["criteria"], (3,))
    check_vectors(learned, ["power", "start_time", "sigma", *RESIDUAL_ARRAYS])
    check_gaps(learned)
    is_relative = form[:, ERROR] == MULTIPLICATIVE_ERROR
    is_sampled = (form[:, TREND] == MULTIPLICATIVE) | ((form[:, SEASON] == MULTIPLICATIVE) & ~is_relative)
    check_gaps(learned.take(np.flatnonzero(is_relative)), LONGEST_SQUARED_GAP)
    check_gaps(learned.take(np.flatnonzero(is_sampled)), LONGEST_SAMPLED_GAP)


def kernel_model(arrays: Mapping[str, Any], states: str, age: Ints | None = None) -> Model:
    """The kernels' `Model` with the states `arrays[states]`, "start" or "state".

    `age`: number of missing rows since these states; None: that of `state`, 0 for `start`.
    """
    from deepforecast.kernels.ets.filter import model_arrays

    if age is None:
        age = arrays["age"] if states == "state" else np.zeros_like(arrays["age"])
    return model_arrays(arrays["form"], arrays["rates"], arrays[states], age)


def filter_series(begin: Model, y: Floats, offsets: Floats, indptr: Ints) -> tuple[Floats, Model]:
    """One-step-ahead forecasts of the rows, and the model after them."""
    from deepforecast.kernels.ets.filter import filter_series as kernel

    return kernel(begin, y, offsets, indptr)


def restart_states(arrays: Mapping[str, Any], y: Floats, indptr: Ints, selected: Ints) -> Floats:
    """States before the first row of other histories, by maximum likelihood for given smoothing parameters.

    `selected`: indices of the series; their order is that of the result. Series without a finite likelihood start at
    their first value, without trend and season.
    """
    from deepforecast.kernels.ets.estimation import Settings, fit

    start_states = arrays["start"][selected]
    season = start_states.shape[1] - 2
    for form in sorted(set(map(tuple, arrays["form"][selected].tolist()))):
        group = np.flatnonzero((arrays["form"][selected] == form).all(axis=1))
        series = selected[group]
        bounds = np.concatenate([[0], np.cumsum(indptr[series + 1] - indptr[series])])
        values = np.concatenate([y[indptr[index] : indptr[index + 1]] for index in series])
        kernel_form = Form(*form)
        length = season if kernel_form.season else 1
        fits = fit(values, bounds, length, [kernel_form], settings=Settings(fixed=arrays["rates"][series], tolerance=1e-9))
        states = fits.states[:, 0]
        no_slope = 1.0 if kernel_form.trend == MULTIPLICATIVE else 0.0
        no_season = 1.0 if kernel_form.season == MULTIPLICATIVE else 0.0
        is_failed = ~np.isfinite(fits.log_likelihood[:, 0])
        states[is_failed] = [np.nan, no_slope, *[no_season] * length]
        states[is_failed, 0] = _first_values(values, bounds)[is_failed]
        start_states[group, : 2 + length] = states
    return np.asarray(start_states)


def _first_values(y: Floats, indptr: Ints) -> Floats:
    """The first observed value of each series."""
    observed_rows = np.flatnonzero(~np.isnan(y))
    return np.asarray(y[observed_rows[np.searchsorted(observed_rows, indptr[:-1])]])


def scale_to_errors(panel: Panel, y: Floats, forms: Ints) -> Panel:
    """The panel in units of the errors: relative to the largest value of a series with multiplicative errors."""
    size = np.maximum.reduceat(np.where(np.isnan(y), 0.0, np.abs(y)), panel.indptr[:-1])
    size = np.where((forms[:, ERROR] == MULTIPLICATIVE_ERROR) & (size > 0.0), size, 1.0)
    return replace(panel, y=y / np.repeat(size, panel.lengths))


def root_mean_square(errors: Floats, indptr: Ints, residual_df: Floats) -> Floats:
    """sqrt(sum of squares / residual_df) of each series, without overflow; NaN if residual_df <= 0.

    Missing errors (NaN) do not count.
    """
    present = np.where(np.isnan(errors), 0.0, errors)
    largest = np.maximum.reduceat(np.abs(present), indptr[:-1])
    _, power = np.frexp(largest)
    small = np.ldexp(present, -np.repeat(power, np.diff(indptr)))
    squares = np.add.reduceat(small * small, indptr[:-1])
    return np.where(residual_df > 0, np.ldexp(np.sqrt(squares / np.maximum(residual_df, 1.0)), power), np.nan)


def information_criteria(log_likelihood: Floats, n_parameters: Floats, n_observed: Floats) -> dict[str, Floats]:
    """AIC, AICc and BIC as in R; all of them infinite if n_observed < k + 2, with k = n_parameters + 1 for sigma."""
    n_with_sigma = n_parameters + 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = 2.0 * n_with_sigma * (n_with_sigma + 1.0) / (n_observed - n_with_sigma - 1.0)
    aic = -2.0 * log_likelihood + 2.0 * n_with_sigma
    is_defined = n_observed - n_with_sigma - 1.0 > 0
    return {
        "aic": np.where(is_defined, aic, np.inf),
        "aicc": np.where(is_defined, aic + correction, np.inf),
        "bic": np.where(is_defined, -2.0 * log_likelihood + n_with_sigma * np.log(n_observed), np.inf),
    }


def parameter_table(learned: LearnedState) -> dict[str, Any]:
    """Columns of `parameters()`: forms, smoothing parameters, initial states, and information criteria."""
    columns: dict[str, Any] = {}
    columns["form"] = np.array([str(Form(*form)) for form in learned["form"].tolist()], dtype=object)
    for position, name in enumerate(("alpha", "beta", "gamma", "phi")):
        columns[name] = learned["rates"][:, position]
    columns |= {"level": learned["start"][:, 0], "slope": learned["start"][:, 1], "sigma": learned["sigma"]}
    likelihood, n_parameters, n_observed = learned["criteria"].T
    columns |= {"log_likelihood": likelihood, "parameters": n_parameters.astype(np.int64)}
    return columns | information_criteria(likelihood, n_parameters, n_observed)
