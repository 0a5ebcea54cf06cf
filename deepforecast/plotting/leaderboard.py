"""`plot_leaderboard`: models in order of a metric, each with its confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deepforecast.data.frames import Frame
from deepforecast.errors import DataError, format_list
from deepforecast.plotting.backends import Backend, check_backend, render
from deepforecast.plotting.chart import Array, Axis, Chart, Dots, Mark, Panel, Rules, Spans
from deepforecast.plotting.frames import Board
from deepforecast.plotting.scores import Scores, open_scores
from deepforecast.plotting.style import COLORS, NEUTRAL, short, short_number


def plot_leaderboard(
    table: Frame | Board,
    metric: str | Sequence[str] | None = None,
    *,
    lower_is_better: bool | None = None,
    backend: Backend = "matplotlib",
) -> Any:
    """Draw the models in order of a metric, the best on top: a dot for the value, a bar for its confidence interval.

    `table` is a leaderboard, or a frame with a row for each model and metric: `model, metric, value` and, where there is an
    interval, `low, high`. Several metrics stand in a panel each, in an order of their own; if none is named, those of a
    frame all do, of a leaderboard the one that ranks. A model without a value stays, at the bottom. The dotted line marks
    the best value. `lower_is_better`: by default what a column of that name says, else True; of bias and coverage the value
    closest to 0 or to the level is best.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"model": ["Naive", "LSTM"], "metric": "MAE", "value": [2.0, 1.0], "low": 0.5, "high": [3.0, 2.0]})
    >>> axes = plot_leaderboard(table, "MAE").axes[0]
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['Naive   2', 'LSTM   1']
    """
    check_backend(backend)
    tables = open_scores(table, metric, ("model", "metric", "value"))
    panels = tuple(_panel(scores.directed(lower_is_better), scores.metrics[0]) for scores in tables)
    longest = max(len(panel.y.names) for panel in panels)
    columns = 1 if len(panels) == 1 else 2
    chart = Chart(panels, columns, 9.0 if columns == 1 else 13.0, max(1.0 + 0.3 * longest, 1.9))
    return render(chart, backend)


def _panel(scores: Scores, metric: str) -> Panel:
    if len(set(scores.models)) < len(scores.models):
        twice = [name for name in dict.fromkeys(scores.models) if scores.models.count(name) > 1]
        raise DataError(f"A model has one row for a metric; for {metric} these have more: {format_list(twice)}. Aggregate them first.")
    distance = np.where(np.isfinite(scores.values), scores.distance, np.inf)  # what cannot be ranked comes last
    order = sorted(range(len(distance)), key=lambda row: (distance[row], scores.models[row]))[::-1]
    ranked = replace(
        scores,
        models=[scores.models[row] for row in order],
        values=scores.values[order],
        low=scores.low[order],
        high=scores.high[order],
    )
    names = tuple(f"{short(name)}   {_told(value)}" for name, value in zip(ranked.models, ranked.values, strict=True))
    return Panel(tuple(_marks(ranked)), f"{short(metric)}, best on top", y=Axis(kind="names", names=names))


def _marks(ranked: Scores) -> list[Mark]:
    """The best, which comes last for it stands on top, in colour; the others in grey."""
    marks: list[Mark] = []
    best = len(ranked.values) - 1
    if np.isfinite(ranked.values[best]):
        marks.append(Rules(ranked.values[best:], dash="dot", label="best"))
    for rows, color in ((np.arange(best), NEUTRAL), (np.array([best]), COLORS[0])):
        there = rows[np.isfinite(ranked.values[rows])]
        if len(there) == 0:
            continue
        bounded = there[np.isfinite(ranked.low[there]) & np.isfinite(ranked.high[there])]
        if len(bounded):
            marks.append(Spans(bounded, ranked.low[bounded], ranked.high[bounded], color, 2.6, 0.6, upright=False))
        marks.append(Dots(ranked.values[there], there, color, size=7.5, names=tuple(_hover(ranked, there))))
    return marks


def _hover(ranked: Scores, rows: Array) -> list[str]:
    told = []
    for row in rows:
        low, high = ranked.low[row], ranked.high[row]
        interval = f" ({short_number(low)} to {short_number(high)})" if np.isfinite(low) and np.isfinite(high) else ""
        told.append(f"{ranked.models[row]}: {short_number(ranked.values[row])}{interval}")
    return told


def _told(value: float) -> str:
    return short_number(float(value)) if np.isfinite(value) else "no value"
