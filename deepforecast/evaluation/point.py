"""Metrics of point forecasts.

The plain functions take one forecast, `mae(actual, forecast)` with arrays of one axis, and give a float; more axes in front
(series in both, models in front of the forecast) give an array over them. Points without an actual (NaN) are left out,
`METRICS[name].by_group` says how many; forecasts that are missing or infinite raise `DataError`. NaN is the answer where a
metric is not defined, never infinity. Everything is computed in float64.
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


def mae(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Mean absolute error: rewards the median. In units of the target, so over a panel the large series decide.

    >>> mae([10.0, 20.0], [12.0, 19.0])
    1.5
    """
    return MAE(actual, forecast=forecast)


def rmse(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Root of the mean squared error: rewards the mean; a few large errors decide.

    >>> rmse([1.0, 2.0], [8.0, 3.0])
    5.0
    """
    return RMSE(actual, forecast=forecast)


def mse(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Mean squared error, as the literature of long horizons reports it: rewards the mean. In units of the target squared.

    >>> mse([1.0, 2.0], [8.0, 3.0])
    25.0
    """
    return MSE(actual, forecast=forecast)


def bias(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Mean error, forecast minus actual: above zero, the forecasts are too high.

    >>> bias([10.0, 20.0], [12.0, 19.0])
    0.5
    """
    return BIAS(actual, forecast=forecast)


def relative_bias(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Sum of the errors (forecast minus actual) over the sum of the absolute actuals, as a fraction: above zero, too high.

    >>> relative_bias([10.0, 30.0], [12.0, 32.0])
    0.1
    """
    return RELATIVE_BIAS(actual, forecast=forecast)


def mape(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Mean absolute percentage error, as a fraction: rewards forecasts that are too low. Points at zero are left out.

    >>> mape([10.0, 20.0, 0.0], [12.0, 19.0, 1.0])
    0.125
    """
    return MAPE(actual, forecast=forecast)


def smape(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Symmetric MAPE of the M4 competition, in percent, 0 to 200: 200 |a - f| / (|a| + |f|) per point, then the mean.

    Rewards forecasts nearer to the actuals in ratio, too high rather than too low. A point where both are zero counts as 0.

    >>> smape([10.0, 0.0], [30.0, 0.0])
    50.0
    """
    return SMAPE(actual, forecast=forecast)


def wape(actual: ArrayLike, forecast: ArrayLike) -> Any:
    """Sum of the absolute errors over the sum of the absolute actuals, as a fraction: rewards the median, weighted by size.

    >>> wape([10.0, 30.0], [12.0, 28.0])
    0.1
    """
    return WAPE(actual, forecast=forecast)


def mase(actual: ArrayLike, forecast: ArrayLike, scale: ArrayLike) -> Any:
    """Mean absolute error over `scale`, the error of the seasonal naive forecast on the training data (`seasonal_scale`).

    Rewards the median; every series counts the same. Not defined (NaN) where the scale is zero or NaN: a training series
    that is constant or too short has no error to measure against.

    >>> from deepforecast.evaluation.metrics import seasonal_scale
    >>> mase([10.0, 20.0], [12.0, 19.0], scale=seasonal_scale([1.0, 3.0, 2.0, 5.0], 1))
    0.75
    """
    return MASE(actual, forecast=forecast, scale=scale)


def rmsse(actual: ArrayLike, forecast: ArrayLike, squared_scale: ArrayLike) -> Any:
    """Root of the mean squared error over `seasonal_scale(..., squared=True)`: rewards the mean; series count the same.

    >>> from deepforecast.evaluation.metrics import seasonal_scale
    >>> rmsse([10.0, 20.0], [13.0, 17.0], squared_scale=seasonal_scale([1.0, 3.0, 5.0], 1, squared=True))
    1.5
    """
    return RMSSE(actual, forecast=forecast, squared_scale=squared_scale)


def owa(smape: ArrayLike, mase: ArrayLike, smape_reference: ArrayLike, mase_reference: ArrayLike) -> Any:
    """Overall weighted average of the M4 competition: the mean of the two ratios to the reference's (Naive2) totals.

    Give totals over all series: the mean of OWAs computed by series is another number. Rewards the median; 1 is as good
    as the reference. NaN where a reference is zero.

    >>> round(owa(smape=11.374, mase=1.536, smape_reference=13.564, mase_reference=1.912), 3)
    0.821
    """
    names = ("smape", "mase", "smape_reference", "mase_reference")
    totals = [to_float64(name, value) for name, value in zip(names, (smape, mase, smape_reference, mase_reference), strict=True)]
    for name, total in zip(names, totals, strict=True):
        if (total < 0).any() or np.isinf(total).any():
            raise ParameterError(f"{name} has to be finite and not negative, got {format_value(total.tolist())}.")
    model_totals, reference_totals = totals[:2], [np.where(total > 0, total, np.nan) for total in totals[2:]]
    value = 0.5 * (model_totals[0] / reference_totals[0] + model_totals[1] / reference_totals[1])
    return value if np.ndim(value) else float(value)


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
    error = _absolute(actual, forecast)
    size = np.abs(forecast)
    size = size + np.abs(actual)
    # the least number above zero: 0 / 0 becomes 0, nothing else changes
    np.maximum(size, 5e-324, out=size)
    error /= size
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
RMSE = PointMetric("rmse", rewards="The mean; a few large errors decide.", errors=_squared, root=True)
MSE = PointMetric("mse", rewards="The mean; a few large errors decide.", unit="target squared", errors=_squared)
BIAS = PointMetric("bias", rewards="Being too high as often, by size, as too low.", errors=_error, better="zero")
RELATIVE_BIAS = PointMetric(
    "relative_bias",
    rewards="Being too high as often, by size, as too low.",
    unit="fraction",
    errors=_error,
    weights=np.abs,
    better="zero",
)
MAPE = PointMetric(
    "mape", rewards="Forecasts that are too low; not defined at zero.", unit="fraction", errors=_percentage
)
SMAPE = PointMetric(
    "smape",
    rewards="Being near in ratio, rather too high than too low.",
    unit="percent, 0 to 200",
    errors=_symmetric,
    counts="forecasts",
)
WAPE = PointMetric("wape", rewards="The median, where the series are large.", unit="fraction", errors=_absolute, weights=np.abs)
MASE = PointMetric(
    "mase",
    rewards="The median, every series alike.",
    needs=("forecast", "scale"),
    unit="seasonal naive errors",
    errors=_absolute_scaled,
    counts="forecasts",
)
RMSSE = PointMetric(
    "rmsse",
    rewards="The mean, every series alike.",
    needs=("forecast", "squared_scale"),
    unit="seasonal naive errors",
    errors=_squared_scaled,
    root=True,
    counts="forecasts",
)
OWA = CompositeMetric(
    "owa",
    rewards="The median, beside the reference (Naive2); taken once, on totals.",
    needs=("forecast", "scale", "reference"),
    unit="of the reference",
    counts="forecasts",
    components=(SMAPE, MASE),
    combine=owa,
)
