"""Candidate forms of exponential smoothing, their selection, and kernel calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.integer_bounds import check_floats, check_gaps, check_integers
from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.kernels.ets.forms import Form

if TYPE_CHECKING:
    from deepforecast.kernels.ets.filter import Model

LONGEST_SAMPLED_GAP = 10_000  # missing values at the end, for forms with sampled quantiles
LONGEST_SQUARED_GAP = 50_000  # for multiplicative errors, whose cost is quadratic in the gap
COMPONENT_CODES = {None: 0, "additive": 1, "multiplicative": 2}


def possible_forms(forms: Sequence[Form], season: int) -> list[Form]:
    """The distinct forms for this season."""
    return list(dict.fromkeys(form._replace(season=0) if season == 1 else form for form in forms))


def additive_forms(forms: Sequence[Form]) -> list[Form]:
    """The additive forms among these; if there are none, their additive counterparts."""
    additive = [form for form in forms if not form.is_multiplicative]
    return additive or list(dict.fromkeys(Form(0, min(form.trend, 1), form.damped, min(form.season, 1)) for form in forms))


def count_parameters(form: Form, season: int, is_fixed: Sequence[bool] = (False,) * 5) -> int:
    """Number of estimated parameters with initial states, without sigma, as in R."""
    rates = (True, form.trend > 0, form.season > 0, form.damped == 1)
    n_rates = sum(has_rate and not fixed_rate for has_rate, fixed_rate in zip(rates, is_fixed, strict=False))
    return n_rates + (0 if is_fixed[4] else 1 + (form.trend > 0) + (season - 1 if form.season else 0))


def count_observed(y: Floats, matrix: Floats, indptr: Ints) -> Floats:
    """Number of values of each series that are observed together with all regressors."""
    is_observed = ~np.isnan(y)
    if matrix.shape[1]:
        is_observed &= ~np.isnan(matrix).any(axis=1)
    return np.add.reduceat(is_observed.astype(np.float64), indptr[:-1])


def constant_levels(y: Floats, indptr: Ints) -> Floats:
    """The value of each constant series, NaN for the others."""
    lowest = np.minimum.reduceat(np.where(np.isnan(y), np.inf, y), indptr[:-1])
    highest = np.maximum.reduceat(np.where(np.isnan(y), -np.inf, y), indptr[:-1])
    return np.where(lowest == highest, lowest, np.nan)


def select_best(fits: Any, forms: Sequence[Form], scores: Floats, season: int) -> dict[str, Any]:
    """The arrays of the best form of each series, or of the first form if no score is finite."""
    scores = np.where(np.isnan(scores), np.inf, scores)
    best = np.argmin(scores, axis=1)
    rows = np.arange(len(best))
    return {
        "best": best,
        "form": np.array(forms, np.int64).reshape(-1, 4)[best],
        "rates": fits.rates[rows, best],
        "start": fits.states[rows, best],
        "effects": fits.coefficients[rows, best],
        "log_likelihood": fits.log_likelihood[rows, best],
    }


def set_constant(arrays: dict[str, Any], constant_values: Floats, form: Form) -> None:
    """Set constant series to their level, with neutral other parameters."""
    rows = np.flatnonzero(~np.isnan(constant_values))
    arrays["best"][rows] = 0
    arrays["form"][rows] = form
    arrays["rates"][rows] = (1.0, 0.0, 0.0, 1.0)
    arrays["start"][rows, 0] = constant_values[rows]
    arrays["start"][rows, 1] = 1.0 if form.trend == 2 else 0.0
    arrays["start"][rows, 2:] = 1.0 if form.season == 2 else 0.0
    arrays["effects"][rows] = 0.0


def check_forms(learned: LearnedState) -> None:
    """Refuse model files with invalid forms, or with gaps too long for the forecast of the form."""
    form = check_integers(learned, "form", [0, 0, 0, 0], [1, 2, 1, 2])
    check_floats(learned, ["start", "state"], (max(learned["state"].shape[-1], 3),))  # level, slope, seasonal factors
    check_gaps(learned)
    sampled = (form[:, 1] == 2) | ((form[:, 3] == 2) & (form[:, 0] == 0))
    check_gaps(learned.take(np.flatnonzero(form[:, 0] == 1)), LONGEST_SQUARED_GAP)
    check_gaps(learned.take(np.flatnonzero(sampled)), LONGEST_SAMPLED_GAP)


def kernel_model(arrays: Mapping[str, Any], states: str, age: Ints | None = None) -> Model:
    """Arguments of the kernels: at `start`, or at `state` with its age."""
    from deepforecast.kernels.ets.filter import model_arrays

    if age is None:
        age = arrays["age"] if states == "state" else np.zeros_like(arrays["age"])
    return model_arrays(arrays["form"], arrays["rates"], arrays[states], age)


def filter_series(begin: Model, y: Floats, offsets: Floats, indptr: Ints) -> tuple[Floats, Model]:
    """One-step-ahead forecasts of the rows, and the model after them."""
    from deepforecast.kernels.ets.filter import filter_series as kernel

    return kernel(begin, y, offsets, indptr)


def restart_states(arrays: Mapping[str, Any], y: Floats, indptr: Ints, selected: Ints) -> Floats:
    """States before the first row of other histories, by maximum likelihood for given rates."""
    from deepforecast.kernels.ets.estimation import Settings, fit

    start_states = arrays["start"][selected]
    season = start_states.shape[1] - 2
    for form in sorted(set(map(tuple, arrays["form"][selected].tolist()))):
        group = np.flatnonzero((arrays["form"][selected] == form).all(axis=1))
        rows = selected[group]
        bounds = np.concatenate([[0], np.cumsum(indptr[rows + 1] - indptr[rows])])
        values = np.concatenate([y[indptr[row] : indptr[row + 1]] for row in rows])
        kernel_form = Form(*form)
        length = season if kernel_form.season else 1
        fits = fit(values, bounds, length, [kernel_form], settings=Settings(fixed=arrays["rates"][rows], tolerance=1e-9))
        states = fits.states[:, 0]
        neutral = np.array(
            [np.nan, 1.0 if kernel_form.trend == 2 else 0.0, *[1.0 if kernel_form.season == 2 else 0.0] * length]
        )
        is_missing = ~np.isfinite(fits.log_likelihood[:, 0])
        states[is_missing] = neutral
        states[is_missing, 0] = _first_values(values, bounds)[is_missing]
        start_states[group, : 2 + length] = states
    return np.asarray(start_states)


def _first_values(y: Floats, indptr: Ints) -> Floats:
    """The first observed value of each series."""
    observed_rows = np.flatnonzero(~np.isnan(y))
    return np.asarray(y[observed_rows[np.searchsorted(observed_rows, indptr[:-1])]])


def scale_to_errors(panel: Panel, y: Floats, forms: Ints) -> Panel:
    """The rows in units of the errors: relative to the largest value for multiplicative errors."""
    size = np.maximum.reduceat(np.where(np.isnan(y), 0.0, np.abs(y)), panel.indptr[:-1])
    size = np.where((forms[:, 0] == 1) & (size > 0.0), size, 1.0)
    return replace(panel, y=y / np.repeat(size, panel.lengths))


def root_mean_square(errors: Floats, indptr: Ints, residual_df: Floats) -> Floats:
    """sqrt(sum of squares / residual_df) of each series, without overflow.

    NaN if residual_df <= 0.
    """
    present = np.where(np.isnan(errors), 0.0, errors)
    largest = np.maximum.reduceat(np.abs(present), indptr[:-1])
    _, power = np.frexp(largest)
    small = np.ldexp(present, -np.repeat(power, np.diff(indptr)))
    squares = np.add.reduceat(small * small, indptr[:-1])
    return np.where(residual_df > 0, np.ldexp(np.sqrt(squares / np.maximum(residual_df, 1.0)), power), np.nan)


def information_criteria(log_likelihood: Floats, parameters: Floats, counts: Floats) -> dict[str, Floats]:
    """AIC, AICc and BIC with sigma as a parameter, as in R; infinite for too few values."""
    n_parameters = parameters + 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = 2.0 * n_parameters * (n_parameters + 1.0) / (counts - n_parameters - 1.0)
    aic = -2.0 * log_likelihood + 2.0 * n_parameters
    enough = counts - n_parameters - 1.0 > 0
    return {
        "aic": np.where(enough, aic, np.inf),
        "aicc": np.where(enough, aic + correction, np.inf),
        "bic": np.where(enough, -2.0 * log_likelihood + n_parameters * np.log(counts), np.inf),
    }


def parameter_table(learned: LearnedState) -> dict[str, Any]:
    """Columns of `parameters()`: forms, parameters and criteria."""
    columns: dict[str, Any] = {}
    columns["form"] = np.array([str(Form(*form)) for form in learned["form"].tolist()], dtype=object)
    for position, name in enumerate(("alpha", "beta", "gamma", "phi")):
        columns[name] = learned["rates"][:, position]
    columns |= {"level": learned["start"][:, 0], "slope": learned["start"][:, 1], "sigma": learned["sigma"]}
    likelihood, parameters, counts = learned["criteria"].T
    columns |= {"log_likelihood": likelihood, "parameters": parameters.astype(np.int64)}
    return columns | information_criteria(likelihood, parameters, counts)
