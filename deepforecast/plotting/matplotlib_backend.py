"""Rendering of charts with matplotlib, without pyplot and its global state."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, MultipleLocator, NullFormatter, ScalarFormatter

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
    cell_edges,
)
from deepforecast.plotting.label_placement import Spot, place_labels
from deepforecast.plotting.style import COLOR_POWER, SHADES, format_compact
from deepforecast.plotting.ticks import TIME_OFFSETS, TIME_STARTS, TIME_TICKS
from deepforecast.plotting.timestamps import find_time_zone

_TONES = {INK: "#2B2B2B", MUTED: "#8A8A8A"}
_DASHES: dict[str, Any] = {"solid": "-", "dash": (0, (5, 2)), "dot": (0, (1.5, 1.5)), "dashdot": (0, (5, 1.5, 1.5, 1.5))}
_TEXT, _MUTED_TEXT = "#222222", "#5A5A5A"


class NotebookFigure(Figure):
    """Matplotlib figure that displays itself in notebooks without pyplot."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        self.savefig(picture, format="png", dpi=110)
        return picture.getvalue()


class _FullNumberFormatter(ScalarFormatter):
    """Format numbers without offset: 3,000,001 instead of 1 and +3e6."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        # Four digits stay together: 2024 is more often a year than an amount.
        return re.sub(r"^(\D?)(\d{5,})", lambda match: f"{match[1]}{int(match[2]):,}", super().__call__(x, pos))


def paint(chart: Chart) -> Figure:
    """Render the chart as a matplotlib figure."""
    cells = chart.cells
    head = 0.35 * bool(chart.note) + (0.25 + 0.2 * -(-len(chart.legend) // _legend_columns(chart)) if chart.legend else 0)
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08, hspace=0.04, wspace=0.03)
    figure = NotebookFigure(figsize=(chart.width, chart.row_height * len(cells) + head), layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplot_mosaic([[str(cell) for cell in row] for row in cells], empty_sentinel="-1")
    for index, panel in enumerate(chart.panels):
        _paint_panel(axes[str(index)], panel, chart.width * panel.span / chart.columns)
    if chart.note:
        figure.suptitle(chart.note, x=0.01, ha="left", fontsize=9, color=_MUTED_TEXT, parse_math=False)
    if chart.legend:
        _paint_legend(figure, chart)
    if chart.heat is not None:
        _paint_bar(figure, chart.heat)
    _paint_labels(figure, chart, axes)
    return figure


def _paint_panel(axes: Axes, panel: Panel, width: float) -> None:
    """Draw the marks, title and axes of a panel; later marks are on top. `width`: inches of the panel."""
    axes.set_facecolor("white")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#B0B0B0")
    axes.tick_params(labelsize=9, color="#B0B0B0", labelcolor=_MUTED_TEXT)
    axes.grid(True, axis="x" if panel.y.kind == "names" else "y", color="#E6E6E6", linewidth=0.8)
    axes.set_axisbelow(True)
    if panel.title:
        axes.set_title(panel.title, loc="left", fontsize=10.5, color=_TEXT, parse_math=False)
    for depth, mark in enumerate(panel.marks):
        _paint_mark(axes, mark, panel, 2 + depth / 1000)
    _set_axis(axes, panel.x, "x", width)
    _set_axis(axes, panel.y, "y", width)
    if not panel.marks:
        axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", va="center", color=_MUTED_TEXT, fontsize=9)


def _paint_mark(axes: Axes, mark: Mark, panel: Panel, zorder: float) -> None:
    """Draw one mark; labels are skipped, as they are placed once all points are drawn."""
    match mark:
        case Line(x=x, y=y):
            style: dict[str, Any] = {"linestyle": _DASHES[mark.dash], "linewidth": mark.width, "alpha": mark.opacity}
            axes.plot(_plot_values(x, panel.x), y, color=_color(mark.color), label=mark.label or None, zorder=zorder, **style)
        case Dots(x=x, y=y):
            area = mark.size**2
            axes.scatter(
                _plot_values(x, panel.x), y, s=area, color=_color(mark.color), alpha=mark.opacity, linewidths=0, zorder=zorder
            )
        case Band(x=x, low=low, high=high):
            fill_style: dict[str, Any] = {"color": _color(mark.color), "alpha": mark.opacity, "linewidth": 0}
            axes.fill_between(_plot_values(x, panel.x), low, high, label=mark.label or None, zorder=zorder, **fill_style)
        case Spans(low=low, high=high):
            lines = axes.vlines if mark.vertical else axes.hlines
            positions = _plot_values(mark.positions, panel.x) if mark.vertical else mark.positions
            lines(positions, low, high, color=_color(mark.color), linewidth=mark.width, alpha=mark.opacity, zorder=zorder)
        case Heat(x=x, y=y):
            _paint_heat(axes, mark, panel, zorder)
        case Bars(edges=ends, heights=heights):
            color = _color(mark.color)
            axes.stairs(heights, ends, fill=True, color=color, alpha=mark.opacity, zorder=zorder)
            axes.stairs(heights, ends, fill=False, color=color, linewidth=0.8, zorder=zorder, label=mark.label or None)
        case Rules():
            _paint_rules(axes, mark, panel)
        case Labels():  # placed last, when all points are in place
            pass


def _paint_heat(axes: Axes, heat: Heat, panel: Panel, zorder: float) -> None:
    corners = _plot_values(cell_edges(heat.x), panel.x), _plot_values(cell_edges(heat.y), panel.y)
    axes.pcolormesh(*corners, heat.values, cmap=_colormap(), vmin=0.0, vmax=heat.vmax, zorder=zorder, rasterized=True)
    axes.margins(0)
    axes.grid(False)


def _paint_bar(figure: Figure, heat: Heat) -> None:
    """Draw one colour bar for all panels."""
    shades = ScalarMappable(Normalize(0.0, heat.vmax), _colormap())
    bar = figure.colorbar(shades, ax=figure.axes, shrink=0.8, aspect=30, pad=0.015)
    bar.outline.set_visible(False)
    bar.set_label(heat.label, fontsize=9, color=_MUTED_TEXT)
    bar.ax.tick_params(labelsize=9, color="#B0B0B0", labelcolor=_MUTED_TEXT)


def _colormap() -> LinearSegmentedColormap:
    linear_map = LinearSegmentedColormap.from_list("even", list(SHADES))
    return LinearSegmentedColormap.from_list("shades", linear_map(np.linspace(0.0, 1.0, 256) ** COLOR_POWER))


def _paint_rules(axes: Axes, rules: Rules, panel: Panel) -> None:
    draw = axes.axvline if rules.vertical else axes.axhline
    for index, position in enumerate(_plot_values(rules.positions, panel.x) if rules.vertical else rules.positions):
        label = rules.label if index == 0 and rules.label else None
        draw(float(position), color=_color(rules.color), linestyle=_DASHES[rules.dash], linewidth=1.0, zorder=1.5, label=label)


def _set_axis(axes: Axes, axis: Axis, side: str, width: float) -> None:
    """Set title, scale, ticks and tick labels of one axis. `side`: "x" or "y"; `width`: inches of the panel."""
    mpl_axis = axes.xaxis if side == "x" else axes.yaxis
    if axis.title:
        mpl_axis.set_label_text(axis.title, fontsize=9, color=_MUTED_TEXT, parse_math=False)
    if axis.kind == "time":
        zone = find_time_zone(axis.zone)
        locator = AutoDateLocator(tz=zone, minticks=3, maxticks=max(4, int(width)))  # type: ignore[no-untyped-call]
        mpl_axis.set_major_locator(locator)
        mpl_axis.set_major_formatter(ConciseDateFormatter(locator, zone, TIME_TICKS, TIME_OFFSETS, zero_formats=TIME_STARTS))  # type: ignore[no-untyped-call]
        # On a vertical axis it would overlap the title.
        mpl_axis.get_offset_text().set(fontsize=9, color=_MUTED_TEXT, visible=side == "x")
    elif axis.tick_multiple:
        mpl_axis.set_major_locator(MultipleLocator(axis.tick_multiple))
    elif axis.kind == "integer":
        mpl_axis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))
    elif axis.kind == "log":
        (axes.set_xscale if side == "x" else axes.set_yscale)("log")
        mpl_axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
        mpl_axis.set_major_formatter(FuncFormatter(lambda value, _: format_compact(value)))
        mpl_axis.set_minor_formatter(NullFormatter())
    elif axis.kind == "names":
        mpl_axis.set_ticks(np.arange(len(axis.names)), axis.names, parse_math=False)
        (axes.set_xlim if side == "x" else axes.set_ylim)(-0.6, len(axis.names) - 0.4)
    else:
        mpl_axis.set_major_locator(MaxNLocator(nbins=8 if side == "x" else 6, steps=[1, 2, 2.5, 5, 10]))
        formatter = _FullNumberFormatter(useOffset=False)
        formatter.set_powerlimits((-4, 13))
        mpl_axis.set_major_formatter(formatter)
    if axis.hide_labels:
        axes.tick_params(axis="x" if side == "x" else "y", labelbottom=False, labelleft=False)
        mpl_axis.get_offset_text().set_visible(False)


def _paint_legend(figure: Figure, chart: Chart) -> None:
    """Draw the legend of all panels below the figure."""
    columns = _legend_columns(chart)
    handles = [_legend_handle(key) for key in chart.legend]
    legend = figure.legend(
        handles, [" "] * len(handles), loc="outside lower left", ncols=columns, frameon=False, fontsize=9, labelcolor=_TEXT
    )
    # The words come afterwards: a name that begins with an underscore would be left out, dollars be read as mathematics.
    for text, key in zip(legend.get_texts(), chart.legend, strict=True):
        text.set_parse_math(False)
        text.set_text(key.label)


def _legend_columns(chart: Chart) -> int:
    """Number of legend columns that the longest entry allows."""
    longest = max((len(key.label) for key in chart.legend), default=0)
    return max(1, min(len(chart.legend), int((chart.width - 0.4) / (0.75 + 0.075 * longest))))


def _legend_handle(key: Key) -> Line2D | Patch:
    """The symbol of a key: a filled patch for intervals, a dot, or a line."""
    color = _color(key.color)
    if key.kind == "band":
        return Patch(facecolor=color, alpha=key.opacity, linewidth=0)
    if key.kind == "dot":
        return Line2D([], [], color=color, marker="o", markersize=5, linestyle="", alpha=key.opacity)
    return Line2D([], [], color=color, linestyle=_DASHES[key.dash], linewidth=1.8, alpha=key.opacity)


def _paint_labels(figure: Figure, chart: Chart, axes: dict[Any, Axes]) -> None:
    """Draw labels next to points without overlaps."""
    for index, panel in enumerate(chart.panels):
        for mark in panel.marks:
            if not isinstance(mark, Labels):
                continue
            figure.draw_without_rendering()  # the axes get their position here
            panel_axes = axes[str(index)]
            points, path = (
                panel_axes.transData.transform(np.column_stack(corners)) * 72 / figure.dpi
                for corners in ((mark.x, mark.y), mark.path)
            )
            left, bottom, right, top = (edge * 72 / figure.dpi for edge in panel_axes.bbox.extents)
            spots = place_labels(points, mark.words, mark.keep, (left, bottom, right, top), path)
            for word, spot, x, y in zip(mark.words, spots, mark.x, mark.y, strict=True):
                if spot is not None:
                    _annotate(panel_axes, word, (float(x), float(y)), spot)


def _annotate(axes: Axes, word: str, point: tuple[float, float], spot: Spot) -> None:
    style: dict[str, Any] = {"fontsize": 9, "color": _TEXT, "ha": spot.horizontal, "va": spot.vertical, "parse_math": False}
    text = axes.annotate(word, point, (spot.dx, spot.dy), textcoords="offset points", zorder=4, **style)
    text.set_in_layout(False)  # else the layout would move the axes


def _plot_values(values: Array, axis: Axis) -> Array:
    """Timestamps as matplotlib dates, independent of registered converters."""
    return np.asarray(date2num(values)) if axis.kind == "time" else values  # type: ignore[no-untyped-call]


def _color(color: str) -> str:
    return _TONES.get(color, color)
