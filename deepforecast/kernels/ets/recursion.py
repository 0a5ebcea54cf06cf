"""Additive and multiplicative ETS recursions of 16 series at a time, and their gradients.

All arrays are flat with rows of `LANES` numbers, one per series (lane). The inner loops run over
the lanes, have no branches and use unsigned indices, so that they vectorize; lanes do not interact.

trace             (steps, width): the rows TARGET ... INVERSE_PRODUCT of each time step
state             (6 + m, LANES): alpha, beta, gamma, phi, level, slope, m seasonal states
state_gradient    (6 + m, LANES): derivatives of the objective by these
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import hot

Floats = NDArray[np.float64]

LANES = 16
ZERO: Any = np.int64(0)
"""0 as a variable: numba compiles a function again for each literal argument."""
_1 = np.uint64(LANES)
_2, _3, _4, _5, _6, _7, _8, _9 = (np.uint64(LANES * number) for number in range(2, 10))
SEASON_OFFSET = 6 * LANES  # of the seasonal states in `state`

TARGET, OBSERVED, RESIDUAL, RESIDUAL_GRADIENT, SLOPE, VALUE, INVERSE_MEAN, BASE, FACTOR, INVERSE_PRODUCT = range(10)
"""Rows of a time step in `trace`: the value less the effect of regressors; 1 if observed, else 0;
eps; the derivative of the objective by eps, replaced by that by mu; b before the step; the value;
1 / mu; q; s; 1 / (q s)."""
WIDTH_ADDITIVE, WIDTH_ADDITIVE_MEAN, WIDTH_MULTIPLICATIVE = 5, 7, 10
"""Rows in use: additive mu and errors; additive mu, multiplicative errors; multiplicative mu."""


@hot
def forward_additive(trace: Floats, steps: int, width: int, state: Floats, season_states: Floats) -> None:
    """Run the additive recursion and write eps and b of each step to `trace`.

        q = l + phi b    mu = q + s    eps = y - mu (0 if missing)
        l' = q + alpha eps    b' = phi b + beta eps    s' = s + gamma eps

    `season_states` is the view of the seasonal states in `state`.
    """
    offset, end = np.uint64(0), np.uint64(len(season_states))
    for t in range(steps):
        row = trace[t * width : (t + 1) * width]
        for k in range(_1):
            damped_slope = state[_3 + k] * state[_5 + k]
            base = state[_4 + k] + damped_slope
            error = row[_1 + k] * (row[k] - (base + season_states[offset + k]))
            row[_2 + k] = error
            row[_4 + k] = state[_5 + k]
            state[_4 + k] = base + state[k] * error
            state[_5 + k] = damped_slope + state[_1 + k] * error
            season_states[offset + k] += state[_2 + k] * error
        offset += _1
        if offset == end:
            offset = np.uint64(0)


@hot
def backward_additive(
    trace: Floats, steps: int, width: int, state: Floats, state_gradient: Floats, season_gradient: Floats
) -> None:
    """Run the adjoint of `forward_additive` from the last step to the first.

    With g_x the derivative of the objective by x, and g_eps from RESIDUAL_GRADIENT, each step
    computes

        g_alpha += eps g_l    g_beta += eps g_b    g_gamma += eps g_s
        g_mu = -(g_eps + alpha g_l + beta g_b + gamma g_s)    (0 if missing; into RESIDUAL_GRADIENT)
        g_s += g_mu    g_l' = g_l + g_mu    g_phi += b (g_b + g_l')    g_b' = phi (g_b + g_l')

    `season_gradient` is the view of the seasonal states in `state_gradient`.
    """
    end = np.uint64(len(season_gradient))
    offset = np.uint64(((steps - 1) * LANES) % len(season_gradient))
    for i in range(steps):
        begin = (steps - 1 - i) * width
        row = trace[begin : begin + width]
        for k in range(_1):
            level_gradient, slope_gradient, factor_gradient = (
                state_gradient[_4 + k],
                state_gradient[_5 + k],
                season_gradient[offset + k],
            )
            error = row[_2 + k]
            state_gradient[k] += error * level_gradient
            state_gradient[_1 + k] += error * slope_gradient
            state_gradient[_2 + k] += error * factor_gradient
            mean_gradient = -row[_1 + k] * (
                row[_3 + k] + state[k] * level_gradient + state[_1 + k] * slope_gradient + state[_2 + k] * factor_gradient
            )
            row[_3 + k] = mean_gradient
            season_gradient[offset + k] = factor_gradient + mean_gradient
            state_gradient[_3 + k] += row[_4 + k] * (slope_gradient + (level_gradient + mean_gradient))
            state_gradient[_5 + k] = state[_3 + k] * (slope_gradient + (level_gradient + mean_gradient))
            state_gradient[_4 + k] = level_gradient + mean_gradient
        if offset == np.uint64(0):
            offset = end
        offset -= _1


@hot
def forward_multiplicative(trace: Floats, steps: int, width: int, state: Floats, season_states: Floats) -> None:
    """Run the recursion with additive trend and multiplicative season.

        q = l + phi b    mu = q s    eps = y - mu (0 if missing)
        l' = q + alpha eps / s    b' = phi b + beta eps / s    s' = s + gamma eps / q
    """
    offset, end = np.uint64(0), np.uint64(len(season_states))
    for t in range(steps):
        row = trace[t * width : (t + 1) * width]
        for k in range(_1):
            damped_slope = state[_3 + k] * state[_5 + k]
            base, factor, is_observed = state[_4 + k] + damped_slope, season_states[offset + k], row[_1 + k]
            inverse_product = is_observed / (is_observed * (base * factor) + (1.0 - is_observed))
            error = is_observed * (row[k] - base * factor)
            row[_2 + k] = error
            row[_4 + k] = state[_5 + k]
            row[_7 + k] = base
            row[_8 + k] = factor
            row[_9 + k] = inverse_product
            state[_4 + k] = base + state[k] * (error * base * inverse_product)
            state[_5 + k] = damped_slope + state[_1 + k] * (error * base * inverse_product)
            season_states[offset + k] = factor + state[_2 + k] * (error * factor * inverse_product)
        offset += _1
        if offset == end:
            offset = np.uint64(0)


@hot
def backward_multiplicative(
    trace: Floats, steps: int, width: int, state: Floats, state_gradient: Floats, season_gradient: Floats
) -> None:
    """Run the adjoint of `forward_multiplicative` from the last step to the first.

        h = alpha g_l + beta g_b
        g_mu = -(g_eps + h / s + gamma g_s / q)    (0 if missing)
        g_s' = g_s + g_mu q - h eps / s^2    g_q = g_l + g_mu s - gamma g_s eps / q^2
        g_phi += b (g_b + g_q)    g_b' = phi (g_b + g_q)    g_l' = g_q
    """
    end = np.uint64(len(season_gradient))
    offset = np.uint64(((steps - 1) * LANES) % len(season_gradient))
    for i in range(steps):
        begin = (steps - 1 - i) * width
        row = trace[begin : begin + width]
        for k in range(_1):
            level_gradient, slope_gradient, factor_gradient = (
                state_gradient[_4 + k],
                state_gradient[_5 + k],
                season_gradient[offset + k],
            )
            error, base, factor = row[_2 + k], row[_7 + k], row[_8 + k]
            inverse_factor, inverse_base = base * row[_9 + k], factor * row[_9 + k]  # 1 / s and 1 / q
            state_gradient[k] += error * inverse_factor * level_gradient
            state_gradient[_1 + k] += error * inverse_factor * slope_gradient
            state_gradient[_2 + k] += error * inverse_base * factor_gradient
            trend_gradient, base_share = (
                state[k] * level_gradient + state[_1 + k] * slope_gradient,
                state[_2 + k] * factor_gradient,
            )
            mean_gradient = -row[_1 + k] * (row[_3 + k] + trend_gradient * inverse_factor + base_share * inverse_base)
            row[_3 + k] = mean_gradient
            season_gradient[offset + k] = (
                factor_gradient + mean_gradient * base - trend_gradient * error * inverse_factor * inverse_factor
            )
            base_gradient = level_gradient + mean_gradient * factor - base_share * error * inverse_base * inverse_base
            state_gradient[_3 + k] += row[_4 + k] * (slope_gradient + base_gradient)
            state_gradient[_5 + k] = state[_3 + k] * (slope_gradient + base_gradient)
            state_gradient[_4 + k] = base_gradient
        if offset == np.uint64(0):
            offset = end
        offset -= _1
