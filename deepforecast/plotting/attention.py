"""`plot_attention`: where a model looked, step by step, head by head, or by how far back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from deepforecast.data.frames import Frame
from deepforecast.errors import ParameterError
from deepforecast.plotting.backends import Backend, check_backend, render
from deepforecast.plotting.chart import Array, Axis, Bars, Chart, Heat, Panel
from deepforecast.plotting.choices import unknown
from deepforecast.plotting.lags import back
from deepforecast.plotting.style import COLORS, short
from deepforecast.plotting.weights import Weights, open_weights

View = Literal["matrix", "heads", "lags"]
VIEWS = ("matrix", "heads", "lags")
MOST_PANELS = 64


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
        raise unknown("view", view, VIEWS)
    weights = open_weights(explanation, kind).only(layer, head)
    if view == "lags":
        return render(_lags(weights, series), backend)
    chosen, there = weights.chosen(series, view == "heads")
    shown = [weights.of(key, cutoff) for key in chosen]
    return render(_heads(shown[0], there) if view == "heads" else _matrices(shown, there), backend)


def _matrices(shown: list[Weights], there: int) -> Chart:
    matrices = [one.matrix() for one in shown]
    most = max(float(np.nanmax(values)) for _, _, values in matrices)
    panels = tuple(
        Panel((Heat(x, y, values, most, "weight"),), one.title(), *one.axes())
        for one, (x, y, values) in zip(shown, matrices, strict=True)
    )
    columns = min(len(panels), 2)
    return Chart(panels, columns, 10.0, 3.8, _note(shown[0], len(shown), there))


def _heads(one: Weights, there: int) -> Chart:
    layers, heads = np.unique(one.layer), np.unique(one.head)
    if len(layers) * len(heads) > MOST_PANELS:
        raise ParameterError(
            f"At most {MOST_PANELS} heads are drawn at once; there are {len(layers)} layers of {len(heads)} heads. Choose one "
            "by layer=."
        )
    parts = [one.take((one.layer == layer) & (one.head == head)) for layer in layers for head in heads]
    matrices = [part.matrix() for part in parts]
    most = max(float(np.nanmax(values)) for _, _, values in matrices)
    x, y = one.axes()
    panels = []
    for number, (at, upright, values) in enumerate(matrices):
        row, column = divmod(number, len(heads))
        across = x if row == len(layers) - 1 else replace(x, title="", bare=True)
        title = f"layer {layers[row]}, head {heads[column]}"
        up = y if column == 0 else replace(y, title="", bare=True)
        panels.append(Panel((Heat(at, upright, values, most, "weight"),), title, across, up))
    return Chart(tuple(panels), len(heads), max(10.0, 2.6 * len(heads)), 2.6, _note(one, 1, there, one.title()))


def _lags(weights: Weights, series: Any) -> Chart:
    keys, there = weights.chosen(series, False, every=True)
    chosen = weights if len(keys) == there else weights.among(keys)
    distance, unit = back(chosen.time, chosen.lag)
    at, where = np.unique(distance, return_inverse=True)
    mean = np.bincount(where, chosen.weight) / np.bincount(where)
    width = np.diff(at).min() if len(at) > 1 else 1
    cells = np.arange(at[0], at[-1] + width, width)
    heights = np.zeros(len(cells))
    heights[np.searchsorted(cells, at)] = mean
    bars = Bars(_around(cells, width), heights, COLORS[0], 0.75)
    across = Axis(f"{unit} back" if unit else "back", "integer", every=_ticks(int(cells[-1] - cells[0]), unit))
    panel = Panel((bars,), "", across, Axis("weight, mean"))
    return Chart((panel,), 1, 10.0, 3.8, _note(chosen, len(keys), there))


def _ticks(length: int, unit: str) -> int:
    """Whole days, weeks or years apart, as many of them as leave about ten ticks."""
    season = {"hours": 24, "days": 7, "months": 12}.get(unit, 0)
    return season * -(-length // (10 * season)) if season and length >= 2 * season else 0


def _around(cells: Array, width: Any) -> Array:
    return np.asarray(np.append(cells, cells[-1] + width) - width / 2)


def _note(weights: Weights, shown: int, there: int, title: str = "") -> str:
    layers, heads = len(np.unique(weights.layer)), len(np.unique(weights.head))
    many = " and ".join(f"{count} {name}" for count, name in ((layers, "layers"), (heads, "heads")) if count > 1)
    parts = [short(title, 60)] if title else [f"mean of {many}"] if many else []
    few = [f"{shown} of {there} series"] if shown < there else []
    return "; ".join([f"{weights.kind}-attention", *parts, *few])
