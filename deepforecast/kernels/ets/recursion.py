"""Additive and multiplicative ETS recursions of 16 series at a time, and their gradients.

All arrays are flat with rows of `LANES` numbers, one per series (lane). The inner loops run over
the lanes, have no branches and use unsigned indices, so that they vectorize; lanes do not interact.

trace             (n_steps, width): the rows TARGET ... INVERSE_PRODUCT of each time step
state             (6 + m, LANES): alpha, beta, gamma, phi, level l, slope b, m seasonal states s
state_gradient    (6 + m, LANES): derivatives of the objective by these

The seasonal states are a ring buffer: step t reads and updates the state t mod m. In the code `base`
is q of the equations, and `seasonal` is s.
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
N_LANES = np.uint64(LANES)
ALPHA_AT, BETA_AT, GAMMA_AT, PHI_AT, LEVEL_AT, SLOPE_AT = (np.uint64(LANES * row) for row in range(6))
"""Offsets of the first rows of `state` and `state_gradient`; unsigned, as all indices of the loops."""
SEASON_OFFSET = 6 * LANES  # offset of the seasonal states in `state`

TARGET, OBSERVED, RESIDUAL, RESIDUAL_GRADIENT, OLD_SLOPE, VALUE, INVERSE_MEAN, BASE, SEASONAL, INVERSE_PRODUCT = range(10)
"""Rows of a time step in `trace`: the value less the effect of regressors; 1 if observed, else 0;
eps; the derivative of the objective by eps, replaced by that by mu; b before the step; the value;
1 / mu; q; s before the step; 1 / (q s), 0 if missing."""
TARGET_AT, OBSERVED_AT, RESIDUAL_AT, GRADIENT_AT, OLD_SLOPE_AT = (np.uint64(LANES * row) for row in range(5))
VALUE_AT, INVERSE_MEAN_AT, BASE_AT, SEASONAL_AT, INVERSE_PRODUCT_AT = (np.uint64(LANES * row) for row in range(5, 10))
"""Offsets of these rows within a time step."""
WIDTH_ADDITIVE = 5
WIDTH_ADDITIVE_MEAN = 7
WIDTH_MULTIPLICATIVE = 10
"""Rows in use: additive mu and errors; additive mu, multiplicative errors; multiplicative mu."""


@hot
def forward_additive(trace: Floats, n_steps: int, width: int, state: Floats, season_states: Floats) -> None:
    """Run the additive recursion and write eps and b of each step to `trace`.

        q = l + phi b         mu = q + s              eps = y - mu (0 if missing)
        l' = q + alpha eps    b' = phi b + beta eps    s' = s + gamma eps

    `season_states` is the view of the seasonal states in `state`; both are updated in place, so that
    `state` ends with the states after the last step.
    """
    offset, end = np.uint64(0), np.uint64(len(season_states))
    for t in range(n_steps):
        step = trace[t * width : (t + 1) * width]
        for lane in range(N_LANES):
            damped_slope = state[PHI_AT + lane] * state[SLOPE_AT + lane]
            base = state[LEVEL_AT + lane] + damped_slope
            error = step[OBSERVED_AT + lane] * (step[TARGET_AT + lane] - (base + season_states[offset + lane]))
            step[RESIDUAL_AT + lane] = error
            step[OLD_SLOPE_AT + lane] = state[SLOPE_AT + lane]
            state[LEVEL_AT + lane] = base + state[ALPHA_AT + lane] * error
            state[SLOPE_AT + lane] = damped_slope + state[BETA_AT + lane] * error
            season_states[offset + lane] += state[GAMMA_AT + lane] * error
        offset += N_LANES
        if offset == end:
            offset = np.uint64(0)


@hot
def backward_additive(
    trace: Floats, n_steps: int, width: int, state: Floats, state_gradient: Floats, season_gradient: Floats
) -> None:
    """Run the adjoint of `forward_additive` from the last step to the first.

    With g_x the derivative of the objective by x, and g_eps from RESIDUAL_GRADIENT, each step
    computes

        g_alpha += eps g_l    g_beta += eps g_b    g_gamma += eps g_s
        g_mu = -(g_eps + alpha g_l + beta g_b + gamma g_s)    (0 if missing)
        g_s += g_mu    g_l' = g_l + g_mu    g_phi += b (g_b + g_l')    g_b' = phi (g_b + g_l')

    g_mu replaces g_eps in RESIDUAL_GRADIENT. `state_gradient` must be 0 at the start and ends with the
    derivatives by the rates and by the initial states. `season_gradient` is the view of the seasonal
    states in it.
    """
    end = np.uint64(len(season_gradient))
    offset = np.uint64(((n_steps - 1) * LANES) % len(season_gradient))
    for n_done in range(n_steps):
        start = (n_steps - 1 - n_done) * width
        step = trace[start : start + width]
        for lane in range(N_LANES):
            level_gradient = state_gradient[LEVEL_AT + lane]
            slope_gradient = state_gradient[SLOPE_AT + lane]
            seasonal_gradient = season_gradient[offset + lane]
            error = step[RESIDUAL_AT + lane]
            state_gradient[ALPHA_AT + lane] += error * level_gradient
            state_gradient[BETA_AT + lane] += error * slope_gradient
            state_gradient[GAMMA_AT + lane] += error * seasonal_gradient
            mean_gradient = -step[OBSERVED_AT + lane] * (
                step[GRADIENT_AT + lane]
                + state[ALPHA_AT + lane] * level_gradient
                + state[BETA_AT + lane] * slope_gradient
                + state[GAMMA_AT + lane] * seasonal_gradient
            )
            step[GRADIENT_AT + lane] = mean_gradient
            season_gradient[offset + lane] = seasonal_gradient + mean_gradient
            state_gradient[PHI_AT + lane] += step[OLD_SLOPE_AT + lane] * (slope_gradient + (level_gradient + mean_gradient))
            state_gradient[SLOPE_AT + lane] = state[PHI_AT + lane] * (slope_gradient + (level_gradient + mean_gradient))
            state_gradient[LEVEL_AT + lane] = level_gradient + mean_gradient
        if offset == np.uint64(0):
            offset = end
        offset -= N_LANES


@hot
def forward_multiplicative(trace: Floats, n_steps: int, width: int, state: Floats, season_states: Floats) -> None:
    """Run the recursion with additive trend and multiplicative season, as `forward_additive`.

        q = l + phi b            mu = q s                    eps = y - mu (0 if missing)
        l' = q + alpha eps / s    b' = phi b + beta eps / s    s' = s + gamma eps / q

    Also writes q, s and 1 / (q s) of each step to `trace`; 1 / s = q / (q s) and 1 / q = s / (q s), so
    that one division suffices.
    """
    offset, end = np.uint64(0), np.uint64(len(season_states))
    for t in range(n_steps):
        step = trace[t * width : (t + 1) * width]
        for lane in range(N_LANES):
            damped_slope = state[PHI_AT + lane] * state[SLOPE_AT + lane]
            base = state[LEVEL_AT + lane] + damped_slope
            seasonal = season_states[offset + lane]
            is_observed = step[OBSERVED_AT + lane]
            inverse_product = is_observed / (is_observed * (base * seasonal) + (1.0 - is_observed))
            error = is_observed * (step[TARGET_AT + lane] - base * seasonal)
            step[RESIDUAL_AT + lane] = error
            step[OLD_SLOPE_AT + lane] = state[SLOPE_AT + lane]
            step[BASE_AT + lane] = base
            step[SEASONAL_AT + lane] = seasonal
            step[INVERSE_PRODUCT_AT + lane] = inverse_product
            state[LEVEL_AT + lane] = base + state[ALPHA_AT + lane] * (error * base * inverse_product)
            state[SLOPE_AT + lane] = damped_slope + state[BETA_AT + lane] * (error * base * inverse_product)
            season_states[offset + lane] = seasonal + state[GAMMA_AT + lane] * (error * seasonal * inverse_product)
        offset += N_LANES
        if offset == end:
            offset = np.uint64(0)


@hot
def backward_multiplicative(
    trace: Floats, n_steps: int, width: int, state: Floats, state_gradient: Floats, season_gradient: Floats
) -> None:
    """Run the adjoint of `forward_multiplicative` from the last step to the first.

        h = alpha g_l + beta g_b
        g_mu = -(g_eps + h / s + gamma g_s / q)    (0 if missing; into RESIDUAL_GRADIENT)
        g_s' = g_s + g_mu q - h eps / s^2    g_q = g_l + g_mu s - gamma g_s eps / q^2
        g_phi += b (g_b + g_q)    g_b' = phi (g_b + g_q)    g_l' = g_q

    h is `level_error_gradient`, gamma g_s is `seasonal_error_gradient`. See `backward_additive`.
    """
    end = np.uint64(len(season_gradient))
    offset = np.uint64(((n_steps - 1) * LANES) % len(season_gradient))
    for n_done in range(n_steps):
        start = (n_steps - 1 - n_done) * width
        step = trace[start : start + width]
        for lane in range(N_LANES):
            level_gradient = state_gradient[LEVEL_AT + lane]
            slope_gradient = state_gradient[SLOPE_AT + lane]
            seasonal_gradient = season_gradient[offset + lane]
            error = step[RESIDUAL_AT + lane]
            base = step[BASE_AT + lane]
            seasonal = step[SEASONAL_AT + lane]
            inverse_seasonal = base * step[INVERSE_PRODUCT_AT + lane]
            inverse_base = seasonal * step[INVERSE_PRODUCT_AT + lane]
            state_gradient[ALPHA_AT + lane] += error * inverse_seasonal * level_gradient
            state_gradient[BETA_AT + lane] += error * inverse_seasonal * slope_gradient
            state_gradient[GAMMA_AT + lane] += error * inverse_base * seasonal_gradient
            level_error_gradient = state[ALPHA_AT + lane] * level_gradient + state[BETA_AT + lane] * slope_gradient
            seasonal_error_gradient = state[GAMMA_AT + lane] * seasonal_gradient
            mean_gradient = -step[OBSERVED_AT + lane] * (
                step[GRADIENT_AT + lane] + level_error_gradient * inverse_seasonal + seasonal_error_gradient * inverse_base
            )
            step[GRADIENT_AT + lane] = mean_gradient
            season_gradient[offset + lane] = (
                seasonal_gradient + mean_gradient * base - level_error_gradient * error * inverse_seasonal * inverse_seasonal
            )
            base_gradient = (
                level_gradient + mean_gradient * seasonal - seasonal_error_gradient * error * inverse_base * inverse_base
            )
            state_gradient[PHI_AT + lane] += step[OLD_SLOPE_AT + lane] * (slope_gradient + base_gradient)
            state_gradient[SLOPE_AT + lane] = state[PHI_AT + lane] * (slope_gradient + base_gradient)
            state_gradient[LEVEL_AT + lane] = base_gradient
        if offset == np.uint64(0):
            offset = end
        offset -= N_LANES
