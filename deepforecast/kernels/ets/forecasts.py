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
from deepforecast.kernels.ets.filter import Model, advance_trend, combine_season, update_states

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MIN_ERROR = -0.999  # lower limit of relative errors: values stay positive
MIN_GROWTH = 1e-6  # lower limit of a multiplicative trend


def has_formula(forms: Ints, with_regressors: bool) -> Bools:
    """Whether each form has an analytical variance."""
    error, trend, season = forms[:, 0], forms[:, 1], forms[:, 3]
    return np.asarray((trend < 2) & ((season < 2) | ((error == 1) & (not with_regressors))))


def forecast_means(model: Model, steps: int) -> tuple[Floats, Floats]:
    """Return mu and q of each step without regressors, both of shape (series, steps)."""
    mean, base = np.empty((2, len(model.forms), steps))
    with compile_notice("exponential smoothing"):
        _forecast_means(model, mean, base)
    return mean, base


def forecast_deviations(model: Model, sigma: Floats, offsets: Floats) -> Floats:
    """Analytical standard deviations; `offsets` (series, steps): effect of regressors."""
    standard_deviations = np.empty(offsets.shape)
    buffer = np.empty((3, offsets.shape[1] + int(model.age.max(initial=0))))
    _forecast_deviations(
        model, np.ascontiguousarray(sigma, np.float64), np.ascontiguousarray(offsets, np.float64), standard_deviations, buffer
    )
    return standard_deviations


def simulate_paths(model: Model, errors: Floats, offsets: Floats) -> Floats:
    """Return sample paths (series, samples, steps).

    `errors` (series, age + steps, samples) includes the missing rows after the last observation.
    """
    steps = offsets.shape[1]
    simulated = np.empty((len(errors), errors.shape[2], steps))
    season_states = np.empty(model.states.shape[1] - 2)
    _simulate_paths(
        model, np.ascontiguousarray(errors, np.float64), np.ascontiguousarray(offsets, np.float64), simulated, season_states
    )
    return simulated


@compiled_no_alloc
def _forecast_means(model: Model, mean: Floats, base: Floats) -> None:
    steps, season = mean.shape[1], model.states.shape[1] - 2
    for i in range(len(mean)):
        level, slope = model.states[i, 0], model.states[i, 1]
        for h in range(model.age[i] + steps):
            level, slope = advance_trend(model.forms[i, 1], model.rates[i, 3], level, slope)
            step = h - model.age[i]
            if step >= 0:
                base[i, step] = level
                mean[i, step] = combine_season(model.forms[i, 3], level, model.states[i, 2 + h % season])


@compiled_no_alloc
def _forecast_deviations(model: Model, sigma: Floats, offsets: Floats, standard_deviations: Floats, buffer: Floats) -> None:
    steps = standard_deviations.shape[1]
    for i in range(len(standard_deviations)):
        age = model.age[i]
        _error_weights(model, i, age + steps, buffer[0])
        if model.forms[i, 0] == 0:
            total = 1.0
            for h in range(age + steps):
                if h >= age:
                    standard_deviations[i, h - age] = sigma[i] * math.sqrt(total)
                total += buffer[0, h] * buffer[0, h]
        else:
            _multiplicative_deviations(model, i, sigma[i], offsets[i], standard_deviations[i], buffer)


@inlined
def _error_weights(model: Model, i: int, count: int, weights: Floats) -> None:
    """Write c_1, c_2, ... to `weights`, without gamma for a multiplicative season."""
    form, rates, season = model.forms[i], model.rates[i], model.states.shape[1] - 2
    damped, total = 1.0, 0.0
    for j in range(1, count + 1):
        damped *= rates[3]
        total += damped
        weights[j - 1] = rates[0] + rates[1] * total
        if form[3] == 1 and j % season == 0:
            weights[j - 1] += rates[2]


@inlined
def _multiplicative_deviations(
    model: Model, i: int, sigma: float, offsets: Floats, standard_deviations: Floats, buffer: Floats
) -> None:
    """Variances of classes 2 and 3.

    Rows of `buffer`: c_j, mu_h, theta_h.
    """
    age, season, steps = model.age[i], model.states.shape[1] - 2, len(standard_deviations)
    product, variance = model.forms[i, 3] == 2, sigma * sigma
    level, slope = model.states[i, 0], model.states[i, 1]
    scale = 0.0
    for h in range(age + steps):
        level, slope = advance_trend(model.forms[i, 1], model.rates[i, 3], level, slope)
        buffer[1, h] = level + offsets[max(h - age, 0)]
        if not product:
            buffer[1, h] += model.states[i, 2 + h % season]
        scale = max(scale, abs(buffer[1, h]))
    if scale > 0.0 and math.isfinite(scale):
        scale = math.ldexp(1.0, math.frexp(scale)[1])  # a power of two: exact for any horizon
    for h in range(age + steps):
        mean = buffer[1, h] / scale if scale > 0.0 else 0.0
        theta = 0.0
        for j in range(1, h + 1):
            theta += buffer[0, j - 1] * buffer[0, j - 1] * buffer[2, h - j]
        theta = mean * mean + variance * theta
        buffer[2, h] = theta
        if h < age:
            continue
        factor, drift = 1.0, 1.0
        if product:
            factor = abs(model.states[i, 2 + h % season])
            drift = (1.0 + model.rates[i, 2] ** 2 * variance) ** (h // season)
        standard_deviations[h - age] = scale * factor * math.sqrt(max((1.0 + variance) * drift * theta - mean * mean, 0.0))


@compiled_no_alloc
def _simulate_paths(model: Model, errors: Floats, offsets: Floats, simulated: Floats, season_states: Floats) -> None:
    season, steps = len(season_states), simulated.shape[2]
    for i in range(len(simulated)):
        form, rates, age = model.forms[i], model.rates[i], model.age[i]
        for sample in range(simulated.shape[1]):
            level, slope = model.states[i, 0], model.states[i, 1]
            for j in range(season):
                season_states[j] = model.states[i, 2 + j]
            for h in range(age + steps):
                base, damped_slope = advance_trend(form[1], rates[3], level, slope)
                factor = season_states[h % season]
                mean = combine_season(form[3], base, factor) + offsets[i, max(h - age, 0)]
                error = errors[i, h, sample]
                if form[0] == 1:  # values are positive
                    mean = max(mean, 0.0)
                    error = max(error, MIN_ERROR) * mean
                if h >= age:
                    simulated[i, sample, h - age] = mean + error
                level, slope, season_states[h % season] = update_states(form, rates, level, base, damped_slope, factor, error)
                if form[1] == 2:
                    slope = max(slope, MIN_GROWTH)
