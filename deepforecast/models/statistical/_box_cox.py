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

GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0  # ratio of the golden-section search
MAX_ITERATIONS = 40  # of the golden-section search
N_NODES = 64  # of the Gauss-Legendre quadrature
INTEGRATION_RANGE = 9.0  # standard deviations around the peak of the integrand
MIDDLE_QUANTILE, MIDDLE_PROBABILITY = 2.5758293035489004, 0.99
"""Half-width and probability of the central part of a normal distribution used for negative powers."""


def transform(y: Floats, power: Any, *, inverse: bool = False) -> Floats:
    """Box-Cox transformation: (y^power - 1) / power, log(y) if the power is 0, y if it is NaN; or its inverse.

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
    """Mean of back-transformed normal variables with these means and standard deviations.

    By formula for logarithms, else by quadrature. Values below the range of the transformation count
    as 0. With a negative power, for which the mean does not exist, it is the mean of the central 99 %.
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
    """Integrate (power (mean + deviation z) + 1)^(1 / power) over the normal density of z, by Gauss-Legendre quadrature.

    For positive powers around the peak of the integrand, for negative ones over the central 99 %, divided by 0.99.
    """
    nodes, weight = np.polynomial.legendre.leggauss(N_NODES)
    intercept, slope = power * mean + 1.0, power * deviation  # the base of the power is intercept + slope z
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(intercept**2 + 4.0 * slope * deviation, 0.0))
        # The positive root of slope z^2 + intercept z - deviation = 0, without cancellation.
        peak = np.where(intercept > 0.0, 2.0 * deviation / (intercept + root), (root - intercept) / (2.0 * slope))
        low = np.where(power > 0.0, np.maximum(peak - INTEGRATION_RANGE, -intercept / slope), -MIDDLE_QUANTILE)
        high = np.where(power > 0.0, np.maximum(peak, low) + INTEGRATION_RANGE, MIDDLE_QUANTILE)
        z = 0.5 * (high + low)[:, None] + 0.5 * (high - low)[:, None] * nodes
        base = slope[:, None] * z + intercept[:, None]
        log_integrand = np.log(np.maximum(base, 0.0)) / power[:, None] - 0.5 * z**2
        largest = log_integrand.max(axis=1)
        integral = (weight * np.exp(log_integrand - largest[:, None])).sum(axis=1) * 0.5 * (high - low)
        probability = np.where(power > 0.0, 1.0, MIDDLE_PROBABILITY)
        log_mean = largest + np.log(integral / (probability * np.sqrt(2.0 * np.pi)))
        return np.asarray(np.where(np.isfinite(largest), np.exp(log_mean), np.exp(largest)))


def refuse_infinite(values: Floats, learned: LearnedState) -> Floats:
    """Return back-transformed forecasts; raise a `DataError` if any is infinite."""
    infinite_series = np.flatnonzero(~np.isnan(learned["power"]) & np.isinf(values).any(axis=tuple(range(1, values.ndim))))
    if len(infinite_series) and learned.series is not None:
        raise DataError(
            "Forecasts must be finite, but inverting the Box-Cox transformation gives infinite values for series "
            f"{learned.series.labels(infinite_series)} (power {learned['power'][infinite_series[0]]:.3g}).",
            hint="Set box_cox=0 or above (or 'auto'), use a shorter horizon, or drop these series.",
            series=learned.series.id_texts(infinite_series),
        )
    return values


def guerrero(y: Floats, indptr: Ints, season: int) -> Floats:
    """Power of each series in [0, 1] by Guerrero's method, with a golden-section search.

    It minimizes the coefficient of variation of deviation / mean^(1 - power) over blocks of one
    season (at least 2 rows), aligned with the end of the series. 1 if there are fewer than two
    complete blocks.
    """
    means, deviations, block_series = _block_moments(y, indptr, max(season, 2))

    def variation(power: Floats) -> Floats:
        return _coefficient_of_variation(power, means, deviations, block_series)

    n_series = len(indptr) - 1
    low, high = np.zeros(n_series), np.ones(n_series)
    for _ in range(MAX_ITERATIONS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        left_is_better = variation(left) <= variation(right)
        low, high = np.where(left_is_better, low, left), np.where(left_is_better, right, high)
    candidates = np.stack([np.zeros(n_series), np.ones(n_series), 0.5 * (low + high)])
    best_candidate = np.argmin([variation(candidate) for candidate in candidates], axis=0)
    optimum = candidates[best_candidate, np.arange(n_series)]
    return np.where(np.bincount(block_series, minlength=n_series) >= 2, optimum, 1.0)


def _block_moments(y: Floats, indptr: Ints, block_length: int) -> tuple[Floats, Floats, Ints]:
    """Mean and standard deviation of each block without missing values, and the index of its series.

    Values are divided by the mean of their series; blocks are aligned with the end of the series.
    """
    n_blocks = np.diff(indptr) // block_length
    first_row = indptr[1:] - n_blocks * block_length
    block_in_series = np.arange(n_blocks.sum()) - np.repeat(np.cumsum(n_blocks) - n_blocks, n_blocks)
    begin = np.repeat(first_row, n_blocks) + block_length * block_in_series
    block_series = np.repeat(np.arange(len(n_blocks)), n_blocks)
    values = y[begin[:, None] + np.arange(block_length)]
    is_complete = ~np.isnan(values).any(axis=1)
    values, block_series = values[is_complete], block_series[is_complete]
    series_mean = np.add.reduceat(np.where(np.isnan(y), 0.0, y), indptr[:-1]) / np.maximum(np.diff(indptr), 1)
    values = values / series_mean[block_series][:, None]
    return values.mean(axis=1), values.std(axis=1, ddof=1), block_series


def _coefficient_of_variation(power: Floats, means: Floats, deviations: Floats, block_series: Ints) -> Floats:
    """Coefficient of variation of deviation / mean^(1 - power) over the blocks of each series; 0 without blocks."""
    n_series = len(power)
    ratio = deviations / means ** (1.0 - power[block_series])
    n_blocks = np.maximum(np.bincount(block_series, minlength=n_series), 2)
    mean_ratio = np.bincount(block_series, ratio, n_series) / n_blocks
    variance = np.bincount(block_series, (ratio - mean_ratio[block_series]) ** 2, n_series) / (n_blocks - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean_ratio > 0, np.sqrt(variance) / mean_ratio, 0.0)
