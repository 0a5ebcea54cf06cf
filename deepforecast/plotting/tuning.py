"""Plots of a hyperparameter search from its frame of trials, with plotly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepforecast.errors import DataError
from deepforecast.plotting.backends import need_plotly, restore_warning_filters
from deepforecast.plotting.style import COLORS, NEUTRAL, shorten

SHADES = "Viridis"
MAX_NAMED_COUNTS = 6  # maximum number of integers with a tick each
MAX_COLUMNS = 4  # parameters per row


def plot_history(trials: Any, objective: str, parameters: Sequence[str]) -> Any:
    """Plot scores by trial, pruned trials below the axis, and the best score so far."""
    go = _plotly()
    if not trials["number"].is_unique:  # several studies, one after another
        trials = trials.assign(number=range(len(trials)))
    completed = trials[trials["state"] == "complete"]
    _refuse_empty(completed)
    values = completed[objective].to_numpy(dtype=np.float64)
    hover = [_hover_text(row, parameters) for _, row in completed.iterrows()]
    figure = go.Figure(layout=_layout(f"{objective} of {len(trials)} trials", "trial", objective))
    figure.add_scatter(x=completed["number"], y=values, mode="markers", name="trial", text=hover, marker_color=COLORS[0])
    figure.add_scatter(x=completed["number"], y=np.minimum.accumulate(values), mode="lines", name="best so far",
                       line={"color": COLORS[1], "shape": "hv"})  # fmt: skip
    for state, sign in (("pruned", "triangle-down"), ("failed", "x")):
        ended_early = trials[trials["state"] == state]
        if len(ended_early):
            figure.add_scatter(
                x=ended_early["number"],
                y=np.full(len(ended_early), values.max()),
                mode="markers",
                name=state,
                text=[
                    f"{_hover_text(row, parameters)}<br>{_escape(shorten(str(row['reason']), 100))}"
                    for _, row in ended_early.iterrows()
                ],
                marker={"symbol": sign, "color": NEUTRAL},
            )
    return figure


def plot_importance(table: Any) -> Any:
    """Plot parameter importances as bars, the largest on top."""
    go = _plotly()
    ordered = table.dropna().iloc[::-1]
    figure = go.Figure(layout=_layout("parameter importance", "importance", ""))
    figure.add_bar(x=ordered["importance"], y=[_escape(name) for name in ordered["parameter"]], orientation="h",
                   marker_color=COLORS[0])  # fmt: skip
    return figure


def plot_slices(trials: Any, objective: str, parameters: Sequence[str]) -> Any:
    """Plot the score over the values of each parameter, later trials darker."""
    _plotly()
    with restore_warning_filters():
        from plotly.subplots import make_subplots
    completed = trials[trials["state"] == "complete"]
    names = [name for name in parameters if completed[name].notna().any()]
    _refuse_empty(completed, names)
    rows = -(-len(names) // MAX_COLUMNS)
    figure = make_subplots(rows=rows, cols=min(len(names), MAX_COLUMNS), shared_yaxes=True)
    for index, name in enumerate(names):
        row, column = divmod(index, MAX_COLUMNS)
        with_value = completed[completed[name].notna()]
        figure.add_scatter(
            x=_display_values(with_value[name]),
            y=with_value[objective],
            mode="markers",
            showlegend=False,
            row=row + 1,
            col=column + 1,
            marker={"color": with_value["number"], "colorscale": SHADES, "reversescale": True},
        )
        axis_type = _scale(with_value[name])
        figure.update_xaxes(title_text=_escape(name), type=axis_type, row=row + 1, col=column + 1)
        if axis_type == "category":
            figure.update_xaxes(
                categoryorder="array", categoryarray=_category_order(with_value[name]), row=row + 1, col=column + 1
            )
        elif (ticks := _count_ticks(with_value[name])) is not None:
            figure.update_xaxes(tickvals=ticks, row=row + 1, col=column + 1)
    figure.update_yaxes(title_text=_escape(objective), col=1)
    title = f"{_escape(objective)} by parameter, later trials darker"
    figure.update_layout(template="plotly_white", title_text=title, height=280 * rows + 80)
    return figure


def plot_parallel(trials: Any, objective: str, parameters: Sequence[str]) -> Any:
    """Plot trials as parallel coordinates, coloured by score.

    Only parameters that all trials have, and the model if there are several.
    """
    go = _plotly()
    completed = trials[trials["state"] == "complete"]
    drawn = completed[completed["start"] == ""] if (completed["start"] == "").any() else completed
    names = [name for name in parameters if drawn[name].notna().all()]
    names = ["model", *names] if drawn["model"].nunique() > 1 else names
    _refuse_empty(drawn, names)
    values = drawn[objective].to_numpy(dtype=np.float64)
    axes = [{"label": _escape(objective), "values": values}, *(_axis(name, drawn[name]) for name in names)]
    line = {"color": values, "colorscale": SHADES, "showscale": True}
    return go.Figure(go.Parcoords(dimensions=axes, line=line), layout=_layout(f"{objective} of {len(drawn)} trials", "", ""))


def plot_front(trials: Any, objectives: Sequence[str]) -> Any:
    """Plot two objectives of all trials, and the Pareto front."""
    go = _plotly()
    from deepforecast.plotting.pareto import pareto_front

    first_parameter, second = objectives
    completed = trials[trials["state"] == "complete"]
    _refuse_empty(completed)
    x, y = (completed[name].to_numpy(dtype=np.float64) for name in (second, first_parameter))
    front = pareto_front(x, y)
    figure = go.Figure(layout=_layout(f"{first_parameter} vs. {second}", second, first_parameter))
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        name="trial",
        text=[f"trial {trial_number}" for trial_number in completed["number"]],
        marker_color=COLORS[0],
    )
    figure.add_scatter(x=x[front], y=y[front], mode="lines+markers", name="Pareto front", line={"color": COLORS[1]})
    return figure


def _plotly() -> Any:
    need_plotly("Plotting a search")
    with restore_warning_filters():
        import plotly.graph_objects as go
    return go


def _layout(title: str, x: str, y: str) -> dict[str, Any]:
    return {
        "template": "plotly_white", "title": {"text": _escape(title)}, "xaxis": {"title": {"text": _escape(x)}},
        "yaxis": {"title": {"text": _escape(y)}},
    }  # fmt: skip


def _refuse_empty(completed: Any, names: Sequence[str] = ("",)) -> None:
    if not len(completed) or not names:
        raise DataError(
            "Plots of a search require completed trials with searched parameters, and there are none.", hint="Run more trials."
        )


def _hover_text(row: Any, parameters: Sequence[str]) -> str:
    settings = [f"{name}: {row[name]:.5g}" if isinstance(row[name], float) else f"{name}: {row[name]}" for name in parameters
            if row[name] is not None and row[name] == row[name]]  # fmt: skip
    return "<br>".join([f"trial {row['number']}, {row['model']}", *map(_escape, settings)])


def _escape(text: str) -> str:
    """Escape HTML tags."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _is_number(values: Any) -> bool:
    return all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values)


def _display_values(values: Any) -> Any:
    return values if _is_number(values) else [str(value) for value in values]


def _category_order(values: Any) -> list[str]:
    """Distinct values as text: sorted numbers, then sorted words."""
    numbers = {value for value in values if _is_number([value])}
    return [*map(str, sorted(numbers)), *sorted({str(value) for value in values if not _is_number([value])})]


def _scale(values: Any) -> str:
    """Logarithmic for positive values of different orders of magnitude."""
    if not _is_number(values):
        return "category"
    numbers = np.asarray(values, dtype=np.float64)
    return "log" if numbers.min() > 0 and numbers.max() > 20 * numbers.min() else "linear"


def _count_ticks(values: Any) -> list[float] | None:
    """All values as ticks, if they are few integers."""
    counts = sorted({float(value) for value in values})
    return counts if len(counts) <= MAX_NAMED_COUNTS and all(value.is_integer() for value in counts) else None


def _axis(name: str, values: Any) -> dict[str, Any]:
    """One dimension of parallel coordinates: linear, logarithmic or categorical."""
    axis_type = _scale(values)
    if axis_type == "linear":
        axis = {"label": _escape(name), "values": np.asarray(values, dtype=np.float64)}
        tick_values = _count_ticks(values)
        return axis if tick_values is None else axis | {"tickvals": tick_values}
    if axis_type == "log":
        numbers = np.log10(np.asarray(values, dtype=np.float64))
        ticks = np.linspace(numbers.min(), numbers.max(), 5)
        return {
            "label": _escape(name),
            "values": numbers,
            "tickvals": ticks,
            "ticktext": [f"{10**value:.3g}" for value in ticks],
        }
    categories = _category_order(values)
    codes = [categories.index(str(value)) for value in values]
    return {
        "label": _escape(name),
        "values": codes,
        "tickvals": list(range(len(categories))),
        "ticktext": [*map(_escape, categories)],
    }
