"""`plot_components`: the components of a series or a forecast, one panel each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from deepforecast.data.columns import Columns
from deepforecast.data.frames import Frame
from deepforecast.errors import DataError
from deepforecast.plotting.backends import Backend, check_backend, render
from deepforecast.plotting.chart import Array, Axis, Chart, Line, Mark, Panel, Rules
from deepforecast.plotting.frames import TidyFrame, choose_series, open_frame
from deepforecast.plotting.inputs import is_decomposition
from deepforecast.plotting.style import COLORS, shorten

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TOLERANCE = 1e-9  # tolerance for periodicity, relative to the range
_MIN_CYCLES = 3  # minimum number of cycles to plot only one
_DAY = np.timedelta64(1, "D")


def plot_components(
    components: Frame,
    ahead: Frame | None = None,
    *,
    ids: Any = None,
    backend: Backend = "matplotlib",
    columns: Columns | Mapping[str, Any] | None = None,
) -> Any:
    """Plot the components of one series, one panel per component.

    A periodic component, such as a weekly season of daily values, is plotted for one cycle.

    Parameters
    ----------
    components : DataFrame
        Result of `decompose`, of `components` of a model or of `explain`; in general a long frame
        with the columns `component` and `value`.
    ahead : DataFrame, optional
        Components of the following steps (result of `explain`), continued in the same panels.
    ids : id, optional
        Series to plot. Default: the first one.
    backend : {"matplotlib", "plotly", "svg"}, default "matplotlib"
        Library that draws the chart. plotly is an optional package.
    columns : Columns or mapping, optional
        Names of the id, time and target columns, and covariates.

    Returns
    -------
    matplotlib.figure.Figure, plotly.graph_objects.Figure or SvgFigure
        The figure of the chosen backend. Matplotlib figures are independent of pyplot; save them
        with `savefig`. `SvgFigure.svg(width)` is an SVG element in the colours of its page.

    Examples
    --------
    >>> import pandas as pd
    >>> days = pd.date_range("2024-01-01", periods=4).repeat(2)
    >>> parts = pd.DataFrame({"ds": days, "component": ["trend", "promo"] * 4, "value": range(8)})
    >>> [axes.get_title(loc="left") or axes.get_title() for axes in plot_components(parts).axes]
    ['trend', 'promo']
    """
    check_backend(backend)
    past = _open(components, "components", columns)
    future = None if ahead is None else _open(ahead, "components ahead", columns)
    frames = [frame for frame in (past, future) if frame is not None]
    chosen, count = choose_series(frames, ids)
    rows = [frame.series_rows(chosen[0]) for frame in frames]
    names = list(dict.fromkeys(name for frame in rows for name in frame.column("component").to_list()))
    panels = tuple(_panel(rows, name) for name in names)
    titles = [] if chosen[0] is None else [shorten(str(chosen[0]), 60)]
    note = " · ".join([*titles, *([f"1 of {count:,} series"] if count > 1 and ids is None else [])])
    return render(Chart(panels, 1, 10.0, 1.9 if len(panels) > 1 else 3.9, note), backend)


def _open(components: Frame, what: str, columns: Any) -> TidyFrame:
    """Read the components as a long frame; `decompose` returns one column per component."""
    table = open_frame(components, what, columns, target=False)
    if "component" in table.frame.columns or not is_decomposition(table.frame.columns):
        return table
    keys = [name for name in (table.id, table.time) if name is not None]
    long = table.frame.unpivot(table.numeric_columns(), index=keys, variable_name="component", value_name="value")
    return replace(table, frame=long)


def _panel(component_frames: list[TidyFrame], name: str) -> Panel:
    """One component over time: a line per frame of `rows` (history, then forecast), or one cycle if the
    component is periodic."""
    arrays = [_component_arrays(frame, name) for frame in component_frames]
    stamps = np.concatenate([frame_stamps for frame_stamps, _ in arrays])
    values = np.concatenate([frame_values for _, frame_values in arrays])
    order = np.argsort(stamps, kind="stable")
    cycle = _find_cycle(stamps[order], values[order])
    if cycle:
        return _cycle_panel(stamps[order], values[order], cycle, name)
    marks: list[Mark] = [Line(times, value, color) for (times, value), color in zip(arrays, COLORS, strict=False) if len(times)]
    if len(arrays) > 1 and len(arrays[1][0]):
        marks.append(Rules(arrays[1][0][:1], label="forecast start"))
    return Panel(tuple(marks), name, component_frames[0].axis(), Axis())


def _component_arrays(component_frame: TidyFrame, name: str) -> tuple[Array, Array]:
    """Timestamps and values of one component; timestamps must be unique."""
    is_component = np.array([label == name for label in component_frame.column("component").to_list()], dtype=bool)
    stamps = component_frame.timestamps()[is_component]
    values = component_frame.values("value")[is_component]
    if len(np.unique(stamps)) < len(stamps):
        raise DataError(
            f"Each component must have one value per timestamp, but {name} has several.",
            hint="Pass the components of a single cutoff and model.",
        )
    return stamps, values


def _find_cycle(stamps: Array, values: Array) -> int:
    """Period of a component in rows, for evenly spaced rows; 0 if it is not periodic."""
    value_range = float(np.ptp(values)) if len(values) and np.isfinite(values).all() else 0.0
    if value_range == 0.0 or len(np.unique(np.diff(stamps))) != 1:
        return 0
    candidates = np.flatnonzero(np.abs(values[1:] - values[0]) <= _TOLERANCE * value_range) + 1
    for rows in candidates[candidates * _MIN_CYCLES <= len(values)]:
        if np.abs(values[rows:] - values[:-rows]).max() <= _TOLERANCE * value_range:
            return int(rows)
    return 0


def _cycle_panel(stamps: Array, values: Array, cycle: int, name: str) -> Panel:
    """One cycle; the days of a week are labelled by name from Monday on."""
    cycle_values = values[:cycle]
    has_dates = stamps.dtype.kind == "M"
    if cycle == len(WEEKDAYS) and has_dates and stamps[1] - stamps[0] == _DAY:
        first = int((stamps[0].astype("M8[D]").astype(int) + 3) % 7)  # 1970 began on a Thursday
        return Panel(
            (Line(np.arange(7.0), np.roll(cycle_values, first), COLORS[0]),), name, Axis(kind="names", names=WEEKDAYS), Axis()
        )
    start_text = f", from {np.datetime_as_string(stamps[0], unit='m').replace('T', ' ')}" if has_dates else ""
    x_axis = Axis(f"step of the cycle{start_text}", "integer")
    return Panel((Line(np.arange(1, cycle + 1), cycle_values, COLORS[0]),), name, x_axis, Axis())
