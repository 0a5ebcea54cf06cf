"""Rendering of charts with plotly, for light and dark pages."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from deepforecast.plotting.chart import (
    INK,
    MUTED,
    Array,
    Axis,
    Band,
    Bars,
    Chart,
    Dots,
    Heat,
    Key,
    Labels,
    Line,
    Mark,
    Panel,
    Rules,
    Spans,
)
from deepforecast.plotting.label_placement import place_labels
from deepforecast.plotting.limits import axis_range
from deepforecast.plotting.style import NEUTRAL, OPACITY_POWER, SHADE_COLOR
from deepforecast.plotting.timestamps import find_time_zone

_TONES = {INK: NEUTRAL, MUTED: NEUTRAL}
_INCH, _POINT = 96.0, 96 / 72  # pixels
_GAP, _HEADER, _FOOTER = 62, 58, 52  # pixels: between two rows, over the first, from the last to the legend
_GRID_COLOR = "rgba(128,128,128,0.22)"
_PAGE = (600.0, 260.0)  # of a single panel, in points
_CORNER = {"x": 0, "y": 1, "xref": "x domain", "yref": "y domain", "xanchor": "left", "yanchor": "bottom", "showarrow": False}


def paint(chart: Chart) -> go.Figure:
    """Render the chart as an interactive figure of responsive width."""
    if any(panel.y.kind == "names" for panel in chart.panels):
        chart = replace(chart, columns=1)  # label sizes depend on the page width
    cells = chart.cells
    body = len(cells) * chart.row_height * _INCH * 0.85 + (len(cells) - 1) * _GAP
    figure = make_subplots(
        rows=len(cells),
        cols=chart.columns,
        specs=[_specs(row) for row in cells],
        vertical_spacing=_GAP / body if len(cells) > 1 else 0,
        horizontal_spacing=_tick_label_width(chart) / _INCH / chart.width if chart.columns > 1 else 0,
    )
    legend = _Legend(chart.legend)
    for index, panel in enumerate(chart.panels):
        row, column = chart.first_cell(index)
        _paint_panel(figure, panel, row + 1, column + 1, legend)
    figure.add_traces(legend.missing_entries())
    _set_layout(figure, chart, body)
    return figure


class _Legend:
    """Legend entries, each shown by its first trace; a click hides its group in all panels."""

    def __init__(self, keys: tuple[Key, ...]) -> None:
        self.keys = {key.label: key for key in keys}
        self.shown_labels: set[str] = set()

    def add_trace(self, trace: Any, mark: Mark) -> None:
        """Name and group a trace, and show its legend entry if it is the first one."""
        label = getattr(mark, "label", "")
        key = self.keys.get(label)
        owns_entry = key is not None and key.color == getattr(mark, "color", None)
        group = label if owns_entry else getattr(mark, "group", "") or label
        trace.update(name=_escape(label), legendgroup=_escape(group), showlegend=False)
        if owns_entry and label not in self.shown_labels and not isinstance(mark, Band):
            self.shown_labels.add(label)
            trace.update(showlegend=True, legendrank=self._rank(label))

    def missing_entries(self) -> list[Any]:
        """Entries for levels: overlapping areas look darker than a single one."""
        traces = []
        for key in self.keys.values():
            if key.label not in self.shown_labels:
                marker = {"color": _rgba(key.color, key.opacity), "symbol": "square", "size": 12}
                entry = {"name": _escape(key.label), "legendgroup": _escape(key.label), "legendrank": self._rank(key.label)}
                traces.append(go.Scatter(x=[None], y=[None], mode="markers", marker=marker, showlegend=True, **entry))
        return traces

    def _rank(self, label: str) -> int:
        return 1000 + list(self.keys).index(label)


def _specs(row: list[int]) -> list[dict[str, Any] | None]:
    """Subplot specification: the first cell of a panel states its column span."""
    return [None if cell == -1 or cell in row[:position] else {"colspan": row.count(cell)} for position, cell in enumerate(row)]


def _paint_panel(figure: go.Figure, panel: Panel, row: int, column: int, legend: _Legend) -> None:
    """Add the marks, title and axes of a panel to the cell (row, column), counted from 1."""
    for mark in panel.marks:
        trace = _trace(mark, panel)
        if trace is not None:
            legend.add_trace(trace, mark)
            figure.add_trace(trace, row=row, col=column)
        elif isinstance(mark, Rules):
            _paint_rules(figure, mark, panel, row, column)
    if not panel.marks:  # an empty panel keeps its axes only if there is some trace in it
        figure.add_trace(go.Scatter(x=[None], y=[None], showlegend=False), row=row, col=column)
    figure.update_xaxes(_axis(panel.x, axis_range(panel, "x")), row=row, col=column)
    figure.update_yaxes(_axis(panel.y, axis_range(panel, "y")), row=row, col=column)
    title = panel.title if panel.marks else f"{panel.title} (no values)"
    if title:
        figure.add_annotation(text=_escape(title), font={"size": 13}, row=row, col=column, **_CORNER)


def _trace(mark: Mark, panel: Panel) -> Any:
    """The trace of a mark; None if it is drawn as shape or annotation."""
    match mark:
        case Line():
            return _line(mark, panel)
        case Dots():
            marker = {"color": _color(mark.color), "size": mark.size * _POINT, "opacity": mark.opacity}
            names = [_escape(name) for name in mark.names] or None
            hover = "%{text}<extra></extra>" if names else f"%{{x}}<br>%{{y:{_number_format(mark.y)}}}<extra></extra>"
            return go.Scatter(
                x=_plot_values(mark.x, panel.x), y=mark.y, mode="markers", marker=marker, text=names, hovertemplate=hover
            )
        case Band():
            return _band(mark, panel)
        case Spans():
            return _spans(mark, panel)
        case Bars():
            middles = (mark.edges[:-1] + mark.edges[1:]) / 2
            widths = np.diff(mark.edges)
            hover = f"around %{{x:{_number_format(middles)}}}: %{{y:.3~g}}<extra></extra>"
            color = _rgba(mark.color, mark.opacity)
            return go.Bar(x=middles, y=mark.heights, width=widths, marker_color=color, hovertemplate=hover)
        case Heat():
            return _heat(mark, panel)
        case Labels():
            return _labels(mark, panel)
        case Rules():
            return None


def _line(mark: Line, panel: Panel) -> Any:
    """A line whose hover text has the value and the intervals."""
    number_format = _number_format(mark.y)
    interval_text = "".join(
        f"<br>{_escape(label)}: %{{customdata[{2 * position}]:{number_format}}} to %{{customdata[{2 * position + 1}]:{number_format}}}"
        for position, (label, _, _) in enumerate(mark.intervals)
    )
    bounds = np.column_stack([side for _, low, high in mark.intervals for side in (low, high)]) if mark.intervals else None
    style = {"color": _color(mark.color), "width": mark.width * _POINT, "dash": mark.dash}
    hover = f"%{{y:{number_format}}}{interval_text}"
    x = _plot_values(mark.x, panel.x)
    return go.Scatter(x=x, y=mark.y, mode="lines", line=style, opacity=mark.opacity, customdata=bounds, hovertemplate=hover)


def _band(mark: Band, panel: Panel) -> Any:
    """One closed outline for each run without missing values, in a single trace."""
    is_present = np.isfinite(mark.low) & np.isfinite(mark.high)
    runs = [
        run
        for run in np.split(np.arange(len(is_present)), np.flatnonzero(np.diff(is_present)) + 1)
        if len(run) and is_present[run[0]]
    ]
    outline = np.concatenate([np.concatenate([run, run[::-1], run[:1]]) for run in runs])
    heights = np.concatenate([np.concatenate([mark.high[run], mark.low[run][::-1], [np.nan]]) for run in runs])
    fill = _rgba(mark.color, mark.opacity)
    x = _plot_values(mark.x, panel.x)[outline]
    return go.Scatter(x=x, y=heights, fill="toself", fillcolor=fill, line={"width": 0}, mode="lines", hoverinfo="skip")


def _spans(mark: Spans, panel: Panel) -> Any:
    """All spans as one line that is interrupted by NaN between them, without hover text."""
    positions = np.repeat(_plot_values(mark.positions, panel.x) if mark.vertical else mark.positions, 3)
    ends = np.column_stack([mark.low, mark.high, np.full(len(mark.low), np.nan)]).ravel()
    style = {"color": _color(mark.color), "width": mark.width * _POINT}
    x, y = (positions, ends) if mark.vertical else (ends, positions)
    return go.Scatter(x=x, y=y, mode="lines", line=style, opacity=mark.opacity, hoverinfo="skip")


def _heat(mark: Heat, panel: Panel) -> Any:
    hover = "%{y} attends to %{x}: weight %{z:.3~g}<extra></extra>"
    coordinates = {"x": _plot_values(mark.x, panel.x), "y": _plot_values(mark.y, panel.y)}
    return go.Heatmap(z=mark.values, coloraxis="coloraxis", hoverongaps=False, hovertemplate=hover, **coordinates)


def _labels(mark: Labels, panel: Panel) -> Any:
    """Labels without overlaps at the usual page width."""
    points, path = (_page_points(x, y, mark, panel) for x, y in ((mark.x, mark.y), mark.path))
    shown = [
        (index, spot) for index, spot in enumerate(place_labels(points, mark.words, mark.keep, (0, 0, *_PAGE), path)) if spot
    ]
    rows = np.array([index for index, _ in shown], dtype=int)
    vertical_words = {"bottom": "top", "top": "bottom", "center": "middle"}
    horizontal_words = {"left": "right", "right": "left", "center": "center"}
    sides_of_point = [f"{vertical_words[spot.vertical]} {horizontal_words[spot.horizontal]}" for _, spot in shown]
    words = [_escape(mark.words[index]) for index in rows]
    style: dict[str, Any] = {"text": words, "textposition": sides_of_point, "cliponaxis": False, "hoverinfo": "skip"}
    hidden_marker = {"size": 13, "opacity": 0}  # distance of labels from dots
    return go.Scatter(x=mark.x[rows], y=mark.y[rows], mode="markers+text", marker=hidden_marker, **style)


def _page_points(x: Array, y: Array, mark: Labels, panel: Panel) -> Array:
    """Data coordinates to points at the usual page width."""
    coordinates = []
    for values, mark_values, axis, length in ((x, mark.x, panel.x, _PAGE[0]), (y, mark.y, panel.y, _PAGE[1])):
        values, mark_values = (np.log10(side) if axis.kind == "log" else side for side in (values, mark_values))
        coordinates.append(length * (0.05 + 0.9 * (values - mark_values.min()) / (np.ptp(mark_values) or 1.0)))
    return np.column_stack(coordinates)


def _paint_rules(figure: go.Figure, rules: Rules, panel: Panel, row: int, column: int) -> None:
    """Add lines across the whole panel at the positions of `rules`, below all traces."""
    style = {"color": _color(rules.color), "width": 1.2, "dash": rules.dash}
    for position in _plot_values(rules.positions, panel.x) if rules.vertical else rules.positions:
        value = position.item() if isinstance(position, np.generic) else position
        along, across = ("x", "y") if rules.vertical else ("y", "x")
        ends = {f"{along}0": value, f"{along}1": value, f"{across}0": 0, f"{across}1": 1, f"{across}ref": f"{across} domain"}
        figure.add_shape(type="line", line=style, layer="below", row=row, col=column, **ends)


def _axis(axis: Axis, ends: tuple[float, float] | None) -> dict[str, Any]:
    """Axis layout with explicit range: plotly leaves no margin and ignores shapes."""
    settings: dict[str, Any] = {
        "title": {"text": _escape(axis.title), "font": {"size": 12}, "standoff": 8},
        "gridcolor": _GRID_COLOR,
        "linecolor": NEUTRAL,
        "tickcolor": NEUTRAL,
        "tickfont": {"size": 12},
        "zeroline": False,
        "automargin": True,
        "showspikes": False,  # its outline is white on any page
    }
    if axis.hide_labels:
        settings["showticklabels"] = False
    if axis.tick_multiple:
        settings |= {"dtick": axis.tick_multiple, "tick0": 0}
    if ends is not None:
        settings["range"] = _format_range(ends, axis) if axis.kind == "time" else list(ends)
    return settings | _axis_type(axis, ends)


def _axis_type(axis: Axis, ends: tuple[float, float] | None) -> dict[str, Any]:
    """The plotly settings of a kind of axis. `ends`: the range of the values, None if there are none."""
    if axis.kind == "time":
        return {"type": "date", "showgrid": False, "ticks": "outside"}
    if axis.kind == "integer":
        return {"tickformat": "d", "showgrid": False, "ticks": "outside"}
    if axis.kind == "log":
        return {"type": "log", "dtick": 1, "exponentformat": "none"}
    if axis.kind == "names":
        names = [_escape(name) for name in axis.names]
        ticks = {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": names, "showgrid": False}
        return ticks | {"range": [-0.6, len(names) - 0.4]}
    plain = ends is None or 1e-4 <= max(abs(end) for end in ends) < 1e13
    return {"exponentformat": "none" if plain else "power", "separatethousands": True}


def _format_range(ends: tuple[float, float], axis: Axis) -> list[str]:
    return [str(end) for end in _plot_values(np.array(ends).astype("M8[us]"), axis).astype("M8[us]")]


def _set_layout(figure: go.Figure, chart: Chart, body: float) -> None:
    """Set size, margins, fonts, legend and note. `body`: pixels of the panels without margins."""
    temporal = chart.heat is None and all(panel.x.kind in ("time", "integer") for panel in chart.panels)
    head = _HEADER + 26 * bool(chart.note)
    foot = _FOOTER + 18 * any(panel.x.title for panel in chart.panels)
    entries = {"orientation": "h", "x": 0, "xanchor": "left", "y": -foot / body, "yanchor": "top", "font": {"size": 12}}
    figure.update_layout(
        template="none",
        height=int(body + head + foot + 34 * bool(chart.legend)),
        margin={"l": 56, "r": 16, "t": head, "b": foot + 34 * bool(chart.legend), "pad": 0},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, -apple-system, 'Segoe UI', sans-serif", "color": NEUTRAL, "size": 12},
        hovermode="x unified" if temporal else "closest",
        hoverlabel={"bgcolor": "#2B2B2B", "bordercolor": "#2B2B2B", "font": {"color": "#FFFFFF", "size": 12}},
        legend=entries,
        showlegend=bool(chart.legend),
        bargap=0,
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": NEUTRAL, "activecolor": "#0072B2"},
    )
    if chart.heat is not None:
        figure.update_layout(coloraxis=_color_bar(chart.heat), margin_r=90)
    if chart.note:
        corner = _CORNER | {"xref": "paper", "yref": "paper", "yshift": 26}
        figure.add_annotation(text=_escape(chart.note), **corner)


def _color_bar(heat: Heat) -> dict[str, Any]:
    """One colour bar for all panels."""
    bar = {"title": {"text": _escape(heat.label), "side": "right"}, "outlinewidth": 0, "thickness": 12, "tickcolor": NEUTRAL}
    scale = [[share, _rgba(SHADE_COLOR, share**OPACITY_POWER)] for share in (0.0, 0.01, 0.04, 0.1, 0.2, 0.4, 0.7, 1.0)]
    return {"cmin": 0.0, "cmax": heat.vmax, "colorscale": scale, "colorbar": bar}


def _plot_values(values: Array, axis: Axis) -> Array:
    """Timestamps in local time: plotly does not support time zones."""
    if axis.kind != "time" or axis.zone is None:
        return values
    import pandas as pd

    return np.asarray(pd.DatetimeIndex(values).tz_localize("UTC").tz_convert(find_time_zone(axis.zone)).tz_localize(None))


def _number_format(values: Array) -> str:
    """Format with as many decimals as distinguish the values."""
    finite_values = values[np.isfinite(values)]
    spread = (np.ptp(finite_values) or np.abs(finite_values).max()) if len(finite_values) else 0.0
    return f",.{int(np.clip(3 - np.floor(np.log10(spread)), 0, 12)) if spread > 0 else 3}~f"


def _tick_label_width(chart: Chart) -> float:
    """Pixels between two columns, for the tick labels of the right one."""
    ends = [end for panel in chart.panels for end in axis_range(panel, "y") or () if abs(end) < 1e13]
    return 50.0 + 8.0 * max((len(f"{end:,.0f}") for end in ends), default=4)


def _color(color: str) -> str:
    return _TONES.get(color, color)


def _rgba(color: str, opacity: float) -> str:
    red, green, blue = (int(_color(color)[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:.3f})"


def _escape(text: str) -> str:
    """Text without tags and dollars (MathJax delimiters)."""
    return escape(text, quote=False).replace("$", "&#36;")
