"""ETS recursion with a multiplicative trend, and its gradient.

    q = l b^phi           mu = q + s (or q s)          u = eps (or eps / s)
    l' = q + alpha u      b' = b^phi + beta u / l       s' = s + gamma eps (or s + gamma eps / q)

with the terms in parentheses for a multiplicative season. Lanes run one after the other, since powers
do not vectorize. Arrays as in `recursion`, with l before the step in row INVERSE_PRODUCT of `trace`
(`OLD_LEVEL` here) and b before the step in row OLD_SLOPE; `growth` is b.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inner_no_alloc
from deepforecast.kernels.ets.recursion import (
    BASE,
    INVERSE_PRODUCT,
    LANES,
    OBSERVED,
    OLD_SLOPE,
    RESIDUAL,
    RESIDUAL_GRADIENT,
    SEASONAL,
    TARGET,
)

Floats = NDArray[np.float64]

OLD_LEVEL = INVERSE_PRODUCT  # row of `trace`; 1 / (q s) is not needed here


@inner_no_alloc
def forward_power(
    trace: Floats, n_steps: int, width: int, state: Floats, season_states: Floats, multiplicative_season: bool
) -> None:
    """Run the recursion and write eps, b, l, q and s of each step to `trace`; updates `season_states` only.

    A lane whose growth b is not positive becomes NaN.
    """
    for lane in range(LANES):
        alpha = state[lane]
        beta = state[LANES + lane]
        gamma = state[2 * LANES + lane]
        phi = state[3 * LANES + lane]
        level, growth = state[4 * LANES + lane], state[5 * LANES + lane]
        offset = lane
        for t in range(n_steps):
            step = t * width + lane
            is_observed, seasonal = trace[step + OBSERVED * LANES], season_states[offset]
            damped_growth = growth**phi if growth > 0.0 else np.nan
            base = level * damped_growth
            error = 0.0
            if is_observed > 0.0:
                error = trace[step + TARGET * LANES] - (base * seasonal if multiplicative_season else base + seasonal)
            trace[step + RESIDUAL * LANES] = error
            trace[step + OLD_SLOPE * LANES] = growth
            trace[step + OLD_LEVEL * LANES] = level
            trace[step + BASE * LANES], trace[step + SEASONAL * LANES] = base, seasonal
            level_error = error / seasonal if multiplicative_season else error
            if is_observed > 0.0:
                growth = damped_growth + beta * level_error / level
                level = base + alpha * level_error
                season_states[offset] = seasonal + gamma * (error / base if multiplicative_season else error)
            else:
                growth, level = damped_growth, base
            offset += LANES
            if offset >= len(season_states):
                offset = lane


@inner_no_alloc
def backward_power(
    trace: Floats,
    n_steps: int,
    width: int,
    state: Floats,
    state_gradient: Floats,
    season_gradient: Floats,
    multiplicative_season: bool,
) -> None:
    """Run the adjoint of `forward_power` from the last step to the first.

    With h = alpha g_l + beta g_b / l and g_x the derivative of the objective by x:

        g_mu = -(g_eps + h (or h / s) + gamma g_s (or gamma g_s / q))    (0 if missing)
        g_q = g_l + g_mu (or g_l + g_mu s - gamma g_s eps / q^2)
        g_s' = g_s + g_mu (or g_s + g_mu q - h eps / s^2)
        g_(b^phi) = g_b + g_q l    g_l' = g_q b^phi - beta g_b u / l^2    g_b' = g_(b^phi) phi b^phi / b

    h is `level_error_gradient`, gamma g_s (/ q) is `seasonal_error_gradient`.
    """
    for lane in range(LANES):
        alpha = state[lane]
        beta = state[LANES + lane]
        gamma = state[2 * LANES + lane]
        phi = state[3 * LANES + lane]
        level_gradient, growth_gradient = 0.0, 0.0
        offset = ((n_steps - 1) * LANES) % len(season_gradient) + lane
        for n_done in range(n_steps):
            step = (n_steps - 1 - n_done) * width + lane
            error = trace[step + RESIDUAL * LANES]
            growth = trace[step + OLD_SLOPE * LANES]
            level = trace[step + OLD_LEVEL * LANES]
            base, seasonal = trace[step + BASE * LANES], trace[step + SEASONAL * LANES]
            seasonal_gradient, damped_growth = season_gradient[offset], base / level
            inverse_seasonal, inverse_base = (1.0 / seasonal, 1.0 / base) if multiplicative_season else (1.0, 1.0)
            level_error = error * inverse_seasonal
            level_error_gradient = alpha * level_gradient + beta * growth_gradient / level
            seasonal_error_gradient = gamma * seasonal_gradient * inverse_base
            mean_gradient = -trace[step + OBSERVED * LANES] * (
                trace[step + RESIDUAL_GRADIENT * LANES] + level_error_gradient * inverse_seasonal + seasonal_error_gradient
            )
            trace[step + RESIDUAL_GRADIENT * LANES] = mean_gradient
            state_gradient[lane] += level_error * level_gradient
            state_gradient[LANES + lane] += growth_gradient * level_error / level
            state_gradient[2 * LANES + lane] += error * inverse_base * seasonal_gradient
            if multiplicative_season:
                season_gradient[offset] = (
                    seasonal_gradient + mean_gradient * base - level_error_gradient * level_error * inverse_seasonal
                )
                base_gradient = level_gradient + mean_gradient * seasonal - seasonal_error_gradient * error * inverse_base
            else:
                season_gradient[offset] = seasonal_gradient + mean_gradient
                base_gradient = level_gradient + mean_gradient
            damped_growth_gradient = growth_gradient + base_gradient * level
            state_gradient[3 * LANES + lane] += damped_growth_gradient * damped_growth * math.log(growth)
            level_gradient = base_gradient * damped_growth - beta * growth_gradient * level_error / (level * level)
            growth_gradient = damped_growth_gradient * phi * damped_growth / growth
            offset -= LANES
            if offset < 0:
                offset += len(season_gradient)
        state_gradient[4 * LANES + lane], state_gradient[5 * LANES + lane] = level_gradient, growth_gradient
