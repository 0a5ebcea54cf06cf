"""Forecast means, analytical variances, and sample paths.

Variances: Hyndman et al. (2008), *Forecasting with Exponential Smoothing*, tables 6.2 to 6.4. With
c_j = alpha + beta (phi + ... + phi^j) + gamma [m divides j], and mu_h the mean (of class 3: without
the seasonal factor s),

    class 1, additive errors          v_h = sigma^2 (1 + sum_{j<h} c_j^2)
    class 2, multiplicative errors    v_h = (1 + sigma^2) theta_h - mu_h^2
    class 3, multiplicative season    v_h = s^2 ((1 + sigma^2) (1 + gamma^2 sigma^2)^k theta_h - mu_h^2)

with k = (h - 1) // m and theta_h = mu_h^2 + sigma^2 sum_{j<h} c_j^2 theta_{h-j}; the c_j of class 3
omit gamma. Other forms have no formula (`has_formula`) and need sample paths.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc, inlined
from deepforecast.kernels.ets.coordinates import ALPHA, BETA, GAMMA, PHI
from deepforecast.kernels.ets.filter import MULTIPLICATIVE, Model, advance_trend, combine_season, update_states
from deepforecast.kernels.ets.workspace import ERROR, SEASON, TREND

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MIN_ERROR = -0.999  # lower limit of relative errors: values stay positive
MIN_GROWTH = 1e-6  # lower limit of a multiplicative trend
WEIGHT, MEAN, THETA = range(3)
"""Rows of the buffer of the variances: c_j from j = 1; mu_h and theta_h from h = 1, the latter in units of a power of two."""


def has_formula(forms: Ints, with_regressors: bool) -> Bools:
    """Whether each form has an analytical variance: no multiplicative trend, and a multiplicative season only
    with multiplicative errors and without regressors.
    """
    error = forms[:, ERROR]
    trend = forms[:, TREND]
    season = forms[:, SEASON]
    return np.asarray((trend < MULTIPLICATIVE) & ((season < MULTIPLICATIVE) | ((error == 1) & (not with_regressors))))


def forecast_means(model: Model, n_steps: int) -> tuple[Floats, Floats]:
    """Return mu and q of each step without regressors, both of shape (series, n_steps).

    Steps are counted from the last time step of the history; missing values since the last observation
    (`age`) are forecast over first.
    """
    mean, base = np.empty((2, len(model.forms), n_steps))
    with compile_notice("exponential smoothing"):
        _forecast_means(model, mean, base)
    return mean, base


def forecast_deviations(model: Model, sigma: Floats, offsets: Floats) -> Floats:
    """Analytical standard deviations (series, steps) of forms for which `has_formula` is true.

    `sigma` (series,): standard deviation of the errors. `offsets` (series, steps): effect of regressors.
    """
    standard_deviations = np.empty(offsets.shape)
    buffer = np.empty((3, offsets.shape[1] + int(model.age.max(initial=0))))
    _forecast_deviations(
        model, np.ascontiguousarray(sigma, np.float64), np.ascontiguousarray(offsets, np.float64), standard_deviations, buffer
    )
    return standard_deviations


def simulate_paths(model: Model, errors: Floats, offsets: Floats) -> Floats:
    """Return sample paths (series, samples, n_steps).

    `errors` (series, age + n_steps, samples): eps, or eps / mu for multiplicative errors, including
    those of the missing values after the last observation. `offsets` (series, n_steps): effect of
    regressors. Means and values of forms with multiplicative errors stay positive.
    """
    n_steps = offsets.shape[1]
    simulated = np.empty((len(errors), errors.shape[2], n_steps))
    season_states = np.empty(model.states.shape[1] - 2)
    _simulate_paths(
        model, np.ascontiguousarray(errors, np.float64), np.ascontiguousarray(offsets, np.float64), simulated, season_states
    )
    return simulated


@compiled_no_alloc
def _forecast_means(model: Model, mean: Floats, base: Floats) -> None:
    """Write mu and q of each step to `mean` and `base`; `level` runs over q, the level plus the damped slope."""
    n_steps, season_length = mean.shape[1], model.states.shape[1] - 2
    for i in range(len(mean)):
        level, slope = model.states[i, 0], model.states[i, 1]
        for h in range(model.age[i] + n_steps):
            level, slope = advance_trend(model.forms[i, TREND], model.rates[i, PHI], level, slope)
            step = h - model.age[i]
            if step >= 0:
                base[i, step] = level
                mean[i, step] = combine_season(model.forms[i, SEASON], level, model.states[i, 2 + h % season_length])


@compiled_no_alloc
def _forecast_deviations(model: Model, sigma: Floats, offsets: Floats, standard_deviations: Floats, buffer: Floats) -> None:
    """Write standard deviations: class 1 here, classes 2 and 3 by `_multiplicative_deviations`. Uses all rows of `buffer`."""
    n_steps = standard_deviations.shape[1]
    for i in range(len(standard_deviations)):
        age = model.age[i]
        _error_weights(model, i, age + n_steps, buffer[WEIGHT])
        if model.forms[i, ERROR] == 0:
            variance_ratio = 1.0  # v_h / sigma^2
            for h in range(age + n_steps):
                if h >= age:
                    standard_deviations[i, h - age] = sigma[i] * math.sqrt(variance_ratio)
                variance_ratio += buffer[WEIGHT, h] * buffer[WEIGHT, h]
        else:
            _multiplicative_deviations(model, i, sigma[i], offsets[i], standard_deviations[i], buffer)


@inlined
def _error_weights(model: Model, i: int, n_weights: int, weights: Floats) -> None:
    """Write c_1, c_2, ... to `weights`, without gamma for a multiplicative season; see the module docstring."""
    form = model.forms[i]
    rates = model.rates[i]
    season_length = model.states.shape[1] - 2
    damping, sum_of_damping = 1.0, 0.0
    for j in range(1, n_weights + 1):
        damping *= rates[PHI]
        sum_of_damping += damping
        weights[j - 1] = rates[ALPHA] + rates[BETA] * sum_of_damping
        if form[SEASON] == 1 and j % season_length == 0:
            weights[j - 1] += rates[GAMMA]


@inlined
def _multiplicative_deviations(
    model: Model, i: int, sigma: float, offsets: Floats, standard_deviations: Floats, buffer: Floats
) -> None:
    """Standard deviations of one series of class 2 or 3, into `standard_deviations`.

    Means are scaled by a power of two, so that squares do not overflow. Uses all rows of `buffer`.
    """
    age = model.age[i]
    season_length = model.states.shape[1] - 2
    n_steps = len(standard_deviations)
    multiplicative_season, variance = model.forms[i, SEASON] == MULTIPLICATIVE, sigma * sigma
    level, slope = model.states[i, 0], model.states[i, 1]
    scale = 0.0
    for h in range(age + n_steps):
        level, slope = advance_trend(model.forms[i, TREND], model.rates[i, PHI], level, slope)
        buffer[MEAN, h] = level + offsets[max(h - age, 0)]
        if not multiplicative_season:
            buffer[MEAN, h] += model.states[i, 2 + h % season_length]
        scale = max(scale, abs(buffer[MEAN, h]))
    if scale > 0.0 and math.isfinite(scale):
        scale = math.ldexp(1.0, math.frexp(scale)[1])  # a power of two: exact for any horizon
    for h in range(age + n_steps):
        mean = buffer[MEAN, h] / scale if scale > 0.0 else 0.0
        theta = 0.0
        for j in range(1, h + 1):
            theta += buffer[WEIGHT, j - 1] * buffer[WEIGHT, j - 1] * buffer[THETA, h - j]
        theta = mean * mean + variance * theta
        buffer[THETA, h] = theta
        if h < age:
            continue
        seasonal, drift = 1.0, 1.0
        if multiplicative_season:
            seasonal = abs(model.states[i, 2 + h % season_length])
            drift = (1.0 + model.rates[i, GAMMA] ** 2 * variance) ** (h // season_length)
        standard_deviations[h - age] = scale * seasonal * math.sqrt(max((1.0 + variance) * drift * theta - mean * mean, 0.0))


@compiled_no_alloc
def _simulate_paths(model: Model, errors: Floats, offsets: Floats, simulated: Floats, season_states: Floats) -> None:
    """Write the paths to `simulated`; each starts from the states of the model, whose seasonal part is copied to
    `season_states`.
    """
    season_length, n_steps = len(season_states), simulated.shape[2]
    for i in range(len(simulated)):
        form = model.forms[i]
        rates = model.rates[i]
        age = model.age[i]
        for sample in range(simulated.shape[1]):
            level, slope = model.states[i, 0], model.states[i, 1]
            for j in range(season_length):
                season_states[j] = model.states[i, 2 + j]
            for h in range(age + n_steps):
                base, damped_slope = advance_trend(form[TREND], rates[PHI], level, slope)
                seasonal = season_states[h % season_length]
                mean = combine_season(form[SEASON], base, seasonal) + offsets[i, max(h - age, 0)]
                error = errors[i, h, sample]
                if form[ERROR] == 1:  # values are positive
                    mean = max(mean, 0.0)
                    error = max(error, MIN_ERROR) * mean
                if h >= age:
                    simulated[i, sample, h - age] = mean + error
                level, slope, season_states[h % season_length] = update_states(
                    form, rates, level, base, damped_slope, seasonal, error
                )
                if form[TREND] == MULTIPLICATIVE:
                    slope = max(slope, MIN_GROWTH)
