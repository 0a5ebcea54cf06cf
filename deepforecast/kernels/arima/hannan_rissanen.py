"""Starting values of Hannan & Rissanen: least squares on lags of values and of estimated shocks.

References
----------
Hannan & Rissanen (1982), Recursive estimation of mixed autoregressive-moving average order,
*Biometrika* 69, doi:10.1093/biomet/69.1.81.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import AR, BETA, FACTORS, MA, NORMAL, SEASON, SEASONAL_AR, LagStructure
from deepforecast.kernels.arima.least_squares import solve_normal
from deepforecast.kernels.arima.polynomials import coordinates_of
from deepforecast.kernels.compilation import compile_notice, compiled_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_START_PARTIAL = 0.97
"""Upper bound of the absolute partial autocorrelations of starting values."""
VALUES, SHOCKS = range(2)  # rows of `sequences`
AUTOCOVARIANCE, COEFFICIENTS = range(2)  # rows of `work`
SOURCE, LAG = range(2)  # rows of `regressor_lags`: row of `sequences`, and lag, of each column


def estimate_shocks(values: Floats, order: int) -> Floats:
    """Return (2, n): the values, and the residuals of a Yule-Walker autoregression, 0 in the first `order` elements."""
    sequences = np.zeros((2, len(values)))
    sequences[0] = values
    with compile_notice("ARIMA"):
        _long_autoregression(sequences, order, np.zeros((2, order + 1)))
    return sequences


def start_coordinates(structure: LagStructure, sequences: Floats, order: int) -> Floats:
    """Starting coordinates of a model, from the result of `estimate_shocks(values, order)`."""
    n_coordinates = structure.size
    point = np.zeros(n_coordinates)
    width = max(n_coordinates, int(structure.lags.max(initial=0))) + 3
    vectors = np.zeros((max(BETA, FACTORS) + 10, width))
    regressor_lags = np.zeros((2, n_coordinates + 1), np.int64)
    with compile_notice("ARIMA"):
        _hannan_rissanen(
            structure.orders,
            structure.lags,
            sequences,
            order,
            np.zeros((1, n_coordinates + 1, n_coordinates + 1)),
            vectors,
            regressor_lags,
            point,
        )
    return point


@compiled_no_alloc
def _long_autoregression(sequences: Floats, order: int, work: Floats) -> None:
    """Write the residuals of an autoregression of this order to row SHOCKS, by the Durbin-Levinson recursion.

    `work` (2, order + 1) gets autocovariances (sums of products) and coefficients.
    """
    n_steps = sequences.shape[1]
    for lag in range(order + 1):
        autocovariance = 0.0
        for t in range(lag, n_steps):
            autocovariance += sequences[VALUES, t] * sequences[VALUES, t - lag]
        work[AUTOCOVARIANCE, lag] = autocovariance
    variance = work[AUTOCOVARIANCE, 0]
    for k in range(order):  # Durbin-Levinson recursion; stops at a perfect fit
        if not variance > 1e-12 * work[AUTOCOVARIANCE, 0]:
            break
        partial = work[AUTOCOVARIANCE, k + 1]
        for j in range(k):
            partial -= work[COEFFICIENTS, j] * work[AUTOCOVARIANCE, k - j]
        partial /= variance
        for j in range((k + 1) // 2):
            low, high = work[COEFFICIENTS, j], work[COEFFICIENTS, k - 1 - j]
            work[COEFFICIENTS, j] = low - partial * high
            work[COEFFICIENTS, k - 1 - j] = high - partial * low
        work[COEFFICIENTS, k] = partial
        variance *= 1.0 - partial * partial
    for t in range(order, n_steps):
        residual = sequences[VALUES, t]
        for lag in range(order):
            residual -= work[COEFFICIENTS, lag] * sequences[VALUES, t - 1 - lag]
        sequences[SHOCKS, t] = residual


@compiled_no_alloc
def _hannan_rissanen(
    orders: Ints, lags: Ints, sequences: Floats, order: int, gram: Floats, vectors: Floats, regressor_lags: Ints, point: Floats
) -> None:
    """Regress the values on lagged values (ar) and lagged shocks (ma); write the coordinates to `point`.

    `regressor_lags` (2, 1 + coefficients) gets the row of `sequences` and the lag of each column; column 0 is
    the target, the values at lag 0. Without enough time steps all coefficients are 0.
    """
    n_coefficients, n_steps = len(point), sequences.shape[1]
    column, first_step = 1, order
    for factor in range(4):
        for multiple in range(orders[AR + factor]):
            regressor_lags[LAG, column] = lags[factor, multiple] if factor < SEASONAL_AR else orders[SEASON] * (multiple + 1)
            regressor_lags[SOURCE, column] = factor % 2
            first_step = max(first_step, regressor_lags[LAG, column] + (order if factor % 2 == MA else 0))
            column += 1
    if n_steps - first_step > 2 * n_coefficients + 2:
        for i in range(n_coefficients + 1):
            for j in range(i + 1):
                left, right = first_step - regressor_lags[LAG, i], first_step - regressor_lags[LAG, j]
                product = 0.0
                for t in range(n_steps - first_step):
                    product += sequences[regressor_lags[SOURCE, i], left + t] * sequences[regressor_lags[SOURCE, j], right + t]
                gram[NORMAL, i, j] = product
        solve_normal(gram, n_coefficients + 1, vectors)
        for k in range(n_coefficients):
            vectors[FACTORS, k] = vectors[BETA, k]
    coordinates_of(orders, lags, vectors, point, MAX_START_PARTIAL)
