"""`plot_pareto`: scores against run time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from deepforecast.data.frames import Frame
from deepforecast.errors import DataError, ParameterError, format_list
from deepforecast.plotting.backends import Backend, check_backend, render
from deepforecast.plotting.chart import Array, Axis, Chart, Dots, Labels, Line, Mark, Panel
from deepforecast.plotting.frames import Board
from deepforecast.plotting.scores import Scores, open_scores
from deepforecast.plotting.style import COLORS, NEUTRAL, format_compact, shorten

_MIN_SECONDS = 1e-3  # lower bound, since the axis is logarithmic


def plot_pareto(table: Frame | Board, metric: str | None = None, *, backend: Backend = "matplotlib") -> Any:
    """Plot scores of models against their run time, and the Pareto front.

    Bias is plotted as distance from 0, coverage as distance from its level.

    Parameters
    ----------
    table : Leaderboard or DataFrame
        A DataFrame has one row per model with the columns `model`, `value`, `seconds` and,
        optionally, `metric`.
    metric : str, optional
        Metric to plot; lower must be better. Default: the ranking metric of a leaderboard, the only
        metric of a DataFrame.
    backend : {"matplotlib", "plotly", "svg"}, default "matplotlib"
        Library that draws the chart. plotly is an optional package.

    Returns
    -------
    matplotlib.figure.Figure, plotly.graph_objects.Figure or SvgFigure
        The figure of the chosen backend. Matplotlib figures are independent of pyplot; save them
        with `savefig`. `SvgFigure.svg(width)` is an SVG element in the colours of its page.
    """
    check_backend(backend)
    tables = open_scores(table, metric, ("model", "value", "seconds"))
    names = [table_scores.metrics[0] for table_scores in tables]
    if len(tables) > 1:
        raise ParameterError(
            "`metric` must be passed for a table of several metrics.",
            hint=f"Available: {format_list(names, max_shown=10)}. Pass for example metric={names[0]!r}.",
            parameter="metric",
        )
    scores = _distances(tables[0])
    if not scores.lower_is_better.all():
        raise ParameterError(
            f"`metric` must be a lower-is-better metric, got {names[0]!r}.",
            hint="Pass another metric, such as 'mase' or 'rmse'.",
            parameter="metric",
        )
    is_complete = np.isfinite(scores.values) & np.isfinite(scores.seconds)
    if not is_complete.any():
        raise DataError(
            "`table` must contain at least one model with both a finite value and finite seconds, but there is none.",
            hint="Pass the result of `compare` with at least one model that did not fail.",
            parameter="table",
        )
    if (scores.seconds[is_complete] < 0).any():
        negative = [name for name, seconds in zip(scores.models, scores.seconds, strict=True) if seconds < 0]
        raise DataError(
            f"Column 'seconds' cannot be negative; models with negative values: {format_list(negative)}.", hint="Correct them."
        )
    absent = [name for name, shown in zip(scores.models, is_complete, strict=True) if not shown]
    note = f"not shown (no value or no seconds): {format_list([shorten(name, 25) for name in absent])}" if absent else ""
    return render(Chart((_panel(scores, np.flatnonzero(is_complete)),), 1, 9.0, 4.8, note), backend)


def _distances(scores: Scores) -> Scores:
    """The scores; for metrics that are best at a target value, the distance from it."""
    target_value = scores.best[0]
    if not np.isfinite(target_value):
        return scores
    label = f"{scores.metrics[0]}, distance from {target_value:g}"
    return replace(scores, metrics=[label] * len(scores.models), values=scores.distance)


def pareto_front(seconds: Array, values: Array) -> Array:
    """Rows that no other row dominates, fastest first.

    >>> pareto_front(np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, 1.0]))
    array([0, 2])
    """
    order = np.lexsort((values, seconds))
    best_before = np.minimum.accumulate(np.concatenate([[np.inf], values[order][:-1]]))
    return np.asarray(order[values[order] < best_before])


def _panel(scores: Scores, rows: Array) -> Panel:
    """Seconds against the metric: the Pareto front in colour with a step line, other models in grey.
    `rows`: models with both values."""
    seconds = np.maximum(scores.seconds[rows], _MIN_SECONDS)
    values = scores.values[rows]
    names = [shorten(scores.models[row], 32) for row in rows]
    front = pareto_front(seconds, values)
    dominated = np.setdiff1d(np.arange(len(rows)), front)
    # A Pareto-optimal model is the best up to the time of the next one: a step function.
    stair = np.repeat(seconds[front], 2)[1:], np.repeat(values[front], 2)[:-1]
    marks: list[Mark] = [Line(*stair, COLORS[0], dash="dot", width=1.2)] if len(front) > 1 else []
    for selected, color in ((dominated, NEUTRAL), (front, COLORS[0])):
        if len(selected):
            hover_texts = tuple(
                f"{names[row]}: {format_compact(values[row])} in {format_compact(seconds[row])} s" for row in selected
            )
            marks.append(Dots(seconds[selected], values[selected], color, size=7.5, names=hover_texts))
    is_on_front = np.isin(np.arange(len(rows)), front)
    marks.append(Labels(seconds, values, tuple(names), tuple(bool(keep) for keep in is_on_front), stair))
    use_log = seconds.max() > 10 * seconds.min()
    x_axis = Axis("seconds (log scale)" if use_log else "seconds", "log" if use_log else "number")
    return Panel(
        tuple(marks),
        "In colour: Pareto front (no other model is both better and faster)",
        x_axis,
        Axis(shorten(scores.metrics[0])),
    )
