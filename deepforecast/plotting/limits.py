"""Axis ranges from the marks of a panel."""

from __future__ import annotations

import numpy as np

from deepforecast.plotting.chart import Array, Axis, Band, Bars, Dots, Heat, Labels, Line, Mark, Panel, Rules, Spans, cell_edges


def axis_range(panel: Panel, side: str) -> tuple[float, float] | None:
    """Range of an axis with a margin at both ends (none around heat maps); None if undetermined.

    Equal values get half their size as margin. Timestamps are in microseconds; ranges of
    logarithmic axes are powers of ten.

    >>> axis_range(Panel((Dots(np.array([0.0, 10.0]), np.array([1.0, 1.0])),)), "x")
    (-0.5, 10.5)
    """
    axis = panel.x if side == "x" else panel.y
    arrays = [_numbers(values, axis) for mark in panel.marks for values in _mark_values(mark, side)]
    numbers = np.concatenate(arrays) if arrays else np.empty(0)
    if len(numbers) == 0:
        return None
    low, high = float(numbers.min()), float(numbers.max())
    if any(isinstance(mark, Heat) for mark in panel.marks):
        return low, high
    if low == high:
        return (low - abs(low) / 2, low + abs(low) / 2) if axis.kind == "number" and low else None
    margin = (high - low) * (0.02 if axis.kind == "time" else 0.05)
    starts_at_zero = side == "y" and low == 0 and any(isinstance(mark, Bars) for mark in panel.marks)
    return (low if starts_at_zero else low - margin), high + margin


def _mark_values(mark: Mark, side: str) -> list[Array]:
    """Values of a mark along an axis."""
    match mark:
        case Line() | Dots() | Labels():
            return [mark.x if side == "x" else mark.y]
        case Band():
            return [mark.x] if side == "x" else [mark.low, mark.high]
        case Spans():
            return [mark.positions] if mark.vertical == (side == "x") else [mark.low, mark.high]
        case Heat():
            return [cell_edges(mark.x if side == "x" else mark.y)]
        case Bars():
            return [mark.edges] if side == "x" else [mark.heights, np.zeros(1)]
        case Rules():
            return [mark.positions] if mark.vertical == (side == "x") else []


def _numbers(values: Array, axis: Axis) -> Array:
    numbers = values.astype(np.int64).astype(np.float64) if values.dtype.kind == "M" else np.asarray(values, dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    return np.log10(numbers) if axis.kind == "log" else numbers
