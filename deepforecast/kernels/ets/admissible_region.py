"""The region of rates in which old errors are forgotten: the moving average that a form amounts to is invertible.

Hyndman, Akram & Archibald (2008), The admissible parameter space for exponential smoothing models, *AISM* 60.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compiled_no_alloc

Floats = NDArray[np.float64]

GROWTH_TOLERANCE = 1e-5
"""Errors may grow by this share a step: a season that hardly moves (gamma at its lower bound) is on the edge, and harmless."""


@compiled_no_alloc
def barrier_distance(alpha: float, beta: float, gamma: float, phi: float, season: int, polynomial: Floats) -> float:
    """Grows from 0 to infinity towards the edge of the region; infinite outside. `phi` is 0 without trend, `season` 1 without.

    It is minus the sum of log(1 - k^2) over the reflection coefficients of the polynomial, by the step-down recursion.
    `polynomial` is room for season + 2 numbers.
    """
    moving_average_polynomial(alpha, beta, gamma, phi, season, polynomial)
    total, shrink = 0.0, 1.0
    for i in range(season + 2):
        polynomial[i] *= shrink
        shrink /= 1.0 + GROWTH_TOLERANCE
    for order in range(season + 1, 0, -1):
        reflection = polynomial[order]
        remainder = 1.0 - reflection * reflection
        if not remainder > 0.0:
            return np.inf
        total -= math.log(remainder)
        for i in range(1, order // 2 + 1):
            low, high = polynomial[i], polynomial[order - i]
            polynomial[i] = (low - reflection * high) / remainder
            polynomial[order - i] = (high - reflection * low) / remainder
    return total


@compiled_no_alloc
def moving_average_polynomial(alpha: float, beta: float, gamma: float, phi: float, season: int, polynomial: Floats) -> None:
    """By powers of L: (1 - phi L)(1 - L^m) + (alpha (1 - phi L) + beta phi) L (1 + ... + L^(m-1)) + gamma L^m (1 - phi L)."""
    for i in range(season + 2):
        polynomial[i] = 0.0
    polynomial[0] = 1.0
    polynomial[1] -= phi
    polynomial[season] -= 1.0
    polynomial[season + 1] += phi
    for i in range(1, season + 1):
        polynomial[i] += alpha + beta * phi
        polynomial[i + 1] -= alpha * phi
    polynomial[season] += gamma
    polynomial[season + 1] -= gamma * phi
