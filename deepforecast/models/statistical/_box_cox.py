"""The Box-Cox transformation and the choice of its power.

Box, G. E. P. and Cox, D. R. (1964). An analysis of transformations. *Journal of the Royal
Statistical Society B* 26. Guerrero, V. M. (1993). Time-series analysis supported by power
transformations. *Journal of Forecasting* 12.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.frames import Floats, Ints
from deepforecast.errors import DataError

GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
MAX_ITERATIONS = 40
N_NODES = 64  # of the Gauss-Legendre quadrature
INTEGRATION_RANGE = 9.0  # standard deviations around the peak of the integrand
MIDDLE_QUANTILE, MIDDLE_PROBABILITY = 2.5758293035489004, 0.99
"""Half-width of the central part of a normal distribution, and its probability."""


def transform(y: Floats, power: Any, *, inverse: bool = False) -> Floats:
    """(y^power - 1) / power, log(y) if the power is 0, y if it is NaN; or the inverse of this.

    The inverse is 0 below the range of the transformation, and infinite above it.
    """
    power = np.broadcast_to(power, y.shape)
    if np.isnan(power).all():
        return y
    with np.errstate(all="ignore"):
        safe_power = np.where(power == 0.0, 1.0, power)
        if inverse:
            base = np.where(np.isnan(y), np.nan, np.maximum(safe_power * y + 1.0, 0.0))
            values = np.where(power == 0.0, np.exp(y), base ** (1.0 / safe_power))
        else:
            values = np.where(power == 0.0, np.log(y), (y**safe_power - 1.0) / safe_power)
    return np.asarray(np.where(np.isnan(power), y, values))


def bias_adjusted_mean(mean: Floats, deviation: Floats, power: Floats) -> Floats:
    """Mean of back-transformed normal values: by formula for logarithms, else by quadrature.

    Values below the range count as 0. With a negative power the mean does not exist; then it is the
    mean of the central 99 %.
    """
    shape = np.broadcast_shapes(mean.shape, deviation.shape, power.shape)
    mean, deviation, power = (np.broadcast_to(array, shape) for array in (mean, deviation, power))
    means = np.array(transform(mean, power, inverse=True), np.float64)
    is_transformed = ~np.isnan(power) & (deviation > 0.0) & np.isfinite(mean)
    exponential = is_transformed & (power == 0.0)
    with np.errstate(all="ignore"):
        means[exponential] = np.exp(mean[exponential] + 0.5 * deviation[exponential] ** 2)
    other_powers = is_transformed & (power != 0.0)
    means[other_powers] = _integrate_mean(mean[other_powers], deviation[other_powers], power[other_powers])
    return means


def _integrate_mean(mean: Floats, deviation: Floats, power: Floats) -> Floats:
    """Integrate (power (mean + deviation z) + 1)^(1 / power) over the normal density of z."""
    nodes, weight = np.polynomial.legendre.leggauss(N_NODES)
    edge, slope = power * mean + 1.0, power * deviation
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(edge**2 + 4.0 * slope * deviation, 0.0))
        peak = np.where(edge > 0.0, 2.0 * deviation / (edge + root), (root - edge) / (2.0 * slope))
        low = np.where(power > 0.0, np.maximum(peak - INTEGRATION_RANGE, -edge / slope), -MIDDLE_QUANTILE)
        high = np.where(power > 0.0, np.maximum(peak, low) + INTEGRATION_RANGE, MIDDLE_QUANTILE)
        z = 0.5 * (high + low)[:, None] + 0.5 * (high - low)[:, None] * nodes
        argument = slope[:, None] * z + edge[:, None]
        logs = np.log(np.maximum(argument, 0.0)) / power[:, None] - 0.5 * z**2
        largest = logs.max(axis=1)
        total = (weight * np.exp(logs - largest[:, None])).sum(axis=1) * 0.5 * (high - low)
        mass = np.where(power > 0.0, 1.0, MIDDLE_PROBABILITY)
        return np.asarray(
            np.where(np.isfinite(largest), np.exp(largest + np.log(total / (mass * np.sqrt(2.0 * np.pi)))), np.exp(largest))
        )


def refuse_infinite(values: Floats, learned: LearnedState) -> Floats:
    """Return back-transformed forecasts if they are finite; else raise a `DataError`."""
    infinite_series = np.flatnonzero(~np.isnan(learned["power"]) & np.isinf(values).any(axis=tuple(range(1, values.ndim))))
    if len(infinite_series) and learned.series is not None:
        raise DataError(
            f"Forecasts must be finite; those of series {learned.series.labels(infinite_series)} are not after inverting "
            f"the Box-Cox transformation with power {learned['power'][infinite_series[0]]:.3g}. Use box_cox=0 or above (or "
            "'auto'), leave these series out, or use a shorter horizon."
        )
    return values


def guerrero(y: Floats, indptr: Ints, season: int) -> Floats:
    """Guerrero's choice of the power in [0, 1], by golden-section search.

    Minimizes the coefficient of variation of deviation / mean^(1 - power) over blocks of one season
    (at least 2 rows), aligned with the end of the series. 1 if there are fewer than two blocks.
    """
    length = max(season, 2)
    means, deviations, owner = _block_moments(y, indptr, length)
    number = len(indptr) - 1
    low, high = np.zeros(number), np.ones(number)
    for _ in range(MAX_ITERATIONS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        left_is_better = _coefficient_of_variation(left, means, deviations, owner) <= _coefficient_of_variation(
            right, means, deviations, owner
        )
        low, high = np.where(left_is_better, low, left), np.where(left_is_better, right, high)
    optimum = 0.5 * (low + high)
    ends = np.stack([np.zeros(number), np.ones(number), optimum])
    best = ends[
        np.argmin([_coefficient_of_variation(candidate, means, deviations, owner) for candidate in ends], axis=0),
        np.arange(number),
    ]
    return np.where(np.bincount(owner, minlength=number) >= 2, best, 1.0)


def _block_moments(y: Floats, indptr: Ints, length: int) -> tuple[Floats, Floats, Ints]:
    """Mean and deviation of each complete block, relative to the mean of the series; its series."""
    rows = np.diff(indptr) // length
    first = indptr[1:] - rows * length
    begin = np.repeat(first, rows) + length * (np.arange(rows.sum()) - np.repeat(np.cumsum(rows) - rows, rows))
    owner = np.repeat(np.arange(len(rows)), rows)
    values = y[begin[:, None] + np.arange(length)]
    is_complete = ~np.isnan(values).any(axis=1)
    values, owner = values[is_complete], owner[is_complete]
    size = np.add.reduceat(np.where(np.isnan(y), 0.0, y), indptr[:-1]) / np.maximum(np.diff(indptr), 1)
    values = values / size[owner][:, None]
    return values.mean(axis=1), values.std(axis=1, ddof=1), owner


def _coefficient_of_variation(power: Floats, means: Floats, deviations: Floats, owner: Ints) -> Floats:
    """The coefficient of variation of deviation / mean^(1 - power) of each series."""
    number = len(power)
    ratio = deviations / means ** (1.0 - power[owner])
    count = np.maximum(np.bincount(owner, minlength=number), 2)
    mean_ratio = np.bincount(owner, ratio, number) / count
    square = np.bincount(owner, (ratio - mean_ratio[owner]) ** 2, number) / (count - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean_ratio > 0, np.sqrt(square) / mean_ratio, 0.0)
