"""Parameters as unconstrained coordinates, and back.

A parameter vector is alpha, beta, gamma, phi, level, slope, the factors of the season, the coefficients of regressors. A row
of `free` says which of them are sought; of a season all but the last factor, which follows from their sum. A rate between two
bounds is lower + (upper - lower) (1 + sin x) / 2: a minimum on a bound is an ordinary one in x. The usual bounds are those of
R's `forecast::ets` but for lower ones of beta and gamma nearer 0, with beta below alpha and gamma below 1 - alpha; the wide
ones enclose the admissible region.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import inlined, inner_no_alloc
from deepforecast.kernels.ets.recursion import LANES, ZERO

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RATES, LEVEL, TREND_STATE, SEASON_STATES = 4, 4, 5, 6  # how many rates; where the level, the slope and the factors stand
LOWER, UPPER = 1e-4, 1.0 - 1e-4
MIN_GAMMA = 1e-8  # of beta and gamma, which are 0 where slope and season stay as they were
DAMPING = (0.8, 0.98)
INVERSE_PI = 1.0 / math.pi
BOUND_MARGIN = 0.005  # a start keeps this share of the way off a bound, where it would not move


@inner_no_alloc
def rate_bounds(number: int, alpha: float, wide_bounds: bool) -> tuple[float, float]:
    """Of alpha, beta, gamma or phi (0 to 3)."""
    if number == 3:
        return DAMPING
    if wide_bounds:
        return -0.5 if number == 1 else MIN_GAMMA, 4.0 if number == 1 else 2.0 - LOWER
    if number == 0:
        return LOWER, UPPER
    return MIN_GAMMA, max(alpha if number == 1 else 1.0 - alpha, LOWER)


@inner_no_alloc
def rate_coordinate(value: float, number: int, alpha: float, wide_bounds: bool) -> float:
    """The coordinate of a rate."""
    low, high = rate_bounds(number, min(max(alpha, BOUND_MARGIN), 1.0 - BOUND_MARGIN), wide_bounds)
    return math.asin(2.0 * min(max((value - low) / (high - low), BOUND_MARGIN), 1.0 - BOUND_MARGIN) - 1.0)


@inlined
def load_lane(estimated: Ints, wide_bounds: bool, total: float, season: int, point: Floats, state: Floats, lane: int) -> bool:
    """Lay what is free of a point in a lane, where the rest lies already; whether all factors that multiply are positive.

    `total`: of the factors, 0 for those that are added.
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
    estimated: Ints, wide_bounds: bool, season: int, point: Floats, state: Floats, state_gradient: Floats, lane: int, gradient: Floats
) -> int:
    """The derivatives by the coordinates from those by what lies in a lane; how many there are."""
    coordinate, alpha_gradient = 0, state_gradient[lane]
    for j in range(SEASON_STATES + season - 1):
        if estimated[j] == 0:
            continue
        derivative = state_gradient[j * LANES + lane]
        if j < RATES:
            low, high = rate_bounds(j, state[lane], wide_bounds)
            sine = 2.0 * (state[j * LANES + lane] - low) / (high - low) - 1.0
            if (j == 1 or j == 2) and not wide_bounds:  # alpha moves their upper bound
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
    """To the last digits, in a third of the library's time: the Taylor series within a quarter turn of 0."""
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
    """Of an angle whose sine is known: its sign changes from half turn to half turn."""
    cosine = math.sqrt(max(1.0 - sine * sine, 0.0))
    return cosine if _is_even(math.floor(angle * INVERSE_PI + 0.5)) else -cosine
