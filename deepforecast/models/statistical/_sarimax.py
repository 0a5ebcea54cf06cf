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
    """Fit by statsmodels' SARIMAX; complete series are differenced first, incomplete ones start diffuse.

    Sigma has n - k degrees of freedom, like that of the kernels. Raise a `TrainingError` if statsmodels fails.
    """
    variables = series.table(order)
    model = sarimax(variables[0], variables[1:].T, order, differenced=series.is_complete)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about starting values and convergence
        try:
            fit = model.fit(disp=False, maxiter=500)
        except (np.linalg.LinAlgError, ValueError) as error:
            raise TrainingError(
                f"statsmodels cannot estimate the ARIMA model ({type(error).__name__}: {error}).", hint="Use engine='kernels'."
            ) from error
    beta, factors_and_variance = np.split(np.asarray(fit.params, np.float64), [len(variables) - 1])
    factors, variance = factors_and_variance[:-1], float(factors_and_variance[-1])
    n_observed = int((~np.isnan(series.y)).sum()) - order.n_lost
    n_parameters = order.n_coefficients + len(beta)
    sigma = float(np.sqrt(max(variance, 0.0) * n_observed / max(n_observed - n_parameters, 1)))
    return Fit(
        order=order,
        factors=factors,
        point=np.zeros(len(factors)),
        beta=beta,
        sigma=sigma,
        log_likelihood=float(fit.llf) - n_observed * np.log(series.scale),
        n_parameters=n_parameters,
        n_observed=n_observed,
    )


def sarimax(y: Floats, regressors: Floats, order: Order, *, differenced: bool = False, names: Any = None) -> Any:
    """statsmodels' SARIMAX of an order; the constant is one of the `regressors` (rows, columns).

    `differenced`: whether to difference y and regressors first instead of a diffuse initialization;
    `names`: of the regressors, for the summary.
    """
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
    """statsmodels' form of an order: the number of lags, or 0 and 1 for each lag up to the last one in a list."""
    return [int(lag in lags) for lag in range(1, max(lags, default=0) + 1)] if is_lag_list else len(lags)
