"""Starting values of Hannan & Rissanen: least squares on lags of values and of estimated shocks.

Hannan & Rissanen (1982), Recursive estimation of mixed autoregressive-moving average order,
*Biometrika* 69, doi:10.1093/biomet/69.1.81.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import AR, BETA, FACTORS, MA, SEASON, SEASONAL_AR, LagStructure
from deepforecast.kernels.arima.least_squares import solve_normal
from deepforecast.kernels.arima.polynomials import coordinates_of
from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_START_PARTIAL = 0.97
"""Upper bound of the absolute partial autocorrelations of starting values."""


def estimate_shocks(values: Floats, order: int) -> Floats:
    """Return the values and the residuals of a Yule-Walker autoregression (0 in its first rows)."""
    sequences = np.zeros((2, len(values)))
    sequences[0] = values
    with compile_notice("ARIMA"):
        _long_autoregression(sequences, order, np.zeros((2, order + 1)))
    return sequences


def start_coordinates(structure: LagStructure, sequences: Floats, order: int) -> Floats:
    """Starting coordinates of a model, from `estimate_shocks(values, order)`."""
    size = structure.size
    point, width = np.zeros(size), max(size, int(structure.lags.max(initial=0))) + 3
    vectors = np.zeros((max(BETA, FACTORS) + 10, width))
    regressor_lags = np.zeros((2, size + 1), np.int64)
    with compile_notice("ARIMA"):
        _hannan_rissanen(
            structure.orders,
            structure.lags,
            sequences,
            order,
            np.zeros((1, size + 1, size + 1)),
            vectors,
            regressor_lags,
            point,
        )
    return point


@compiled_no_alloc
def _long_autoregression(sequences: Floats, order: int, work: Floats) -> None:
    rows = sequences.shape[1]
    for lag in range(order + 1):
        total = 0.0
        for t in range(lag, rows):
            total += sequences[0, t] * sequences[0, t - lag]
        work[0, lag] = total
    variance = work[0, 0]
    for k in range(order):
        if not variance > 1e-12 * work[0, 0]:
            break
        partial = work[0, k + 1]
        for j in range(k):
            partial -= work[1, j] * work[0, k - j]
        partial /= variance
        for j in range((k + 1) // 2):
            low, high = work[1, j], work[1, k - 1 - j]
            work[1, j] = low - partial * high
            work[1, k - 1 - j] = high - partial * low
        work[1, k] = partial
        variance *= 1.0 - partial * partial
    for t in range(order, rows):
        total = sequences[0, t]
        for lag in range(order):
            total -= work[1, lag] * sequences[0, t - 1 - lag]
        sequences[1, t] = total


@compiled_no_alloc
def _hannan_rissanen(
    orders: Ints, lags: Ints, sequences: Floats, order: int, gram: Floats, vectors: Floats, regressor_lags: Ints, point: Floats
) -> None:
    size, rows, index, first = len(point), sequences.shape[1], 1, order
    for factor in range(4):
        for multiple in range(orders[AR + factor]):
            regressor_lags[1, index] = lags[factor, multiple] if factor < SEASONAL_AR else orders[SEASON] * (multiple + 1)
            regressor_lags[0, index] = factor % 2
            first = max(first, regressor_lags[1, index] + (order if factor % 2 == MA else 0))
            index += 1
    if rows - first > 2 * size + 2:
        for i in range(size + 1):
            for j in range(i + 1):
                left, right = first - regressor_lags[1, i], first - regressor_lags[1, j]
                total = 0.0
                for t in range(rows - first):
                    total += sequences[regressor_lags[0, i], left + t] * sequences[regressor_lags[0, j], right + t]
                gram[0, i, j] = total
        solve_normal(gram, size + 1, vectors)
        for k in range(size):
            vectors[FACTORS, k] = vectors[BETA, k]
    coordinates_of(orders, lags, vectors, point, MAX_START_PARTIAL)
