"""Residual tests of many series at once.

- ljung_box: no autocorrelation up to a lag, chi-square with as many degrees of freedom as lags
  (Ljung and Box 1978)
- heteroscedasticity: sum of squares of the last third over that of the first, two-sided F test
  (Harvey 1989, section 5.4)
- jarque_bera: skewness and kurtosis of a normal distribution, chi-square with 2 degrees of freedom
  (Jarque and Bera 1980)

These are `acorr_ljungbox`, `breakvar_heteroskedasticity_test` and `jarque_bera` of statsmodels.
Missing residuals are left out. The autocorrelation at lag k uses the pairs k rows apart and is
weighted by their number (Stoffer and Toloi 1992).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints

TESTS = ("ljung_box", "heteroscedasticity", "jarque_bera")
MAX_LAGS = 10  # without a season
MIN_RESIDUALS = {"ljung_box": 2, "heteroscedasticity": 5, "jarque_bera": 2}  # a test is not defined for fewer


def residual_tests(
    residuals: Floats, indptr: Ints, lags: int | None, season: int = 1
) -> dict[str, tuple[Floats, Floats, Ints]]:
    """Statistics, p-values and lags of all series, by test; NaN for series with too few residuals.

    `lags` is reduced to the number of residuals minus 1; None: 10, or two seasons for seasonal data,
    at most a fifth of the residuals. Lags of the heteroscedasticity test are the residuals in a
    third, those of jarque_bera 0. The p-value of constant residuals is 1.
    """
    is_present = ~np.isnan(residuals)
    n_residuals = _sums(is_present.astype(np.float64), indptr).astype(np.int64)
    values = _rescale(residuals, indptr)
    if lags is None:
        n_lags = np.minimum(n_residuals // 5, 2 * season if season > 1 else MAX_LAGS)
    else:
        n_lags = np.minimum(n_residuals - 1, lags)
    n_lags = np.maximum(n_lags, 1)
    bounds = np.concatenate([[0], np.cumsum(n_residuals)])
    third = np.round(n_residuals / 3).astype(np.int64)
    no_lags = np.zeros(len(n_residuals), np.int64)
    tests = {
        "ljung_box": (*_ljung_box(values, is_present, indptr, n_residuals, n_lags), n_lags),
        "heteroscedasticity": (*_heteroscedasticity(values[is_present], bounds, third), third),
        "jarque_bera": (*_jarque_bera(values[is_present], bounds, n_residuals), no_lags),
    }
    for test, (statistic, p_value, _) in tests.items():
        is_short = n_residuals < MIN_RESIDUALS[test]
        statistic[is_short], p_value[is_short] = np.nan, np.nan
    return tests


def _ljung_box(values: Floats, is_present: Any, indptr: Ints, n_residuals: Ints, n_lags: Ints) -> tuple[Floats, Floats]:
    """Statistic n (n + 2) sum_k r_k^2 / n_k, with n_k the number of pairs k rows apart, and p-value of each series."""
    from scipy.special import chdtrc

    lengths, filled = np.diff(indptr), np.where(is_present, values, 0.0)
    mean = _sums(filled, indptr) / np.maximum(n_residuals, 1)
    centred = np.where(is_present, values - np.repeat(mean, lengths), 0.0)
    squares = _sums(centred * centred, indptr)
    observed, statistic = is_present.astype(np.float64), np.zeros(len(lengths))
    for lag in range(1, int(n_lags.max(initial=0)) + 1):
        n_pairs = _lagged_products(observed, indptr, lag)
        correlation = _lagged_products(centred, indptr, lag) / np.where(squares > 0, squares, 1.0)
        is_used = (lag <= n_lags) & (n_pairs > 0)
        statistic += np.where(is_used, correlation**2 / np.maximum(n_pairs, 1.0), 0.0)
    statistic *= n_residuals * (n_residuals + 2.0)
    return statistic, chdtrc(n_lags.astype(np.float64), statistic)


def _heteroscedasticity(values: Floats, bounds: Ints, third: Ints) -> tuple[Floats, Floats]:
    """Sum of squares of the last third over that of the first, and the p-value of the two-sided F test.

    `third`: number of residuals in a third of each series; `values`: without missing ones.
    """
    from scipy.special import fdtr, fdtrc

    squares = values * values
    first_third = _sums_between(squares, bounds[:-1], bounds[:-1] + third)
    last_third = _sums_between(squares, bounds[1:] - third, bounds[1:])
    are_zero = (first_third == 0) & (last_third == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(are_zero, 1.0, last_third / first_third)
    is_finite, degrees = np.isfinite(ratio), np.maximum(third, 1).astype(np.float64)
    finite_ratio = np.where(is_finite, ratio, 1.0)
    p_value = 2 * np.minimum(fdtr(degrees, degrees, finite_ratio), fdtrc(degrees, degrees, finite_ratio))
    p_value = np.where(are_zero, 1.0, np.where(is_finite, p_value, 0.0))
    return ratio, np.minimum(p_value, 1.0)


def _jarque_bera(values: Floats, bounds: Ints, n_residuals: Ints) -> tuple[Floats, Floats]:
    """Statistic n / 6 (skewness^2 + excess kurtosis^2 / 4), and p-value of each series; 0 and 1 for constants."""
    from scipy.special import chdtrc

    n_at_least_1 = np.maximum(n_residuals, 1)
    deviations = values - np.repeat(_sums(values, bounds) / n_at_least_1, n_residuals)
    second, third, fourth = (_sums(deviations**power, bounds) / n_at_least_1 for power in (2, 3, 4))  # central moments
    variance = np.where(second > 0, second, 1.0)
    is_constant = second <= 0
    skewness = np.where(is_constant, 0.0, third / variance**1.5)
    excess_kurtosis = np.where(is_constant, 0.0, fourth / variance**2 - 3)
    statistic = n_at_least_1 / 6 * (skewness**2 + excess_kurtosis**2 / 4)
    return statistic, chdtrc(2.0, statistic)


def _rescale(residuals: Floats, indptr: Ints) -> Floats:
    """Divide each series by a power of two near its largest residual: fourth powers neither overflow nor underflow."""
    absolute = np.where(np.isnan(residuals), 0.0, np.abs(residuals))
    largest = np.zeros(len(indptr) - 1)
    non_empty = np.flatnonzero(np.diff(indptr) > 0)
    if len(non_empty):
        largest[non_empty] = np.maximum.reduceat(absolute, indptr[:-1][non_empty])
    _, power = np.frexp(largest)
    return np.asarray(np.ldexp(residuals, -np.repeat(power, np.diff(indptr))))


def _lagged_products(values: Floats, indptr: Ints, lag: int) -> Floats:
    """Sum of products of values `lag` rows apart within each series."""
    return _sums_between(values[lag:] * values[:-lag], indptr[:-1], np.maximum(indptr[1:] - lag, indptr[:-1]))


def _sums(values: Floats, indptr: Ints) -> Floats:
    return _sums_between(values, indptr[:-1], indptr[1:])


def _sums_between(values: Floats, begin: Ints, end: Ints) -> Floats:
    """`sum(values[begin[i]:end[i]])` for each i, in row order; 0 if empty."""
    sums = np.zeros(len(begin))
    non_empty = np.flatnonzero(end > begin)
    if len(non_empty):
        bounds = np.stack([begin[non_empty], end[non_empty]], axis=1).reshape(-1)
        sums[non_empty] = np.add.reduceat(values, bounds[:-1] if bounds[-1] == len(values) else bounds)[::2]
    return sums
