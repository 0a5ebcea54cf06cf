"""How far the marks of a panel reach, for a backend that would let them touch the frame."""

from __future__ import annotations

import numpy as np

from deepforecast.plotting.chart import Array, Axis, Band, Bars, Dots, Heat, Labels, Line, Mark, Panel, Rules, Spans, cell_edges


def axis_range(panel: Panel, side: str) -> tuple[float, float] | None:
    """The range of an axis with some room at both ends (none around shades), of numbers that are all the same half as much
    again to either side.

    None where there is too little to tell.

    Stamps are counted in microseconds; the range of a logarithmic axis is in powers of ten.

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
    """What a mark has on this side."""
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
