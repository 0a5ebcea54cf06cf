"""Tables of scores as input of plots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deepforecast.data import frames as door
from deepforecast.data.frames import Frame
from deepforecast.errors import DataError, ParameterError, format_list, format_value
from deepforecast.plotting import inputs
from deepforecast.plotting.chart import Array, finite
from deepforecast.plotting.choices import unknown_choice
from deepforecast.plotting.frames import Board, is_board

UNBIASED = ("bias", "relative_bias")  # metrics that are best at 0
COVERAGE = re.compile(r"coverage-(\d+(?:\.\d+)?)")  # best at the level


def best_value(metric: str) -> float:
    """Target value of metrics such as bias and coverage; NaN for all others.

    >>> best_value("bias"), best_value("coverage-80"), best_value("mase")
    (0.0, 0.8, nan)
    """
    level = COVERAGE.fullmatch(metric.lower())
    return float(level[1]) / 100 if level else 0.0 if metric.lower() in UNBIASED else np.nan


@dataclass(frozen=True, eq=False)
class Scores:
    """Columns of a table of scores; missing columns are NaN.

    `best`: target value of the metric; NaN if lower or higher is better.
    """

    models: list[str]
    metrics: list[str]
    values: Array
    low: Array
    high: Array
    seconds: Array
    lower_is_better: Array
    best: Array

    @property
    def distance(self) -> Array:
        """Loss of each value; lower is better."""
        ordered = np.where(self.lower_is_better, self.values, -self.values)
        return np.where(np.isfinite(self.best), np.abs(self.values - self.best), ordered)

    def with_direction(self, lower_is_better: bool | None) -> Scores:
        """Scores with the given `lower_is_better` (None: unchanged)."""
        if lower_is_better is None:
            return self
        return replace(self, lower_is_better=np.full(len(self.models), lower_is_better), best=np.full(len(self.models), np.nan))

    def select_metric(self, metric: str) -> Scores:
        """Rows of one metric."""
        rows = np.array([row for row, name in enumerate(self.metrics) if name == metric], dtype=int)
        columns = (self.values, self.low, self.high, self.seconds, self.lower_is_better, self.best)
        chosen = (column[rows] for column in columns)
        return Scores([self.models[row] for row in rows], [metric] * len(rows), *chosen)


def open_scores(table: Frame | Board, metric: str | Sequence[str] | None, needs: Sequence[str]) -> list[Scores]:
    """Scores by `metric`; default: all of a table, the ranking metric of a leaderboard."""
    if is_board(table):
        names = table.metrics[:1] if metric is None else _metric_names(metric, list(table.criteria))
        return [_read_scores(table.distances(name), needs) for name in names]
    scores = _read_scores(table, needs)
    return [scores.select_metric(name) for name in choose_metrics(scores, metric)]


def _read_scores(table: Frame, needs: Sequence[str]) -> Scores:
    """Columns of a pandas, polars or pyarrow table as arrays."""
    opened = inputs.open_input(table, "table")
    missing = [name for name in needs if name not in opened.columns]
    if missing:
        hint = "" if "seconds" in missing else " Reshape a result of `score` with table.melt('model', var_name='metric')."
        raise DataError(
            f"`table` must have the columns {format_list(needs)}, got {format_list(opened.columns, max_shown=10)}.",
            hint=f"Pass the result of `compare`.{hint}",
            parameter="table",
        )
    if len(opened) == 0:
        raise DataError(
            "`table` must be a non-empty DataFrame, got 0 rows.",
            hint="Pass a table with at least one score.",
            parameter="table",
        )
    numbers = {
        name: _numbers(opened.get_column(name)) if name in opened.columns else np.full(len(opened), np.nan)
        for name in ("value", "low", "high", "seconds")
    }
    models = [str(name) for name in opened.get_column("model").to_list()]
    metrics = ["value"] * len(opened)
    if "metric" in opened.columns:
        metrics = [str(name) for name in opened.get_column("metric").to_list()]
    is_lower_better = np.ones(len(opened), dtype=bool)
    if "lower_is_better" in opened.columns:
        is_lower_better = opened.get_column("lower_is_better").to_numpy().astype(bool)
    target_values = np.array([best_value(name) for name in metrics])
    if "best" in opened.columns:
        target_values = _numbers(opened.get_column("best"))
    return Scores(
        models,
        metrics,
        values=numbers["value"],
        low=numbers["low"],
        high=numbers["high"],
        seconds=numbers["seconds"],
        lower_is_better=is_lower_better,
        best=target_values,
    )


def choose_metrics(scores: Scores, metric: str | Sequence[str] | None) -> list[str]:
    """The requested metrics, in that order; all by default."""
    available = list(dict.fromkeys(scores.metrics))
    if metric is None:
        return available
    names = _metric_names(metric, available)
    for name in names:
        if name not in available:
            raise unknown_choice("metric", name, available)
    return names


def _metric_names(metric: Any, available: Sequence[str]) -> list[str]:
    """One name or several as a list."""
    if isinstance(metric, str):
        names = [metric]
    else:
        names = list(dict.fromkeys(metric)) if isinstance(metric, Iterable) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise ParameterError(
            f"`metric` must be the name of a metric or a non-empty list of names, got {format_value(metric)}.",
            hint=f"Available: {format_list(available, max_shown=20)}.",
            parameter="metric",
            value=metric,
        )
    return names


def _numbers(column: Any) -> Array:
    """A numeric column; NaN for one without any value, whose type is arbitrary."""
    if column.null_count() == len(column):
        return np.full(len(column), np.nan)
    return finite(door.read_numbers(column, column.name))
