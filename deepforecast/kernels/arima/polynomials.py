"""From unconstrained coordinates to the polynomials of an ARMA, sparse in their lags, and gradients back.

A factor of order p has partial autocorrelations `MOST * sin(coordinate)`: every one of them makes it stationary (or
invertible), and a moving average with a root on the unit circle is a smooth maximum instead of a limit at infinity. A factor
whose lags are given as a list has its coefficients themselves for coordinates.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import (
    AR,
    BARS,
    BEGIN,
    FACTORS,
    FREE_AR,
    INNER,
    PHI,
    PHI_BAR,
    SEASON,
    TEMPORARY,
)
from deepforecast.kernels.compiling import bare

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 1.0 - 1e-7
"""Largest partial autocorrelation: at 1 a moving average still has a likelihood, an autoregression has none."""


@bare
def expand(form: Ints, lags: Ints, point: Floats, vectors: Floats) -> bool:
    """Coefficients by lag into PHI (1 - phi B - ...) and THETA (1 + theta B + ...), those of the factors into FACTORS.

    False where a list of lags makes a model that is not stationary or not invertible.
    """
    inside = True
    for part in range(4):
        begin, end = form[BEGIN + part], form[BEGIN + part] + form[AR + part]
        sign = -1.0 if part % 2 else 1.0
        for k in range(begin, end):
            if part < 2 and form[FREE_AR + part] == 1:
                vectors[FACTORS, k] = point[k]
                continue
            partial, last = MOST * math.sin(point[k]), k - 1
            for j in range(begin, begin + (k - begin + 1) // 2):
                mirror = last - (j - begin)
                low, high = vectors[FACTORS, j], vectors[FACTORS, mirror]
                vectors[FACTORS, j] = low - partial * high
                vectors[FACTORS, mirror] = high - partial * low  # the same one, in the middle
            vectors[FACTORS, k] = partial * sign
        if part < 2 and form[FREE_AR + part] == 1:
            inside = inside and stable(form, lags, part, 1.0, vectors)
    for part in range(2):
        multiply(form, lags, part, vectors)
    return inside


@bare
def multiply(form: Ints, lags: Ints, part: int, vectors: Floats) -> None:
    """The product of the two factors of phi (part 0) or theta (1), by lag."""
    out, sign = PHI + part, -1.0 if part == 0 else 1.0
    first, second = form[BEGIN + part], form[BEGIN + 2 + part]
    for lag in range(vectors.shape[1]):
        vectors[out, lag] = 0.0
    for many in range(form[2 + part] + 1):
        lag = form[SEASON] * many
        seasonal = 1.0 if many == 0 else sign * vectors[FACTORS, second + many - 1]
        if many > 0:
            vectors[out, lag] += sign * seasonal
        for place in range(form[AR + part]):
            vectors[out, lag + lags[part, place]] += vectors[FACTORS, first + place] * seasonal


@bare
def pull_back(form: Ints, lags: Ints, point: Floats, vectors: Floats, dense: Floats, gradient: Floats) -> None:
    """The gradient by lag as the gradient by coordinate."""
    for part in range(2):
        bar, sign = PHI_BAR + part, -1.0 if part == 0 else 1.0
        first, second = form[BEGIN + part], form[BEGIN + 2 + part]
        for place in range(form[AR + part]):
            vectors[BARS, first + place] = vectors[bar, lags[part, place]]
        for many in range(form[2 + part]):
            lag = form[SEASON] * (many + 1)
            total = vectors[bar, lag]
            for place in range(form[AR + part]):
                cross = sign * vectors[bar, lag + lags[part, place]]
                vectors[BARS, first + place] += cross * vectors[FACTORS, second + many]
                total += cross * vectors[FACTORS, first + place]
            vectors[BARS, second + many] = total
    for part in range(4):
        begin, size = form[BEGIN + part], form[AR + part]
        if part < 2 and form[FREE_AR + part] == 1:
            for k in range(begin, begin + size):
                gradient[k] = vectors[BARS, k]
        else:
            _levinson_back(begin, size, -1.0 if part % 2 else 1.0, point, vectors, dense, gradient)


@bare
def _levinson_back(begin: int, size: int, sign: float, point: Floats, vectors: Floats, dense: Floats, gradient: Floats) -> None:
    for k in range(size - 1):  # the coefficients before each step
        partial = MOST * math.sin(point[begin + k])
        for j in range(k):
            dense[INNER, k + 1, j] = dense[INNER, k, j] - partial * dense[INNER, k, k - 1 - j]
        dense[INNER, k + 1, k] = partial
    for k in range(size - 1, -1, -1):
        partial, slope = MOST * math.sin(point[begin + k]), vectors[BARS, begin + k] * sign
        for j in range(k):
            slope -= vectors[BARS, begin + j] * sign * dense[INNER, k, k - 1 - j]
        for j in range((k + 1) // 2):
            low, high = vectors[BARS, begin + j], vectors[BARS, begin + k - 1 - j]
            vectors[BARS, begin + j] = low - partial * high
            vectors[BARS, begin + k - 1 - j] = high - partial * low  # the same one, in the middle
        gradient[begin + k] = slope * MOST * math.cos(point[begin + k])


@bare
def locate(form: Ints, lags: Ints, vectors: Floats, point: Floats, within: float) -> None:
    """Coordinates of the model with the coefficients in FACTORS, its partial autocorrelations cut to at most `within`."""
    for part in range(4):
        begin, size, sign = form[BEGIN + part], form[AR + part], -1.0 if part % 2 else 1.0
        if part < 2 and form[FREE_AR + part] == 1:
            shrink = 1.0
            while not stable(form, lags, part, shrink, vectors):
                shrink *= 0.8
            for k in range(begin, begin + size):
                point[k] = vectors[FACTORS, k] * shrink
        else:
            for k in range(size):
                vectors[TEMPORARY, k] = vectors[FACTORS, begin + k] * sign
            for k in range(size - 1, -1, -1):
                partial = vectors[TEMPORARY, k]
                partial = min(max(partial, -within), within) if math.isfinite(partial) else 0.0
                point[begin + k] = math.asin(partial / MOST)
                _step_down(vectors, k, partial)


@bare
def stable(form: Ints, lags: Ints, part: int, shrink: float, vectors: Floats) -> bool:
    """Whether all roots of the ar (part 0) or ma factor lie outside the unit circle, its coefficients times `shrink`."""
    count = form[AR + part]
    if count == 0:
        return True
    size = lags[part, count - 1]
    for k in range(size):
        vectors[TEMPORARY, k] = 0.0
    begin, sign = form[BEGIN + part], 1.0 if part == 0 else -1.0
    for place in range(count):
        vectors[TEMPORARY, lags[part, place] - 1] = sign * shrink * vectors[FACTORS, begin + place]
    for k in range(size - 1, -1, -1):
        partial = vectors[TEMPORARY, k]
        if not abs(partial) < MOST:
            return False
        _step_down(vectors, k, partial)
    return True


@bare
def _step_down(vectors: Floats, k: int, partial: float) -> None:
    """The coefficients of order k from those of order k + 1, in TEMPORARY."""
    scale = 1.0 / (1.0 - partial * partial)
    for j in range((k + 1) // 2):
        low, high = vectors[TEMPORARY, j], vectors[TEMPORARY, k - 1 - j]
        vectors[TEMPORARY, j] = (low + partial * high) * scale
        vectors[TEMPORARY, k - 1 - j] = (high + partial * low) * scale
