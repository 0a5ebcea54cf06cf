"""ETS parameters as unconstrained coordinates, and back.

A parameter vector is (alpha, beta, gamma, phi, level, slope, m seasonal states, coefficients of the
regressors). A row of `estimated` marks which of them are optimized; of the seasonal states all but
the last, which follows from their sum (0 if additive, m if multiplicative). A smoothing parameter
within bounds is lower + (upper - lower) (1 + sin x) / 2, so that an optimum on a bound is an
ordinary stationary point in x. The usual bounds are those of R's `forecast::ets`, with smaller
lower bounds of beta and gamma, beta < alpha and gamma < 1 - alpha; the wide bounds enclose the
admissible region.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inlined, inner_no_alloc
from deepforecast.kernels.ets.recursion import LANES, ZERO

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RATES, LEVEL, TREND_STATE, SEASON_STATES = 4, 4, 5, 6  # number of rates; indices of the states
LOWER, UPPER = 1e-4, 1.0 - 1e-4
MIN_GAMMA = 1e-8  # lower bound of beta and gamma
DAMPING = (0.8, 0.98)  # bounds of phi
INVERSE_PI = 1.0 / math.pi
BOUND_MARGIN = 0.005  # relative distance of starts to a bound, where the gradient is 0


@inner_no_alloc
def rate_bounds(number: int, alpha: float, wide_bounds: bool) -> tuple[float, float]:
    """Lower and upper bound of alpha, beta, gamma or phi (`number` 0 to 3)."""
    if number == 3:
        return DAMPING
    if wide_bounds:
        return -0.5 if number == 1 else MIN_GAMMA, 4.0 if number == 1 else 2.0 - LOWER
    if number == 0:
        return LOWER, UPPER
    return MIN_GAMMA, max(alpha if number == 1 else 1.0 - alpha, LOWER)


@inner_no_alloc
def rate_coordinate(value: float, number: int, alpha: float, wide_bounds: bool) -> float:
    """Invert the sine map of a rate: x = asin(2 (value - lower) / (upper - lower) - 1)."""
    low, high = rate_bounds(number, min(max(alpha, BOUND_MARGIN), 1.0 - BOUND_MARGIN), wide_bounds)
    return math.asin(2.0 * min(max((value - low) / (high - low), BOUND_MARGIN), 1.0 - BOUND_MARGIN) - 1.0)


@inlined
def load_lane(estimated: Ints, wide_bounds: bool, total: float, season: int, point: Floats, state: Floats, lane: int) -> bool:
    """Write the estimated parameters at `point` into a lane of `state`; others are there already.

    `total` is the sum of the seasonal states if multiplicative, else 0. Return whether all
    multiplicative seasonal states are positive.
    """
    coordinate, last, is_valid = 0, total, True
    for j in range(SEASON_STATES + season):
        if estimated[j] == 0:
            continue
        if j == SEASON_STATES + season - 1:
            state[j * LANES + lane] = last
            return is_valid and (total == 0.0 or last > 0.0)
        value = point[coordinate]
        coordinate += 1
        if j < RATES:
            low, high = rate_bounds(j, state[lane], wide_bounds)
            value = low + (high - low) * (0.5 + 0.5 * _sine(value))
        elif j >= SEASON_STATES:
            last -= value
            is_valid = is_valid and (total == 0.0 or value > 0.0)
        state[j * LANES + lane] = value
    return is_valid


@inlined
def coordinate_gradient(
    estimated: Ints,
    wide_bounds: bool,
    season: int,
    point: Floats,
    state: Floats,
    state_gradient: Floats,
    lane: int,
    gradient: Floats,
) -> int:
    """Gradient by coordinates from that by the parameters of a lane; return the number of
    coordinates.

    Chain rule of the sine map; the last seasonal state is minus the sum of the others, and the
    upper bounds of beta and gamma depend on alpha.
    """
    coordinate, alpha_gradient = 0, state_gradient[lane]
    for j in range(SEASON_STATES + season - 1):
        if estimated[j] == 0:
            continue
        derivative = state_gradient[j * LANES + lane]
        if j < RATES:
            low, high = rate_bounds(j, state[lane], wide_bounds)
            sine = 2.0 * (state[j * LANES + lane] - low) / (high - low) - 1.0
            if (j == 1 or j == 2) and not wide_bounds:  # their upper bound depends on alpha
                fraction = 0.5 + 0.5 * sine
                alpha_gradient += derivative * fraction if j == 1 else -derivative * fraction
            derivative *= (high - low) * 0.5 * _cosine(sine, point[coordinate])
        elif j >= SEASON_STATES:
            derivative -= state_gradient[(SEASON_STATES + season - 1) * LANES + lane]
        gradient[coordinate] = derivative
        coordinate += 1
    if estimated[0] == 1:
        low, high = rate_bounds(ZERO, 0.0, wide_bounds)
        gradient[0] = alpha_gradient * (high - low) * 0.5 * _cosine(2.0 * (state[lane] - low) / (high - low) - 1.0, point[0])
    return coordinate


@inner_no_alloc
def _sine(angle: float) -> float:
    """Sine to full precision by its Taylor series in [-pi/2, pi/2]; 3 times as fast as libm."""
    half_turns = math.floor(angle * INVERSE_PI + 0.5)
    x = angle - half_turns * math.pi
    z = x * x
    z2 = z * z
    z4 = z2 * z2
    low = (1.0 - z / 6.0) + z2 * (1.0 / 120.0 - z * (1.0 / 5040.0))
    middle = (1.0 / 362880.0 - z * (1.0 / 39916800.0)) + z2 * (1.0 / 6227020800.0 - z * (1.0 / 1307674368000.0))
    high = (1.0 / 355687428096000.0 - z * (1.0 / 121645100408832000.0)) + z2 * (1.0 / 51090942171709440000.0)
    sine = x * (low + z4 * (middle + z4 * high))
    return sine if _is_even(half_turns) else -sine


@inner_no_alloc
def _is_even(number: float) -> bool:
    return 2.0 * math.floor(0.5 * number) == number


@inner_no_alloc
def _cosine(sine: float, angle: float) -> float:
    """Cosine of an angle from its sine; the sign alternates with the half turns."""
    cosine = math.sqrt(max(1.0 - sine * sine, 0.0))
    return cosine if _is_even(math.floor(angle * INVERSE_PI + 0.5)) else -cosine
