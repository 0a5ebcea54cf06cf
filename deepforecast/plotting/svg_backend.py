"""Rendering of charts as SVG in the colours of their page, with values on hover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deepforecast.errors import pluralize
from deepforecast.plotting.chart import Array, Axis, Chart, Dots, Key, Line, Panel
from deepforecast.plotting.limits import axis_range
from deepforecast.plotting.mark_elements import Box, Scale, color_and_opacity, draw_mark, escape_text, stroke, text
from deepforecast.plotting.style import format_compact, shorten
from deepforecast.plotting.ticks import Ticks, find_ticks
from deepforecast.plotting.timestamps import find_time_zone

_WIDTH = 800.0  # pixels, as all lengths here
_NARROW = 500.0  # a chart of at most this width has one column and short names
_INCH, _GAP = 82.0, 14.0  # of a chart; between two panels
_LETTER, _LINE = 7.3, 17.0  # width of a letter and height of a line of text of size 12
_MUTED_OPACITY = 0.8  # opacity of texts other than the data
_MAX_HOVERED = 400  # maximum number of timestamps of a panel with values on hover
_HALF_DAY = 43_200e6  # microseconds


@dataclass(frozen=True, eq=False, repr=False)
class SvgFigure:
    """Chart that can be rendered in any width; notebooks display it."""

    chart: Chart

    def svg(self, width: float = _WIDTH) -> str:
        """Return the element, `width` pixels wide; the page may scale it."""
        chart = self.chart
        narrow = width <= _NARROW
        if narrow:
            panels = tuple(replace(panel, span=1) for panel in chart.panels)
            chart = replace(chart, columns=1, panels=panels)
        top = _LINE + 4 if chart.note else 0.0
        column = (width + _GAP) / chart.columns
        row_height = chart.row_height * _INCH + _GAP
        elements = [text(shorten(chart.note, int(width / 7)), 0, 13, opacity=_MUTED_OPACITY)] if chart.note else []
        for index, panel in enumerate(chart.panels):
            row, first = chart.first_cell(index)
            left = first * column
            upper = top + row * row_height
            outer = Box(left, upper, left + column * panel.span - _GAP, upper + row_height - _GAP)
            elements.append(_panel(panel, outer, narrow))
        entries, height = _legend(chart.legend, width, top + len(chart.cells) * row_height)
        size = f"0 0 {width:.0f} {top + len(chart.cells) * row_height + height:.0f}"
        titles = [chart.note, *(panel.title for panel in chart.panels)]
        label = escape_text(shorten(" · ".join(title for title in titles if title), 300))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img" '
            f'aria-label="{label or "chart"}" font-family="system-ui, sans-serif" '
            f'fill="currentColor">{"".join(elements)}{entries}</svg>'
        )

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        """Size only, since marks hold all values."""
        return f"SvgFigure({pluralize(len(self.chart.panels), 'panel')})"


def _panel(panel: Panel, outer: Box, narrow: bool) -> str:
    """Axes and marks, with hover values on pages wide enough for a pointer."""
    y_axis = _shorten_names(panel.y) if narrow else panel.y
    (left, right), (low, high) = _limits(panel, "x"), _limits(panel, "y")
    y_ticks = find_ticks(y_axis, low, high, 6)
    lines = [label.split("   ") if narrow else [label] for label in y_ticks.labels]
    longest = max((len(line) for label in lines for line in label), default=0)
    start = outer.left + 10 + (0 if y_axis.hide_labels else _LETTER * longest)
    end = outer.right - 12
    x_ticks = find_ticks(panel.x, left, right, max(2, int((end - start) / 90)))
    x_title = panel.x.title or x_ticks.shared
    box = Box(
        start,
        outer.top + (_LINE + 3 if panel.title else 6) + (_LINE if y_axis.title else 0),
        end,
        outer.bottom - (0 if panel.x.hide_labels else _LINE + 4 + (_LINE if x_title else 0)),
    )
    x = Scale(panel.x, left, right, box.left, box.right)
    y = Scale(y_axis, low, high, box.bottom, box.top)
    elements = [_grid(panel, box, x, y, x_ticks, y_ticks)]
    if not panel.x.hide_labels:
        elements.append(_x_labels(x_title, x_ticks, x, box))
    if not y_axis.hide_labels:
        elements.append(_y_labels(lines, y.axis_to_pixels(y_ticks.positions), box))
    if y_axis.title:
        elements.append(text(y_axis.title, outer.left, box.top - 8, opacity=_MUTED_OPACITY))
    if panel.title:
        title = shorten(panel.title, int((outer.right - outer.left) / 7.5))
        elements.append(text(title, outer.left, outer.top + 13, size=13))
    elements += [draw_mark(mark, x, y, box, narrow) for mark in panel.marks]
    if not panel.marks:
        middle = (box.left + box.right) / 2, (box.top + box.bottom) / 2
        elements.append(text("no values", *middle, "middle", opacity=_MUTED_OPACITY))
    if not narrow:
        elements.append(_hover(panel, x, box))
    return "".join(elements)


def _limits(panel: Panel, side: str) -> tuple[float, float]:
    """Axis range; one unit to each side of a single value or zero."""
    axis = panel.x if side == "x" else panel.y
    if axis.kind == "names":
        return -0.6, len(axis.names) - 0.4
    ends = axis_range(panel, side)
    if ends is not None and ends[0] < ends[1]:
        return ends
    marks = [mark for mark in panel.marks if isinstance(mark, Line | Dots) and len(mark.x)]
    values = (marks[0].x if side == "x" else marks[0].y) if marks else np.zeros(1)
    if values.dtype.kind == "M":
        values = values.astype("M8[us]").astype(np.int64)
    finite_values = values[np.isfinite(values.astype(np.float64))]
    middle = float(finite_values[0]) if len(finite_values) else 0.0
    if axis.kind == "log":
        middle = float(np.log10(middle)) if middle > 0 else 0.0
    half = _HALF_DAY if axis.kind == "time" else 1.0
    return middle - half, middle + half


def _shorten_names(axis: Axis) -> Axis:
    """Shorten names for narrow pages; the value after a name is retained."""
    names = []
    for name in axis.names:
        model, separator, value = name.rpartition("   ")
        names.append(f"{shorten(model, 16)}{separator}{value}" if separator else shorten(name, 16))
    return replace(axis, names=tuple(names))


def _grid(panel: Panel, box: Box, x: Scale, y: Scale, x_ticks: Ticks, y_ticks: Ticks) -> str:
    """Grid lines at the ticks, and the x axis."""
    if panel.y.kind == "names":
        lines = [f"M{position:.1f} {box.top:.1f}V{box.bottom:.1f}" for position in x.axis_to_pixels(x_ticks.positions)]
    else:
        lines = [f"M{box.left:.1f} {position:.1f}H{box.right:.1f}" for position in y.axis_to_pixels(y_ticks.positions)]
    axis = stroke([f"M{box.left:.1f} {box.bottom:.1f}H{box.right:.1f}"], "currentColor", 1, 0.4)
    return stroke(lines, "currentColor", 1, 0.13) + axis


def _x_labels(title: str, x_ticks: Ticks, x: Scale, box: Box) -> str:
    """SVG texts of the tick labels and, right-aligned below them, the title of the x axis."""
    labels = [
        text(label, position, box.bottom + 15, "middle", opacity=_MUTED_OPACITY)
        for label, position in zip(x_ticks.labels, x.axis_to_pixels(x_ticks.positions), strict=True)
    ]
    if title:
        labels.append(text(title, box.right, box.bottom + 15 + _LINE, "end", opacity=_MUTED_OPACITY))
    return "".join(labels)


def _y_labels(labels: Sequence[Sequence[str]], tick_positions: Array, box: Box) -> str:
    """Labels of one or more lines, centred at their tick."""
    step = 0.85 * _LINE
    return "".join(
        text(line, box.left - 7, top + 4 + step * (row - (len(lines) - 1) / 2), "end", opacity=_MUTED_OPACITY)
        for lines, top in zip(labels, tick_positions, strict=True)
        for row, line in enumerate(lines)
    )


def _hover(panel: Panel, x: Scale, box: Box) -> str:
    """A transparent column around each timestamp that shows the values of all lines."""
    lines = [mark for mark in panel.marks if isinstance(mark, Line) and mark.label]
    if panel.x.kind not in ("time", "integer") or not lines:
        return ""
    values: dict[int, list[str]] = {}
    for line in lines:
        stamps = line.x.astype("M8[us]") if line.x.dtype.kind == "M" else line.x
        for row, stamp in enumerate(stamps.astype(np.int64).tolist()):
            if np.isfinite(line.y[row]):
                values.setdefault(stamp, []).append(_value_text(line, row))
    if len(values) > _MAX_HOVERED:
        return ""
    stamps = np.array(sorted(values))
    positions = x.axis_to_pixels(stamps)
    ends = np.concatenate([[box.left], (positions[1:] + positions[:-1]) / 2, [box.right]])
    columns = [
        f'<rect x="{ends[row]:.1f}" y="{box.top:.1f}" width="{ends[row + 1] - ends[row]:.1f}" '
        f'height="{box.bottom - box.top:.1f}"><title>'
        f"{chr(10).join(map(escape_text, [_stamp_text(stamp, panel.x), *values[stamp]]))}</title></rect>"
        for row, stamp in enumerate(stamps.tolist())
    ]
    return f'<g fill="none" pointer-events="all">{"".join(columns)}</g>'


def _value_text(line: Line, row: int) -> str:
    """Value of a line and its intervals at one point."""
    intervals = [
        f"{label} {format_compact(low[row])} to {format_compact(high[row])}"
        for label, low, high in line.intervals
        if np.isfinite(low[row])
    ]
    return ", ".join([f"{line.label}: {format_compact(float(line.y[row]))}", *intervals])


def _stamp_text(stamp: int, axis: Axis) -> str:
    """A time step for hover texts: local time in the zone of the axis (`stamp`: microseconds), or an integer."""
    if axis.kind != "time":
        return f"{axis.title} {stamp}".strip()
    import pandas as pd

    local = pd.Timestamp(stamp, unit="us", tz="UTC").tz_convert(find_time_zone(axis.zone))
    return str(local.tz_localize(None)).removesuffix(" 00:00:00")


def _legend(keys: Sequence[Key], width: float, top: float) -> tuple[str, float]:
    """Legend entries in as many lines as needed, and their height."""
    elements = []
    left = 0.0
    line = 0
    for key in keys:
        label = shorten(key.label, max(8, int((width - 40) / _LETTER)))
        needed = 36 + _LETTER * len(label)
        if left and left + needed > width:
            left = 0.0
            line = line + 1
        y = top + line * (_LINE + 3) + 8
        color, opacity = color_and_opacity(key.color)
        opacity *= key.opacity
        if key.kind == "dot":
            circle = f'<circle cx="{left + 11:.0f}" cy="{y:.0f}" r="4"'
            elements.append(f'{circle} fill="{color}" fill-opacity="{opacity:.2f}"/>')
        else:
            thickness = 12.0 if key.kind == "band" else 2.4
            elements.append(stroke([f"M{left:.0f} {y:.0f}h22"], color, thickness, opacity, key.dash))
        elements.append(text(label, left + 28, y + 4))
        left += needed + 14
    return "".join(elements), (line + 1) * (_LINE + 3) if keys else 0.0
