"""The steps ahead: means, variances where there is a formula, sample paths.

Variances: Hyndman, Koehler, Ord & Snyder (2008), *Forecasting with Exponential Smoothing*, tables 6.2 to 6.4. With
c_j = alpha + beta (phi + ... + phi^j) + gamma [m divides j], mu_h the mean without a factor that multiplies,

    class 1, all added              v_h = sigma^2 (1 + sum_{j<h} c_j^2)
    class 2, errors multiplied      v_h = (1 + sigma^2) theta_h - mu_h^2
    class 3, and the season         v_h = s^2 ((1 + sigma^2) (1 + gamma^2 sigma^2)^k theta_h - mu_h^2),  k = (h - 1) // m

with theta_h = mu_h^2 + sigma^2 sum_{j<h} c_j^2 theta_{h-j}; the c_j of class 3 are those without season. Other forms have
none: `has_formula`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import announced, lean, part
from deepforecast.kernels.ets.filtering import Model, ahead, combined, moved

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LEAST_ERROR = -0.999  # of an error that multiplies: a value stays positive
LEAST_GROWTH = 1e-6


def has_formula(forms: Ints, with_regressors: bool) -> Bools:
    """Which forms have a formula for their variance."""
    error, trend, season = forms[:, 0], forms[:, 1], forms[:, 3]
    return np.asarray((trend < 2) & ((season < 2) | ((error == 1) & (not with_regressors))))


def means(model: Model, steps: int) -> tuple[Floats, Floats]:
    """mu and q of each step, without regressors; (series, steps) each."""
    mean, base = np.empty((2, len(model.forms), steps))
    with announced("exponential smoothing"):
        _means(model, mean, base)
    return mean, base


def deviations(model: Model, sigma: Floats, offsets: Floats) -> Floats:
    """Standard deviations of the steps, by formula; `offsets` (series, steps): what regressors add."""
    found = np.empty(offsets.shape)
    room = np.empty((3, offsets.shape[1] + int(model.age.max(initial=0))))
    _deviations(model, np.ascontiguousarray(sigma, np.float64), np.ascontiguousarray(offsets, np.float64), found, room)
    return found


def paths(model: Model, errors: Floats, offsets: Floats) -> Floats:
    """Sample paths (series, samples, steps) from errors (series, age + steps, samples), those of the rows since counted in."""
    steps = offsets.shape[1]
    found = np.empty((len(errors), errors.shape[2], steps))
    ring = np.empty(model.states.shape[1] - 2)
    _paths(model, np.ascontiguousarray(errors, np.float64), np.ascontiguousarray(offsets, np.float64), found, ring)
    return found


@lean
def _means(model: Model, mean: Floats, base: Floats) -> None:
    steps, season = mean.shape[1], model.states.shape[1] - 2
    for i in range(len(mean)):
        level, slope = model.states[i, 0], model.states[i, 1]
        for h in range(model.age[i] + steps):
            level, slope = ahead(model.forms[i, 1], model.rates[i, 3], level, slope)
            step = h - model.age[i]
            if step >= 0:
                base[i, step] = level
                mean[i, step] = combined(model.forms[i, 3], level, model.states[i, 2 + h % season])


@lean
def _deviations(model: Model, sigma: Floats, offsets: Floats, found: Floats, room: Floats) -> None:
    steps = found.shape[1]
    for i in range(len(found)):
        age = model.age[i]
        _weights(model, i, age + steps, room[0])
        if model.forms[i, 0] == 0:
            total = 1.0
            for h in range(age + steps):
                if h >= age:
                    found[i, h - age] = sigma[i] * math.sqrt(total)
                total += room[0, h] * room[0, h]
        else:
            _relative(model, i, sigma[i], offsets[i], found[i], room)


@part
def _weights(model: Model, i: int, count: int, weights: Floats) -> None:
    """c_1 and on; without the season where it multiplies."""
    form, rates, season = model.forms[i], model.rates[i], model.states.shape[1] - 2
    damped, total = 1.0, 0.0
    for j in range(1, count + 1):
        damped *= rates[3]
        total += damped
        weights[j - 1] = rates[0] + rates[1] * total
        if form[3] == 1 and j % season == 0:
            weights[j - 1] += rates[2]


@part
def _relative(model: Model, i: int, sigma: float, offsets: Floats, found: Floats, room: Floats) -> None:
    """Of errors that multiply."""
    age, season, steps = model.age[i], model.states.shape[1] - 2, len(found)
    product, variance = model.forms[i, 3] == 2, sigma * sigma
    level, slope = model.states[i, 0], model.states[i, 1]
    scale = 0.0
    for h in range(age + steps):
        level, slope = ahead(model.forms[i, 1], model.rates[i, 3], level, slope)
        room[1, h] = level + offsets[max(h - age, 0)]
        if not product:
            room[1, h] += model.states[i, 2 + h % season]
        scale = max(scale, abs(room[1, h]))
    if scale > 0.0 and math.isfinite(scale):
        scale = math.ldexp(1.0, math.frexp(scale)[1])  # a power of two: no digit hangs on how far ahead the forecast goes
    for h in range(age + steps):
        mean = room[1, h] / scale if scale > 0.0 else 0.0
        theta = 0.0
        for j in range(1, h + 1):
            theta += room[0, j - 1] * room[0, j - 1] * room[2, h - j]
        theta = mean * mean + variance * theta
        room[2, h] = theta
        if h < age:
            continue
        factor, drift = 1.0, 1.0
        if product:
            factor = abs(model.states[i, 2 + h % season])
            drift = (1.0 + model.rates[i, 2] ** 2 * variance) ** (h // season)
        found[h - age] = scale * factor * math.sqrt(max((1.0 + variance) * drift * theta - mean * mean, 0.0))


@lean
def _paths(model: Model, errors: Floats, offsets: Floats, found: Floats, ring: Floats) -> None:
    season, steps = len(ring), found.shape[2]
    for i in range(len(found)):
        form, rates, age = model.forms[i], model.rates[i], model.age[i]
        for sample in range(found.shape[1]):
            level, slope = model.states[i, 0], model.states[i, 1]
            for j in range(season):
                ring[j] = model.states[i, 2 + j]
            for h in range(age + steps):
                base, grown = ahead(form[1], rates[3], level, slope)
                factor = ring[h % season]
                mean = combined(form[3], base, factor) + offsets[i, max(h - age, 0)]
                miss = errors[i, h, sample]
                if form[0] == 1:  # values are positive
                    mean = max(mean, 0.0)
                    miss = max(miss, LEAST_ERROR) * mean
                if h >= age:
                    found[i, sample, h - age] = mean + miss
                level, slope, ring[h % season] = moved(form, rates, level, base, grown, factor, miss)
                if form[1] == 2:
                    slope = max(slope, LEAST_GROWTH)
