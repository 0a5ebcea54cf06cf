"""`plot_attention`: where a model looked, step by step, head by head, or by how far back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from deepforecast.data.frames import Frame
from deepforecast.errors import ParameterError
from deepforecast.plotting.backends import Backend, check_backend, render
from deepforecast.plotting.chart import Array, Axis, Bars, Chart, Heat, Panel
from deepforecast.plotting.choices import unknown_choice
from deepforecast.plotting.lags import distance_back
from deepforecast.plotting.style import COLORS, shorten
from deepforecast.plotting.weights import AttentionWeights, open_weights

View = Literal["matrix", "heads", "lags"]
VIEWS = ("matrix", "heads", "lags")
MAX_PANELS = 64


def plot_attention(
    explanation: Frame,
    *,
    view: View = "matrix",
    series: Any = None,
    cutoff: Any = None,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    backend: Backend = "matplotlib",
) -> Any:
    """Draw the weights that `explain()` gives of a model with attention.

    - `view="matrix"`: the steps that look (upwards) and the rows they look at (across), the mean of layers and heads; a panel
      for each of `series` (an id or several; by default the first).
    - `view="heads"`: the same of one series, a row of panels a layer, a panel a head.
    - `view="lags"`: how far back is looked, the mean over steps, heads and layers of all series, or of those given.

    `kind` is "cross" (steps ahead look at the window) or "self" (rows look among themselves); by default the first of these
    that there is. `layer` and `head` choose one. `cutoff` chooses among forecasts of a series from several ends, by default
    the first; "lags" takes all.

    >>> import pandas as pd
    >>> lag = pd.date_range("2024-01-01", periods=3)
    >>> looked = pd.DataFrame({"ds": lag[2] + pd.Timedelta("1D"), "cutoff": lag[2], "step": 1, "lag": lag, "kind": "cross",
    ...                        "layer": 0, "head": 0, "weight": [0.1, 0.7, 0.2]})
    >>> plot_attention(looked).axes[0].get_xlabel()
    'row looked at'
    """
    check_backend(backend)
    if view not in VIEWS:
        raise unknown_choice("view", view, VIEWS)
    weights = open_weights(explanation, kind).select_head(layer, head)
    if view == "lags":
        return render(_lags(weights, series), backend)
    keys, n_series = weights.choose_series(series, view == "heads")
    selected = [weights.select_forecast(key, cutoff) for key in keys]
    return render(_heads(selected[0], n_series) if view == "heads" else _matrices(selected, n_series), backend)


def _matrices(selected: list[AttentionWeights], n_series: int) -> Chart:
    matrices = [weights.matrix() for weights in selected]
    largest = max(float(np.nanmax(values)) for _, _, values in matrices)
    panels = tuple(
        Panel((Heat(x, y, values, largest, "weight"),), weights.title(), *weights.axes())
        for weights, (x, y, values) in zip(selected, matrices, strict=True)
    )
    columns = min(len(panels), 2)
    return Chart(panels, columns, 10.0, 3.8, _note(selected[0], len(selected), n_series))


def _heads(weights: AttentionWeights, n_series: int) -> Chart:
    layers, heads = np.unique(weights.layer), np.unique(weights.head)
    if len(layers) * len(heads) > MAX_PANELS:
        raise ParameterError(
            f"At most {MAX_PANELS} heads are drawn at once; there are {len(layers)} layers of {len(heads)} heads. Choose one "
            "by layer=."
        )
    head_weights = [weights.take((weights.layer == layer) & (weights.head == head)) for layer in layers for head in heads]
    matrices = [selected.matrix() for selected in head_weights]
    largest = max(float(np.nanmax(values)) for _, _, values in matrices)
    x, y = weights.axes()
    panels = []
    for number, (x_values, y_values, values) in enumerate(matrices):
        row, column = divmod(number, len(heads))
        x_axis = x if row == len(layers) - 1 else replace(x, title="", hide_labels=True)
        title = f"layer {layers[row]}, head {heads[column]}"
        y_axis = y if column == 0 else replace(y, title="", hide_labels=True)
        panels.append(Panel((Heat(x_values, y_values, values, largest, "weight"),), title, x_axis, y_axis))
    return Chart(tuple(panels), len(heads), max(10.0, 2.6 * len(heads)), 2.6, _note(weights, 1, n_series, weights.title()))


def _lags(weights: AttentionWeights, series: Any) -> Chart:
    keys, n_series = weights.choose_series(series, False, select_all=True)
    chosen = weights if len(keys) == n_series else weights.select_series(keys)
    distance, unit = distance_back(chosen.time, chosen.lag)
    distances, inverse = np.unique(distance, return_inverse=True)
    mean = np.bincount(inverse, chosen.weight) / np.bincount(inverse)
    width = np.diff(distances).min() if len(distances) > 1 else 1
    cells = np.arange(distances[0], distances[-1] + width, width)
    heights = np.zeros(len(cells))
    heights[np.searchsorted(cells, distances)] = mean
    bars = Bars(_bar_edges(cells, width), heights, COLORS[0], 0.75)
    x_axis = Axis(f"{unit} back" if unit else "back", "integer", tick_multiple=_tick_step(int(cells[-1] - cells[0]), unit))
    panel = Panel((bars,), "", x_axis, Axis("weight, mean"))
    return Chart((panel,), 1, 10.0, 3.8, _note(chosen, len(keys), n_series))


def _tick_step(length: int, unit: str) -> int:
    """Whole days, weeks or years apart, as many of them as leave about ten ticks."""
    season = {"hours": 24, "days": 7, "months": 12}.get(unit, 0)
    return season * -(-length // (10 * season)) if season and length >= 2 * season else 0


def _bar_edges(cells: Array, width: Any) -> Array:
    return np.asarray(np.append(cells, cells[-1] + width) - width / 2)


def _note(weights: AttentionWeights, n_shown: int, n_series: int, title: str = "") -> str:
    layers, heads = len(np.unique(weights.layer)), len(np.unique(weights.head))
    averaged = " and ".join(f"{count} {name}" for count, name in ((layers, "layers"), (heads, "heads")) if count > 1)
    details = [shorten(title, 60)] if title else [f"mean of {averaged}"] if averaged else []
    omitted = [f"{n_shown} of {n_series} series"] if n_shown < n_series else []
    return "; ".join([f"{weights.kind}-attention", *details, *omitted])
