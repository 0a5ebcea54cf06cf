"""The exact likelihood of a complete stretch of an ARMA with regressors, and its gradient.

With zeros before the first row, the recursion theta(B) e = phi(B) z gives e0 = L^-1 z; what the past really says of the first
r rows, w ~ N(0, sigma^2 V), adds the first r columns X of 1 / theta. So e = e0 - X w, and

    -2 log L = n log(2 pi sigma^2) + log det(I + V G) + min over w of (|e0 - X w|^2 + w' V^-1 w) / sigma^2,      G = X'X

(Ljung & Box 1979, Biometrika 66, write the same in backcasts.) Only the recursions see all rows; they are sparse. Regression
coefficients and sigma are concentrated out. The gradient is the recursions run backwards.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.dense import innovate, products_back
from deepforecast.kernels.arima.layout import (
    AFTER,
    BETA,
    COVARIANCE,
    FOUND,
    GRAM,
    KEPT,
    LOWER,
    PHI,
    PHI_BAR,
    PHI_LAGS,
    PULL,
    THETA,
    THETA_BAR,
    THETA_LAGS,
    Arrays,
    R,
)  # fmt: skip
from deepforecast.kernels.arima.least_squares import product, solve_normal
from deepforecast.kernels.arima.presample import stationary, stationary_back
from deepforecast.kernels.compiling import bare, part

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NOTHING = 1e-18
"""Where the weights of 1 / theta have fallen to this they are left out."""


@part
def exact(form: Ints, lags: Ints, data: Floats, floor: float, conditional: bool, steep: bool, arrays: Arrays) -> float:
    """n log(S / n) / 2 + log det / 2 at PHI and THETA, S with n * `floor` added: a perfect fit has a likelihood too.

    data: (1 + regressors, rows), complete. conditional: the past before the first row is taken for 0. steep: with the gradient
    by lag, into PHI_BAR and THETA_BAR. In `tracks`: each column through the recursion, the errors, the values less their
    regression, 1 / theta, and its gradient.
    """
    vectors, tracks, dense, past, gram, _, _, _ = arrays
    columns, rows = data.shape
    weights = columns + 2
    length = _responses(form, lags, rows, vectors, tracks, weights)
    for column in range(columns):
        for t in range(rows):
            tracks[column, t] = data[column, t]
        _autoregress(form, lags, data, column, rows, vectors, tracks, column)
        divide(form, lags, rows, vectors, tracks, column)
    used = 0 if conditional else min(form[R], rows)
    determinant = 0.0
    if used > 0:
        if not stationary(form, vectors, dense):
            return np.inf
        determinant = innovate(used, rows, length, tracks, weights, dense)
        if not math.isfinite(determinant):
            return np.inf
    _pasts(used, rows, length, columns, tracks, dense, past)
    if columns > 1:
        _regress(used, rows, columns, tracks, past, gram, vectors)
    squares = _residuals(form, lags, data, used, vectors, tracks, dense, past)
    total = squares + rows * floor
    vectors[FOUND, 0] = squares
    vectors[FOUND, 1] = determinant
    vectors[FOUND, 2] = rows
    if steep:
        _gradient(form, lags, columns, rows, used, length, rows / total, arrays)
    return float(0.5 * (rows * math.log(total / rows) + determinant))


@part
def _responses(form: Ints, lags: Ints, rows: int, vectors: Floats, tracks: Floats, out: int) -> int:
    """The weights of 1 / theta, and how many of them matter."""
    longest, last, t = form[R], 0, 1
    tracks[out, 0] = 1.0
    while t < rows and t - last <= longest:
        total = 0.0
        for place in range(form[THETA_LAGS]):
            lag = lags[3, place]
            if lag > t:
                break
            total -= vectors[THETA, lag] * tracks[out, t - lag]
        tracks[out, t] = total
        if abs(total) > NOTHING:
            last = t
        t += 1
    for rest in range(last + 1, rows + 1):
        tracks[out, rest] = 0.0
    return last + 1


@bare
def _autoregress(
    form: Ints, lags: Ints, data: Floats, source: int, rows: int, vectors: Floats, tracks: Floats, out: int
) -> None:
    """tracks[out] less the sum of phi times lags of data[source]."""
    for place in range(form[PHI_LAGS]):
        lag = lags[2, place]
        weight = vectors[PHI, lag]
        for t in range(lag, rows):
            tracks[out, t] -= weight * data[source, t - lag]


@bare
def divide(form: Ints, lags: Ints, rows: int, vectors: Floats, tracks: Floats, out: int) -> None:
    """theta(B)^-1 in place, zeros before the first row."""
    count = form[THETA_LAGS]
    longest = lags[3, count - 1] if count > 0 else rows
    for t in range(min(longest, rows) if count > 0 else 0):
        total = tracks[out, t]
        for place in range(count):
            lag = lags[3, place]
            if lag > t:
                break
            total -= vectors[THETA, lag] * tracks[out, t - lag]
        tracks[out, t] = total
    for t in range(longest, rows):
        total = tracks[out, t]
        for place in range(count):
            lag = lags[3, place]
            total -= vectors[THETA, lag] * tracks[out, t - lag]
        tracks[out, t] = total


@bare
def _divide_back(form: Ints, lags: Ints, rows: int, vectors: Floats, tracks: Floats, out: int) -> None:
    """The transposed of `divide`, in place, of the first `rows` values."""
    for t in range(rows - 1, -1, -1):
        total = tracks[out, t]
        for place in range(form[THETA_LAGS]):
            lag = lags[3, place]
            if t + lag >= rows:
                break
            total -= vectors[THETA, lag] * tracks[out, t + lag]
        tracks[out, t] = total


@part
def _pasts(used: int, rows: int, length: int, columns: int, tracks: Floats, dense: Floats, past: Floats) -> None:
    """X'e0 of each column into past[0], the best past V (I + G V)^-1 X'e0 into past[1]."""
    for column in range(columns):
        for i in range(used):
            past[0, column, i] = product(tracks, column, i, columns + 2, min(length, rows - i))
        for i in range(used):
            total = 0.0
            for j in range(used):
                total += dense[AFTER, i, j] * past[0, column, j]
            past[1, column, i] = total


@part
def _regress(used: int, rows: int, columns: int, tracks: Floats, past: Floats, gram: Floats, vectors: Floats) -> None:
    """Regression coefficients by generalised least squares."""
    origin = rows - rows
    for one in range(columns):
        for other in range(one + 1):
            total = product(tracks, one, origin, other, rows)
            for i in range(used):
                total -= past[1, one, i] * past[0, other, i]
            gram[0, one, other] = total
    solve_normal(gram, columns, vectors)


@bare
def _residuals(
    form: Ints, lags: Ints, data: Floats, used: int, vectors: Floats, tracks: Floats, dense: Floats, past: Floats
) -> float:
    """The errors at the best past, in their track; the sum of their squares and of what that past costs."""
    columns, rows = data.shape
    errors, values = columns, columns + 1
    for i in range(used):
        for column in range(1, columns):
            past[0, 0, i] -= vectors[BETA, column - 1] * past[0, column, i]
            past[1, 0, i] -= vectors[BETA, column - 1] * past[1, column, i]
    for t in range(rows):
        tracks[values, t] = data[0, t]
    for column in range(1, columns):
        weight = vectors[BETA, column - 1]
        for t in range(rows):
            tracks[values, t] -= weight * data[column, t]
    for t in range(rows):
        tracks[errors, t] = tracks[values, t]
    _autoregress(form, lags, tracks, values, rows, vectors, tracks, errors)
    cost = 0.0
    for i in range(used):
        pull = past[0, 0, i]
        for j in range(used):
            pull -= dense[GRAM, i, j] * past[1, 0, j]
        vectors[PULL, i] = pull  # V^-1 times the past, without V^-1
        tracks[errors, i] -= past[1, 0, i]
    for i in range(used):
        for j in range(used):
            cost += vectors[PULL, i] * dense[COVARIANCE, i, j] * vectors[PULL, j]
    divide(form, lags, rows, vectors, tracks, errors)
    return cost + product(tracks, errors, rows - rows, errors, rows)


@part
def _gradient(
    form: Ints, lags: Ints, columns: int, rows: int, used: int, length: int, weight: float, arrays: Arrays
) -> None:
    """Of the value by lag; `weight` is n / S."""
    vectors, tracks, dense, _, _, _, _, _ = arrays
    errors, values, back, bars = columns, columns + 1, columns + 3, columns + 3  # what came back is used before its bars
    for lag in range(vectors.shape[1]):
        vectors[PHI_BAR, lag] = 0.0
        vectors[THETA_BAR, lag] = 0.0
    for t in range(rows):
        tracks[back, t] = tracks[errors, t]
    _divide_back(form, lags, rows, vectors, tracks, back)
    for place in range(form[PHI_LAGS]):
        lag = lags[2, place]
        vectors[PHI_BAR, lag] = -weight * product(tracks, back, lag, values, rows - lag)
    for place in range(form[THETA_LAGS]):
        lag = lags[3, place]
        vectors[THETA_BAR, lag] = -weight * product(tracks, back, lag, errors, rows - lag)
    if used == 0:
        return
    for i in range(form[R]):
        for j in range(form[R]):
            inside = i < used and j < used
            dense[LOWER, i, j] = 0.5 * (dense[KEPT, i, j] - weight * vectors[PULL, i] * vectors[PULL, j]) if inside else 0.0
    products_back(used, rows, length, tracks, columns + 2, dense)
    _divide_back(form, lags, length, vectors, tracks, bars)
    for place in range(form[THETA_LAGS]):
        lag = lags[3, place]
        vectors[THETA_BAR, lag] -= product(tracks, bars, lag, columns + 2, length - lag)
    stationary_back(form, vectors, dense, LOWER)
