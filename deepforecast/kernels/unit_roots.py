"""Unit root tests for the order of differencing: KPSS, augmented Dickey-Fuller, seasonal strength.

References
----------
Kwiatkowski, Phillips, Schmidt & Shin (1992), Testing the null hypothesis of stationarity against the
alternative of a unit root, *Journal of Econometrics* 54, doi:10.1016/0304-4076(92)90104-Y.
MacKinnon (2010), Critical values for cointegration tests, Queen's Economics Department working paper 1227.
Wang, Smith & Hyndman (2006), Characteristic-based clustering for time series data, *Data Mining and
Knowledge Discovery* 13, doi:10.1007/s10618-005-0039-x.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

KPSS_CRITICAL = 0.463
"""5 % critical value around a level (Kwiatkowski et al. 1992, table 1)."""

ADF_CRITICAL = (-2.86154, -2.8903, -4.234, -40.04)
"""Coefficients of powers of 1 / n of the 5 % critical value with a constant (MacKinnon 2010, table 2)."""

STRONG_SEASON = 0.64
"""Seasonal strength from which on a series is seasonally differenced, as in R's forecast::nsdiffs."""

MIN_VALUES = 5  # shorter series are not tested
MIN_RELATIVE_RANGE = 1e-12  # range over largest absolute value of a series that counts as constant


def kpss(values: Floats, lags: int | None = None) -> float:
    """KPSS statistic around a level; large values are evidence against stationarity.

        sum_t S_t^2 / (n^2 s^2),   S_t: partial sums of the residuals, s^2: long-run variance

    with Bartlett weights over `lags` lags; None: 3 sqrt(n) / 13, as urca::ur.kpss called by
    forecast::ndiffs.

    >>> round(kpss(np.arange(50.0)), 3), round(kpss(np.tile([0.0, 1.0], 25)), 3)
    (2.578, 0.5)
    """
    n = len(values)
    lags = int(3 * np.sqrt(n) / 13) if lags is None else lags
    residuals = values - values.mean()
    long_run_variance = residuals @ residuals / n
    for lag in range(1, lags + 1):
        long_run_variance += 2 / n * (1 - lag / (lags + 1)) * (residuals[lag:] @ residuals[:-lag])
    partial_sums = np.cumsum(residuals)
    sum_of_squares = float(partial_sums @ partial_sums) / n**2
    return float(sum_of_squares / long_run_variance) if long_run_variance > 0 else 0.0


def adf(values: Floats, lags: int | None = None) -> tuple[float, float]:
    """Augmented Dickey-Fuller statistic with a constant, and its 5 % critical value.

    It is the t-ratio of the lagged value in a regression of the differences on it, a constant and `lags`
    lagged differences; values below the critical one reject a unit root. None: (n - 1)^(1/3) lags.
    """
    lags = int((len(values) - 1) ** (1 / 3)) if lags is None else lags
    differences = np.diff(values)
    n_observations = len(differences) - lags
    columns = [
        values[lags:-1],
        np.ones(n_observations),
        *(differences[lags - lag : len(differences) - lag] for lag in range(1, lags + 1)),
    ]
    regressors = np.stack(columns, axis=1)
    inverse = np.linalg.pinv(regressors.T @ regressors, hermitian=True)
    coefficients = inverse @ (regressors.T @ differences[lags:])
    residuals = differences[lags:] - regressors @ coefficients
    slope_variance = inverse[0, 0] * (residuals @ residuals) / max(n_observations - regressors.shape[1], 1)
    critical_value = float(np.polynomial.polynomial.polyval(1 / n_observations, np.array(ADF_CRITICAL)))
    return float(coefficients[0] / np.sqrt(slope_variance)) if slope_variance > 0 else -np.inf, critical_value


def needs_difference(values: Floats, test: str) -> bool:
    """Whether a test ('kpss' or 'adf') at the 5 % level suggests differencing.

    'kpss': stationarity is rejected; 'adf': a unit root is not rejected. False for constant series and
    those of fewer than 5 values.
    """
    value_range = np.ptp(values) if len(values) else 0.0
    if len(values) < MIN_VALUES or not value_range > MIN_RELATIVE_RANGE * np.abs(values).max():
        return False
    if test == "kpss":
        return kpss(values) > KPSS_CRITICAL
    statistic, critical = adf(values)
    return statistic > critical


def count_differences(values: Floats, test: str, max_differences: int) -> int:
    """Number of differences, at most `max_differences`, until the test suggests none; stops at a constant series."""
    n_differences = 0
    while n_differences < max_differences and needs_difference(values, test):
        values = np.diff(values)
        n_differences += 1
    return n_differences


def seasonal_strength(season: Floats, remainder: Floats) -> float:
    """Seasonal strength max(0, 1 - var(remainder) / var(season + remainder)), from 0 to 1; 0 if both are constant."""
    largest_value = float(np.maximum(np.abs(season), np.abs(remainder)).max())
    if not largest_value > 0:
        return 0.0
    season, remainder = season / largest_value, remainder / largest_value
    total_variance = np.var(season + remainder)
    return max(0.0, 1.0 - float(np.var(remainder) / total_variance)) if total_variance > 0 else 0.0
