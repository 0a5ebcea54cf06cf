"""The marks of a panel as SVG elements, inside the box that its axes leave.

Positions are pixels; y grows downwards. Colours follow the text of the page (`currentColor`) or read
on a light and on a dark one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from deepforecast.errors import escape_control_characters
from deepforecast.plotting.chart import (
    INK,
    MUTED,
    Array,
    Axis,
    Band,
    Bars,
    Dash,
    Dots,
    Heat,
    Labels,
    Line,
    Mark,
    Rules,
    Spans,
    cell_edges,
)
from deepforecast.plotting.label_placement import place_labels
from deepforecast.plotting.style import OPACITY_POWER, SHADE_COLOR, format_compact, shorten

_POINT = 96 / 72  # pixels
_DASHES: dict[Dash, str] = {"solid": "", "dash": "6 3", "dot": "2 2.5", "dashdot": "6 2.5 2 2.5"}
_TONES = {INK: ("currentColor", 1.0), MUTED: ("currentColor", 0.55)}
_ANCHORS = {"left": "start", "right": "end", "center": "middle"}
_BASELINE = {"bottom": 0.0, "center": 4.0, "top": 9.0}  # pixels below the point a text is attached to
_HOVER_RADIUS = 9.0  # hover radius of a dot


@dataclass(frozen=True)
class Box:
    """Plotting area of a panel."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Scale:
    """Linear map from axis values to pixels: `low` is at `start`, `high` at `end`."""

    axis: Axis
    low: float
    high: float
    start: float
    end: float

    def to_pixels(self, values: Array) -> Array:
        """Pixels of values or timestamps."""
        if values.dtype.kind == "M":
            values = values.astype("M8[us]").astype(np.int64)
        numbers = values.astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.axis_to_pixels(np.log10(numbers) if self.axis.kind == "log" else numbers)

    def axis_to_pixels(self, numbers: Array) -> Array:
        """Pixels of axis coordinates: microseconds, or powers of ten on a log axis."""
        share = (numbers - self.low) / (self.high - self.low)
        return np.asarray(self.start + share * (self.end - self.start))


def draw_mark(mark: Mark, x: Scale, y: Scale, box: Box, narrow: bool) -> str:
    """SVG elements of a mark."""
    color, opacity = color_and_opacity(getattr(mark, "color", INK))
    opacity *= getattr(mark, "opacity", 1.0)
    match mark:
        case Line():
            lines = _lines(*_thin_line(x.to_pixels(mark.x), y.to_pixels(mark.y)))
            return stroke(lines, color, mark.width * _POINT, opacity, mark.dash)
        case Dots():
            return _dots(mark, x, y)
        case Band():
            return _area(_outlines(x.to_pixels(mark.x), y.to_pixels(mark.low), y.to_pixels(mark.high)), color, opacity)
        case Spans():
            return stroke(_spans(mark, x, y), color, mark.width * _POINT, opacity)
        case Bars():
            return _area(_bars(mark, x, y), color, opacity)
        case Heat():
            return _heat(mark, x, y)
        case Rules():
            if mark.vertical:
                rules = [f"M{position:.1f} {box.top:.1f}V{box.bottom:.1f}" for position in x.to_pixels(mark.positions)]
            else:
                rules = [f"M{box.left:.1f} {position:.1f}H{box.right:.1f}" for position in y.to_pixels(mark.positions)]
            return stroke(rules, color, 1.2, opacity, mark.dash)
        case Labels():
            return _labels(mark, x, y, box, narrow)


def stroke(paths: Sequence[str], color: str, width: float, opacity: float = 1.0, dash: Dash = "solid") -> str:
    """Lines along `paths` (SVG path data)."""
    if not paths:
        return ""
    dashes = f' stroke-dasharray="{_DASHES[dash]}"' if _DASHES[dash] else ""
    return (
        f'<path d="{"".join(paths)}" fill="none" stroke="{color}" stroke-width="{width:.1f}" '
        f'stroke-opacity="{opacity:.2f}"{dashes} stroke-linejoin="round"/>'
    )


def text(content: str, x: float, y: float, anchor: str = "start", size: int = 12, opacity: float = 1.0) -> str:
    """A line of text whose start, middle or end is at `x`."""
    side = f' text-anchor="{anchor}"' if anchor != "start" else ""
    faint = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}"{side}{faint}>{escape_text(content)}</text>'


def color_and_opacity(color: str) -> tuple[str, float]:
    """SVG colour and opacity of a chart colour."""
    return _TONES.get(color, (color, 1.0))


def escape_text(content: str) -> str:
    """Text without tags, control characters and dollars (MathJax delimiters)."""
    return escape(escape_control_characters(content)).replace("$", "&#36;")


def _dots(mark: Dots, x: Scale, y: Scale) -> str:
    """Circles; named ones show their name on hover."""
    color, opacity = color_and_opacity(mark.color)
    radius = mark.size * _POINT / 2
    fill = f'fill="{color}" fill-opacity="{opacity * mark.opacity:.2f}"'
    rows = np.flatnonzero(np.isfinite(mark.y.astype(np.float64)))
    circles = []
    for row, left, top in zip(rows, x.to_pixels(mark.x)[rows], y.to_pixels(mark.y)[rows], strict=True):
        center = f'cx="{left:.1f}" cy="{top:.1f}"'
        circle = f'<circle {center} r="{radius:.1f}" {fill}/>'
        if mark.names:
            ring = f'<circle {center} r="{max(radius, _HOVER_RADIUS):.0f}" fill="none" pointer-events="all"/>'
            circle = f"<g><title>{escape_text(mark.names[row])}</title>{ring}{circle}</g>"
        circles.append(circle)
    return "".join(circles)


def _area(paths: Sequence[str], color: str, opacity: float) -> str:
    return f'<path d="{"".join(paths)}" fill="{color}" fill-opacity="{opacity:.3f}"/>'


def _outlines(x: Array, low: Array, high: Array) -> list[str]:
    """A closed outline for each run without missing values."""
    return [
        _path(np.concatenate([x[run], x[run][::-1]]), np.concatenate([high[run], low[run][::-1]])) + "Z"
        for run in _finite_runs(np.isfinite(low) & np.isfinite(high))
    ]


def _spans(mark: Spans, x: Scale, y: Scale) -> list[str]:
    """SVG path commands of a line per span; spans with a missing bound are left out."""
    across, along = (x, y) if mark.vertical else (y, x)
    positions = across.to_pixels(mark.positions)
    low = along.to_pixels(mark.low)
    high = along.to_pixels(mark.high)
    rows = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
    if mark.vertical:
        return [f"M{positions[row]:.1f} {low[row]:.1f}V{high[row]:.1f}" for row in rows]
    return [f"M{low[row]:.1f} {positions[row]:.1f}H{high[row]:.1f}" for row in rows]


def _bars(mark: Bars, x: Scale, y: Scale) -> list[str]:
    """SVG path commands of a closed rectangle per bar, from 0 to its height."""
    ends = x.to_pixels(mark.edges)
    tops = y.to_pixels(mark.heights)
    ground = y.to_pixels(np.zeros(1))[0]
    return [
        f"M{left:.1f} {ground:.1f}V{top:.1f}H{right:.1f}V{ground:.1f}Z"
        for left, right, top in zip(ends[:-1], ends[1:], tops, strict=True)
    ]


def _heat(mark: Heat, x: Scale, y: Scale) -> str:
    """Cells of increasing opacity; each shows its value on hover."""
    across = x.to_pixels(cell_edges(mark.x))
    upright = y.to_pixels(cell_edges(mark.y))
    cells = []
    for row, column in np.argwhere(np.isfinite(mark.values)):
        value = float(mark.values[row, column])
        left, right = sorted(across[column : column + 2])
        top, bottom = sorted(upright[row : row + 2])
        outline = f"M{left:.1f} {top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}Z"
        shade = (value / mark.vmax if mark.vmax else 0.0) ** OPACITY_POWER
        title = f"<title>{escape_text(f'{mark.label} {format_compact(value)}'.strip())}</title>"
        cells.append(f'<path d="{outline}" fill="{SHADE_COLOR}" fill-opacity="{shade:.2f}">{title}</path>')
    return "".join(cells)


def _labels(mark: Labels, x: Scale, y: Scale, box: Box, narrow: bool) -> str:
    """Labels next to points without overlaps; `place_labels` uses points, upwards."""
    words = [shorten(word, 16) for word in mark.words] if narrow else list(mark.words)
    points, line = (
        np.column_stack([x.to_pixels(horizontal), -y.to_pixels(vertical)]) / _POINT
        for horizontal, vertical in ((mark.x, mark.y), mark.path)
    )
    frame = box.left / _POINT, -box.bottom / _POINT, box.right / _POINT, -box.top / _POINT
    spots = place_labels(points, words, mark.keep, frame, line)
    return "".join(
        text(
            word,
            (point[0] + spot.dx) * _POINT,
            -(point[1] + spot.dy) * _POINT + _BASELINE[spot.vertical],
            _ANCHORS[spot.horizontal],
        )
        for word, spot, point in zip(words, spots, points, strict=True)
        if spot is not None
    )


def _thin_line(x: Array, y: Array) -> tuple[Array, Array]:
    """Reduce a line of more than four points per pixel to minimum and maximum per pixel."""
    pixels = np.floor(x).astype(np.int64)
    if len(x) < 4 * (np.ptp(pixels) + 1):
        return x, y
    starts = np.flatnonzero(np.append(True, np.diff(pixels) != 0))
    low, high = np.fmin.reduceat(y, starts), np.fmax.reduceat(y, starts)
    return np.repeat(x[starts], 2), np.column_stack([low, high]).ravel()


def _lines(x: Array, y: Array) -> list[str]:
    """A path for each run without missing values."""
    return [_path(x[run], y[run]) for run in _finite_runs(np.isfinite(x) & np.isfinite(y))]


def _finite_runs(is_finite: Array) -> list[Array]:
    """Positions of each run of known values.

    >>> [run.tolist() for run in _finite_runs(np.array([True, True, False, True]))]
    [[0, 1], [3]]
    """
    groups = np.split(np.arange(len(is_finite)), np.flatnonzero(np.diff(is_finite)) + 1)
    return [group for group in groups if len(group) and is_finite[group[0]]]


def _path(x: Array, y: Array) -> str:
    return "M" + "L".join(f"{left:.1f} {top:.1f}" for left, top in zip(x, y, strict=True))
