"""Starting values by Hannan & Rissanen (1982, Biometrika 69): least squares on lags of values and of estimated shocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import AR, BETA, FACTORS, MA, SEASON, SEASONAL_AR, Form
from deepforecast.kernels.arima.least_squares import solve_normal
from deepforecast.kernels.arima.polynomials import locate
from deepforecast.kernels.compiling import announced, lean

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WITHIN = 0.97
"""Starting values keep their partial autocorrelations below this."""


def with_shocks(values: Floats, order: int) -> Floats:
    """Two rows: the values, and the residuals of an autoregression of this order (Yule-Walker), 0 for its first rows."""
    tracks = np.zeros((2, len(values)))
    tracks[0] = values
    with announced("ARIMA"):
        _long_autoregression(tracks, order, np.zeros((2, order + 1)))
    return tracks


def start(form: Form, tracks: Floats, order: int) -> Floats:
    """Coordinates for a model, from `with_shocks(values, order)`."""
    size = form.size
    point, width = np.zeros(size), max(size, int(form.lags.max(initial=0))) + 3
    vectors = np.zeros((max(BETA, FACTORS) + 10, width))
    places = np.zeros((2, size + 1), np.int64)
    with announced("ARIMA"):
        _hannan_rissanen(form.form, form.lags, tracks, order, np.zeros((1, size + 1, size + 1)), vectors, places, point)
    return point


@lean
def _long_autoregression(tracks: Floats, order: int, work: Floats) -> None:
    rows = tracks.shape[1]
    for lag in range(order + 1):
        total = 0.0
        for t in range(lag, rows):
            total += tracks[0, t] * tracks[0, t - lag]
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
        total = tracks[0, t]
        for lag in range(order):
            total -= work[1, lag] * tracks[0, t - 1 - lag]
        tracks[1, t] = total


@lean
def _hannan_rissanen(
    form: Ints, lags: Ints, tracks: Floats, order: int, gram: Floats, vectors: Floats, places: Ints, point: Floats
) -> None:
    size, rows, place, first = len(point), tracks.shape[1], 1, order
    for part in range(4):
        for many in range(form[AR + part]):
            places[1, place] = lags[part, many] if part < SEASONAL_AR else form[SEASON] * (many + 1)
            places[0, place] = part % 2
            first = max(first, places[1, place] + (order if part % 2 == MA else 0))
            place += 1
    if rows - first > 2 * size + 2:
        for one in range(size + 1):
            for other in range(one + 1):
                left, right = first - places[1, one], first - places[1, other]
                total = 0.0
                for t in range(rows - first):
                    total += tracks[places[0, one], left + t] * tracks[places[0, other], right + t]
                gram[0, one, other] = total
        solve_normal(gram, size + 1, vectors)
        for k in range(size):
            vectors[FACTORS, k] = vectors[BETA, k]
    locate(form, lags, vectors, point, WITHIN)
