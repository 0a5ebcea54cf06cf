"""Tables of scores, read for drawing: `model, metric, value` and what else a picture needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepforecast.data import frames as door
from deepforecast.data.frames import Frame
from deepforecast.errors import DataError, some
from deepforecast.plotting.chart import Array, finite
from deepforecast.plotting.choices import unknown


@dataclass(frozen=True, eq=False)
class Scores:
    """The columns of a table of scores; numbers that the table does not have are missing."""

    models: list[str]
    metrics: list[str]
    values: Array
    low: Array
    high: Array
    seconds: Array

    def of(self, metric: str) -> Scores:
        """The rows of one metric."""
        rows = np.array([row for row, name in enumerate(self.metrics) if name == metric], dtype=int)
        chosen = (column[rows] for column in (self.values, self.low, self.high, self.seconds))
        return Scores([self.models[row] for row in rows], [metric] * len(rows), *chosen)


def open_scores(table: Frame, needs: Sequence[str] = ("model", "metric", "value")) -> Scores:
    """`table` of pandas, polars or pyarrow with its columns as arrays."""
    opened = door.opened(table, "table")
    lacking = [name for name in needs if name not in opened.columns]
    if lacking:
        there = some(opened.columns, most=10)
        raise DataError(f"A table of scores has the columns {some(needs)}; {some(lacking)} is missing. There are: {there}.")
    if len(opened) == 0:
        raise DataError("The table is empty: there is no score to draw.")
    numbers = {
        name: _numbers(opened.get_column(name)) if name in opened.columns else np.full(len(opened), np.nan)
        for name in ("value", "low", "high", "seconds")
    }
    models = [str(name) for name in opened.get_column("model").to_list()]
    metrics = ["value"] * len(opened)
    if "metric" in opened.columns:
        metrics = [str(name) for name in opened.get_column("metric").to_list()]
    return Scores(models, metrics, numbers["value"], numbers["low"], numbers["high"], numbers["seconds"])


def choose_metrics(scores: Scores, metric: str | Sequence[str] | None) -> list[str]:
    """The metrics asked for, in that order; all of them if none is named."""
    known = list(dict.fromkeys(scores.metrics))
    if metric is None:
        return known
    wanted = [metric] if isinstance(metric, str) else list(dict.fromkeys(metric))
    for name in wanted:
        if name not in known:
            raise unknown("metric", name, known)
    if not wanted:
        raise unknown("metric", metric, known)
    return wanted


def _numbers(column: Any) -> Array:
    """A column of numbers; one that holds nothing at all has no type to complain about."""
    if column.null_count() == len(column):
        return np.full(len(column), np.nan)
    return finite(door.numbers(column, column.name))
