"""The region of rates in which old errors are forgotten: the moving average that a form amounts to is invertible.

Hyndman, Akram & Archibald (2008), The admissible parameter space for exponential smoothing models, *AISM* 60.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compiling import lean

Floats = NDArray[np.float64]

SLACK = 1e-5
"""Errors may grow by this share a step: a season that hardly moves (gamma at its lower bound) is on the edge, and harmless."""


@lean
def distance(alpha: float, beta: float, gamma: float, phi: float, season: int, left: Floats) -> float:
    """Grows from 0 to infinity towards the edge of the region; infinite outside. `phi` is 0 without trend, `season` 1 without.

    It is minus the sum of log(1 - k^2) over the reflection coefficients of the polynomial, by the step-down recursion.
    `left` is room for season + 2 numbers.
    """
    moving_average(alpha, beta, gamma, phi, season, left)
    total, shrink = 0.0, 1.0
    for i in range(season + 2):
        left[i] *= shrink
        shrink /= 1.0 + SLACK
    for order in range(season + 1, 0, -1):
        turn = left[order]
        rest = 1.0 - turn * turn
        if not rest > 0.0:
            return np.inf
        total -= math.log(rest)
        for i in range(1, order // 2 + 1):
            one, other = left[i], left[order - i]
            left[i] = (one - turn * other) / rest
            left[order - i] = (other - turn * one) / rest
    return total


@lean
def moving_average(alpha: float, beta: float, gamma: float, phi: float, season: int, found: Floats) -> None:
    """By powers of L: (1 - phi L)(1 - L^m) + (alpha (1 - phi L) + beta phi) L (1 + ... + L^(m-1)) + gamma L^m (1 - phi L)."""
    for i in range(season + 2):
        found[i] = 0.0
    found[0] = 1.0
    found[1] -= phi
    found[season] -= 1.0
    found[season + 1] += phi
    for i in range(1, season + 1):
        found[i] += alpha + beta * phi
        found[i + 1] -= alpha * phi
    found[season] += gamma
    found[season + 1] -= gamma * phi
