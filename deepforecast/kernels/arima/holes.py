"""The exact likelihood where values are missing, by a Kalman filter, and its gradient by the filter run in reverse.

State i after row t - 1: what phi, theta and all before t say of y_{t+i}, without what lies between; one transition is a shift
plus phi times the first state plus rho = (1, theta) times the new error. phi holds the differences too. Given the first m rows
(m: the order of the differences) the state at row m has the covariance of the stationary part, so nothing is diffuse; values
missing among these m rows are unknowns with a flat prior, each a column of its own beside the regressors (Ansley & Kohn 1985,
Annals of Statistics 13). An observed row leaves no uncertainty about itself, so that its gradient needs one column a row.

Once the uncertainty left by the past has died out, only a missing value brings it back: until then the gain stands still.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deepforecast.kernels.arima.layout import (
    BETA,
    COVARIANCE,
    EXCESS,
    FOUND,
    FULL_PHI,
    KNOWN,
    MEAN,
    PHI,
    RHO,
    THETA,
    Arrays,
    P,
    Q,
    R,
)  # fmt: skip
from deepforecast.kernels.arima.least_squares import solve_normal
from deepforecast.kernels.arima.presample import stationary
from deepforecast.kernels.compiling import bare, part

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DIED_OUT = 1e-14


@bare
def state_size(form: Ints, delta: Floats) -> int:
    """How many states there are: the order of phi with its differences, or one more than that of theta."""
    return int(max(form[P] + len(delta) - 1, form[Q] + 1))


@bare
def prepare(form: Ints, delta: Floats, data: Floats, vectors: Floats, dense: Floats, states: Floats, square: Floats) -> bool:
    """Polynomials, and the state at row m = len(delta) - 1, given the m rows before. delta: 1 - delta_1 B - ..., by lag."""
    size, m = state_size(form, delta), len(delta) - 1
    for i in range(size):
        vectors[FULL_PHI, i] = vectors[PHI, i + 1] if i < form[P] else 0.0
        vectors[RHO, i] = vectors[THETA, i] if 0 < i <= form[Q] else 1.0 if i == 0 else 0.0
    for step in range(1, m + 1):
        if delta[step] != 0.0:
            vectors[FULL_PHI, step - 1] += delta[step]
            for lag in range(1, form[P] + 1):
                vectors[FULL_PHI, step + lag - 1] -= delta[step] * vectors[PHI, lag]
    if form[R] > 0 and not stationary(form, vectors, dense):
        return False
    for i in range(size):
        for j in range(size):
            square[EXCESS, i, j] = dense[COVARIANCE, i, j] if i < form[R] and j < form[R] else 0.0
    for column in range(len(data)):
        for i in range(size):
            states[KNOWN, column, i] = 0.0
            for lag in range(i + 1, m + 1):
                past = data[column, m + i - lag]
                if delta[lag] != 0.0 and not math.isnan(past):
                    states[KNOWN, column, i] += delta[lag] * past
            mean = states[KNOWN, column, i]
            for lag in range(1, min(i, form[P]) + 1):
                mean -= vectors[PHI, lag] * states[KNOWN, column, i - lag]
            states[MEAN, column, i] = mean
    return True


@bare
def run(size: int, data: Floats, begin: int, arrays: Arrays) -> float:
    """Filter the rows from `begin`; the sum of the logarithms of their variances. A row is seen where data[0] is not NaN.

    Each column's prediction goes to its track, the covariance of the states with the row (by columns) to `against`.
    """
    vectors, tracks, _, _, _, states, square, against = arrays
    logs, product, columns = 0.0, 1.0, len(data)
    quiet = begin < 0  # whether nothing is left of the past's uncertainty; no constant, for which more would be compiled
    for t in range(begin, data.shape[1]):
        for i in range(size):
            against[t, i] = vectors[RHO, i] if quiet else square[EXCESS, i, 0] + vectors[RHO, i]
        seen = not math.isnan(data[0, t])
        variance = against[t, 0]
        for column in range(columns):
            ahead = states[MEAN, column, 0]
            value = data[column, t] if seen else ahead
            tracks[column, t] = ahead
            error = (value - ahead) / variance
            for i in range(size - 1):
                step = against[t, i + 1] * error + vectors[FULL_PHI, i] * value
                states[MEAN, column, i] = states[MEAN, column, i + 1] + step
            states[MEAN, column, size - 1] = vectors[FULL_PHI, size - 1] * value
        if seen:
            product *= variance
            if not 1e-200 < product < 1e200:
                logs += math.log(product)
                product = 1.0
            if not quiet:
                quiet = _pass_seen(size, t, vectors, square, against)
        else:
            _pass_missing(size, t, quiet, vectors, square, against)
            quiet = False
    if quiet:
        for i in range(size):
            for j in range(size):
                square[EXCESS, i, j] = 0.0
    return logs + math.log(product)


@bare
def _pass_seen(size: int, t: int, vectors: Floats, square: Floats, against: Floats) -> bool:
    """The covariance after a row was seen; whether all of it has died out."""
    largest, variance = 0.0, against[t, 0]
    for i in range(size - 1):
        share, rho = against[t, i + 1] / variance, vectors[RHO, i + 1]
        for j in range(size - 1):
            value = square[EXCESS, i + 1, j + 1] + rho * vectors[RHO, j + 1] - share * against[t, j + 1]
            square[EXCESS, i, j] = value
        largest = max(largest, abs(square[EXCESS, i, i]))
    for i in range(size):
        square[EXCESS, i, size - 1] = 0.0
        square[EXCESS, size - 1, i] = 0.0
    return largest < DIED_OUT


@bare
def _pass_missing(size: int, t: int, quiet: bool, vectors: Floats, square: Floats, against: Floats) -> None:
    for i in range(size):
        one = vectors[FULL_PHI, i]
        for j in range(size):
            other = vectors[FULL_PHI, j]
            value = one * other * against[t, 0]
            if j + 1 < size:
                value += one * against[t, j + 1]
            if i + 1 < size:
                value += other * against[t, i + 1]
            if i + 1 < size and j + 1 < size:
                value += vectors[RHO, i + 1] * vectors[RHO, j + 1] + (0.0 if quiet else square[EXCESS, i + 1, j + 1])
            square[EXCESS, i, j] = value


@part
def with_holes(form: Ints, data: Floats, delta: Floats, unknown: int, floor: float, arrays: Arrays) -> float:
    """As `exact`, for columns that are not differenced: the target, `unknown` columns for missing starts, regressors."""
    vectors, tracks, dense, _, gram, states, square, against = arrays
    begin, (columns, rows) = len(delta) - 1, data.shape
    if not prepare(form, delta, data, vectors, dense, states, square):
        return np.inf
    determinant = run(state_size(form, delta), data, begin, arrays)
    count = _sums(data, begin, tracks, gram, against)
    for one in range(unknown):
        for other in range(one + 1):
            gram[1, one, other] = gram[0, one + 1, other + 1]
            gram[1, other, one] = gram[0, one + 1, other + 1]
    solve_normal(gram, columns, vectors)
    for j in range(1, unknown + 1):
        if gram[0, j, j] > 0.0:
            determinant += 2.0 * math.log(gram[0, j, j])
            count -= 1
    squares, errors = 0.0, columns
    for t in range(begin, rows):
        if not math.isnan(data[0, t]):
            error = data[0, t] - tracks[0, t]
            for column in range(1, columns):
                error -= vectors[BETA, column - 1] * (data[column, t] - tracks[column, t])
            tracks[errors, t] = error
            squares += error * error / against[t, 0]
    if count < 1 or not math.isfinite(squares + determinant):
        return np.inf
    total = squares + count * floor
    vectors[FOUND, 0] = squares
    vectors[FOUND, 1] = determinant
    vectors[FOUND, 2] = count
    return 0.5 * (count * math.log(total / count) + determinant)


@part
def _sums(data: Floats, begin: int, tracks: Floats, gram: Floats, against: Floats) -> int:
    """Products of the columns' errors, over their variances; how many rows were seen."""
    columns, rows = data.shape
    count = 0
    for one in range(columns):
        for other in range(columns):
            gram[0, one, other] = 0.0
    for t in range(begin, rows):
        if math.isnan(data[0, t]):
            continue
        count += 1
        for one in range(columns):
            error = (data[one, t] - tracks[one, t]) / against[t, 0]
            for other in range(one + 1):
                gram[0, one, other] += error * (data[other, t] - tracks[other, t])
    return count
