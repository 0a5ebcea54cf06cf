"""From the caller's frame to a panel: validate, sort, lay flat. The steps, in order, are those of `read`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import calendar as calendars
from deepforecast.data import covariates as covariate_columns
from deepforecast.data import frames
from deepforecast.data.calendar import OFF_GRID, Calendar, stamp_text
from deepforecast.data.columns import Columns, resolve
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame, Ints, TimeType
from deepforecast.data.frequency import Frequency, parse
from deepforecast.data.identity import Runs, runs_of
from deepforecast.data.inference import infer
from deepforecast.data.panel import Panel, Series
from deepforecast.errors import DataError

BLOW_UP = 50  # a panel whose gaps are more than this many times its rows has the wrong freq


def read(
    frame: Frame, *, columns: Any = None, freq: Any = None, static: Frame | None = None, calendar: Calendar | None = None
) -> Panel:
    """See `Panel.from_frame`. `calendar`: count time as an earlier panel did, instead of `freq`."""
    table = frames.opened(frame)
    names = resolve(columns, table.columns)
    if not len(table):
        raise DataError("A frame has rows; this one is empty.")
    keys = read_keys(table, names)
    series, position = keys.on_calendar(freq, calendar)
    y = _target(keys.sorted(frames.numbers(table[names.target], names.target)), names.target, keys, series)
    held = {n: _sorted(covariate_columns.read(table[n], n), keys) for n in (*names.future, *names.past)}
    fixed = _static(table, names, static, keys, series)
    panel = _laid_out(series, keys.indptr, position, y, held)
    undeclared = tuple(name for name in table.columns if name not in names.all)
    return _without_empty(replace(panel, static=fixed, undeclared=undeclared))


@dataclass(frozen=True)
class Keys:
    """The sorted (id, time) pairs: `order` is the permutation of the caller's rows, None where they were sorted."""

    names: Columns
    library: str
    ids: nw.Series[Any] | None
    order: Ints | None
    indptr: Ints
    raw: Ints
    time: TimeType

    def sorted(self, values: Floats) -> Floats:
        """A column in the order of the keys."""
        return values if self.order is None else values[self.order]

    def caller_row(self, row: int) -> int:
        """The caller's number of a sorted row."""
        return row if self.order is None else int(self.order[row])

    def where(self, row: int) -> str:
        """`series A at 2024-01-31` for messages."""
        stamp = stamp_text(int(self.raw[row]), self.time)
        return f"series {self.label(self.series_of(row))} at {stamp}" if self.ids is not None else f"{stamp}"

    def series_of(self, row: int) -> int:
        return int(np.searchsorted(self.indptr, row, side="right")) - 1

    def label(self, number: int) -> str:
        return Series(self.library, self.names, None, self.ids, self.raw).label(number)  # type: ignore[arg-type]

    def on_calendar(self, freq: Any, calendar: Calendar | None) -> tuple[Series, Ints]:
        """The series on their calendar, and the position of each row."""
        if calendar is None:
            frequency = _wanted(self, freq)
            calendar = calendars.make(frequency, self.time, int(self.raw[0]))
        elif _kind(calendar.time) != _kind(self.time):
            raise DataError(
                f"Time column {self.names.time} has the type and time zone (tz) seen in fit, {calendar.time.dtype}; got {self.time.dtype}. "
                "Convert it."
            )
        else:
            self = replace(self, raw=_in_unit(self.raw, self.time.unit, calendar.time.unit))
        position = calendar.positions(self.raw)
        _on_the_grid(self, calendar, position, freq)
        series = Series(self.library, self.names, calendar, self.ids, position[self.indptr[1:] - 1])
        return series, position


def read_keys(table: nw.DataFrame[Any], names: Columns, what: str = "frame") -> Keys:
    """Read, check and sort the id and time columns."""
    time = table[names.time]
    if time.null_count():
        row = int(np.flatnonzero(time.is_null().to_numpy())[0])
        whose = "" if names.id is None else f" of series {table[names.id][row]}"
        raise DataError(f"Column {names.time} of the {what} has no missing stamps; there is one in row {row}{whose}. Repair or drop these rows.")
    raw, kind = frames.stamps(time, names.time)
    runs = runs_of(table[names.id], names.id) if names.id is not None else Runs(np.zeros(1, np.int64), np.zeros(1, np.int64), 1)
    order, indptr = runs.layout(raw)
    ids = frames.taken(table[names.id], _first_rows(order, indptr)) if names.id is not None else None
    keys = Keys(names, frames.library(table), ids, order, indptr, raw if order is None else raw[order], kind)
    _unique(keys)
    return keys


def _first_rows(order: Ints | None, indptr: Ints) -> Ints:
    return indptr[:-1] if order is None else order[indptr[:-1]]


def _within(indptr: Ints, same: Any) -> Ints:
    """Rows where `same` (of neighbours) holds within a series: the later of the two."""
    rows = np.flatnonzero(same) + 1
    return rows[~np.isin(rows, indptr)] if len(rows) else rows


def _unique(keys: Keys) -> None:
    doubled = _within(keys.indptr, keys.raw[1:] == keys.raw[:-1])
    if not len(doubled):
        return
    stamp = stamp_text(int(keys.raw[doubled[0]]), keys.time)
    if keys.ids is None:
        raise DataError(
            f"Without an id column (unique_id) the stamps of {keys.names.time} are unique; {stamp} is there more than once. "
            "Name the id column, e.g. columns={'id': 'shop'}, or drop the duplicates."
        )
    series = np.unique(np.searchsorted(keys.indptr, doubled, side="right") - 1)
    labels = Series(keys.library, keys.names, None, keys.ids, keys.raw).labels(series)  # type: ignore[arg-type]
    raise DataError(
        f"({keys.names.id}, {keys.names.time}) is unique; it is doubled in series {labels}, first at {stamp} (row "
        f"{keys.caller_row(int(doubled[0]))}). Drop the duplicates or aggregate them."
    )


def _wanted(keys: Keys, freq: Any) -> Frequency:
    if freq is not None:
        return parse(freq)
    found = infer(keys.raw, keys.indptr, keys.time)
    if found is None:
        raise DataError(
            f"freq could not be inferred from column {keys.names.time}: the series are too short, irregular or of different "
            "frequencies. Give it, e.g. freq='D'; check(frame, freq=...) then shows the gaps."
        )
    return found


def _on_the_grid(keys: Keys, calendar: Calendar, position: Ints, freq: Any) -> None:
    """Every stamp is a point of the calendar, a whole number of steps after the first of its series."""
    gaps = np.diff(position)
    wrong = gaps != calendar.step
    off = np.flatnonzero(position == OFF_GRID) if calendar.on_grid or calendar.frequency.base == "W" else np.empty(0, np.int64)
    if not len(off) and wrong.any():
        rows = _within(keys.indptr, wrong)
        off = rows[gaps[rows - 1] % calendar.step != 0] if len(rows) else rows
        if not len(off) and len(rows):
            _not_coarser(keys, calendar, position, freq)
    if len(off):
        own = infer(keys.raw, keys.indptr, keys.time)
        looks = f" The data look like freq={str(own)!r}." if own is not None else ""
        raise DataError(
            f"Every stamp lies on the grid of freq {calendar.freq!r}; {keys.where(int(off[0]))} does not "
            f"({len(off)} stamps in all).{looks} Give the right freq or repair the stamps."
        )


def _not_coarser(keys: Keys, calendar: Calendar, position: Ints, freq: Any) -> None:
    """No series is plainly of a coarser frequency: its holes would become missing values by the thousand."""
    lengths = np.diff(keys.indptr)
    gaps = np.append(np.diff(position), 0)
    gaps[keys.indptr[1:] - 1] = np.iinfo(np.int64).max  # the last row of a series has no neighbour
    smallest = np.minimum.reduceat(gaps, keys.indptr[:-1])
    suspects = np.flatnonzero((lengths > 2) & (smallest > calendar.step))
    for one in suspects[:20]:
        rows = slice(int(keys.indptr[one]), int(keys.indptr[one + 1]))
        own = infer(keys.raw[rows], np.array([0, rows.stop - rows.start]), keys.time)
        if own is not None:
            source = "the other series look like" if freq is None else "you said"
            raise DataError(
                f"All series have one freq; series {keys.label(int(one))} looks like {str(own)!r}, {source} {calendar.freq!r} "
                f"({len(suspects)} such series, first stamp {stamp_text(int(keys.raw[rows.start]), keys.time)}). "
                "Give the freq the data have, or resample; forecast series of different frequencies apart."
            )


def _target(y: Floats, name: str, keys: Keys, series: Series) -> Floats:
    """Finite or missing, and no series without a single value."""
    infinite = np.isinf(y)
    if infinite.any():
        rows = np.flatnonzero(infinite)
        raise DataError(
            f"Column {name} is finite or missing; it is infinite in {keys.where(int(rows[0]))} ({len(rows)} rows in all). "
            "Replace these values, e.g. by NaN."
        )
    return y


def _sorted(covariate: Covariate, keys: Keys) -> Covariate:
    return covariate if keys.order is None else covariate.take(keys.order)


def _static(table: nw.DataFrame[Any], names: Columns, static: Frame | None, keys: Keys, series: Series) -> dict[str, Covariate]:
    inside = tuple(name for name in names.static if name in table.columns)
    held = {}
    for name in inside:
        column = _sorted(covariate_columns.read(table[name], name), keys)
        held[name] = covariate_columns.constant(column, keys.indptr, name, series.labels)
    outside = tuple(name for name in names.static if name not in inside)
    if static is not None:
        held |= covariate_columns.read_static(static, keys.ids, names.id, outside, series.labels)
    elif outside:
        raise DataError(f"Static column {outside[0]} is in the frame or in static=; it is in neither.")
    return held


def _laid_out(series: Series, indptr: Ints, position: Ints, y: Floats, held: dict[str, Covariate]) -> Panel:
    """Rows at every step from a series' first to its last stamp; what the frame did not have is missing."""
    step = series.calendar.step
    lengths = (series.last - position[indptr[:-1]]) // step + 1
    if int(lengths.sum()) == len(y):
        return Panel(series, indptr, y, held)
    full = np.concatenate([[0], np.cumsum(lengths)])
    if full[-1] > BLOW_UP * len(y) + 10_000:
        worst = int(np.argmax(lengths))
        raise DataError(
            f"freq {series.calendar.freq!r} would make {full[-1]:,} rows of {len(y):,}, most of them missing; series "
            f"{series.label(worst)} alone spans {lengths[worst]:,} steps. Is the freq right?"
        )
    first = np.repeat(full[:-1] - position[indptr[:-1]] // step, np.diff(indptr))
    rows = position // step + first

    def spread(values: Floats, empty: float) -> Floats:
        laid = np.full(int(full[-1]), empty)
        laid[rows] = values
        return laid

    held = {n: replace(c, values=spread(c.values, np.nan if c.categories is None else -1.0)) for n, c in held.items()}
    return Panel(series, full, spread(y, np.nan), held)


def _without_empty(panel: Panel) -> Panel:
    missing = panel.missing()
    if missing.any():
        seen = np.add.reduceat(~missing, panel.indptr[:-1], dtype=np.int64)
        empty = np.flatnonzero(seen == 0)
        if len(empty):
            raise DataError(
                f"Every series has at least one value; column {panel.series.columns.target} is missing throughout in series "
                f"{panel.series.labels(empty)}. Drop these series."
            )
    return panel


def _kind(time: TimeType) -> tuple[bool, bool]:
    return bool(time.unit), time.tz is None


def _in_unit(raw: Ints, own: str, wanted: str) -> Ints:
    if own == wanted:
        return raw
    return raw.view(f"M8[{own}]").astype(f"M8[{wanted}]").view(np.int64)
