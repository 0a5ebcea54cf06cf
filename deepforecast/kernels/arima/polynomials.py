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
    SEASONAL_AR,
    TEMPORARY,
)
from deepforecast.kernels.compilation import inner_no_alloc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_PARTIAL = 1.0 - 1e-7
"""Largest partial autocorrelation; at 1 an autoregression has no stationary likelihood."""


@inner_no_alloc
def expand_polynomials(orders: Ints, lags: Ints, point: Floats, vectors: Floats) -> bool:
    """Write coefficients by lag to PHI (1 - phi B - ...) and THETA (1 + theta B + ...), factors to FACTORS.

    The factors, 0 to 3, are ar, ma, seasonal ar, seasonal ma. Return False if a factor given by a list of
    lags is not stationary or not invertible; others always are.
    """
    is_stable_model = True
    for factor in range(4):
        begin, end = orders[FACTOR_START + factor], orders[FACTOR_START + factor] + orders[AR + factor]
        sign = -1.0 if factor % 2 else 1.0
        for k in range(begin, end):
            if factor < 2 and orders[AR_LAG_LIST + factor] == 1:
                vectors[FACTORS, k] = point[k]
                continue
            partial_autocorrelation, previous = MAX_PARTIAL * math.sin(point[k]), k - 1
            for j in range(begin, begin + (k - begin + 1) // 2):
                mirrored = previous - (j - begin)
                low, high = vectors[FACTORS, j], vectors[FACTORS, mirrored]
                vectors[FACTORS, j] = low - partial_autocorrelation * high
                vectors[FACTORS, mirrored] = high - partial_autocorrelation * low  # the same element in the middle
            vectors[FACTORS, k] = partial_autocorrelation * sign
        if factor < 2 and orders[AR_LAG_LIST + factor] == 1:
            is_stable_model = is_stable_model and is_stable(orders, lags, factor, 1.0, vectors)
    for factor in range(2):
        multiply_factors(orders, lags, factor, vectors)
    return is_stable_model


@inner_no_alloc
def multiply_factors(orders: Ints, lags: Ints, polynomial: int, vectors: Floats) -> None:
    """Write the product of the non-seasonal and seasonal factor of phi (0) or theta (1) by lag.

    (1 - phi B) (1 - Phi B^s) = 1 - phi B - Phi B^s + phi Phi B^(s+1); with plus signs for theta.
    """
    target, sign = PHI + polynomial, -1.0 if polynomial == 0 else 1.0
    nonseasonal_start, seasonal_start = orders[FACTOR_START + polynomial], orders[FACTOR_START + SEASONAL_AR + polynomial]
    for lag in range(vectors.shape[1]):
        vectors[target, lag] = 0.0
    for multiple in range(orders[SEASONAL_AR + polynomial] + 1):
        lag = orders[SEASON] * multiple
        seasonal_coefficient = 1.0 if multiple == 0 else sign * vectors[FACTORS, seasonal_start + multiple - 1]
        if multiple > 0:
            vectors[target, lag] += sign * seasonal_coefficient
        for index in range(orders[AR + polynomial]):
            vectors[target, lag + lags[polynomial, index]] += vectors[FACTORS, nonseasonal_start + index] * seasonal_coefficient


@inner_no_alloc
def coordinate_gradient(orders: Ints, lags: Ints, point: Floats, vectors: Floats, matrices: Floats, gradient: Floats) -> None:
    """Write the gradient by coordinates, from the gradient by lag: adjoint of `expand_polynomials`.

    FACTOR_GRADIENT gets the gradient by the coefficients of the factors.
    """
    for polynomial in range(2):
        lag_gradient, sign = PHI_GRADIENT + polynomial, -1.0 if polynomial == 0 else 1.0
        nonseasonal_start, seasonal_start = orders[FACTOR_START + polynomial], orders[FACTOR_START + SEASONAL_AR + polynomial]
        for index in range(orders[AR + polynomial]):
            vectors[FACTOR_GRADIENT, nonseasonal_start + index] = vectors[lag_gradient, lags[polynomial, index]]
        for multiple in range(orders[SEASONAL_AR + polynomial]):
            lag = orders[SEASON] * (multiple + 1)
            seasonal_gradient = vectors[lag_gradient, lag]
            for index in range(orders[AR + polynomial]):
                cross_gradient = sign * vectors[lag_gradient, lag + lags[polynomial, index]]
                vectors[FACTOR_GRADIENT, nonseasonal_start + index] += (
                    cross_gradient * vectors[FACTORS, seasonal_start + multiple]
                )
                seasonal_gradient += cross_gradient * vectors[FACTORS, nonseasonal_start + index]
            vectors[FACTOR_GRADIENT, seasonal_start + multiple] = seasonal_gradient
    for factor in range(4):
        begin, n_coefficients = orders[FACTOR_START + factor], orders[AR + factor]
        if factor < 2 and orders[AR_LAG_LIST + factor] == 1:
            for k in range(begin, begin + n_coefficients):
                gradient[k] = vectors[FACTOR_GRADIENT, k]
        else:
            _levinson_gradient(begin, n_coefficients, -1.0 if factor % 2 else 1.0, point, vectors, matrices, gradient)


@inner_no_alloc
def _levinson_gradient(
    begin: int, n_coefficients: int, sign: float, point: Floats, vectors: Floats, matrices: Floats, gradient: Floats
) -> None:
    """Gradient of one factor by its coordinates: adjoint of the Durbin-Levinson recursion, from the last order.

    FACTOR_GRADIENT of the factor is overwritten. `sign` is -1 for moving averages.
    """
    for k in range(n_coefficients - 1):  # coefficients of each order k, in row k of matrices[INNER]
        partial_autocorrelation = MAX_PARTIAL * math.sin(point[begin + k])
        for j in range(k):
            matrices[INNER, k + 1, j] = matrices[INNER, k, j] - partial_autocorrelation * matrices[INNER, k, k - 1 - j]
        matrices[INNER, k + 1, k] = partial_autocorrelation
    for k in range(n_coefficients - 1, -1, -1):
        partial_autocorrelation = MAX_PARTIAL * math.sin(point[begin + k])
        derivative = vectors[FACTOR_GRADIENT, begin + k] * sign
        for j in range(k):
            derivative -= vectors[FACTOR_GRADIENT, begin + j] * sign * matrices[INNER, k, k - 1 - j]
        for j in range((k + 1) // 2):
            low, high = vectors[FACTOR_GRADIENT, begin + j], vectors[FACTOR_GRADIENT, begin + k - 1 - j]
            vectors[FACTOR_GRADIENT, begin + j] = low - partial_autocorrelation * high
            vectors[FACTOR_GRADIENT, begin + k - 1 - j] = high - partial_autocorrelation * low  # the same element in the middle
        gradient[begin + k] = derivative * MAX_PARTIAL * math.cos(point[begin + k])


@inner_no_alloc
def coordinates_of(orders: Ints, lags: Ints, vectors: Floats, point: Floats, max_partial: float) -> None:
    """Write the coordinates of the model in FACTORS to `point`: inverse of `expand_polynomials`.

    Partial autocorrelations, from the step-down recursion, are clipped to +-`max_partial`. A factor given
    by a list of lags is shrunk until it is stable.
    """
    for factor in range(4):
        begin, n_coefficients = orders[FACTOR_START + factor], orders[AR + factor]
        sign = -1.0 if factor % 2 else 1.0
        if factor < 2 and orders[AR_LAG_LIST + factor] == 1:
            shrink = 1.0
            while not is_stable(orders, lags, factor, shrink, vectors):
                shrink *= 0.8
            for k in range(begin, begin + n_coefficients):
                point[k] = vectors[FACTORS, k] * shrink
        else:
            for k in range(n_coefficients):
                vectors[TEMPORARY, k] = vectors[FACTORS, begin + k] * sign
            for k in range(n_coefficients - 1, -1, -1):
                partial_autocorrelation = vectors[TEMPORARY, k]
                partial_autocorrelation = (
                    min(max(partial_autocorrelation, -max_partial), max_partial)
                    if math.isfinite(partial_autocorrelation)
                    else 0.0
                )
                point[begin + k] = math.asin(partial_autocorrelation / MAX_PARTIAL)
                _step_down(vectors, k, partial_autocorrelation)


@inner_no_alloc
def is_stable(orders: Ints, lags: Ints, factor: int, shrink: float, vectors: Floats) -> bool:
    """Whether the ar (0) or ma (1) factor, its coefficients times `shrink`, is stationary or invertible.

    All partial autocorrelations from the step-down (backward Durbin-Levinson) recursion must be below
    MAX_PARTIAL in absolute value, which puts the roots outside the unit circle.
    """
    n_lags = orders[AR + factor]
    if n_lags == 0:
        return True
    order = lags[factor, n_lags - 1]
    for k in range(order):
        vectors[TEMPORARY, k] = 0.0
    begin, sign = orders[FACTOR_START + factor], 1.0 if factor == 0 else -1.0
    for index in range(n_lags):
        vectors[TEMPORARY, lags[factor, index] - 1] = sign * shrink * vectors[FACTORS, begin + index]
    for k in range(order - 1, -1, -1):
        partial_autocorrelation = vectors[TEMPORARY, k]
        if not abs(partial_autocorrelation) < MAX_PARTIAL:
            return False
        _step_down(vectors, k, partial_autocorrelation)
    return True


@inner_no_alloc
def _step_down(vectors: Floats, k: int, partial_autocorrelation: float) -> None:
    """Replace the coefficients in TEMPORARY of order k + 1 by those of order k, in place:

    a_{k, i} = (a_{k+1, i} + r a_{k+1, k+1-i}) / (1 - r^2), with r the partial autocorrelation a_{k+1, k+1}.
    """
    scale = 1.0 / (1.0 - partial_autocorrelation * partial_autocorrelation)
    for j in range((k + 1) // 2):
        low, high = vectors[TEMPORARY, j], vectors[TEMPORARY, k - 1 - j]
        vectors[TEMPORARY, j] = (low + partial_autocorrelation * high) * scale
        vectors[TEMPORARY, k - 1 - j] = (high + partial_autocorrelation * low) * scale
