"""Pictures of a search from its frame of trials, by plotly: how it went, what mattered, where the good ones lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepforecast.errors import DataError
from deepforecast.plotting.backends import need_plotly, own_filters
from deepforecast.plotting.style import COLORS, NEUTRAL, short

SHADES = "Viridis"
FEW = 6  # whole numbers that an axis names one by one
MOST_SLICES = 4  # of parameters in a row


def plot_history(trials: Any, objective: str, parameters: Sequence[str]) -> Any:
    """Scores in the order of trials, those that ended early below the axis, and the best so far."""
    go = _plotly()
    if not trials["number"].is_unique:  # of studies apart: one after the other
        trials = trials.assign(number=range(len(trials)))
    done = trials[trials["state"] == "complete"]
    _refuse_none(done)
    values = done[objective].to_numpy(dtype=np.float64)
    hover = [_told(row, parameters) for _, row in done.iterrows()]
    figure = go.Figure(layout=_layout(f"{objective} of {len(trials)} trials", "trial", objective))
    figure.add_scatter(x=done["number"], y=values, mode="markers", name="trial", text=hover, marker_color=COLORS[0])
    figure.add_scatter(x=done["number"], y=np.minimum.accumulate(values), mode="lines", name="best so far",
                       line={"color": COLORS[1], "shape": "hv"})  # fmt: skip
    for state, sign in (("pruned", "triangle-down"), ("failed", "x")):
        rest = trials[trials["state"] == state]
        if len(rest):
            figure.add_scatter(
                x=rest["number"], y=np.full(len(rest), values.max()), mode="markers", name=state,
                text=[f"{_told(row, parameters)}<br>{_plain(short(str(row['reason']), 100))}" for _, row in rest.iterrows()],
                marker={"symbol": sign, "color": NEUTRAL},
            )  # fmt: skip
    return figure


def plot_importance(table: Any) -> Any:
    """Bars, the most important parameter on top; columns `parameter`, `importance`. One without an importance has no bar."""
    go = _plotly()
    ordered = table.dropna().iloc[::-1]
    figure = go.Figure(layout=_layout("what mattered", "share", ""))
    figure.add_bar(x=ordered["importance"], y=[_plain(name) for name in ordered["parameter"]], orientation="h",
                   marker_color=COLORS[0])  # fmt: skip
    return figure


def plot_slices(trials: Any, objective: str, parameters: Sequence[str]) -> Any:
    """For each parameter the score over its values, later trials darker."""
    _plotly()
    with own_filters():
        from plotly.subplots import make_subplots
    done = trials[trials["state"] == "complete"]
    names = [name for name in parameters if done[name].notna().any()]
    _refuse_none(done, names)
    rows = -(-len(names) // MOST_SLICES)
    figure = make_subplots(rows=rows, cols=min(len(names), MOST_SLICES), shared_yaxes=True)
    for place, name in enumerate(names):
        row, column = divmod(place, MOST_SLICES)
        own = done[done[name].notna()]
        figure.add_scatter(
            x=_shown(own[name]), y=own[objective], mode="markers", showlegend=False, row=row + 1, col=column + 1,
            marker={"color": own["number"], "colorscale": SHADES, "reversescale": True},
        )  # fmt: skip
        kind = _scale(own[name])
        figure.update_xaxes(title_text=_plain(name), type=kind, row=row + 1, col=column + 1)
        if kind == "category":
            figure.update_xaxes(categoryorder="array", categoryarray=_kinds(own[name]), row=row + 1, col=column + 1)
        elif (ticks := _few_counts(own[name])) is not None:
            figure.update_xaxes(tickvals=ticks, row=row + 1, col=column + 1)
    figure.update_yaxes(title_text=_plain(objective), col=1)
    title = f"{_plain(objective)} by parameter, later trials darker"
    figure.update_layout(template="plotly_white", title_text=title, height=280 * rows + 80)
    return figure


def plot_parallel(trials: Any, objective: str, parameters: Sequence[str]) -> Any:
    """A line a trial through its parameters, coloured by its score; only parameters that all have, or where there are several
    models, which one it is."""
    go = _plotly()
    done = trials[trials["state"] == "complete"]
    drawn = done[done["start"] == ""] if (done["start"] == "").any() else done
    names = [name for name in parameters if drawn[name].notna().all()]
    names = ["model", *names] if drawn["model"].nunique() > 1 else names
    _refuse_none(drawn, names)
    values = drawn[objective].to_numpy(dtype=np.float64)
    axes = [{"label": _plain(objective), "values": values}, *(_axis(name, drawn[name]) for name in names)]
    line = {"color": values, "colorscale": SHADES, "showscale": True}
    return go.Figure(go.Parcoords(dimensions=axes, line=line), layout=_layout(f"{objective} of {len(drawn)} trials", "", ""))


def plot_front(trials: Any, objectives: Sequence[str]) -> Any:
    """Two objectives of every trial, and the line of those that none beats in both."""
    go = _plotly()
    from deepforecast.plotting.pareto import unbeaten

    first, second = objectives
    done = trials[trials["state"] == "complete"]
    _refuse_none(done)
    x, y = (done[name].to_numpy(dtype=np.float64) for name in (second, first))
    front = unbeaten(x, y)
    figure = go.Figure(layout=_layout(f"{first} against {second}", second, first))
    figure.add_scatter(x=x, y=y, mode="markers", name="trial", text=[f"trial {one}" for one in done["number"]],
                       marker_color=COLORS[0])  # fmt: skip
    figure.add_scatter(x=x[front], y=y[front], mode="lines+markers", name="not beaten", line={"color": COLORS[1]})
    return figure


def _plotly() -> Any:
    need_plotly("A figure of a search")
    with own_filters():
        import plotly.graph_objects as go
    return go


def _layout(title: str, x: str, y: str) -> dict[str, Any]:
    return {
        "template": "plotly_white", "title": {"text": _plain(title)}, "xaxis": {"title": {"text": _plain(x)}},
        "yaxis": {"title": {"text": _plain(y)}},
    }  # fmt: skip


def _refuse_none(done: Any, names: Sequence[str] = ("",)) -> None:
    if not len(done) or not names:
        raise DataError("A picture of a search needs trials that ended well and have parameters; there is none.")


def _told(row: Any, parameters: Sequence[str]) -> str:
    said = [f"{name}: {row[name]:.5g}" if isinstance(row[name], float) else f"{name}: {row[name]}" for name in parameters
            if row[name] is not None and row[name] == row[name]]  # fmt: skip
    return "<br>".join([f"trial {row['number']}, {row['model']}", *map(_plain, said)])


def _plain(text: str) -> str:
    """Without the marks that plotly would take for its own."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _is_number(values: Any) -> bool:
    return all(isinstance(one, int | float | np.number) and not isinstance(one, bool) for one in values)


def _shown(values: Any) -> Any:
    return values if _is_number(values) else [str(one) for one in values]


def _kinds(values: Any) -> list[str]:
    """What there is, as it is shown: numbers in their order, then words."""
    numbers = {one for one in values if _is_number([one])}
    return [*map(str, sorted(numbers)), *sorted({str(one) for one in values if not _is_number([one])})]


def _scale(values: Any) -> str:
    """A logarithm where values are positive and far apart."""
    if not _is_number(values):
        return "category"
    numbers = np.asarray(values, dtype=np.float64)
    return "log" if numbers.min() > 0 and numbers.max() > 20 * numbers.min() else "linear"


def _few_counts(values: Any) -> list[float] | None:
    """All values, where they are few whole numbers: there is nothing between them."""
    found = sorted({float(one) for one in values})
    return found if len(found) <= FEW and all(one.is_integer() for one in found) else None


def _axis(name: str, values: Any) -> dict[str, Any]:
    """One axis of parallel coordinates: numbers as they are, or on a logarithm with its ticks; others by their names."""
    kind = _scale(values)
    if kind == "linear":
        axis = {"label": _plain(name), "values": np.asarray(values, dtype=np.float64)}
        few = _few_counts(values)
        return axis if few is None else axis | {"tickvals": few}
    if kind == "log":
        numbers = np.log10(np.asarray(values, dtype=np.float64))
        ticks = np.linspace(numbers.min(), numbers.max(), 5)
        return {"label": _plain(name), "values": numbers, "tickvals": ticks, "ticktext": [f"{10**one:.3g}" for one in ticks]}
    every = _kinds(values)
    places = [every.index(str(one)) for one in values]
    return {"label": _plain(name), "values": places, "tickvals": list(range(len(every))), "ticktext": [*map(_plain, every)]}
