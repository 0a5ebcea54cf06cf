"""The small dense part of the exact likelihood: r rows and columns, r the larger order."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import AFTER, COVARIANCE, GRAM, INNER, KEPT, LOWER, MIDDLE
from deepforecast.kernels.arima.least_squares import product
from deepforecast.kernels.compiling import bare, part

Floats = NDArray[np.float64]


@bare
def innovate(used: int, rows: int, length: int, tracks: Floats, weights: int, dense: Floats) -> float:
    """log det(I + V G), from V in dense[COVARIANCE] and G, the products of shifted `weights`, not finite where there is none.

    Leaves V (I + G V)^-1 in dense[AFTER], G (I + V G)^-1 in dense[KEPT]. With G = L L' both come from M = I + L' V L, which is
    never near singular: V - Z'Z with Z = chol(M)^-1 L' V, and Y'Y with Y = chol(M)^-1 L'.
    """
    _products(used, rows, length, tracks, weights, dense)
    nothing = used - used  # with plain constants it would be compiled for each of them
    if not _cholesky(nothing + GRAM, used, dense, nothing + LOWER):
        return np.inf
    for i in range(used):
        for j in range(used):
            dense[MIDDLE, i, j] = 0.0
        for k in range(i, used):
            weight = dense[LOWER, k, i]
            for j in range(used):
                dense[MIDDLE, i, j] += weight * dense[COVARIANCE, k, j]
    for i in range(used):
        for j in range(i + 1):
            total = 1.0 if i == j else 0.0
            for k in range(j, used):
                total += dense[MIDDLE, i, k] * dense[LOWER, k, j]
            dense[AFTER, i, j] = total
    if not _cholesky(nothing + AFTER, used, dense, nothing + INNER):
        return np.inf
    determinant = 0.0
    for i in range(used):
        determinant += 2.0 * math.log(dense[INNER, i, i])
    _halves(used, dense)
    for i in range(used):
        for j in range(used):
            dense[AFTER, i, j] = dense[COVARIANCE, i, j]
            dense[INNER, i, j] = 0.0
    for k in range(used):
        for i in range(used):
            one, other = dense[MIDDLE, k, i], dense[KEPT, k, i]
            for j in range(used):
                dense[AFTER, i, j] -= one * dense[MIDDLE, k, j]
                dense[INNER, i, j] += other * dense[KEPT, k, j]
    for i in range(used):
        for j in range(used):
            dense[KEPT, i, j] = dense[INNER, i, j]
    return determinant


@part
def _halves(used: int, dense: Floats) -> None:
    """Z into dense[MIDDLE], Y into dense[KEPT]."""
    for i in range(used):
        for j in range(used):
            dense[KEPT, i, j] = dense[LOWER, j, i] if j >= i else 0.0
        for k in range(i):
            weight = dense[INNER, i, k]
            for j in range(used):
                dense[MIDDLE, i, j] -= weight * dense[MIDDLE, k, j]
                dense[KEPT, i, j] -= weight * dense[KEPT, k, j]
        scale = 1.0 / dense[INNER, i, i]
        for j in range(used):
            dense[MIDDLE, i, j] *= scale
            dense[KEPT, i, j] *= scale


@bare
def _cholesky(source: int, size: int, dense: Floats, out: int) -> bool:
    """The lower factor, from the lower half of a symmetric matrix; its upper half is 0."""
    for j in range(size):
        for k in range(j):
            dense[out, k, j] = 0.0
        for i in range(j, size):
            total = dense[source, i, j]
            for k in range(j):
                total -= dense[out, i, k] * dense[out, j, k]
            if i > j:
                dense[out, i, j] = total / dense[out, j, j]
            elif total > 0.0:
                dense[out, j, j] = math.sqrt(total)
            else:
                return False
    return True


@part
def _products(used: int, rows: int, length: int, tracks: Floats, weights: int, dense: Floats) -> None:
    """dense[GRAM][i, j] = sum over t < rows of weights[t - i] weights[t - j]."""
    for lag in range(used):
        total = product(tracks, weights, lag, weights, min(length, rows - lag))
        for i in range(used - lag):
            dense[GRAM, i, i + lag] = total
            dense[GRAM, i + lag, i] = total
            total -= tracks[weights, rows - 1 - i - lag] * tracks[weights, rows - 1 - i]


@bare
def products_back(used: int, rows: int, length: int, tracks: Floats, weights: int, dense: Floats) -> None:
    """The gradient of sum(dense[AFTER] * dense[GRAM]) / 2 by the weights, into the track after theirs."""
    out = weights + 1
    for t in range(rows + 1):
        tracks[out, t] = 0.0
    for lag in range(used):
        total = 0.0
        for i in range(used - lag):
            total += dense[AFTER, i, i + lag]
        if lag == 0:
            total *= 0.5
        for k in range(min(length, rows - lag)):
            tracks[out, k] += total * tracks[weights, k + lag]
        for k in range(min(length, rows - lag)):
            tracks[out, k + lag] += total * tracks[weights, k]
        for i in range(1, used - lag):
            share = dense[AFTER, i, i + lag] * (0.5 if lag == 0 else 1.0)
            for k in range(rows - i - lag, min(rows - lag, length)):
                tracks[out, k] -= share * tracks[weights, k + lag]
                tracks[out, k + lag] -= share * tracks[weights, k]
