"""All metrics, by name and as functions of arrays.

from deepforecast.evaluation.metrics import METRICS, get, mase, seasonal_scale

mase(actual, forecast, scale=seasonal_scale(train, season_length=12))
METRICS["mase"].rewards  # 'The median; all series weigh the same.'
# by series, cutoff or step, for several models at once
METRICS["mase"].by_group(actual, groups, forecast=..., scale=...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from deepforecast.errors import ParameterError, ParameterTypeError, format_value
from deepforecast.evaluation import point, probabilistic
from deepforecast.evaluation.aggregation import Aggregate, Groups
from deepforecast.evaluation.metric_classes import Metric
from deepforecast.evaluation.point import bias, mae, mape, mase, mse, owa, relative_bias, rmse, rmsse, smape, wape
from deepforecast.evaluation.probabilistic import (
    coverage,
    crps_from_quantiles,
    crps_from_samples,
    msis,
    pinball,
    weighted_quantile_loss,
    width,
    winkler,
)
from deepforecast.evaluation.scale import seasonal_scale

__all__ = [
    "METRICS",
    "Aggregate",
    "Groups",
    "Metric",
    "bias",
    "coverage",
    "crps_from_quantiles",
    "crps_from_samples",
    "get",
    "mae",
    "mape",
    "mase",
    "mse",
    "msis",
    "owa",
    "pinball",
    "relative_bias",
    "rmse",
    "rmsse",
    "seasonal_scale",
    "smape",
    "wape",
    "weighted_quantile_loss",
    "width",
    "winkler",
]

METRICS: Mapping[str, Metric] = MappingProxyType(
    {metric.name: metric for module in (point, probabilistic) for metric in vars(module).values() if isinstance(metric, Metric)}
)


def get(metric: str | Metric | Callable[..., Any]) -> Metric:
    """Return a metric by name, function or object.

    Parameters
    ----------
    metric : str, callable or Metric
        A name (case-insensitive), a function of this module such as `mae`, or any other
        `function(actual, forecast) -> number` (see `Metric.from_function` for more options).

    Returns
    -------
    Metric

    Examples
    --------
    >>> get("MASE").needs
    ('forecast', 'scale')
    >>> get(mae) is get("mae")
    True
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        return _find_metric(metric)
    if not callable(metric):
        raise ParameterTypeError(f"A metric must be a name, a Metric or a function, got {format_value(metric)}.")
    name = getattr(metric, "__name__", "")
    return METRICS[name] if globals().get(name) is metric and name in METRICS else Metric.from_function(metric)


def _find_metric(name: str) -> Metric:
    """The metric of this name (case-insensitive); `ParameterError` if there is none."""
    metric = METRICS.get(name.lower())
    if metric is None:
        close_matches = get_close_matches(name.lower(), METRICS, n=3)
        hint = f"Did you mean {' or '.join(map(repr, close_matches))}? " if close_matches else ""
        raise ParameterError(f"Unknown metric '{format_value(name)}'.", hint=f"{hint}Available: {', '.join(METRICS)}.")
    return metric
