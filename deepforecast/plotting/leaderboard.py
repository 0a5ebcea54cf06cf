"""`plot_leaderboard`: models ranked by a metric, with confidence intervals."""

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
from deepforecast.plotting.style import COLORS, NEUTRAL, format_compact, shorten


def plot_leaderboard(
    table: Frame | Board,
    metric: str | Sequence[str] | None = None,
    *,
    lower_is_better: bool | None = None,
    backend: Backend = "matplotlib",
) -> Any:
    """Plot models ranked by a metric, the best on top, with confidence intervals.

    A dot is the value, a bar its confidence interval, a dotted line the best value. Models without
    a value come last. One panel per metric.

    Parameters
    ----------
    table : Leaderboard or DataFrame
        A DataFrame has one row per model and metric with the columns `model`, `metric`, `value`
        and, optionally, `low` and `high`.
    metric : str or list of str, optional
        Metrics to plot. Default: the ranking metric of a leaderboard, all metrics of a DataFrame.
    lower_is_better : bool, optional
        Default: the column of this name, or True. The best bias is 0, the best coverage the level.
    backend : {"matplotlib", "plotly", "svg"}, default "matplotlib"
        Library that draws the chart. plotly is an optional package.

    Returns
    -------
    matplotlib.figure.Figure, plotly.graph_objects.Figure or SvgFigure
        The figure of the chosen backend. Matplotlib figures are independent of pyplot; save them
        with `savefig`. `SvgFigure.svg(width)` is an SVG element in the colours of its page.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"model": ["Naive", "LSTM"], "metric": "MAE", "value": [2.0, 1.0], "low": 0.5, "high": [3.0, 2.0]})
    >>> axes = plot_leaderboard(table, "MAE").axes[0]
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['Naive   2', 'LSTM   1']
    """
    check_backend(backend)
    tables = open_scores(table, metric, ("model", "metric", "value"))
    panels = tuple(_panel(scores.with_direction(lower_is_better), scores.metrics[0]) for scores in tables)
    longest = max(len(panel.y.names) for panel in panels)
    columns = 1 if len(panels) == 1 else 2
    chart = Chart(panels, columns, 9.0 if columns == 1 else 13.0, max(1.0 + 0.3 * longest, 1.9))
    return render(chart, backend)


def _panel(scores: Scores, metric: str) -> Panel:
    """One metric of all models, the best on top; among equal values the models are in alphabetical order."""
    if len(set(scores.models)) < len(scores.models):
        duplicates = [name for name in dict.fromkeys(scores.models) if scores.models.count(name) > 1]
        raise DataError(
            f"`table` must have one row per model and metric; models with several rows for {metric}: {format_list(duplicates)}. "
            "Aggregate these rows first.",
            parameter="table",
        )
    distance = np.where(np.isfinite(scores.values), scores.distance, np.inf)  # missing values come last
    order = sorted(range(len(distance)), key=lambda row: (distance[row], scores.models[row]))[::-1]
    ranked = replace(
        scores,
        models=[scores.models[row] for row in order],
        values=scores.values[order],
        low=scores.low[order],
        high=scores.high[order],
    )
    names = tuple(f"{shorten(name)}   {_format_value(value)}" for name, value in zip(ranked.models, ranked.values, strict=True))
    return Panel(tuple(_marks(ranked)), f"{shorten(metric)}, best on top", y=Axis(kind="names", names=names))


def _marks(ranked: Scores) -> list[Mark]:
    """The best model in colour, the others in grey; the best is last, hence on top."""
    marks: list[Mark] = []
    best = len(ranked.values) - 1
    if np.isfinite(ranked.values[best]):
        marks.append(Rules(ranked.values[best:], dash="dot", label="best"))
    for rows, color in ((np.arange(best), NEUTRAL), (np.array([best]), COLORS[0])):
        finite_rows = rows[np.isfinite(ranked.values[rows])]
        if len(finite_rows) == 0:
            continue
        bounded_rows = finite_rows[np.isfinite(ranked.low[finite_rows]) & np.isfinite(ranked.high[finite_rows])]
        if len(bounded_rows):
            marks.append(
                Spans(bounded_rows, ranked.low[bounded_rows], ranked.high[bounded_rows], color, 2.6, 0.6, vertical=False)
            )
        marks.append(
            Dots(ranked.values[finite_rows], finite_rows, color, size=7.5, names=tuple(_hover_texts(ranked, finite_rows)))
        )
    return marks


def _hover_texts(ranked: Scores, model_indices: Array) -> list[str]:
    """Model, value and interval of each row for hover texts."""
    texts = []
    for model_index in model_indices:
        low = ranked.low[model_index]
        high = ranked.high[model_index]
        interval = f" ({format_compact(low)} to {format_compact(high)})" if np.isfinite(low) and np.isfinite(high) else ""
        texts.append(f"{ranked.models[model_index]}: {format_compact(ranked.values[model_index])}{interval}")
    return texts


def _format_value(value: float) -> str:
    return format_compact(float(value)) if np.isfinite(value) else "no value"
