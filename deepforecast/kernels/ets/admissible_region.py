"""Admissible region of the smoothing parameters: the equivalent moving average is invertible.

Outside of it the weight of old errors in the forecasts does not decay.

References
----------
Hyndman, Akram & Archibald (2008), The admissible parameter space for exponential smoothing models,
*Annals of the Institute of Statistical Mathematics* 60, doi:10.1007/s10463-006-0109-x.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import compiled_no_alloc

Floats = NDArray[np.float64]

GROWTH_TOLERANCE = 1e-5
"""Growth rate of errors per step that still counts as invertible: a nearly fixed season (gamma at
its lower bound) lies on the boundary of the region and is harmless."""


@compiled_no_alloc
def barrier_distance(alpha: float, beta: float, gamma: float, phi: float, period: int, polynomial: Floats) -> float:
    """Barrier that grows from 0 to infinity at the boundary of the region, and is infinite outside.

    It is -sum_k log(1 - r_k^2), with r_k the reflection coefficients of the moving average
    polynomial a, from the step-down (backward Durbin-Levinson) recursion

        r_k = a_{k, k},    a_{k-1, i} = (a_{k, i} - r_k a_{k, k-i}) / (1 - r_k^2)

    in decreasing order k; the polynomial is invertible if all |r_k| < 1. `phi` is 0 without trend,
    `period` 1 without season. `polynomial` is a buffer of period + 2 numbers.
    """
    moving_average_polynomial(alpha, beta, gamma, phi, period, polynomial)
    barrier, shrink = 0.0, 1.0
    for i in range(period + 2):  # replaces L by L / (1 + GROWTH_TOLERANCE)
        polynomial[i] *= shrink
        shrink /= 1.0 + GROWTH_TOLERANCE
    for order in range(period + 1, 0, -1):
        reflection = polynomial[order]
        remainder = 1.0 - reflection * reflection
        if not remainder > 0.0:
            return np.inf
        barrier -= math.log(remainder)
        for i in range(1, order // 2 + 1):
            low, high = polynomial[i], polynomial[order - i]  # by pairs, in place
            polynomial[i] = (low - reflection * high) / remainder
            polynomial[order - i] = (high - reflection * low) / remainder
    return barrier


@compiled_no_alloc
def moving_average_polynomial(alpha: float, beta: float, gamma: float, phi: float, period: int, polynomial: Floats) -> None:
    """Write the coefficients of the moving average of the additive model, by power of the lag operator L:

    (1 - phi L) (1 - L^m) + (alpha (1 - phi L) + beta phi) (L + L^2 + ... + L^m)
    + gamma L^m (1 - phi L)
    """
    for i in range(period + 2):
        polynomial[i] = 0.0
    polynomial[0] = 1.0
    polynomial[1] -= phi
    polynomial[period] -= 1.0
    polynomial[period + 1] += phi
    for i in range(1, period + 1):
        polynomial[i] += alpha + beta * phi
        polynomial[i + 1] -= alpha * phi
    polynomial[period] += gamma
    polynomial[period + 1] -= gamma * phi
