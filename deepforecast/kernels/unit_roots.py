"""Unit root tests for the order of differencing: KPSS, Dickey-Fuller, seasonal strength."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

KPSS_CRITICAL = 0.463
"""5 % point around a level (Kwiatkowski, Phillips, Schmidt & Shin 1992, Journal of Econometrics 54, table 1)."""

ADF_CRITICAL = (-2.86154, -2.8903, -4.234, -40.04)
"""5 % point with a constant, in powers of 1 / n (MacKinnon 2010, Queen's Economics Department working paper 1227)."""

STRONG_SEASON = 0.64
"""A season of at least this strength is differenced (Wang, Smith & Hyndman 2006; the limit of forecast::nsdiffs)."""


def kpss(values: Floats, lags: int | None = None) -> float:
    """The KPSS statistic around a level, with Bartlett weights over `lags` lags (3 sqrt(n) / 13 if not given, as in
    urca::ur.kpss called by forecast::ndiffs).

    >>> round(kpss(np.arange(50.0)), 3), round(kpss(np.tile([0.0, 1.0], 25)), 3)
    (2.578, 0.5)
    """
    n = len(values)
    lags = int(3 * np.sqrt(n) / 13) if lags is None else lags
    residuals = values - values.mean()
    variance = residuals @ residuals / n
    for lag in range(1, lags + 1):
        variance += 2 / n * (1 - lag / (lags + 1)) * (residuals[lag:] @ residuals[:-lag])
    partial = np.cumsum(residuals)
    total = float(partial @ partial) / n**2
    return float(total / variance) if variance > 0 else 0.0


def adf(values: Floats, lags: int | None = None) -> tuple[float, float]:
    """Augmented Dickey-Fuller statistic with a constant, and its 5 % critical value.

    The default of `lags` is (n - 1)^(1/3).
    """
    lags = int((len(values) - 1) ** (1 / 3)) if lags is None else lags
    change = np.diff(values)
    rows = len(change) - lags
    columns = [values[lags:-1], np.ones(rows), *(change[lags - lag : len(change) - lag] for lag in range(1, lags + 1))]
    matrix = np.stack(columns, axis=1)
    inverse = np.linalg.pinv(matrix.T @ matrix, hermitian=True)
    coefficients = inverse @ (matrix.T @ change[lags:])
    residuals = change[lags:] - matrix @ coefficients
    slope_variance = inverse[0, 0] * (residuals @ residuals) / max(rows - matrix.shape[1], 1)
    critical = float(np.polynomial.polynomial.polyval(1 / rows, np.array(ADF_CRITICAL)))
    return float(coefficients[0] / np.sqrt(slope_variance)) if slope_variance > 0 else -np.inf, critical


def needs_difference(values: Floats, test: str) -> bool:
    """Whether a test ("kpss" or "adf") suggests differencing at the 5 % level."""
    value_range = np.ptp(values) if len(values) else 0.0
    if len(values) < 5 or not value_range > 1e-12 * np.abs(values).max():
        return False
    if test == "kpss":
        return kpss(values) > KPSS_CRITICAL
    statistic, critical = adf(values)
    return statistic > critical


def count_differences(values: Floats, test: str, max_differences: int) -> int:
    """Number of differences until the test suggests none; stops at a constant series."""
    count = 0
    while count < max_differences and needs_difference(values, test):
        values = np.diff(values)
        count += 1
    return count


def seasonal_strength(season: Floats, remainder: Floats) -> float:
    """Seasonal strength max(0, 1 - var(remainder) / var(season + remainder)), 0 to 1."""
    largest = float(np.maximum(np.abs(season), np.abs(remainder)).max())
    if not largest > 0:
        return 0.0
    season, remainder = season / largest, remainder / largest
    total_variance = np.var(season + remainder)
    return max(0.0, 1.0 - float(np.var(remainder) / total_variance)) if total_variance > 0 else 0.0
