"""The metric columns of a table of scores, one per level for interval metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from deepforecast.data.columns import format_number
from deepforecast.errors import ParameterError, format_list
from deepforecast.evaluation.metric_classes import Metric
from deepforecast.evaluation.metrics import METRICS, get
from deepforecast.evaluation.scoring_data import INTERVAL_INPUTS, ScoringData

LEVEL_PATTERN = re.compile(r"(?P<metric>.+)-(?P<level>\d+(\.\d+)?)")


@dataclass(frozen=True)
class MetricColumn:
    """One column of the table: a metric and, for interval metrics, a level."""

    metric: Metric
    level: float | None = None

    @property
    def column(self) -> str:
        """Name of the column."""
        return self.metric.name if self.level is None else f"{self.metric.name}-{format_number(self.level)}"


def select_metrics(metrics: Any, scoring_data: ScoringData) -> list[MetricColumn]:
    """The requested columns in order; `ParameterError` if one cannot be computed for any model."""
    if metrics is None:
        requested = _default_metrics(scoring_data)
    else:
        requested = [metrics] if _is_single(metrics) else list(metrics)
    if not requested:
        raise ParameterError(
            "`metrics` must contain at least one metric, got none.",
            hint="Add one, or omit `metrics` for the defaults.",
            parameter="metrics",
        )
    selected: dict[str, MetricColumn] = {}
    for metric_spec in requested:
        for metric_column in _expand_levels(metric_spec, scoring_data):
            existing = selected.setdefault(metric_column.column, metric_column)
            if existing.metric != metric_column.metric:
                raise ParameterError(
                    f"Names of metrics must be unique, but two metrics are named {metric_column.column}.",
                    hint="Use Metric.from_function(function, name=...) to rename one.",
                )
    return list(selected.values())


def _is_single(metrics: Any) -> bool:
    return isinstance(metrics, str | Metric) or callable(metrics) or not isinstance(metrics, Iterable)


def _default_metrics(scoring_data: ScoringData) -> list[str]:
    """Names of the metrics of `score(metrics=None)`, as far as they can be computed."""
    if scoring_data.forecast_rows.n_samples:
        return ["crps_from_samples"]
    scaled = scoring_data.training is not None
    metric_names = ["mae", "rmse", "smape", "wape", "bias"]
    metric_names += ["mase", "rmsse"] if scaled else []
    metric_names += ["owa"] if scoring_data.reference is not None else []
    if scoring_data.levels:
        metric_names += ["coverage", "width", "winkler", *(["msis"] if scaled else [])]
    return metric_names + (["weighted_quantile_loss"] if any(model.q for model in scoring_data.models) else [])


def _expand_levels(metric_spec: Any, scoring_data: ScoringData) -> list[MetricColumn]:
    """One column per level for an interval metric."""
    metric, level = parse_metric(metric_spec)
    if not INTERVAL_INPUTS & set(metric.needs):
        scoring_data.check_available(metric, None)
        return [MetricColumn(metric)]
    levels = scoring_data.levels if level is None else [level]
    if level is not None and scoring_data.levels and level not in scoring_data.levels:
        available = format_list([format_number(interval_level) for interval_level in scoring_data.levels], max_shown=10)
        raise ParameterError(
            f"{metric_spec} requires intervals of level {format_number(level)}; the forecasts have the levels {available}.",
            hint=f"Pass level={format_number(level)} when forecasting.",
        )
    if not levels:
        scoring_data.check_available(metric, None)
    for interval_level in levels:
        scoring_data.check_available(metric, interval_level)
    return [MetricColumn(metric, interval_level) for interval_level in levels]


def parse_metric(metric_spec: Any) -> tuple[Metric, float | None]:
    """The metric, and its level if its name ends in one ("coverage-80")."""
    match = LEVEL_PATTERN.fullmatch(metric_spec) if isinstance(metric_spec, str) else None
    metric = METRICS.get(match["metric"].lower()) if match else None
    if match is None or metric is None or not INTERVAL_INPUTS & set(metric.needs):
        return get(metric_spec), None
    return metric, float(match["level"])
