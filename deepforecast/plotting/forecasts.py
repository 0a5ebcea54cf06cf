"""Series and forecasts as marks: lines that break at missing values, nested bands, single points that stay visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from deepforecast.data.forecast_names import ModelColumns, format_number
from deepforecast.plotting.chart import INK, Array, Band, Dots, Key, Line, Mark, Spans
from deepforecast.plotting.style import NEUTRAL, band_opacity, look, seen_opacity, short

OBSERVED = "observed"
Read: TypeAlias = Callable[[str], Array]


def observed_marks(x: Array, y: Array, opacity: float = 1.0) -> list[Mark]:
    """What was measured, as a line."""
    return _line(Line(x, y, label=OBSERVED, group=OBSERVED, opacity=opacity))


def forecast_marks(
    x: Array, read: Read, models: Sequence[ModelColumns], levels: Sequence[float], layers: float = 1.0
) -> list[Mark]:
    """Bands of all models first, the widest at the bottom, then the lines over them.

    `read` gives a column's values; `layers` tells how many forecasts lie over each other at a stamp: the more, the fainter.
    """
    opacity = 1 - (1 - band_opacity(len(levels), len(models))) ** (1 / layers)
    clear = max(0.35, layers**-0.5)
    marks: list[Mark] = []
    lines: list[Mark] = []
    for index, model in enumerate(models):
        color, dash = look(index)
        columns = model.intervals
        bounds = {one: (read(columns[one][0]), read(columns[one][1])) for one in levels if one in columns}
        for one, (low, high) in bounds.items():
            marks += _band(Band(x, low, high, color, opacity, level_label(one), model.name))
        told = tuple((level_label(one), low, high) for one, (low, high) in reversed(bounds.items()))
        lines += _line(Line(x, read(model.name), color, short(model.name), model.name, dash, 1.8, clear, told))
    return marks + lines


def legend(models: Sequence[ModelColumns], levels: Sequence[float], observed: bool = True) -> tuple[Key, ...]:
    """One entry for each line and, once for all models, one for each level."""
    keys = [Key(OBSERVED, INK)] if observed else []
    for index, model in enumerate(models):
        color, dash = look(index)
        keys.append(Key(short(model.name), color, dash=dash))
    opacity = band_opacity(len(levels), len(models))
    color = look(0)[0] if len(models) == 1 else NEUTRAL
    for depth, one in enumerate(levels, start=1):
        keys.append(Key(level_label(one), color, "band", seen_opacity(opacity, depth)))
    return tuple(keys)


def level_label(level: float) -> str:
    """How an interval is called in the legend.

    >>> level_label(97.5)
    '97.5 % interval'
    """
    return f"{format_number(level)} % interval"


def lonely(values: Array) -> Array:
    """Where a value stands between missing ones: a line would not show it.

    >>> lonely(np.array([1.0, np.nan, 2.0, 3.0]))
    array([ True, False, False, False])
    """
    there = np.concatenate([[False], np.isfinite(values), [False]])
    return np.asarray(there[1:-1] & ~there[:-2] & ~there[2:])


def _line(line: Line) -> list[Mark]:
    """The line, and a dot at each of its points that no line reaches."""
    alone = lonely(line.y)
    if not alone.any():
        return [line] if np.isfinite(line.y).any() else []
    size = 3 * line.width
    return [line, Dots(line.x[alone], line.y[alone], line.color, group=line.group, size=size, opacity=line.opacity)]


def _band(band: Band) -> list[Mark]:
    """The band, and an upright bar where it is only one point wide."""
    whole = np.where(np.isfinite(band.low) & np.isfinite(band.high), band.low, np.nan)
    alone = lonely(whole)
    if not alone.any():
        return [band] if np.isfinite(whole).any() else []
    bar = Spans(band.x[alone], band.low[alone], band.high[alone], band.color, 7.0, band.opacity, group=band.group)
    return [band, bar]
