"""Parameter table and summary of ARIMA models."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.state import LearnedState, State
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, format_value
from deepforecast.models.statistical._regressors import effect_columns
from deepforecast.models.statistical._scaled_series import Order

if TYPE_CHECKING:
    from deepforecast.models.statistical._arma_errors import ArimaFamily

FOURIER_FUNCTIONS = ("cos", "sin")
FACTOR_NAMES = ("ar", "ma", "seasonal_ar", "seasonal_ma")


def parameters(model: ArimaFamily, learned: LearnedState, state: State) -> dict[str, Any]:
    """Columns of `parameters()`: order, likelihood, coefficients, constant and sigma."""
    orders = [model._order(row, learned["season"]) for row in learned["order"]]
    columns: dict[str, Any] = {}
    columns["order"] = np.array([format_order(order) for order in orders], dtype=object)
    likelihood, count, n_observed = learned["likelihood"].T
    columns["log_likelihood"] = likelihood
    count = count + 1
    with np.errstate(divide="ignore"):
        correction = np.where(n_observed > count + 1, 2 * count * (count + 1) / (n_observed - count - 1), np.inf)
    columns["aicc"] = 2 * count - 2 * likelihood + correction
    columns |= _coefficient_columns(orders, learned["factors"])
    drift = np.array([order.n_lost > 0 for order in orders])
    has_constant = np.array([order.constant for order in orders])
    columns["constant"] = np.where(has_constant, np.where(drift, learned["beta"][:, 0], learned["level"]), np.nan)
    columns["sigma"] = learned["sigma"]
    beta = learned["beta"][:, 1:]
    fourier_terms = learned.shared.get("waves", ())
    harmonics = [(length, harmonic + 1) for length, count in fourier_terms for harmonic in range(count)]
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

    A constant is the regressor `constant` or `drift`. Likelihood and criteria are those of
    `parameters()`: with missing values statsmodels has states for the differences, whose initial
    values count in its likelihood and number of parameters.
    """
    from deepforecast.models.statistical._sarimax import sarimax
    from deepforecast.models.statistical._statsmodels_ets import replace_values

    number, learned = _series_index(panel, unique_id), state.learned
    if learned["sigma"][number] == 0.0:
        raise DataError(f"A summary cannot be made of series {panel.series.label(number)}, whose fit has no residuals.")
    order = model._order(learned["order"][number], learned["season"])
    rows = slice(panel.indptr[number], panel.indptr[number + 1])
    x, beta, y = model._columns(panel, learned)[rows], learned["beta"][number], np.array(panel.y[rows])
    lacking = np.isnan(x).any(axis=1)
    y[lacking] = np.nan
    used_columns = np.flatnonzero(beta[1:])
    names = [f"x{column + 1}" for column in used_columns]
    columns, values = [np.nan_to_num(x[:, column]) for column in used_columns], list(beta[1 + used_columns])
    if order.constant:
        names.insert(0, "drift" if order.n_lost else "constant")
        columns.insert(0, np.arange(float(len(y))) if order.n_lost else np.ones(len(y)))
        values.insert(0, beta[0] if order.n_lost else learned["level"][number])
    table = np.stack(columns, axis=1) if columns else np.empty((len(y), 0))
    likelihood, parameters, n_observed = (float(value) for value in learned["likelihood"][number])
    variance = learned["sigma"][number] ** 2 * max(n_observed - parameters, 1) / n_observed
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about derivatives at the bounds
        space = sarimax(y, table, order, differenced=not np.isnan(y).any(), names=names)
        factors = learned["factors"][number, : order.n_coefficients]
        statsmodels_summary = space.smooth(np.concatenate([values, factors, [variance]])).summary()
    deviance, count = -2 * likelihood, parameters + 1  # including the variance
    return replace_values(statsmodels_summary, {
        "No. Observations": int(n_observed), "Log Likelihood": likelihood, "AIC": deviance + 2 * count,
        "BIC": deviance + count * np.log(n_observed), "HQIC": deviance + 2 * count * np.log(np.log(n_observed)),
    })  # fmt: skip


def _coefficient_columns(orders: list[Order], factors: Any) -> dict[str, Any]:
    """Columns ar1, ar2, ... for all lags of all orders."""
    columns_by_lag: dict[tuple[int, int], Any] = {}
    begin = np.zeros(len(orders), np.int64)
    for factor, factor_name in enumerate(FACTOR_NAMES):
        lags = [
            order.ar
            if factor == 0
            else order.ma
            if factor == 1
            else tuple(range(1, order.seasonal[0 if factor == 2 else 2] + 1))
            for order in orders
        ]
        for row, lags_of_order in enumerate(lags):
            for position, lag in enumerate(lags_of_order):
                column = columns_by_lag.setdefault((factor, lag), (f"{factor_name}{lag}", np.full(len(orders), np.nan)))
                column[1][row] = factors[row, begin[row] + position]
        begin += np.array([len(lags_of_order) for lags_of_order in lags])
    return {name: values for _, (name, values) in sorted(columns_by_lag.items())}


def _series_index(panel: Panel, unique_id: Any) -> int:
    ids: list[Any] = [None] if panel.series.ids is None else list(panel.series.ids)
    if unique_id is None and len(ids) == 1:
        return 0
    if unique_id not in ids:
        raise ParameterError(
            f"`unique_id` must be a series of the fit, such as {panel.series.label(0)}, got {format_value(unique_id)}."
        )
    return ids.index(unique_id)
