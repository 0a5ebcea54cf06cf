"""`plot_components`: a forecast, or a history, taken apart: one panel for each part of it."""

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
from deepforecast.plotting.frames import Tidy, choose_series, open_frame
from deepforecast.plotting.inputs import is_decomposition
from deepforecast.plotting.style import COLORS, short

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_ROUND = 1e-9  # of the range of a component: what repeats within it is a cycle
_CYCLES = 3  # of at least so many cycles one is drawn
_DAY = np.timedelta64(1, "D")


def plot_components(
    components: Frame,
    ahead: Frame | None = None,
    *,
    ids: Any = None,
    backend: Backend = "matplotlib",
    columns: Columns | Mapping[str, Any] | None = None,
) -> Any:
    """Draw the components of one series, a panel each: of a history (`decompose`, or a model's `components`) or a forecast.

    `components` is what `decompose` gives, or a long frame with the columns `component` and `value`, as of `explain`.
    `ahead`: the components of the steps that follow (`explain`), drawn on in the same panels. `ids`: the series; the first
    if not given. A component that repeats itself row for row, as a week of daily values does, is drawn once: one cycle.

    >>> import pandas as pd
    >>> days = pd.date_range("2024-01-01", periods=4).repeat(2)
    >>> parts = pd.DataFrame({"ds": days, "component": ["trend", "promo"] * 4, "value": range(8)})
    >>> [axes.get_title(loc="left") or axes.get_title() for axes in plot_components(parts).axes]
    ['trend', 'promo']
    """
    check_backend(backend)
    past = _open(components, "components", columns)
    coming = None if ahead is None else _open(ahead, "components ahead", columns)
    frames = [one for one in (past, coming) if one is not None]
    chosen, count = choose_series(frames, ids)
    rows = [one.of(chosen[0]) for one in frames]
    names = list(dict.fromkeys(name for one in rows for name in one.column("component").to_list()))
    panels = tuple(_panel(rows, name) for name in names)
    titles = [] if chosen[0] is None else [short(str(chosen[0]), 60)]
    note = " · ".join([*titles, *([f"1 of {count:,} series"] if count > 1 and ids is None else [])])
    return render(Chart(panels, 1, 10.0, 1.9 if len(panels) > 1 else 3.9, note), backend)


def _open(components: Frame, what: str, columns: Any) -> Tidy:
    """The components as a long frame; `decompose` gives a column for each, from the observed values to the remainder."""
    table = open_frame(components, what, columns, target=False)
    if "component" in table.frame.columns or not is_decomposition(table.frame.columns):
        return table
    keys = [name for name in (table.id, table.time) if name is not None]
    long = table.frame.unpivot(table.numeric_columns(), index=keys, variable_name="component", value_name="value")
    return replace(table, frame=long)


def _panel(rows: list[Tidy], name: str) -> Panel:
    """One component over time, or one cycle of it."""
    found = [_of(one, name) for one in rows]
    stamps = np.concatenate([one for one, _ in found])
    values = np.concatenate([one for _, one in found])
    order = np.argsort(stamps, kind="stable")
    cycle = _cycle(stamps[order], values[order])
    if cycle:
        return _once(stamps[order], values[order], cycle, name)
    marks: list[Mark] = [Line(at, value, color) for (at, value), color in zip(found, COLORS, strict=False) if len(at)]
    if len(found) > 1 and len(found[1][0]):
        marks.append(Rules(found[1][0][:1], label="forecast starts"))
    return Panel(tuple(marks), name, rows[0].axis(), Axis())


def _of(rows: Tidy, name: str) -> tuple[Array, Array]:
    """The stamps and values of one component, each stamp once."""
    own = np.array([one == name for one in rows.column("component").to_list()], dtype=bool)
    stamps, values = rows.stamps()[own], rows.values("value")[own]
    if len(np.unique(stamps)) < len(stamps):
        raise DataError(
            f"A component has one value at a stamp; {name} has several. Give the components of one forecast, not of several "
            "cutoffs or models."
        )
    return stamps, values


def _cycle(stamps: Array, values: Array) -> int:
    """After how many rows a component repeats itself, 0 if it does not; rows that lie evenly."""
    wide = float(np.ptp(values)) if len(values) and np.isfinite(values).all() else 0.0
    if wide == 0.0 or len(np.unique(np.diff(stamps))) != 1:
        return 0
    close = np.flatnonzero(np.abs(values[1:] - values[0]) <= _ROUND * wide) + 1
    for rows in close[close * _CYCLES <= len(values)]:
        if np.abs(values[rows:] - values[:-rows]).max() <= _ROUND * wide:
            return int(rows)
    return 0


def _once(stamps: Array, values: Array, cycle: int, name: str) -> Panel:
    """One cycle: the days of a week by name from Monday on, other steps by number."""
    one = values[:cycle]
    dated = stamps.dtype.kind == "M"
    if cycle == len(WEEKDAYS) and dated and stamps[1] - stamps[0] == _DAY:
        first = int((stamps[0].astype("M8[D]").astype(int) + 3) % 7)  # 1970 began on a Thursday
        return Panel((Line(np.arange(7.0), np.roll(one, first), COLORS[0]),), name, Axis(kind="names", names=WEEKDAYS), Axis())
    said = f" from {np.datetime_as_string(stamps[0], unit='m').replace('T', ' ')}" if dated else ""
    across = Axis(f"step of the cycle{said}", "integer")
    return Panel((Line(np.arange(1, cycle + 1), one, COLORS[0]),), name, across, Axis())
