"""Marks of series, forecasts and prediction intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from deepforecast.data.columns import ModelColumns, format_number
from deepforecast.plotting.chart import INK, Array, Band, Dots, Key, Line, Mark, Spans
from deepforecast.plotting.style import NEUTRAL, band_opacity, model_style, shorten, stacked_opacity

OBSERVED = "observed"
ReadColumn: TypeAlias = Callable[[str], Array]


def observed_marks(x: Array, y: Array, opacity: float = 1.0) -> list[Mark]:
    """Marks of observed values."""
    return _line_marks(Line(x, y, label=OBSERVED, group=OBSERVED, opacity=opacity))


def forecast_marks(
    x: Array, read: ReadColumn, models: Sequence[ModelColumns], levels: Sequence[float], layers: float = 1.0
) -> list[Mark]:
    """Marks of forecasts: prediction intervals from the widest to the narrowest, then lines.

    `read` returns the values of a column; `layers` is the number of overlapping forecasts at a
    timestamp, which lowers the opacity.
    """
    opacity = 1 - (1 - band_opacity(len(levels), len(models))) ** (1 / layers)
    line_opacity = max(0.35, layers**-0.5)
    marks: list[Mark] = []
    lines: list[Mark] = []
    for index, model in enumerate(models):
        color, dash = model_style(index)
        columns = model.intervals
        bounds = {level: (read(columns[level][0]), read(columns[level][1])) for level in levels if level in columns}
        for level, (low, high) in bounds.items():
            marks += _band_marks(Band(x, low, high, color, opacity, level_label(level), model.name))
        intervals = tuple((level_label(level), low, high) for level, (low, high) in reversed(bounds.items()))
        lines += _line_marks(
            Line(x, read(model.name), color, shorten(model.name), model.name, dash, 1.8, line_opacity, intervals)
        )
    return marks + lines


def legend(models: Sequence[ModelColumns], levels: Sequence[float], observed: bool = True) -> tuple[Key, ...]:
    """One entry per line and, for all models together, one per level."""
    keys = [Key(OBSERVED, INK)] if observed else []
    for index, model in enumerate(models):
        color, dash = model_style(index)
        keys.append(Key(shorten(model.name), color, dash=dash))
    opacity = band_opacity(len(levels), len(models))
    color = model_style(0)[0] if len(models) == 1 else NEUTRAL
    for depth, level in enumerate(levels, start=1):
        keys.append(Key(level_label(level), color, "band", stacked_opacity(opacity, depth)))
    return tuple(keys)


def level_label(level: float) -> str:
    """Label of an interval in the legend.

    >>> level_label(97.5)
    '97.5 % interval'
    """
    return f"{format_number(level)} % interval"


def is_isolated(values: Array) -> Array:
    """Whether each value has missing neighbours on both sides: a line would not show it.

    >>> is_isolated(np.array([1.0, np.nan, 2.0, 3.0]))
    array([ True, False, False, False])
    """
    is_present = np.concatenate([[False], np.isfinite(values), [False]])
    return np.asarray(is_present[1:-1] & ~is_present[:-2] & ~is_present[2:])


def _line_marks(line: Line) -> list[Mark]:
    """The line, and dots for isolated points."""
    is_alone = is_isolated(line.y)
    if not is_alone.any():
        return [line] if np.isfinite(line.y).any() else []
    size = 3 * line.width
    return [line, Dots(line.x[is_alone], line.y[is_alone], line.color, group=line.group, size=size, opacity=line.opacity)]


def _band_marks(band: Band) -> list[Mark]:
    """The area, and vertical bars for isolated points."""
    complete_low = np.where(np.isfinite(band.low) & np.isfinite(band.high), band.low, np.nan)
    is_alone = is_isolated(complete_low)
    if not is_alone.any():
        return [band] if np.isfinite(complete_low).any() else []
    bar = Spans(band.x[is_alone], band.low[is_alone], band.high[is_alone], band.color, 7.0, band.opacity, group=band.group)
    return [band, bar]
