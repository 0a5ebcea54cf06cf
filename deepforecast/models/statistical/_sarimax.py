"""SARIMAX of statsmodels. Import this module lazily: it imports statsmodels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from statsmodels.tsa.statespace.sarimax import SARIMAX

from deepforecast.data.frames import Floats
from deepforecast.errors import TrainingError
from deepforecast.models.statistical._scaled_series import Fit, Order, ScaledSeries


def fit_sarimax(series: ScaledSeries, order: Order) -> Fit:
    """Estimate by statsmodels; complete series are differenced first."""
    table = series.table(order)
    model = sarimax(table[0], table[1:].T, order, differenced=series.is_complete)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about starting values and convergence
        try:
            fit = model.fit(disp=False, maxiter=500)
        except (np.linalg.LinAlgError, ValueError) as error:
            raise TrainingError(
                f"statsmodels cannot estimate the ARIMA: {type(error).__name__}: {error}. Use engine='kernels'."
            ) from error
    beta, factors_and_variance = np.split(np.asarray(fit.params, np.float64), [len(table) - 1])
    factors, variance = factors_and_variance[:-1], float(factors_and_variance[-1])
    n_observed = int((~np.isnan(series.y)).sum()) - order.n_lost
    parameters = order.n_coefficients + len(beta)
    sigma = float(np.sqrt(max(variance, 0.0) * n_observed / max(n_observed - parameters, 1)))
    likelihood = float(fit.llf) - n_observed * np.log(series.scale)
    return Fit(order, factors, np.zeros(len(factors)), beta, sigma, likelihood, parameters, n_observed)


def sarimax(y: Floats, regressors: Floats, order: Order, *, differenced: bool = False, names: Any = None) -> Any:
    p, q = (_lag_argument(lags, is_lag_list) for lags, is_lag_list in zip((order.ar, order.ma), order.lag_lists, strict=True))
    seasonal_p, seasonal_d, seasonal_q = order.seasonal
    seasonal = (seasonal_p, seasonal_d, seasonal_q, order.season if any(order.seasonal) else 0)
    x: Any = regressors if regressors.shape[1] else None
    if names is not None and x is not None:
        import pandas as pd

        x = pd.DataFrame(x, columns=names)
    return SARIMAX(
        y,
        x,
        (p, order.d, q),
        seasonal,
        trend=None,
        simple_differencing=differenced,
        enforce_stationarity=not any(order.lag_lists),
        enforce_invertibility=not any(order.lag_lists),
        use_exact_diffuse=not differenced,
    )


def _lag_argument(lags: tuple[int, ...], is_lag_list: bool) -> Any:
    return [int(lag in lags) for lag in range(1, max(lags, default=0) + 1)] if is_lag_list else len(lags)
