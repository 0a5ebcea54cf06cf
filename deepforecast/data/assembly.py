"""From the caller's frame to a panel: validate, sort, lay flat. The steps, in order, are those of `read`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import covariates, frames
from deepforecast.data.calendar import Calendar
from deepforecast.data.columns import Columns, resolve
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.panel import Panel, Series
from deepforecast.data.reading import Keys, read_keys
from deepforecast.errors import DataError, shown

BLOW_UP = 12  # a panel whose gaps are more than this many times its rows has the wrong freq: days for months, hours for days


def read(
    frame: Frame, *, columns: Any = None, freq: Any = None, static: Frame | None = None, calendar: Calendar | None = None
) -> Panel:
    """See `Panel.from_frame`."""
    table = frames.opened(frame)
    names = resolve(columns, table.columns)
    if not len(table):
        raise DataError("A frame has rows; this one is empty (columns, no rows). Give the history of at least one series.")
    keys = read_keys(table, names)
    series, position = keys.on_calendar(freq, calendar)
    y = frames.numbers(table[names.target], names.target)
    y = y if keys.order is None else y[keys.order]
    with np.errstate(all="ignore"):
        total = y.sum()
    if not np.isfinite(total):  # so it is where one value is missing or infinite
        _check_values(y, keys)
    held: dict[str, Covariate] = {}
    for name in (*names.future, *names.past):
        held[name] = _covariate(table, name, keys)
    panel = Panel(series, keys.indptr, y, held)
    steps = (series.last - position[keys.indptr[:-1]]) // series.calendar.step + 1
    if steps.sum(dtype=np.float64) > len(y):
        panel = _with_gaps(panel, position, steps)
    if static is not None or names.static:
        panel = _with_static(panel, table, static, keys)
    if not set(names.all).issuperset(table.columns):
        panel = replace(panel, undeclared=tuple(name for name in table.columns if name not in names.all))
    return panel


def _check_values(y: Floats, keys: Keys) -> None:
    """No infinite value, and no series without a single value."""
    infinite = np.flatnonzero(np.isinf(y))
    target = shown(keys.names.target)
    if len(infinite):
        raise DataError(
            f"Column {target} is finite or missing; it is infinite in {len(infinite)} row(s) of series "
            f"{keys.labels(infinite)}, first at {keys.stamp(infinite[0])}. Replace these values, e.g. by NaN."
        )
    missing = np.append(0, np.cumsum(np.isnan(y)))[keys.indptr]
    empty = np.flatnonzero(np.diff(missing) == np.diff(keys.indptr))
    if len(empty):
        raise DataError(
            f"Every series has at least one value in column {target}; it is missing throughout in series "
            f"{keys.labels(keys.indptr[empty])}. Drop these series."
        )


def _covariate(table: nw.DataFrame[Any], name: str, keys: Keys) -> Covariate:
    one = covariates.read(table[name], name)
    one = one if keys.order is None else one.take(keys.order)
    infinite = np.flatnonzero(np.isinf(one.values))
    if len(infinite):
        raise DataError(
            f"Covariate {shown(name)} is finite or missing; it is infinite in {len(infinite)} row(s) of series "
            f"{keys.labels(infinite)}, first at {keys.stamp(infinite[0])}. Replace these values, e.g. by NaN."
        )
    return one


def _with_gaps(panel: Panel, position: Ints, steps: Ints) -> Panel:
    """Rows at every step from a series' first to its last stamp; what the frame did not have is missing."""
    series, step = panel.series, panel.calendar.step
    full = np.append(0, np.cumsum(steps, dtype=np.float64))
    rows = len(panel.y)
    if full[-1] > BLOW_UP * rows + 100:
        worst = int(np.argmax(steps))
        raise DataError(
            f"A frame has most of the rows that its freq asks for; with freq {series.calendar.freq!r} it would have "
            f"{full[-1]:,.0f}, not {rows:,}; series {series.label(worst)} alone spans {steps[worst]:,} steps. Give the "
            "right freq, or split the series."
        )
    indptr = full.astype(np.int64)
    first = np.repeat(indptr[:-1] - position[panel.indptr[:-1]] // step, np.diff(panel.indptr))
    place = position // step + first
    y = np.full(int(indptr[-1]), np.nan)
    y[place] = panel.y
    held = {name: one.spread(place, len(y)) for name, one in panel.covariates.items()}
    return Panel(series, indptr, y, held)


def _with_static(panel: Panel, table: nw.DataFrame[Any], static: Frame | None, keys: Keys) -> Panel:
    """Static covariates from the frame itself, or from the static frame: those declared, or else all it has."""
    series, names = panel.series, keys.names
    inside = [name for name in names.static if name in table.columns]
    outside = [name for name in names.static if name not in table.columns]
    if static is None and outside:
        raise DataError(
            f"A static column is in the frame or in static=; {shown(outside[0])} is in neither. Add it, or leave it out of "
            "columns=."
        )
    held = {}
    for name in inside:
        held[name] = covariates.constant(_covariate(table, name, keys), keys.indptr, name, series)
    if static is not None and (outside or not inside):
        held |= covariates.read_static(static, series, tuple(outside))
    declared: Columns = replace(names, static=tuple(held))
    return replace(panel, series=Series(series.library, declared, series.calendar, series.ids, series.last), static=held)
