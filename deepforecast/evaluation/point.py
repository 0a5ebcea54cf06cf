"""Metrics of point forecasts.

The functions return a float for one-dimensional arrays and an array for leading axes (series in
both, models in the forecast). Points without an actual value (NaN) are left out;
`METRICS[name].by_group` counts them. Missing or infinite forecasts raise `DataError`. An undefined
metric is NaN. Everything is computed in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepforecast.errors import ParameterError, format_value
from deepforecast.evaluation.metric_classes import CompositeMetric, PointMetric
from deepforecast.evaluation.metric_inputs import to_float64
from deepforecast.evaluation.scale import nan_where_zero

Array = NDArray[np.float64]
SMALLEST_POSITIVE = 5e-324  # the smallest (subnormal) float64 above 0


def mae(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Mean absolute error, in units of the target; minimized by the median.

    Over a panel, series on a large scale dominate.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    forecast : array-like
        Point forecasts with the shape of `actual`, optionally with leading axes.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> mae([10.0, 20.0], [12.0, 19.0])
    1.5
    """
    return MAE(actual, forecast=forecast)


def rmse(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Root mean squared error, in units of the target; minimized by the mean.

    It is dominated by large errors.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    forecast : array-like
        Point forecasts with the shape of `actual`, optionally with leading axes.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> rmse([1.0, 2.0], [8.0, 3.0])
    5.0
    """
    return RMSE(actual, forecast=forecast)


def mse(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Mean squared error, in squared units of the target; minimized by the mean.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    forecast : array-like
        Point forecasts with the shape of `actual`, optionally with leading axes.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> mse([1.0, 2.0], [8.0, 3.0])
    25.0
    """
    return MSE(actual, forecast=forecast)


def bias(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Mean error, forecast minus actual; positive if forecasts are too high.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    forecast : array-like
        Point forecasts with the shape of `actual`, optionally with leading axes.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> bias([10.0, 20.0], [12.0, 19.0])
    0.5
    """
    return BIAS(actual, forecast=forecast)


def relative_bias(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Sum of the errors over the sum of the absolute actual values, as a fraction; positive if
    forecasts are too high.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    forecast : array-like
        Point forecasts with the shape of `actual`, optionally with leading axes.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> relative_bias([10.0, 30.0], [12.0, 32.0])
    0.1
    """
    return RELATIVE_BIAS(actual, forecast=forecast)


def mape(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Mean absolute percentage error, as a fraction; favours forecasts that are too low.

    Points with an actual value of zero are left out.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    forecast : array-like
        Point forecasts with the shape of `actual`, optionally with leading axes.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> mape([10.0, 20.0, 0.0], [12.0, 19.0, 1.0])
    0.125
    """
    return MAPE(actual, forecast=forecast)


def smape(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Symmetric MAPE of the M4 competition in percent, from 0 to 200: the mean of 200 |a - f| /
    (|a| + |f|).

    It favours forecasts that are too high over ones that are too low. A point where both are zero
    counts as 0.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    forecast : array-like
        Point forecasts with the shape of `actual`, optionally with leading axes.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> smape([10.0, 0.0], [30.0, 0.0])
    50.0
    """
    return SMAPE(actual, forecast=forecast)


def wape(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Sum of the absolute errors over the sum of the absolute actual values, as a fraction;
    minimized by the median.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    forecast : array-like
        Point forecasts with the shape of `actual`, optionally with leading axes.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> wape([10.0, 30.0], [12.0, 28.0])
    0.1
    """
    return WAPE(actual, forecast=forecast)


def mase(actual: ArrayLike, forecast: ArrayLike, scale: ArrayLike) -> Any:
    """Mean absolute scaled error: the MAE over the seasonal naive MAE in the training data
    (`seasonal_scale`).

    Minimized by the median; all series weigh the same. NaN where the scale is zero or NaN, that is
    for training series that are constant or too short. Hyndman, Koehler (2006),
    doi:10.1016/j.ijforecast.2006.03.001.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    forecast : array-like
        Point forecasts with the shape of `actual`, optionally with leading axes.
    scale : array-like
        Seasonal naive error of each forecast, see `seasonal_scale`.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> from deepforecast.evaluation.metrics import seasonal_scale
    >>> mase([10.0, 20.0], [12.0, 19.0], scale=seasonal_scale([1.0, 3.0, 2.0, 5.0], 1))
    0.75
    """
    return MASE(actual, forecast=forecast, scale=scale)


def rmsse(actual: ArrayLike, forecast: ArrayLike, squared_scale: ArrayLike) -> Any:
    """Root mean squared scaled error, relative to `seasonal_scale(..., squared=True)`; minimized by
    the mean.

    Parameters
    ----------
    actual : array-like
        Actual values; NaN where missing. The last axis is time.
    forecast : array-like
        Point forecasts with the shape of `actual`, optionally with leading axes.
    squared_scale : array-like
        Squared seasonal naive error of each forecast, see `seasonal_scale`.

    Returns
    -------
    float or array
        One number, or an array over the leading axes.

    Examples
    --------
    >>> from deepforecast.evaluation.metrics import seasonal_scale
    >>> rmsse([10.0, 20.0], [13.0, 17.0], squared_scale=seasonal_scale([1.0, 3.0, 5.0], 1, squared=True))
    1.5
    """
    return RMSSE(actual, forecast=forecast, squared_scale=squared_scale)


def owa(smape: ArrayLike, mase: ArrayLike, smape_reference: ArrayLike, mase_reference: ArrayLike) -> Any:
    """Overall weighted average of the M4 competition: the mean of sMAPE and MASE relative to a
    reference (Naive2).

    The arguments are totals over all series; the mean of OWAs by series is a different number. 1 is
    as good as the reference; minimized by the median. NaN where a reference is zero. Makridakis et
    al. (2020), doi:10.1016/j.ijforecast.2019.04.014.

    Parameters
    ----------
    smape : array-like
        sMAPE of the model over all series.
    mase : array-like
        MASE of the model over all series.
    smape_reference : array-like
        sMAPE of the reference over all series.
    mase_reference : array-like
        MASE of the reference over all series.

    Returns
    -------
    float or array
        One number, or an array with the shape of the arguments.

    Examples
    --------
    >>> round(owa(smape=11.374, mase=1.536, smape_reference=13.564, mase_reference=1.912), 3)
    0.821
    """
    names = ("smape", "mase", "smape_reference", "mase_reference")
    totals = [
        to_float64(name, value) for name, value in zip(names, (smape, mase, smape_reference, mase_reference), strict=True)
    ]
    for name, total in zip(names, totals, strict=True):
        if (total < 0).any() or np.isinf(total).any():
            raise ParameterError(
                f"`{name}` must be finite and not negative, got {format_value(total.tolist())}.", parameter=name
            )
    smape_model, mase_model = totals[:2]
    smape_nonzero, mase_nonzero = (np.where(total > 0, total, np.nan) for total in totals[2:])
    average = 0.5 * (smape_model / smape_nonzero + mase_model / mase_nonzero)
    return average if np.ndim(average) else float(average)


def _error(actual: Array, forecast: Array) -> Array:
    return forecast - actual


def _absolute(actual: Array, forecast: Array) -> Array:
    error = forecast - actual
    return np.abs(error, out=error)


def _squared(actual: Array, forecast: Array) -> Array:
    error = forecast - actual
    return np.square(error, out=error)


def _percentage(actual: Array, forecast: Array) -> Array:
    error = _absolute(actual, forecast)
    error /= np.where(actual != 0, np.abs(actual), np.nan)
    return error


def _symmetric(actual: Array, forecast: Array) -> Array:
    """200 |f - a| / (|a| + |f|) of each point, 0 if both are 0."""
    error = _absolute(actual, forecast)
    magnitude = np.abs(forecast)
    magnitude = magnitude + np.abs(actual)
    # 0 / 0 becomes 0 and nothing else changes
    np.maximum(magnitude, SMALLEST_POSITIVE, out=magnitude)
    error /= magnitude
    error *= 200
    return error


def _absolute_scaled(actual: Array, forecast: Array, scale: Array) -> Array:
    error = _absolute(actual, forecast)
    error /= nan_where_zero(scale)
    return error


def _squared_scaled(actual: Array, forecast: Array, squared_scale: Array) -> Array:
    error = _squared(actual, forecast)
    error /= nan_where_zero(squared_scale)
    return error


MAE = PointMetric("mae", rewards="The median.", errors=_absolute)
RMSE = PointMetric("rmse", rewards="The mean; large errors dominate.", errors=_squared, root=True)
MSE = PointMetric("mse", rewards="The mean; large errors dominate.", unit="target squared", errors=_squared)
BIAS = PointMetric("bias", rewards="Errors that cancel on average.", errors=_error, better="zero")
RELATIVE_BIAS = PointMetric(
    "relative_bias",
    rewards="Errors that cancel on average.",
    unit="fraction",
    errors=_error,
    weights=np.abs,
    better="zero",
)
MAPE = PointMetric("mape", rewards="Forecasts that are too low; undefined at zero.", unit="fraction", errors=_percentage)
SMAPE = PointMetric(
    "smape",
    rewards="Small relative errors; too high rather than too low.",
    unit="percent, 0 to 200",
    errors=_symmetric,
    counts="forecasts",
)
WAPE = PointMetric(
    "wape", rewards="The median, weighted by the size of the series.", unit="fraction", errors=_absolute, weights=np.abs
)
MASE = PointMetric(
    "mase",
    rewards="The median; all series weigh the same.",
    needs=("forecast", "scale"),
    unit="seasonal naive errors",
    errors=_absolute_scaled,
    counts="forecasts",
)
RMSSE = PointMetric(
    "rmsse",
    rewards="The mean; all series weigh the same.",
    needs=("forecast", "squared_scale"),
    unit="seasonal naive errors",
    errors=_squared_scaled,
    root=True,
    counts="forecasts",
)
OWA = CompositeMetric(
    "owa",
    rewards="The median, relative to a reference (Naive2); computed from totals.",
    needs=("forecast", "scale", "reference"),
    unit="of the reference",
    counts="forecasts",
    components=(SMAPE, MASE),
    combine=owa,
)
