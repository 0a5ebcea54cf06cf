"""ETS parameters as unconstrained coordinates, and back.

A parameter vector is (alpha, beta, gamma, phi, level, slope, m seasonal states, coefficients of the
regressors); alpha to phi are the "rates". A row of `estimated` marks which parameters are optimized; of
the seasonal states all but the last, which follows from their sum (0 if additive, m if multiplicative).
The estimated parameters, in this order, are the coordinates of a search. A rate within bounds is

    lower + (upper - lower) (1 + sin x) / 2

in terms of its coordinate x, so that an optimum on a bound is an ordinary stationary point in x; the other
parameters are their own coordinates. The usual bounds are those of R's `forecast::ets`, with smaller
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

ALPHA, BETA, GAMMA, PHI, LEVEL, TREND_STATE, SEASON_STATES = range(7)
"""Indices of the elements of a parameter vector; SEASON_STATES: of the first seasonal state."""
N_RATES = 4  # number of smoothing parameters: alpha, beta, gamma, phi
LOWER, UPPER = 1e-4, 1.0 - 1e-4  # bounds of alpha; LOWER: also the least upper bound of beta and gamma
MIN_GAMMA = 1e-8  # lower bound of beta and gamma
DAMPING = (0.8, 0.98)  # bounds of phi
INVERSE_PI = 1.0 / math.pi
BOUND_MARGIN = 0.005  # smallest relative distance of a start to a bound, where the gradient is 0


@inner_no_alloc
def rate_bounds(rate: int, alpha: float, wide_bounds: bool) -> tuple[float, float]:
    """Lower and upper bound of a rate (ALPHA, BETA, GAMMA or PHI).

    The usual upper bounds of beta and gamma depend on `alpha`.
    """
    if rate == PHI:
        return DAMPING
    if wide_bounds:  # beta from -0.5 to 4, alpha and gamma from 0 to 2
        return -0.5 if rate == BETA else MIN_GAMMA, 4.0 if rate == BETA else 2.0 - LOWER
    if rate == ALPHA:
        return LOWER, UPPER
    return MIN_GAMMA, max(alpha if rate == BETA else 1.0 - alpha, LOWER)


@inner_no_alloc
def rate_coordinate(value: float, rate: int, alpha: float, wide_bounds: bool) -> float:
    """Invert the sine map of a rate: x = asin(2 (value - lower) / (upper - lower) - 1).

    Values within BOUND_MARGIN of a bound, or outside, are moved inside.
    """
    low, high = rate_bounds(rate, min(max(alpha, BOUND_MARGIN), 1.0 - BOUND_MARGIN), wide_bounds)
    return math.asin(2.0 * min(max((value - low) / (high - low), BOUND_MARGIN), 1.0 - BOUND_MARGIN) - 1.0)


@inlined
def load_lane(
    estimated: Ints, wide_bounds: bool, seasonal_total: float, season_length: int, point: Floats, state: Floats, lane: int
) -> bool:
    """Write the estimated parameters at `point` to a lane of `state`; the others are there already.

    `seasonal_total` is the sum of the seasonal states if they are multiplicative (m), else 0. Return
    False if a multiplicative seasonal state is not positive. Coefficients of regressors are not part of
    `state`.
    """
    coordinate = 0
    last_seasonal = seasonal_total
    is_positive = True
    for slot in range(SEASON_STATES + season_length):
        if estimated[slot] == 0:
            continue
        if slot == SEASON_STATES + season_length - 1:  # the last seasonal state follows from the sum
            state[slot * LANES + lane] = last_seasonal
            return is_positive and (seasonal_total == 0.0 or last_seasonal > 0.0)
        value = point[coordinate]
        coordinate += 1
        if slot < N_RATES:
            low, high = rate_bounds(slot, state[lane], wide_bounds)  # state[lane] is alpha, written first
            value = low + (high - low) * (0.5 + 0.5 * _sine(value))
        elif slot >= SEASON_STATES:
            last_seasonal -= value
            is_positive = is_positive and (seasonal_total == 0.0 or value > 0.0)
        state[slot * LANES + lane] = value
    return is_positive


@inlined
def coordinate_gradient(
    estimated: Ints,
    wide_bounds: bool,
    season_length: int,
    point: Floats,
    state: Floats,
    state_gradient: Floats,
    lane: int,
    gradient: Floats,
) -> int:
    """Write the gradient by coordinates, from `state_gradient` by the parameters of a lane.

    Chain rule of the sine map; the last seasonal state is a constant minus the sum of the others, and
    the upper bounds of beta and gamma depend on alpha. Return the number of coordinates written: those
    of regressors, which follow, are not.
    """
    coordinate, alpha_gradient = 0, state_gradient[lane]
    for slot in range(SEASON_STATES + season_length - 1):
        if estimated[slot] == 0:
            continue
        derivative = state_gradient[slot * LANES + lane]
        if slot < N_RATES:
            low, high = rate_bounds(slot, state[lane], wide_bounds)
            sine = 2.0 * (state[slot * LANES + lane] - low) / (high - low) - 1.0
            if slot in (BETA, GAMMA) and not wide_bounds:  # their upper bound depends on alpha
                fraction = 0.5 + 0.5 * sine
                alpha_gradient += derivative * fraction if slot == BETA else -derivative * fraction
            derivative *= (high - low) * 0.5 * _cosine(sine, point[coordinate])
        elif slot >= SEASON_STATES:
            derivative -= state_gradient[(SEASON_STATES + season_length - 1) * LANES + lane]
        gradient[coordinate] = derivative
        coordinate += 1
    if estimated[ALPHA] == 1:
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
def _is_even(whole_number: float) -> bool:
    return 2.0 * math.floor(0.5 * whole_number) == whole_number


@inner_no_alloc
def _cosine(sine: float, angle: float) -> float:
    """Cosine of an angle from its sine; the sign alternates with the half turns."""
    cosine = math.sqrt(max(1.0 - sine * sine, 0.0))
    return cosine if _is_even(math.floor(angle * INVERSE_PI + 0.5)) else -cosine
