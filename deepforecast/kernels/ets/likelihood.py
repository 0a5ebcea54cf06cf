"""Negative log-likelihood of each lane and its derivative with respect to eps.

Sigma is concentrated out and constants are omitted (Hyndman et al. 2008, section 5.1):

    additive errors          n/2 log(sum eps^2)
    multiplicative errors    n/2 log(sum (eps / mu)^2) + sum log mu

Layout of `sums`, 7 rows of `LANES` numbers: number n of observed values; floor, which is added to the
sum of squares and keeps the likelihood of a perfect fit finite; objective; sum of squares S, replaced by
n / S; smallest mu; sum of log mu; product of the means whose logarithm is not taken yet.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.compilation import hot
from deepforecast.kernels.ets.recursion import (
    GRADIENT_AT,
    INVERSE_MEAN_AT,
    LANES,
    N_LANES,
    OBSERVED_AT,
    RESIDUAL_AT,
    VALUE_AT,
)

Floats = NDArray[np.float64]

COUNT, FLOOR, OBJECTIVE = range(3)  # rows of `sums` that other modules read or write
COUNT_AT, FLOOR_AT, OBJECTIVE_AT, SQUARES_AT, MIN_MEAN_AT, LOG_MEANS_AT, PRODUCT_AT = (
    np.uint64(LANES * row) for row in range(7)
)
LOG_BLOCK = 16  # time steps whose means are multiplied before a logarithm is taken
SMALLEST, LARGEST = 1e-18, 1e18  # limits of a mean, so that products neither over- nor underflow


@hot
def additive_likelihood(trace: Floats, n_steps: int, width: int, sums: Floats) -> None:
    """Write n/2 log S to `sums` and its derivative, n / S * eps, to RESIDUAL_GRADIENT.

    S is the sum of squared eps plus the floor.
    """
    for lane in range(N_LANES):
        sums[SQUARES_AT + lane] = 0.0
    for t in range(n_steps):
        step = trace[t * width : (t + 1) * width]
        for lane in range(N_LANES):
            sums[SQUARES_AT + lane] += step[RESIDUAL_AT + lane] * step[RESIDUAL_AT + lane]
    for lane in range(N_LANES):
        sum_of_squares = sums[SQUARES_AT + lane] + sums[FLOOR_AT + lane]
        sums[OBJECTIVE_AT + lane] = 0.5 * sums[COUNT_AT + lane] * math.log(sum_of_squares)
        sums[SQUARES_AT + lane] = sums[COUNT_AT + lane] / sum_of_squares  # from here on n / S
    for t in range(n_steps):
        step = trace[t * width : (t + 1) * width]
        for lane in range(N_LANES):
            step[GRADIENT_AT + lane] = sums[SQUARES_AT + lane] * step[RESIDUAL_AT + lane]


@hot
def multiplicative_likelihood(trace: Floats, n_steps: int, width: int, sums: Floats) -> None:
    """Write n/2 log S + sum log mu and its derivative; the objective is infinite if a mean is not positive.

    S is the sum of squared e = eps / mu plus the floor. As mu = y - eps, the derivative by eps is
    (n / S * e (1 + e) - 1) / mu; 0 for missing values.
    """
    for lane in range(N_LANES):
        sums[SQUARES_AT + lane] = 0.0
        sums[MIN_MEAN_AT + lane] = 1.0
        sums[LOG_MEANS_AT + lane] = 0.0
        sums[PRODUCT_AT + lane] = 1.0
    for t in range(n_steps):
        step = trace[t * width : (t + 1) * width]
        for lane in range(N_LANES):
            mean = step[VALUE_AT + lane] - step[RESIDUAL_AT + lane]
            inverse_mean = 1.0 / mean
            sums[SQUARES_AT + lane] += (step[RESIDUAL_AT + lane] * inverse_mean) * (step[RESIDUAL_AT + lane] * inverse_mean)
            sums[MIN_MEAN_AT + lane] = min(sums[MIN_MEAN_AT + lane], mean)
            sums[PRODUCT_AT + lane] *= min(max(mean, SMALLEST), LARGEST)
            step[INVERSE_MEAN_AT + lane] = inverse_mean
        if t % LOG_BLOCK == LOG_BLOCK - 1 or t == n_steps - 1:
            for lane in range(N_LANES):
                sums[LOG_MEANS_AT + lane] += math.log(sums[PRODUCT_AT + lane])
                sums[PRODUCT_AT + lane] = 1.0
    for lane in range(N_LANES):
        sum_of_squares = sums[SQUARES_AT + lane] + sums[FLOOR_AT + lane]
        sums[OBJECTIVE_AT + lane] = (
            0.5 * sums[COUNT_AT + lane] * math.log(sum_of_squares) + sums[LOG_MEANS_AT + lane]
            if sums[MIN_MEAN_AT + lane] > 0.0
            else np.inf
        )
        sums[SQUARES_AT + lane] = sums[COUNT_AT + lane] / sum_of_squares  # from here on n / S
    for t in range(n_steps):
        step = trace[t * width : (t + 1) * width]
        for lane in range(N_LANES):
            error = step[RESIDUAL_AT + lane] * step[INVERSE_MEAN_AT + lane]
            step[GRADIENT_AT + lane] = (
                step[OBSERVED_AT + lane]
                * step[INVERSE_MEAN_AT + lane]
                * (sums[SQUARES_AT + lane] * error * (1.0 + error) - 1.0)
            )
