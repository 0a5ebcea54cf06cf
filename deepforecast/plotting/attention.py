"""`plot_attention`: attention weights by time step, by head or by lag."""

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
    """Plot the attention weights that `explain` returns.

    Parameters
    ----------
    explanation : DataFrame
        Attention weights, with the columns `cutoff`, `step`, `lag`, `kind`, `layer`, `head` and
        `weight`.
    view : {"matrix", "heads", "lags"}, default "matrix"
        "matrix": queries (vertical) by keys (horizontal), averaged over layers and heads, one panel
        per series. "heads": the same for a single series, one row of panels per layer and one panel
        per head. "lags": weight by distance, averaged over queries, heads, layers and series.
    series : id or list of ids, optional
        Series to plot. Default: the first one, or all for "lags".
    cutoff : timestamp or int, optional
        Forecast origin, if a series has several. Default: the first one. "lags" averages over all.
    kind : {"cross", "self"}, optional
        "cross": steps of the horizon attend to the input window. "self": time steps attend to each
        other. Default: the first of these in `explanation`.
    layer, head : int, optional
        Plot only this layer or head. Default: all.
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
    >>> lag = pd.date_range("2024-01-01", periods=3)
    >>> weights = pd.DataFrame({"ds": lag[2] + pd.Timedelta("1D"), "cutoff": lag[2], "step": 1, "lag": lag, "kind": "cross",
    ...                         "layer": 0, "head": 0, "weight": [0.1, 0.7, 0.2]})
    >>> plot_attention(weights).axes[0].get_xlabel()
    'attended time step'
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
    """One heat map of queries by keys per series, the mean over layers and heads, with a common colour scale."""
    matrices = [weights.matrix() for weights in selected]
    largest = max(float(np.nanmax(values)) for _, _, values in matrices)
    panels = tuple(
        Panel((Heat(x, y, values, largest, "weight"),), weights.title(), *weights.axes())
        for weights, (x, y, values) in zip(selected, matrices, strict=True)
    )
    columns = min(len(panels), 2)
    return Chart(panels, columns, 10.0, 3.8, _note(selected[0], len(selected), n_series))


def _heads(weights: AttentionWeights, n_series: int) -> Chart:
    """One heat map per layer (row) and head (column) of one series; raises if there are more than MAX_PANELS."""
    layers = np.unique(weights.layer)
    heads = np.unique(weights.head)
    if len(layers) * len(heads) > MAX_PANELS:
        raise ParameterError(
            f"view='heads' can plot at most {MAX_PANELS} heads, got {len(layers)} layers of {len(heads)} heads.",
            hint="Pass `layer` to choose one layer.",
            parameter="view",
        )
    head_weights = [weights.take((weights.layer == layer) & (weights.head == head)) for layer in layers for head in heads]
    matrices = [selected.matrix() for selected in head_weights]
    largest = max(float(np.nanmax(values)) for _, _, values in matrices)
    x, y = weights.axes()
    panels = []
    for panel_index, (x_values, y_values, values) in enumerate(matrices):
        row, column = divmod(panel_index, len(heads))
        x_axis = x if row == len(layers) - 1 else replace(x, title="", hide_labels=True)
        title = f"layer {layers[row]}, head {heads[column]}"
        y_axis = y if column == 0 else replace(y, title="", hide_labels=True)
        panels.append(Panel((Heat(x_values, y_values, values, largest, "weight"),), title, x_axis, y_axis))
    return Chart(tuple(panels), len(heads), max(10.0, 2.6 * len(heads)), 2.6, _note(weights, 1, n_series, weights.title()))


def _lags(weights: AttentionWeights, series: Any) -> Chart:
    """Bars of the mean weight by distance from the attending time step, over the chosen series (default: all)."""
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
    x_axis = Axis(f"lag ({unit})" if unit else "lag", "integer", tick_multiple=_tick_step(int(cells[-1] - cells[0]), unit))
    panel = Panel((bars,), "", x_axis, Axis("mean weight"))
    return Chart((panel,), 1, 10.0, 3.8, _note(chosen, len(keys), n_series))


def _tick_step(length: int, unit: str) -> int:
    """Whole days, weeks or years between ticks, for about ten ticks; 0 for the default ticks."""
    season = {"hours": 24, "days": 7, "months": 12}.get(unit, 0)
    return season * -(-length // (10 * season)) if season and length >= 2 * season else 0


def _bar_edges(cells: Array, width: Any) -> Array:
    return np.asarray(np.append(cells, cells[-1] + width) - width / 2)


def _note(weights: AttentionWeights, n_shown: int, n_series: int, title: str = "") -> str:
    """The kind of attention, what the weights are averaged over (or `title`), and the number of omitted series."""
    n_layers = len(np.unique(weights.layer))
    n_heads = len(np.unique(weights.head))
    averaged = " and ".join(f"{n} {name}" for n, name in ((n_layers, "layers"), (n_heads, "heads")) if n > 1)
    details = [f"mean of {averaged}"] if averaged else []
    if title:
        details = [shorten(title, 60)]
    omitted = [f"{n_shown} of {n_series} series"] if n_shown < n_series else []
    return "; ".join([f"{weights.kind}-attention", *details, *omitted])
