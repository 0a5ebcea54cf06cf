"""Which columns a table of scores is to have: metrics by name, as functions or objects, of each level where they take any."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from deepforecast.data.forecast_names import format_number
from deepforecast.errors import ParameterError, format_list
from deepforecast.evaluation.definition import Metric
from deepforecast.evaluation.material import BANDS, Material
from deepforecast.evaluation.metrics import METRICS, get

OF_LEVEL = re.compile(r"(?P<metric>.+)-(?P<level>\d+(\.\d+)?)")


@dataclass(frozen=True)
class Request:
    """One column of the table: a metric, of the intervals of a level if it takes any."""

    metric: Metric
    level: float | None = None

    @property
    def column(self) -> str:
        """Its name."""
        return self.metric.name if self.level is None else f"{self.metric.name}-{format_number(self.level)}"


def requests(metrics: Any, material: Material) -> list[Request]:
    """The columns asked for, in order; what cannot be computed for any model is refused."""
    wanted = _default(material) if metrics is None else [metrics] if _single(metrics) else list(metrics)
    if not wanted:
        raise ParameterError("metrics names at least one metric, got none; leave it out for the usual ones.")
    found: dict[str, Request] = {}
    for one in wanted:
        for request in _expanded(one, material):
            known = found.setdefault(request.column, request)
            if known.metric != request.metric:
                raise ParameterError(
                    f"metrics: each has a name of its own; two are named {request.column}. Rename one: "
                    "Metric.from_function(function, name=...)."
                )
    return list(found.values())


def _single(metrics: Any) -> bool:
    return isinstance(metrics, str | Metric) or callable(metrics) or not isinstance(metrics, Iterable)


def _default(material: Material) -> list[str]:
    if material.rows.samples:
        return ["crps_from_samples"]
    scaled = material.training is not None
    wanted = ["mae", "rmse", "smape", "wape", "bias"]
    wanted += ["mase", "rmsse"] if scaled else []
    wanted += ["owa"] if material.reference is not None else []
    if material.levels:
        wanted += ["coverage", "width", "winkler", *(["msis"] if scaled else [])]
    return wanted + (["weighted_quantile_loss"] if any(model.q for model in material.models) else [])


def _expanded(one: Any, material: Material) -> list[Request]:
    """A metric of intervals is one request a level."""
    metric, level = named(one)
    if not BANDS & set(metric.needs):
        material.check(metric, None)
        return [Request(metric)]
    levels = material.levels if level is None else [level]
    if level is not None and material.levels and level not in material.levels:
        there = format_list([format_number(known) for known in material.levels], max_shown=10)
        raise ParameterError(
            f"{one} needs intervals of level {format_number(level)}; the forecasts have {there}. Forecast with that level."
        )
    if not levels:
        material.check(metric, None)
    for known in levels:
        material.check(metric, known)
    return [Request(metric, known) for known in levels]


def named(one: Any) -> tuple[Metric, float | None]:
    """The metric, and the level where its name ends in one: "coverage-80"."""
    match = OF_LEVEL.fullmatch(one) if isinstance(one, str) else None
    metric = METRICS.get(match["metric"].lower()) if match else None
    if match is None or metric is None or not BANDS & set(metric.needs):
        return get(one), None
    return metric, float(match["level"])
