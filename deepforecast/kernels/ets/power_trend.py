"""ETS recursion with a multiplicative trend, and its gradient.

Lanes run one after the other, since powers do not vectorize.

    q = l b^phi    mu = q + s (or q s)    u = eps (or eps / s)
    l' = q + alpha u    b' = b^phi + beta u / l    s' = s + gamma eps (or s + gamma eps / q)

Arrays as in `recursion`, with l before the step in row INVERSE_PRODUCT of `trace` and b in row
SLOPE.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inner_no_alloc
from deepforecast.kernels.ets.recursion import (
    BASE,
    FACTOR,
    INVERSE_PRODUCT,
    LANES,
    OBSERVED,
    RESIDUAL,
    RESIDUAL_GRADIENT,
    SLOPE,
    TARGET,
)

Floats = NDArray[np.float64]


@inner_no_alloc
def forward_power(trace: Floats, steps: int, width: int, state: Floats, season_states: Floats, product: bool) -> None:
    """Run the recursion; `product`: multiplicative season. Growth b <= 0 makes a lane NaN."""
    for k in range(LANES):
        alpha, beta, gamma, phi = state[k], state[LANES + k], state[2 * LANES + k], state[3 * LANES + k]
        level, growth = state[4 * LANES + k], state[5 * LANES + k]
        offset = k
        for t in range(steps):
            start = t * width + k
            is_observed, factor = trace[start + OBSERVED * LANES], season_states[offset]
            damped_growth = growth**phi if growth > 0.0 else np.nan
            base = level * damped_growth
            error = 0.0
            if is_observed > 0.0:
                error = trace[start + TARGET * LANES] - (base * factor if product else base + factor)
            trace[start + RESIDUAL * LANES], trace[start + SLOPE * LANES], trace[start + INVERSE_PRODUCT * LANES] = (
                error,
                growth,
                level,
            )
            trace[start + BASE * LANES], trace[start + FACTOR * LANES] = base, factor
            level_error = error / factor if product else error
            if is_observed > 0.0:
                growth = damped_growth + beta * level_error / level
                level = base + alpha * level_error
                season_states[offset] = factor + gamma * (error / base if product else error)
            else:
                growth, level = damped_growth, base
            offset += LANES
            if offset >= len(season_states):
                offset = k


@inner_no_alloc
def backward_power(
    trace: Floats, steps: int, width: int, state: Floats, state_gradient: Floats, season_gradient: Floats, product: bool
) -> None:
    """Run the adjoint of `forward_power` from the last step to the first."""
    for k in range(LANES):
        alpha, beta, gamma, phi = state[k], state[LANES + k], state[2 * LANES + k], state[3 * LANES + k]
        level_gradient, growth_gradient = 0.0, 0.0
        offset = ((steps - 1) * LANES) % len(season_gradient) + k
        for i in range(steps):
            start = (steps - 1 - i) * width + k
            error, growth, level = (
                trace[start + RESIDUAL * LANES],
                trace[start + SLOPE * LANES],
                trace[start + INVERSE_PRODUCT * LANES],
            )
            base, factor = trace[start + BASE * LANES], trace[start + FACTOR * LANES]
            factor_gradient, damped_growth = season_gradient[offset], base / level
            inverse_factor, inverse_base = (1.0 / factor, 1.0 / base) if product else (1.0, 1.0)
            level_error = error * inverse_factor
            error_gradient, season_error = (
                alpha * level_gradient + beta * growth_gradient / level,
                gamma * factor_gradient * inverse_base,
            )
            mean_gradient = -trace[start + OBSERVED * LANES] * (
                trace[start + RESIDUAL_GRADIENT * LANES] + error_gradient * inverse_factor + season_error
            )
            trace[start + RESIDUAL_GRADIENT * LANES] = mean_gradient
            state_gradient[k] += level_error * level_gradient
            state_gradient[LANES + k] += growth_gradient * level_error / level
            state_gradient[2 * LANES + k] += error * inverse_base * factor_gradient
            if product:
                season_gradient[offset] = factor_gradient + mean_gradient * base - error_gradient * level_error * inverse_factor
                base_gradient = level_gradient + mean_gradient * factor - season_error * error * inverse_base
            else:
                season_gradient[offset] = factor_gradient + mean_gradient
                base_gradient = level_gradient + mean_gradient
            damped_gradient = growth_gradient + base_gradient * level
            state_gradient[3 * LANES + k] += damped_gradient * damped_growth * math.log(growth)
            level_gradient = base_gradient * damped_growth - beta * growth_gradient * level_error / (level * level)
            growth_gradient = damped_gradient * phi * damped_growth / growth
            offset -= LANES
            if offset < 0:
                offset += len(season_gradient)
        state_gradient[4 * LANES + k], state_gradient[5 * LANES + k] = level_gradient, growth_gradient
