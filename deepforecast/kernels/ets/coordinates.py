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

from deepforecast.kernels.compiling import bare, part
from deepforecast.kernels.ets.lanes import LANES, NOTHING

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RATES, LEVEL, TREND_STATE, FACTORS = 4, 4, 5, 6  # how many rates; where the level, the slope and the factors stand
LOWER, UPPER = 1e-4, 1.0 - 1e-4
LOWEST = 1e-8  # of beta and gamma, which are 0 where slope and season stay as they were
DAMPING = (0.8, 0.98)
INVERSE_PI = 1.0 / math.pi
EDGE = 0.005  # a start keeps this share of the way off a bound, where it would not move


@bare
def bounds(number: int, alpha: float, wide: bool) -> tuple[float, float]:
    """Of alpha, beta, gamma or phi (0 to 3)."""
    if number == 3:
        return DAMPING
    if wide:
        return -0.5 if number == 1 else LOWEST, 4.0 if number == 1 else 2.0 - LOWER
    if number == 0:
        return LOWER, UPPER
    return LOWEST, max(alpha if number == 1 else 1.0 - alpha, LOWER)


@bare
def angle(value: float, number: int, alpha: float, wide: bool) -> float:
    """The coordinate of a rate."""
    low, high = bounds(number, min(max(alpha, EDGE), 1.0 - EDGE), wide)
    return math.asin(2.0 * min(max((value - low) / (high - low), EDGE), 1.0 - EDGE) - 1.0)


@part
def to_lane(free: Ints, wide: bool, total: float, season: int, point: Floats, held: Floats, lane: int) -> bool:
    """Lay what is free of a point in a lane, where the rest lies already; whether all factors that multiply are positive.

    `total`: of the factors, 0 for those that are added.
    """
    at, last, legal = 0, total, True
    for j in range(FACTORS + season):
        if free[j] == 0:
            continue
        if j == FACTORS + season - 1:
            held[j * LANES + lane] = last
            return legal and (total == 0.0 or last > 0.0)
        value = point[at]
        at += 1
        if j < RATES:
            low, high = bounds(j, held[lane], wide)
            value = low + (high - low) * (0.5 + 0.5 * _sine(value))
        elif j >= FACTORS:
            last -= value
            legal = legal and (total == 0.0 or value > 0.0)
        held[j * LANES + lane] = value
    return legal


@part
def to_gradient(
    free: Ints, wide: bool, season: int, point: Floats, held: Floats, pulls: Floats, lane: int, gradient: Floats
) -> int:
    """The derivatives by the coordinates from those by what lies in a lane; how many there are."""
    at, by_alpha = 0, pulls[lane]
    for j in range(FACTORS + season - 1):
        if free[j] == 0:
            continue
        pull = pulls[j * LANES + lane]
        if j < RATES:
            low, high = bounds(j, held[lane], wide)
            sine = 2.0 * (held[j * LANES + lane] - low) / (high - low) - 1.0
            if (j == 1 or j == 2) and not wide:  # alpha moves their upper bound
                share = 0.5 + 0.5 * sine
                by_alpha += pull * share if j == 1 else -pull * share
            pull *= (high - low) * 0.5 * _cosine(sine, point[at])
        elif j >= FACTORS:
            pull -= pulls[(FACTORS + season - 1) * LANES + lane]
        gradient[at] = pull
        at += 1
    if free[0] == 1:
        low, high = bounds(NOTHING, 0.0, wide)
        gradient[0] = by_alpha * (high - low) * 0.5 * _cosine(2.0 * (held[lane] - low) / (high - low) - 1.0, point[0])
    return at


@bare
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
    return sine if _even(half_turns) else -sine


@bare
def _even(whole: float) -> bool:
    return 2.0 * math.floor(0.5 * whole) == whole


@bare
def _cosine(sine: float, angle: float) -> float:
    """Of an angle whose sine is known: its sign changes from half turn to half turn."""
    cosine = math.sqrt(max(1.0 - sine * sine, 0.0))
    return cosine if _even(math.floor(angle * INVERSE_PI + 0.5)) else -cosine
