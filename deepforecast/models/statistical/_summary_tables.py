"""Parameter table and summary of ARIMA models."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.arrays import effect_columns
from deepforecast.core.state import LearnedState, State
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, format_value
from deepforecast.models.statistical._scaled_series import Order

if TYPE_CHECKING:
    from deepforecast.models.statistical._arma_errors import ArimaFamily

FOURIER_FUNCTIONS = ("cos", "sin")
FACTOR_NAMES = ("ar", "ma", "seasonal_ar", "seasonal_ma")


def parameters(model: ArimaFamily, learned: LearnedState, state: State) -> dict[str, Any]:
    """Columns of `parameters()`: order, log-likelihood, AICc, ARMA coefficients, constant, sigma, and effects."""
    orders = [model._order(row, learned["season"]) for row in learned["order"]]
    columns: dict[str, Any] = {}
    columns["order"] = np.array([format_order(order) for order in orders], dtype=object)
    likelihood, n_parameters, n_observed = learned["likelihood"].T
    columns["log_likelihood"] = likelihood
    n_parameters = n_parameters + 1  # sigma
    with np.errstate(divide="ignore"):
        correction = np.where(
            n_observed > n_parameters + 1, 2 * n_parameters * (n_parameters + 1) / (n_observed - n_parameters - 1), np.inf
        )
    columns["aicc"] = 2 * n_parameters - 2 * likelihood + correction
    columns |= _coefficient_columns(orders, learned["factors"])
    is_drift = np.array([order.n_lost > 0 for order in orders])
    has_constant = np.array([order.constant for order in orders])
    columns["constant"] = np.where(has_constant, np.where(is_drift, learned["beta"][:, 0], learned["level"]), np.nan)
    columns["sigma"] = learned["sigma"]
    beta = learned["beta"][:, 1:]
    fourier_terms = learned.shared.get("fourier_terms", ())
    harmonics = [(length, harmonic) for length, n_harmonics in fourier_terms for harmonic in range(1, n_harmonics + 1)]
    names = [f"{function}{harmonic}_{length}" for length, harmonic in harmonics for function in FOURIER_FUNCTIONS]
    columns |= effect_columns(state, beta[:, : beta.shape[1] - len(names)])
    return columns | {name: beta[:, position - len(names)] for position, name in enumerate(names)}


def format_order(order: Order) -> str:
    """Format an order as (p,d,q)(P,D,Q)[m].

    >>> seasonal = Order((1, 2), 1, (1,), (0, 1, 1), 12, False)
    >>> format_order(seasonal), format_order(Order((), 1, (1, 4), (0, 0, 0), 1, True, (False, True)))
    ('(2,1,1)(0,1,1)[12]', '(0,1,[1,4]) with drift')
    """
    p, q = (
        "[" + ",".join(map(str, lags)) + "]" if is_lag_list else str(len(lags))
        for lags, is_lag_list in zip((order.ar, order.ma), order.lag_lists, strict=True)
    )
    seasonal_p, seasonal_d, seasonal_q = order.seasonal
    seasonal = f"({seasonal_p},{seasonal_d},{seasonal_q})[{order.season}]" if order.season > 1 else ""
    return f"({p},{order.d},{q}){seasonal}" + (f" with {'drift' if order.n_lost else 'mean'}" if order.constant else "")


def summary(model: ArimaFamily, panel: Panel, state: State, unique_id: Any) -> str:
    """statsmodels' summary of a series at the learned parameters.

    A constant is the regressor `constant` or `drift`. Likelihood and criteria are replaced by those
    of `parameters()`: with missing values statsmodels has states for the differences, whose initial
    values count in its likelihood and number of parameters. Raise a `DataError` for a perfect fit.
    """
    from deepforecast.models.statistical._sarimax import sarimax
    from deepforecast.models.statistical._statsmodels_ets import replace_values

    series_index, learned = _series_index(panel, unique_id), state.learned
    if learned["sigma"][series_index] == 0.0:
        raise DataError(
            f"Series {panel.series.label(series_index)} cannot be summarized, because its residuals are all 0.",
            hint="Use parameters() instead.",
        )
    order = model._order(learned["order"][series_index], learned["season"])
    rows = slice(panel.indptr[series_index], panel.indptr[series_index + 1])
    x, y = model._columns(panel, learned)[rows], np.array(panel.y[rows])
    beta = learned["beta"][series_index]
    y[np.isnan(x).any(axis=1)] = np.nan
    used_columns = np.flatnonzero(beta[1:])
    names = [f"x{column + 1}" for column in used_columns]
    columns = [np.nan_to_num(x[:, column]) for column in used_columns]
    coefficients = list(beta[1 + used_columns])
    if order.constant:
        names.insert(0, "drift" if order.n_lost else "constant")
        columns.insert(0, np.arange(float(len(y))) if order.n_lost else np.ones(len(y)))
        coefficients.insert(0, beta[0] if order.n_lost else learned["level"][series_index])
    regressors = np.stack(columns, axis=1) if columns else np.empty((len(y), 0))
    likelihood, n_parameters, n_observed = (float(value) for value in learned["likelihood"][series_index])
    variance = learned["sigma"][series_index] ** 2 * max(n_observed - n_parameters, 1) / n_observed
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about derivatives at the bounds
        space = sarimax(y, regressors, order, differenced=not np.isnan(y).any(), names=names)
        factors = learned["factors"][series_index, : order.n_coefficients]
        statsmodels_summary = space.smooth(np.concatenate([coefficients, factors, [variance]])).summary()
    deviance, n_parameters = -2 * likelihood, n_parameters + 1  # including the variance
    return replace_values(statsmodels_summary, {
        "No. Observations": int(n_observed), "Log Likelihood": likelihood, "AIC": deviance + 2 * n_parameters,
        "BIC": deviance + n_parameters * np.log(n_observed), "HQIC": deviance + 2 * n_parameters * np.log(np.log(n_observed)),
    })  # fmt: skip


def _coefficient_columns(orders: list[Order], factors: Any) -> dict[str, Any]:
    """Columns ar1, ar2, ..., ma1, ..., seasonal_ar1, ... for all lags of all orders, sorted; NaN where an order has none."""
    columns_by_lag: dict[tuple[int, int], Any] = {}
    begin = np.zeros(len(orders), np.int64)
    lags_by_order = [
        (order.ar, order.ma, tuple(range(1, order.seasonal[0] + 1)), tuple(range(1, order.seasonal[2] + 1))) for order in orders
    ]
    for factor, factor_name in enumerate(FACTOR_NAMES):
        lags = [order_lags[factor] for order_lags in lags_by_order]
        for row, lags_of_order in enumerate(lags):
            for position, lag in enumerate(lags_of_order):
                column = columns_by_lag.setdefault((factor, lag), (f"{factor_name}{lag}", np.full(len(orders), np.nan)))
                column[1][row] = factors[row, begin[row] + position]
        begin += np.array([len(lags_of_order) for lags_of_order in lags])
    return {name: values for _, (name, values) in sorted(columns_by_lag.items())}


def _series_index(panel: Panel, unique_id: Any) -> int:
    """Position of a series in the panel; `unique_id` may be None if there is only one."""
    ids: list[Any] = [None] if panel.series.ids is None else list(panel.series.ids)
    if unique_id is None and len(ids) == 1:
        return 0
    if unique_id not in ids:
        raise ParameterError(
            f"`unique_id` must be a series seen in fit, such as {panel.series.label(0)}, got {format_value(unique_id)}.",
            parameter="unique_id",
            value=unique_id,
        )
    return ids.index(unique_id)
