"""Negative log-likelihood of each lane and its derivative with respect to eps.

Sigma is concentrated out and constants are omitted (Hyndman et al. 2008, section 5.1):

    additive errors          n/2 log(sum eps^2)
    multiplicative errors    n/2 log(sum (eps / mu)^2) + sum log mu

`sums` has 7 rows of `LANES` numbers: n, a floor of the sum of squares that keeps the value of a
perfect fit finite, the objective, and four for intermediate sums.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import hot
from deepforecast.kernels.ets.recursion import _1, _2, _3, _4, _5, _6

Floats = NDArray[np.float64]

COUNT, FLOOR, OBJECTIVE, SUM_OF_SQUARES, MIN_MEAN, LOG_MEANS, PRODUCTS = range(7)
LOG_BLOCK = 16  # time steps whose means are multiplied before a logarithm is taken
SMALLEST, LARGEST = 1e-18, 1e18  # of a mean, so that products neither over- nor underflow


@hot
def additive_likelihood(trace: Floats, steps: int, width: int, sums: Floats) -> None:
    """Write the objective to `sums` and n / S * eps, its derivative, to RESIDUAL_GRADIENT."""
    for k in range(_1):
        sums[_3 + k] = 0.0
    for t in range(steps):
        row = trace[t * width : (t + 1) * width]
        for k in range(_1):
            sums[_3 + k] += row[_2 + k] * row[_2 + k]
    for k in range(_1):
        total_squares = sums[_3 + k] + sums[_1 + k]
        sums[_2 + k] = 0.5 * sums[k] * math.log(total_squares)
        sums[_3 + k] = sums[k] / total_squares
    for t in range(steps):
        row = trace[t * width : (t + 1) * width]
        for k in range(_1):
            row[_3 + k] = sums[_3 + k] * row[_2 + k]


@hot
def multiplicative_likelihood(trace: Floats, steps: int, width: int, sums: Floats) -> None:
    """The same for multiplicative errors; infinite if a mean is not positive.

    With e = eps / mu and mu = y - eps the derivative by eps is (n / S * e (1 + e) - 1) / mu.
    """
    for k in range(_1):
        sums[_3 + k], sums[_4 + k], sums[_5 + k], sums[_6 + k] = 0.0, 1.0, 0.0, 1.0
    for t in range(steps):
        row = trace[t * width : (t + 1) * width]
        for k in range(_1):
            mean = row[_5 + k] - row[_2 + k]
            inverse_mean = 1.0 / mean
            sums[_3 + k] += (row[_2 + k] * inverse_mean) * (row[_2 + k] * inverse_mean)
            sums[_4 + k] = min(sums[_4 + k], mean)
            sums[_6 + k] *= min(max(mean, SMALLEST), LARGEST)
            row[_6 + k] = inverse_mean
        if t % LOG_BLOCK == LOG_BLOCK - 1 or t == steps - 1:
            for k in range(_1):
                sums[_5 + k] += math.log(sums[_6 + k])
                sums[_6 + k] = 1.0
    for k in range(_1):
        total_squares = sums[_3 + k] + sums[_1 + k]
        sums[_2 + k] = 0.5 * sums[k] * math.log(total_squares) + sums[_5 + k] if sums[_4 + k] > 0.0 else np.inf
        sums[_3 + k] = sums[k] / total_squares
    for t in range(steps):
        row = trace[t * width : (t + 1) * width]
        for k in range(_1):
            error = row[_2 + k] * row[_6 + k]
            row[_3 + k] = row[_1 + k] * row[_6 + k] * (sums[_3 + k] * error * (1.0 + error) - 1.0)
