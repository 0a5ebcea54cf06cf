"""Unconstrained coordinates to sparse ARMA polynomials, and gradients back.

A factor of order p has the partial autocorrelations r_k = MAX_PARTIAL sin(coordinate_k), so that it
is always stationary or invertible, and a moving average unit root is a smooth maximum at a finite
point. The Durbin-Levinson recursion gives the coefficients (Monahan 1984, *Biometrika* 71,
doi:10.1093/biomet/71.2.403):

    a_{k, k} = r_k,    a_{k, i} = a_{k-1, i} - r_k a_{k-1, k-i}.

A factor given by a list of lags has its coefficients as coordinates.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import (
    AR,
    AR_LAG_LIST,
    FACTOR_GRADIENT,
    FACTOR_START,
    FACTORS,
    INNER,
    PHI,
    PHI_GRADIENT,
    SEASON,
    TEMPORARY,
)
from deepforecast.kernels.compilation import inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_PARTIAL = 1.0 - 1e-7
"""Largest partial autocorrelation; at 1 an autoregression has no stationary likelihood."""


@inner_no_alloc
def expand_polynomials(orders: Ints, lags: Ints, point: Floats, vectors: Floats) -> bool:
    """Write coefficients by lag to PHI (1 - phi B - ...) and THETA (1 + theta B + ...), factors to
    FACTORS.

    False if a factor given by a list of lags is not stationary or not invertible.
    """
    is_stable_model = True
    for factor in range(4):
        begin, end = orders[FACTOR_START + factor], orders[FACTOR_START + factor] + orders[AR + factor]
        sign = -1.0 if factor % 2 else 1.0
        for k in range(begin, end):
            if factor < 2 and orders[AR_LAG_LIST + factor] == 1:
                vectors[FACTORS, k] = point[k]
                continue
            partial, last = MAX_PARTIAL * math.sin(point[k]), k - 1
            for j in range(begin, begin + (k - begin + 1) // 2):
                mirror = last - (j - begin)
                low, high = vectors[FACTORS, j], vectors[FACTORS, mirror]
                vectors[FACTORS, j] = low - partial * high
                vectors[FACTORS, mirror] = high - partial * low  # the same element in the middle
            vectors[FACTORS, k] = partial * sign
        if factor < 2 and orders[AR_LAG_LIST + factor] == 1:
            is_stable_model = is_stable_model and is_stable(orders, lags, factor, 1.0, vectors)
    for factor in range(2):
        multiply_factors(orders, lags, factor, vectors)
    return is_stable_model


@inner_no_alloc
def multiply_factors(orders: Ints, lags: Ints, polynomial: int, vectors: Floats) -> None:
    """Product of the non-seasonal and seasonal factor of phi (0) or theta (1), by lag."""
    target, sign = PHI + polynomial, -1.0 if polynomial == 0 else 1.0
    first, second = orders[FACTOR_START + polynomial], orders[FACTOR_START + 2 + polynomial]
    for lag in range(vectors.shape[1]):
        vectors[target, lag] = 0.0
    for multiple in range(orders[2 + polynomial] + 1):
        lag = orders[SEASON] * multiple
        seasonal = 1.0 if multiple == 0 else sign * vectors[FACTORS, second + multiple - 1]
        if multiple > 0:
            vectors[target, lag] += sign * seasonal
        for index in range(orders[AR + polynomial]):
            vectors[target, lag + lags[polynomial, index]] += vectors[FACTORS, first + index] * seasonal


@inner_no_alloc
def coordinate_gradient(orders: Ints, lags: Ints, point: Floats, vectors: Floats, matrices: Floats, gradient: Floats) -> None:
    """Gradient by coordinates from the gradient by lag."""
    for polynomial in range(2):
        lag_gradient, sign = PHI_GRADIENT + polynomial, -1.0 if polynomial == 0 else 1.0
        first, second = orders[FACTOR_START + polynomial], orders[FACTOR_START + 2 + polynomial]
        for index in range(orders[AR + polynomial]):
            vectors[FACTOR_GRADIENT, first + index] = vectors[lag_gradient, lags[polynomial, index]]
        for multiple in range(orders[2 + polynomial]):
            lag = orders[SEASON] * (multiple + 1)
            total = vectors[lag_gradient, lag]
            for index in range(orders[AR + polynomial]):
                cross = sign * vectors[lag_gradient, lag + lags[polynomial, index]]
                vectors[FACTOR_GRADIENT, first + index] += cross * vectors[FACTORS, second + multiple]
                total += cross * vectors[FACTORS, first + index]
            vectors[FACTOR_GRADIENT, second + multiple] = total
    for polynomial in range(4):
        begin, size = orders[FACTOR_START + polynomial], orders[AR + polynomial]
        if polynomial < 2 and orders[AR_LAG_LIST + polynomial] == 1:
            for k in range(begin, begin + size):
                gradient[k] = vectors[FACTOR_GRADIENT, k]
        else:
            _levinson_gradient(begin, size, -1.0 if polynomial % 2 else 1.0, point, vectors, matrices, gradient)


@inner_no_alloc
def _levinson_gradient(
    begin: int, size: int, sign: float, point: Floats, vectors: Floats, matrices: Floats, gradient: Floats
) -> None:
    for k in range(size - 1):  # step down to the coefficients of each order
        partial = MAX_PARTIAL * math.sin(point[begin + k])
        for j in range(k):
            matrices[INNER, k + 1, j] = matrices[INNER, k, j] - partial * matrices[INNER, k, k - 1 - j]
        matrices[INNER, k + 1, k] = partial
    for k in range(size - 1, -1, -1):
        partial, slope = MAX_PARTIAL * math.sin(point[begin + k]), vectors[FACTOR_GRADIENT, begin + k] * sign
        for j in range(k):
            slope -= vectors[FACTOR_GRADIENT, begin + j] * sign * matrices[INNER, k, k - 1 - j]
        for j in range((k + 1) // 2):
            low, high = vectors[FACTOR_GRADIENT, begin + j], vectors[FACTOR_GRADIENT, begin + k - 1 - j]
            vectors[FACTOR_GRADIENT, begin + j] = low - partial * high
            vectors[FACTOR_GRADIENT, begin + k - 1 - j] = high - partial * low  # the same element in the middle
        gradient[begin + k] = slope * MAX_PARTIAL * math.cos(point[begin + k])


@inner_no_alloc
def coordinates_of(orders: Ints, lags: Ints, vectors: Floats, point: Floats, max_partial: float) -> None:
    """Coordinates of the model in FACTORS, partial autocorrelations clipped to `max_partial`."""
    for factor in range(4):
        begin, size, sign = orders[FACTOR_START + factor], orders[AR + factor], -1.0 if factor % 2 else 1.0
        if factor < 2 and orders[AR_LAG_LIST + factor] == 1:
            shrink = 1.0
            while not is_stable(orders, lags, factor, shrink, vectors):
                shrink *= 0.8
            for k in range(begin, begin + size):
                point[k] = vectors[FACTORS, k] * shrink
        else:
            for k in range(size):
                vectors[TEMPORARY, k] = vectors[FACTORS, begin + k] * sign
            for k in range(size - 1, -1, -1):
                partial = vectors[TEMPORARY, k]
                partial = min(max(partial, -max_partial), max_partial) if math.isfinite(partial) else 0.0
                point[begin + k] = math.asin(partial / MAX_PARTIAL)
                _step_down(vectors, k, partial)


@inner_no_alloc
def is_stable(orders: Ints, lags: Ints, factor: int, shrink: float, vectors: Floats) -> bool:
    """Whether the roots of the ar (0) or ma (1) factor, times `shrink`, lie outside the unit
    circle.
    """
    count = orders[AR + factor]
    if count == 0:
        return True
    size = lags[factor, count - 1]
    for k in range(size):
        vectors[TEMPORARY, k] = 0.0
    begin, sign = orders[FACTOR_START + factor], 1.0 if factor == 0 else -1.0
    for index in range(count):
        vectors[TEMPORARY, lags[factor, index] - 1] = sign * shrink * vectors[FACTORS, begin + index]
    for k in range(size - 1, -1, -1):
        partial = vectors[TEMPORARY, k]
        if not abs(partial) < MAX_PARTIAL:
            return False
        _step_down(vectors, k, partial)
    return True


@inner_no_alloc
def _step_down(vectors: Floats, k: int, partial: float) -> None:
    """Coefficients in TEMPORARY from order k + 1 to order k."""
    scale = 1.0 / (1.0 - partial * partial)
    for j in range((k + 1) // 2):
        low, high = vectors[TEMPORARY, j], vectors[TEMPORARY, k - 1 - j]
        vectors[TEMPORARY, j] = (low + partial * high) * scale
        vectors[TEMPORARY, k - 1 - j] = (high + partial * low) * scale
