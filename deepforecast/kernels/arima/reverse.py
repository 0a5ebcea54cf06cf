"""The gradient of `with_holes`: its filter run from the last row to the first."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.holes import state_size
from deepforecast.kernels.arima.layout import (
    BAR,
    BETA,
    FOUND,
    FULL_BAR,
    FULL_PHI,
    KNOWN,
    LOWER,
    MEAN_BAR,
    NEXT_BAR,
    PHI_BAR,
    RHO,
    RHO_BAR,
    THETA_BAR,
    Arrays,
    P,
    Q,
    R,
)  # fmt: skip
from deepforecast.kernels.arima.presample import stationary_back
from deepforecast.kernels.compiling import bare, part

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@part
def reverse(form: Ints, data: Floats, delta: Floats, unknown: int, floor: float, arrays: Arrays) -> None:
    """The gradient by lag into PHI_BAR, THETA_BAR, right after `with_holes`.

    Path 0 is the target less its regression, put together as the rows go by; paths 1 to `unknown` are the unknowns, whose
    determinant counts too.
    """
    vectors, tracks, dense, _, gram, states, square, against = arrays
    size, begin, (columns, rows) = state_size(form, delta), len(delta) - 1, data.shape
    weight = vectors[FOUND, 2] / (vectors[FOUND, 0] + vectors[FOUND, 2] * floor)
    _invert(gram, unknown)
    for i in range(size):
        vectors[FULL_BAR, i] = 0.0
        vectors[RHO_BAR, i] = 0.0
        for path in range(unknown + 1):
            states[MEAN_BAR, path, i] = 0.0
        for j in range(size):
            square[BAR, i, j] = 0.0
    for t in range(rows - 1, begin - 1, -1):
        seen = not math.isnan(data[0, t])
        for path in range(unknown + 1):
            value = data[path, t] if seen else tracks[path, t]
            if path == 0:
                for column in range(1, columns):
                    value -= vectors[BETA, column - 1] * (data[column, t] if seen else tracks[column, t])
            for i in range(size):
                vectors[FULL_BAR, i] += states[MEAN_BAR, path, i] * value
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += square[BAR, i, j] * vectors[RHO, j]
            vectors[RHO_BAR, i] += 2.0 * total
        if seen:
            _reverse_seen(size, t, unknown, weight, data, arrays)
        else:
            _reverse_missing(size, t, unknown, vectors, states, square, against)
        for i in range(size):
            for j in range(size):
                square[BAR, i, j] = square[NEXT_BAR, i, j]
    _reverse_start(form, delta, columns, unknown, vectors, dense, states, square)


@bare
def _reverse_seen(size: int, t: int, unknown: int, weight: float, data: Floats, arrays: Arrays) -> None:
    _, tracks, _, _, gram, states, square, against = arrays
    variance = against[t, 0]
    square[NEXT_BAR, 0, 0] = 0.0
    for i in range(1, size):
        total = 0.0
        for j in range(1, size):
            square[NEXT_BAR, i, j] = square[BAR, i - 1, j - 1]
            total += square[BAR, i - 1, j - 1] * against[t, j]
        total /= variance
        square[NEXT_BAR, i, 0] = -total
        square[NEXT_BAR, 0, 0] += total * against[t, i] / variance
    to_variance = 0.5 / variance
    for path in range(unknown + 1):
        error = tracks[len(data), t] if path == 0 else data[path, t] - tracks[path, t]
        to_error = weight * error / variance if path == 0 else 0.0
        for other in range(unknown if path > 0 else 0):
            to_error += gram[1, path - 1, other] * (data[other + 1, t] - tracks[other + 1, t]) / variance
        to_variance -= 0.5 * to_error * error / variance
        pull = 0.0
        for i in range(size - 1, 0, -1):
            states[MEAN_BAR, path, i] = states[MEAN_BAR, path, i - 1]
            pull += states[MEAN_BAR, path, i] * against[t, i] / variance
            square[NEXT_BAR, i, 0] += 0.5 * states[MEAN_BAR, path, i] * error / variance
        to_variance -= pull * error / variance
        states[MEAN_BAR, path, 0] = -to_error - pull
    square[NEXT_BAR, 0, 0] += to_variance
    for i in range(1, size):
        square[NEXT_BAR, 0, i] = square[NEXT_BAR, i, 0]


@bare
def _reverse_missing(
    size: int, t: int, unknown: int, vectors: Floats, states: Floats, square: Floats, against: Floats
) -> None:
    square[NEXT_BAR, 0, 0] = 0.0
    for i in range(size):
        total, share = 0.0, 0.0
        for j in range(size):
            total += square[BAR, i, j] * vectors[FULL_PHI, j]
            moved = against[t, j + 1] if j + 1 < size else 0.0
            share += square[BAR, i, j] * (moved + vectors[FULL_PHI, j] * against[t, 0])
        vectors[FULL_BAR, i] += 2.0 * share
        square[NEXT_BAR, 0, 0] += total * vectors[FULL_PHI, i]
        if i + 1 < size:
            square[NEXT_BAR, 0, i + 1] = total
            square[NEXT_BAR, i + 1, 0] = total
            for j in range(size - 1):
                square[NEXT_BAR, i + 1, j + 1] = square[BAR, i, j]
    for path in range(unknown + 1):
        first = 0.0
        for i in range(size):
            first += vectors[FULL_PHI, i] * states[MEAN_BAR, path, i]
        for i in range(size - 1, 0, -1):
            states[MEAN_BAR, path, i] = states[MEAN_BAR, path, i - 1]
        states[MEAN_BAR, path, 0] = first


@bare
def _reverse_start(
    form: Ints, delta: Floats, columns: int, unknown: int, vectors: Floats, dense: Floats, states: Floats, square: Floats
) -> None:
    p, q, r, m, size = form[P], form[Q], form[R], len(delta) - 1, state_size(form, delta)
    for i in range(size):  # what the first rows said, less its regression
        for column in range(1, columns):
            states[KNOWN, 0, i] -= vectors[BETA, column - 1] * states[KNOWN, column, i]
    for lag in range(1, p + 1):
        total = vectors[FULL_BAR, lag - 1]
        for step in range(1, m + 1):
            if delta[step] != 0.0:
                total -= delta[step] * vectors[FULL_BAR, step + lag - 1]
        for path in range(unknown + 1):
            for i in range(lag, size):
                total -= states[MEAN_BAR, path, i] * states[KNOWN, path, i - lag]
        vectors[PHI_BAR, lag] = total
    for i in range(1, q + 1):
        total = vectors[RHO_BAR, i]
        for j in range(size):
            total += 2.0 * square[BAR, i, j] * vectors[RHO, j]
        vectors[THETA_BAR, i] = total
    if r > 0:
        for i in range(r):
            for j in range(r):
                dense[LOWER, i, j] = square[BAR, i, j]
        stationary_back(form, vectors, dense, LOWER)


@bare
def _invert(gram: Floats, size: int) -> None:
    """gram[1] in place, a small symmetric matrix (Gauss & Jordan); rows of columns that tell nothing become 0."""
    for k in range(size):
        pivot = gram[1, k, k]
        scale = 1.0 / pivot if pivot > 0.0 else 0.0
        for i in range(size):
            share = gram[1, i, k] * scale
            if i != k:
                for j in range(size):
                    if j != k:
                        gram[1, i, j] -= share * gram[1, k, j]
                gram[1, i, k] = -share
        for j in range(size):
            gram[1, k, j] *= scale
        gram[1, k, k] = scale
