"""Charts as data: panels of marks, which each backend renders.

Positions in time are `datetime64[us]` in UTC (or without a time zone) or integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Dash: TypeAlias = Literal["solid", "dash", "dot", "dashdot"]
INK = "ink"  # colour of observed values; its tone depends on the backend
MUTED = "muted"  # colour of guides


@dataclass(frozen=True, eq=False)
class Line:
    """Line through points, interrupted at NaN. `intervals`: (label, low, high) for hover texts."""

    x: Array
    y: Array
    color: str = INK
    label: str = ""
    group: str = ""
    dash: Dash = "solid"
    width: float = 1.5
    opacity: float = 1.0
    intervals: tuple[tuple[str, Array, Array], ...] = ()


@dataclass(frozen=True, eq=False)
class Dots:
    """Single points. `names` are shown on hover."""

    x: Array
    y: Array
    color: str = INK
    label: str = ""
    group: str = ""
    size: float = 5.0
    opacity: float = 1.0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Band:
    """Area between `low` and `high`, interrupted at NaN."""

    x: Array
    low: Array
    high: Array
    color: str
    opacity: float
    label: str = ""
    group: str = ""


@dataclass(frozen=True, eq=False)
class Spans:
    """Bar from `low` to `high` at each position, vertical or horizontal."""

    positions: Array
    low: Array
    high: Array
    color: str
    width: float = 2.0
    opacity: float = 1.0
    vertical: bool = True
    group: str = ""


@dataclass(frozen=True, eq=False)
class Bars:
    """Histogram: `heights` of the bins between `edges`."""

    edges: Array
    heights: Array
    color: str
    opacity: float = 0.5
    label: str = ""


@dataclass(frozen=True, eq=False)
class Heat:
    """Heat map: `values[row, column]` at `y[row]` and `x[column]`, NaN is transparent.

    Colours range from 0 to `vmax`, the same in all panels of a chart. `label`: title of the colour
    bar.
    """

    x: Array
    y: Array
    values: Array
    vmax: float
    label: str = ""


@dataclass(frozen=True, eq=False)
class Rules:
    """Vertical or horizontal lines across the panel, at `positions`."""

    positions: Array
    vertical: bool = True
    color: str = MUTED
    dash: Dash = "dash"
    label: str = ""


@dataclass(frozen=True, eq=False)
class Labels:
    """Texts next to points; those that would overlap something are omitted unless `keep` is set.

    `path`: corners of a line they should not overlap either.
    """

    x: Array
    y: Array
    words: tuple[str, ...]
    keep: tuple[bool, ...]
    path: tuple[Array, Array]


Mark: TypeAlias = Line | Dots | Band | Spans | Bars | Heat | Rules | Labels


@dataclass(frozen=True)
class Axis:
    """An axis. `names`: labels at 0, 1, 2, ... of a categorical axis. `zone`: time zone shown.

    `hide_labels`: without tick labels, since an adjacent panel has the same. `tick_multiple`: ticks
    at multiples of it.
    """

    title: str = ""
    kind: Literal["number", "time", "integer", "log", "names"] = "number"
    zone: str | None = None
    names: tuple[str, ...] = ()
    hide_labels: bool = False
    tick_multiple: int = 0


@dataclass(frozen=True)
class Panel:
    """A pair of axes and its marks; it may span several columns of the chart."""

    marks: tuple[Mark, ...]
    title: str = ""
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    span: int = 1


@dataclass(frozen=True)
class Key:
    """An entry of the legend."""

    label: str
    color: str
    kind: Literal["line", "band", "dot"] = "line"
    opacity: float = 1.0
    dash: Dash = "solid"


@dataclass(frozen=True)
class Chart:
    """Panels laid out in rows of `columns`, with one legend and a note; sizes in inches."""

    panels: tuple[Panel, ...]
    columns: int = 1
    width: float = 10.0
    row_height: float = 3.8
    note: str = ""
    legend: tuple[Key, ...] = ()

    def first_cell(self, index: int) -> tuple[int, int]:
        """Row and column of the first cell of a panel."""
        row = next(number for number, line in enumerate(self.cells) if index in line)
        return row, self.cells[row].index(index)

    @property
    def heat(self) -> Heat | None:
        """The first heat map, if any."""
        return next((mark for panel in self.panels for mark in panel.marks if isinstance(mark, Heat)), None)

    @property
    def cells(self) -> list[list[int]]:
        """Panel index of each cell, row by row; -1 is an empty cell.

        >>> one = Panel(())
        >>> Chart((Panel((), span=2), one, one), columns=2).cells
        [[0, 0], [1, 2]]
        """
        flat: list[int] = []
        for index, panel in enumerate(self.panels):
            n_free = self.columns - len(flat) % self.columns
            flat += [-1] * (n_free if panel.span > n_free else 0) + [index] * panel.span
        flat += [-1] * (-len(flat) % self.columns)
        return [flat[start : start + self.columns] for start in range(0, len(flat), self.columns)]


def cell_edges(positions: Array) -> Array:
    """Edges of the cells around increasing positions: midpoints, extrapolated at both ends.

    >>> cell_edges(np.array([0.0, 1.0, 3.0]))
    array([-0.5,  0.5,  2. ,  4. ])
    """
    if len(positions) == 1:
        half_width: Any = np.timedelta64(1, "h") if positions.dtype.kind == "M" else 0.5
        return np.array([positions[0] - half_width, positions[0] + half_width])
    half = np.diff(positions if positions.dtype.kind == "M" else positions.astype(np.float64)) / 2
    return np.concatenate([positions[:1] - half[0], positions[:-1] + half, positions[-1:] + half[-1]])


def finite(values: Any) -> Array:
    """`values` as floats, with NaN for infinite values."""
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(array), array, np.nan)
