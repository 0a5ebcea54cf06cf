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
    """Statistic, p-value and lags of each test; NaN for series with too few residuals.

    `lags` is reduced to the number of residuals minus 1; None: 10 or two seasons, at most a fifth
    of the residuals. The p-value of constant residuals is 1.
    """
    is_present = ~np.isnan(residuals)
    count = _sums(is_present.astype(np.float64), indptr).astype(np.int64)
    values = _rescale(residuals, indptr)
    n_lags = np.minimum(count // 5, 2 * season if season > 1 else MAX_LAGS) if lags is None else np.minimum(count - 1, lags)
    n_lags = np.maximum(n_lags, 1)
    bounds = np.concatenate([[0], np.cumsum(count)])
    third = np.round(count / 3).astype(np.int64)
    tests = {
        "ljung_box": (*_ljung_box(values, is_present, indptr, count, n_lags), n_lags),
        "heteroscedasticity": (*_heteroscedasticity(values[is_present], bounds, third), third),
        "jarque_bera": (*_jarque_bera(values[is_present], bounds, count), np.zeros(len(count), np.int64)),
    }
    for test, (statistic, p_value, _) in tests.items():
        is_short = count < MIN_RESIDUALS[test]
        statistic[is_short], p_value[is_short] = np.nan, np.nan
    return tests


def _ljung_box(values: Floats, is_present: Any, indptr: Ints, count: Ints, lags: Ints) -> tuple[Floats, Floats]:
    """n (n + 2) sum_k r_k^2 / n_k, with n_k the number of pairs k rows apart."""
    from scipy.special import chdtrc

    lengths, filled = np.diff(indptr), np.where(is_present, values, 0.0)
    mean = _sums(filled, indptr) / np.maximum(count, 1)
    centred = np.where(is_present, values - np.repeat(mean, lengths), 0.0)
    total = _sums(centred * centred, indptr)
    observed, statistic = is_present.astype(np.float64), np.zeros(len(lengths))
    for lag in range(1, int(lags.max(initial=0)) + 1):
        pairs = _lagged_products(observed, indptr, lag)
        correlation = _lagged_products(centred, indptr, lag) / np.where(total > 0, total, 1.0)
        counted = (lag <= lags) & (pairs > 0)
        statistic += np.where(counted, correlation**2 / np.maximum(pairs, 1.0), 0.0)
    statistic *= count * (count + 2.0)
    return statistic, chdtrc(lags.astype(np.float64), statistic)


def _heteroscedasticity(values: Floats, bounds: Ints, third: Ints) -> tuple[Floats, Floats]:
    from scipy.special import fdtr, fdtrc

    squares = values * values
    first = _sums_between(squares, bounds[:-1], bounds[:-1] + third)
    last = _sums_between(squares, bounds[1:] - third, bounds[1:])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((first == 0) & (last == 0), 1.0, last / first)
    is_finite, degrees = np.isfinite(ratio), np.maximum(third, 1).astype(np.float64)
    finite_ratio = np.where(is_finite, ratio, 1.0)
    p_value = 2 * np.minimum(fdtr(degrees, degrees, finite_ratio), fdtrc(degrees, degrees, finite_ratio))
    p_value = np.where((first == 0) & (last == 0), 1.0, np.where(is_finite, p_value, 0.0))
    return ratio, np.minimum(p_value, 1.0)


def _jarque_bera(values: Floats, bounds: Ints, count: Ints) -> tuple[Floats, Floats]:
    from scipy.special import chdtrc

    size = np.maximum(count, 1)
    deviations = values - np.repeat(_sums(values, bounds) / size, count)
    second, third, fourth = (_sums(deviations**power, bounds) / size for power in (2, 3, 4))
    varied = np.where(second > 0, second, 1.0)
    is_constant = second <= 0
    skewness, kurtosis = np.where(is_constant, 0.0, third / varied**1.5), np.where(is_constant, 0.0, fourth / varied**2 - 3)
    statistic = size / 6 * (skewness**2 + kurtosis**2 / 4)
    return statistic, chdtrc(2.0, statistic)


def _rescale(residuals: Floats, indptr: Ints) -> Floats:
    """Scale each series by a power of two: fourth powers neither overflow nor underflow."""
    size = np.where(np.isnan(residuals), 0.0, np.abs(residuals))
    largest = np.zeros(len(indptr) - 1)
    filled = np.flatnonzero(np.diff(indptr) > 0)
    if len(filled):
        largest[filled] = np.maximum.reduceat(size, indptr[:-1][filled])
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
    filled = np.flatnonzero(end > begin)
    if len(filled):
        ends = np.stack([begin[filled], end[filled]], axis=1).reshape(-1)
        sums[filled] = np.add.reduceat(values, ends[:-1] if ends[-1] == len(values) else ends)[::2]
    return sums
