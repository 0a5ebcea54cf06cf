"""statsmodels' SARIMAX of one series: its estimates for our filter, and its summary. Imported where it is called."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from statsmodels.tsa.statespace.sarimax import SARIMAX

from deepforecast.data.frames import Floats
from deepforecast.errors import TrainingError
from deepforecast.models.statistical._arima_series import Fit, Order, Series


def fitted(series: Series, order: Order) -> Fit:
    """Estimated by statsmodels, on the values differenced where nothing is missing."""
    table = series.table(order)
    model = sarimax(table[0], table[1:].T, order, differenced=series.whole)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # on its starting values; whether it converged shows in the likelihood
        try:
            result = model.fit(disp=False, maxiter=500)
        except (np.linalg.LinAlgError, ValueError) as error:
            raise TrainingError(f"statsmodels found no ARIMA of a series: {type(error).__name__}: {error}.") from error
    beta, rest = np.split(np.asarray(result.params, np.float64), [len(table) - 1])
    factors, variance = rest[:-1], float(rest[-1])
    seen = int((~np.isnan(series.y)).sum()) - order.lost
    parameters = order.coefficients + len(beta)
    sigma = float(np.sqrt(max(variance, 0.0) * seen / max(seen - parameters, 1)))
    likelihood = float(result.llf) - seen * np.log(series.scale)
    return Fit(order, factors, np.zeros(len(factors)), beta, sigma, likelihood, parameters, seen)


def sarimax(y: Floats, regressors: Floats, order: Order, *, differenced: bool = False, names: Any = None) -> Any:
    """statsmodels' model of a series."""
    p, q = (_lags(lags, free) for lags, free in zip((order.ar, order.ma), order.free, strict=True))
    many_p, big_d, many_q = order.seasonal
    seasonal = (many_p, big_d, many_q, order.season if any(order.seasonal) else 0)
    x: Any = regressors if regressors.shape[1] else None
    if names is not None and x is not None:
        import pandas as pd

        x = pd.DataFrame(x, columns=names)
    return SARIMAX(
        y, x, (p, order.d, q), seasonal, trend=None, simple_differencing=differenced, enforce_stationarity=not any(order.free),
        enforce_invertibility=not any(order.free), use_exact_diffuse=not differenced,
    )  # fmt: skip


def _lags(lags: tuple[int, ...], free: bool) -> Any:
    return [int(lag in lags) for lag in range(1, max(lags, default=0) + 1)] if free else len(lags)
