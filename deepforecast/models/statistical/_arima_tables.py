"""What an ARIMA has learned, as a frame and as statsmodels' summary."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.state import Learned, State
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, ParameterError, shown
from deepforecast.models.statistical._arima_series import Order
from deepforecast.models.statistical._regressors import effects_of

if TYPE_CHECKING:
    from deepforecast.models.statistical._arima import ArimaFamily

WAVES = ("cos", "sin")
KINDS = ("ar", "ma", "seasonal_ar", "seasonal_ma")


def parameters(model: ArimaFamily, learned: Learned, state: State) -> dict[str, Any]:
    """Columns: order, likelihood, coefficients (NaN where the order has none), constant and sigma."""
    orders = [model._order(row, learned["season"]) for row in learned["order"]]
    columns: dict[str, Any] = {}
    columns["order"] = np.array([text(one) for one in orders], dtype=object)
    likelihood, count, seen = learned["likelihood"].T
    columns["log_likelihood"] = likelihood
    count = count + 1
    with np.errstate(divide="ignore"):
        more = np.where(seen > count + 1, 2 * count * (count + 1) / (seen - count - 1), np.inf)
    columns["aicc"] = 2 * count - 2 * likelihood + more
    columns |= _coefficients(orders, learned["factors"])
    drift = np.array([one.lost > 0 for one in orders])
    has = np.array([one.constant for one in orders])
    columns["constant"] = np.where(has, np.where(drift, learned["beta"][:, 0], learned["level"]), np.nan)
    columns["sigma"] = learned["sigma"]
    beta = learned["beta"][:, 1:]
    waves = learned.shared.get("waves", ())
    names = [f"{wave}{turn + 1}_{length}" for length, most in waves for turn in range(most) for wave in WAVES]
    columns |= effects_of(state, beta[:, : beta.shape[1] - len(names)])
    return columns | {name: beta[:, place - len(names)] for place, name in enumerate(names)}


def text(order: Order) -> str:
    """An order as it is usually written.

    >>> text(Order((1, 2), 1, (1,), (0, 1, 1), 12, False)), text(Order((), 1, (1, 4), (0, 0, 0), 1, True, (False, True)))
    ('(2,1,1)(0,1,1)[12]', '(0,1,[1,4]) with drift')
    """
    p, q = (
        "[" + ",".join(map(str, lags)) + "]" if free else str(len(lags))
        for lags, free in zip((order.ar, order.ma), order.free, strict=True)
    )
    many_p, big_d, many_q = order.seasonal
    seasonal = f"({many_p},{big_d},{many_q})[{order.season}]" if order.season > 1 else ""
    return f"({p},{order.d},{q}){seasonal}" + (f" with {'drift' if order.lost else 'mean'}" if order.constant else "")


def summary(model: ArimaFamily, panel: Panel, state: State, unique_id: Any) -> str:
    """statsmodels' summary of a series at the parameters learned. A constant is the regressor `constant` or `drift`.

    Likelihood and criteria are those of `parameters()`: with missing values statsmodels has a state for the differences, whose
    first values count in its likelihood and its number of parameters.
    """
    from deepforecast.models.statistical._ets_statsmodels import with_values
    from deepforecast.models.statistical._sarimax import sarimax

    number, learned = _number(panel, unique_id), state.learned
    if learned["sigma"][number] == 0.0:
        raise DataError(f"Series {panel.series.label(number)} leaves no errors: there is nothing to sum up.")
    order = model._order(learned["order"][number], learned["season"])
    rows = slice(panel.indptr[number], panel.indptr[number + 1])
    x, beta, y = model._columns(panel, learned)[rows], learned["beta"][number], np.array(panel.y[rows])
    lacking = np.isnan(x).any(axis=1)
    y[lacking] = np.nan
    used = np.flatnonzero(beta[1:])
    names, columns, values = [f"x{one + 1}" for one in used], [np.nan_to_num(x[:, one]) for one in used], list(beta[1 + used])
    if order.constant:
        names.insert(0, "drift" if order.lost else "constant")
        columns.insert(0, np.arange(float(len(y))) if order.lost else np.ones(len(y)))
        values.insert(0, beta[0] if order.lost else learned["level"][number])
    table = np.stack(columns, axis=1) if columns else np.empty((len(y), 0))
    likelihood, parameters, seen = (float(value) for value in learned["likelihood"][number])
    variance = learned["sigma"][number] ** 2 * max(seen - parameters, 1) / seen
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of derivatives at the bounds
        space = sarimax(y, table, order, differenced=not np.isnan(y).any(), names=names)
        factors = learned["factors"][number, : order.coefficients]
        found = space.smooth(np.concatenate([values, factors, [variance]])).summary()
    deviance, count = -2 * likelihood, parameters + 1  # with the variance
    return with_values(found, {
        "No. Observations": int(seen), "Log Likelihood": likelihood, "AIC": deviance + 2 * count,
        "BIC": deviance + count * np.log(seen), "HQIC": deviance + 2 * count * np.log(np.log(seen)),
    })  # fmt: skip


def _coefficients(orders: list[Order], factors: Any) -> dict[str, Any]:
    """Columns ar1, ar2 ..., as many as the longest order has."""
    found: dict[tuple[int, int], Any] = {}
    begin = np.zeros(len(orders), np.int64)
    for place, kind in enumerate(KINDS):
        lags = [
            one.ar if place == 0 else one.ma if place == 1 else tuple(range(1, one.seasonal[0 if place == 2 else 2] + 1))
            for one in orders
        ]
        for row, each in enumerate(lags):
            for many, lag in enumerate(each):
                column = found.setdefault((place, lag), (f"{kind}{lag}", np.full(len(orders), np.nan)))
                column[1][row] = factors[row, begin[row] + many]
        begin += np.array([len(each) for each in lags])
    return {name: values for _, (name, values) in sorted(found.items())}


def _number(panel: Panel, unique_id: Any) -> int:
    ids: list[Any] = [None] if panel.series.ids is None else list(panel.series.ids)
    if unique_id is None and len(ids) == 1:
        return 0
    if unique_id not in ids:
        raise ParameterError(f"unique_id names a series of the fit, as {panel.series.label(0)}; got {shown(unique_id)}.")
    return ids.index(unique_id)
