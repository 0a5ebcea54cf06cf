"""The keys of the caller's frame: ids and stamps read, checked, sorted and placed on a calendar."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from deepforecast.data import calendar as calendars
from deepforecast.data import frames
from deepforecast.data.calendar import OFF_GRID, PER_DAY, Calendar, local_clock, stamp_text
from deepforecast.data.columns import Columns
from deepforecast.data.frames import Floats, Ints, TimeType
from deepforecast.data.frequency import parse
from deepforecast.data.grids import GRIDS, point_numbers
from deepforecast.data.identity import ONE, Runs, runs_of
from deepforecast.data.inference import infer, strays
from deepforecast.data.native import Table
from deepforecast.errors import DataError, many, shown, some

MISSING = np.iinfo(np.int64).min  # a stamp of numpy's that is none


class Keys(NamedTuple):
    """The sorted (id, time) pairs: `order` is the permutation of the caller's rows, None where they were sorted."""

    names: Columns
    library: str
    ids: Any
    order: Ints | None
    indptr: Ints
    raw: Ints
    time: TimeType
    what: str

    def sorted(self, values: Floats) -> Floats:
        """A column in the order of the keys."""
        return values if self.order is None else values[self.order]

    def caller_row(self, row: int) -> int:
        """The caller's number of a sorted row."""
        return row if self.order is None else int(self.order[row])

    def stamp(self, row: Any) -> str:
        """The stamp of a row as it is written in messages."""
        return stamp_text(int(self.raw[row]), self.time)

    def where(self, row: int) -> str:
        """`series A at 2024-01-31` for messages."""
        return f"series {self.label(self.series_of(row))} at {self.stamp(row)}" if self.ids is not None else self.stamp(row)

    def series_of(self, row: int) -> int:
        """The number of the series a sorted row belongs to."""
        return int(np.searchsorted(self.indptr, row, side="right")) - 1

    def label(self, number: int) -> str:
        """The id of a series as it is written in messages."""
        return series_label(self.ids, number)

    def place(self, rows: Ints) -> str:
        """The series these sorted rows belong to, and the stamp of the first of them; of several series with whose it is."""
        several = self.series_of(rows[0]) != self.series_of(rows[-1])
        whose = f" (series {self.label(self.series_of(rows[0]))})" if several else ""
        return f"{self.labels(rows)}, first at {self.stamp(rows[0])}{whose}"

    def labels(self, rows: Ints) -> str:
        """The first few series these sorted rows belong to, and how many there are."""
        series = np.unique(np.searchsorted(self.indptr, rows, side="right") - 1)
        return some([self.label(int(one)) for one in series[:5]], len(series))

    def on_calendar(self, freq: Any, calendar: Calendar | None) -> tuple[Calendar, Ints]:
        """The calendar - that of `freq`, or the one made before - and the position of each row on it."""
        raw, given = self.raw, calendar
        if calendar is not None:
            raw = _in_units_of(calendar, self)
        else:
            if freq is None and not self.time.unit:
                _refuse_dates(self)
            frequency = infer(raw, self.indptr, self.time) if freq is None else parse(freq)
            if frequency is None:
                raise _not_inferred(self)
            calendar = calendars.make(frequency, self.time, raw[:2], self.names.time)
        by_ticks = calendar.time.tz is None and calendar.frequency.base not in GRIDS  # then stamps are positions
        position = raw if by_ticks else calendar.positions(raw)
        first, gaps = position[self.indptr[:-1]], np.diff(position)
        gaps[self.indptr[1:-1] - 1] = calendar.step
        if (gaps != calendar.step).any() or (first == OFF_GRID).any():
            _check_grid(self, calendar, position, gaps)
            if given is None:
                _check_not_coarser(self, calendar, gaps, freq)
        return calendar, position


def read_keys(table: Table, names: Columns, what: str = "frame") -> Keys:
    """Read, check and sort the id and time columns."""
    time = table.native[names.time]
    of_numpy = isinstance(getattr(time, "dtype", None), np.dtype)
    if not of_numpy and frames.wrapped(time).null_count():
        raise no_stamp(table, names, what)
    raw, kind = frames.stamps(time, names.time)
    if of_numpy and kind.unit and (raw == MISSING).any():
        raise no_stamp(table, names, what)
    column = None if names.id is None else table.native[names.id]
    runs = Runs(ONE, ONE, 1) if column is None or names.id is None else runs_of(column, names.id)
    order, indptr = runs.layout(raw)
    first = indptr[:-1]
    if order is not None:
        raw, first = raw[order], order[first]
    ids = column
    if column is not None:
        views = str(getattr(column, "dtype", None) or getattr(column, "type", "")).startswith("string_view")
        ids = frames.rows_of(column, first) if views or not hasattr(column, "take") else column.take(first)
    keys = Keys(names, table.library, ids, order, indptr, raw, kind, what)
    same = raw[1:] == raw[:-1]
    if same.any():
        _check_doubled(keys, same)
    return keys


def series_label(ids: Any, number: int) -> str:
    """The id of a series as it is written in messages, after the word "series"; a frame without an id column has but one."""
    if ids is None:
        return "(no id)"
    one = frames.wrapped(ids)[int(number)]
    return shown(one.item() if isinstance(one, np.generic) else one)


def no_stamp(table: Table, names: Columns, what: str = "frame") -> DataError:
    """The error to raise where rows have no stamp."""
    rows = np.flatnonzero(frames.wrapped(table.native[names.time]).is_null().to_numpy())
    whose = "" if names.id is None else f", of series {series_label(table.native[names.id], int(rows[0]))}"
    return DataError(
        f"Every row of the {what} has a stamp in column {shown(names.time)}; it is missing in {len(rows)} row(s), first in "
        f"row {rows[0]}{whose}. Repair or drop these rows."
    )


def _within(indptr: Ints, holds: Any) -> Ints:
    """Rows where a condition of neighbours holds within a series: the later of the two."""
    rows = np.flatnonzero(holds) + 1
    return rows[~np.isin(rows, indptr)]


def _check_doubled(keys: Keys, same: Any) -> None:
    rows = _within(keys.indptr, same)
    if not len(rows):
        return
    time = shown(keys.names.time)
    if keys.ids is None:
        stamp = keys.stamp(rows[0])
        raise DataError(
            f"Without an id column (unique_id) the {keys.what} is one series and the stamps of {time} are unique; {stamp} "
            f"is there more than once ({len(rows)} rows too many). Name the id column, e.g. columns={{'id': 'shop'}}, or "
            "drop the duplicates."
        )
    raise DataError(
        f"({shown(keys.names.id)}, {time}) is unique in the {keys.what}; it is doubled in series {keys.place(rows)} "
        f"(row {keys.caller_row(int(rows[0]))}). Drop the duplicates or aggregate them."
    )


def _refuse_dates(keys: Keys) -> None:
    """Whole numbers that are all dates as 20240131 or 202401 are hardly meant to be counted on to 20240132."""
    for form, unit in (("%Y%m%d", 10_000), ("%Y%m", 100)):
        year, rest = np.divmod(keys.raw, unit)
        month, day = np.divmod(rest, 100) if unit > 100 else (rest, np.ones_like(rest))
        inside = (year >= 1800) & (year < 2200) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
        if inside.all():
            name = shown(keys.names.time)
            raise DataError(
                f"The time column {name} of the {keys.what} holds dates, or numbers that count steps; its numbers look like "
                f"dates written as {form}, the first {keys.raw[0]}. Convert them, e.g. by pandas.to_datetime with "
                f"format={form!r}, or say freq=1 if they count steps."
            )


def _in_units_of(calendar: Calendar, keys: Keys) -> Ints:
    """The stamps in the unit of another frame's calendar, whose kind of time they share."""
    own, wanted = keys.time, calendar.time
    if (bool(own.unit), own.tz is None) != (bool(wanted.unit), wanted.tz is None):
        raise DataError(
            f"The time column {shown(keys.names.time)} of the {keys.what} has the type and time zone (tz) seen in fit, "
            f"{wanted.dtype}; its dtype is {own.dtype}. Convert it."
        )
    if own.unit == wanted.unit:
        return keys.raw
    finer, coarser = PER_DAY[wanted.unit] // PER_DAY[own.unit], PER_DAY[own.unit] // PER_DAY[wanted.unit]
    limit = np.iinfo(np.int64).max // max(finer, 1)
    lost = np.abs(keys.raw) > limit if finer else keys.raw % coarser != 0
    if lost.any():
        raise DataError(
            f"The stamps of the {keys.what} fit the time type seen in fit, {wanted.dtype}; "
            f"{keys.where(int(np.argmax(lost)))} does not ({np.count_nonzero(lost)} stamps in all). Round or convert "
            f"column {shown(keys.names.time)}."
        )
    return keys.raw * finer if finer else keys.raw // coarser


def _not_inferred(keys: Keys) -> DataError:
    lengths = np.diff(keys.indptr)
    time = shown(keys.names.time)
    if lengths.max() < 2:
        whose = "the frame has" if keys.ids is None else f"series {keys.label(0)} has"
        if len(lengths) > 1:
            whose = f"all {len(lengths)} series ({keys.labels(keys.indptr[:-1])}) have"
        return DataError(
            f"freq is inferred from at least 2 rows of a series; {whose} 1. Give longer series; or freq, e.g. freq='D', "
            "for models that need no more."
        )
    if found := strays(keys.raw, keys.indptr, keys.time):
        usual, rows = found
        return DataError(
            f"All stamps of {time} of a series lie on one grid; nearly all follow freq={_as_said(usual)}, and "
            f"{keys.where(int(rows[0]))} does not ({many(len(rows), 'stamp')} in all, in series {keys.labels(rows)}). Repair "
            "them, or bring events on a grid first."
        )
    one = int(np.argmax(lengths))
    some_rows = range(int(keys.indptr[one]), int(keys.indptr[one]) + min(5, int(lengths[one])))
    stamps = some([keys.stamp(row) for row in some_rows], int(lengths[one]))
    whose = "" if keys.ids is None else f" of series {keys.label(one)}"
    own = keys.raw[keys.indptr[one] : keys.indptr[one + 1]]
    days = np.diff(own) // PER_DAY[keys.time.unit] if keys.time.unit else np.zeros(1)
    if 28 <= np.median(days) <= 31 and days.max() <= 31:
        return DataError(
            f"Months are stamped on their first or last (business) days; the stamps of {time}{whose} are a month apart on "
            f"other days, beginning {stamps}. Move them, e.g. frame[{time!r}].dt.to_period('M').dt.to_timestamp(), freq='MS'."
        )
    return DataError(
        f"freq is inferred where at least half of all stamps of {time} are one step apart, the same in all series; they "
        f"are too irregular, or of several frequencies. Those{whose} begin {stamps}. Give freq, e.g. freq='D' "
        "(check(frame, freq='D') shows what does not fit), or resample."
    )


def _check_grid(keys: Keys, calendar: Calendar, position: Ints, gaps: Ints) -> None:
    """Every stamp is a point of the calendar, a whole number of steps after the first of its series."""
    off = np.flatnonzero(position == OFF_GRID)
    if not len(off):
        off = np.flatnonzero((gaps % calendar.step != 0) | (gaps < 0)) + 1
    if not len(off):
        return
    own = infer(keys.raw, keys.indptr, keys.time)
    looks = f" The data look like freq={_as_said(own)}." if own is not None and str(own) != calendar.freq else ""
    at = _time_of_day(calendar, position, off[0], keys.raw)
    raise DataError(
        f"Every stamp of the {keys.what} lies on the grid of freq={_as_said(calendar.frequency)}{at}; "
        f"{keys.where(int(off[0]))} does not ({len(off)} stamps in all, in series {keys.labels(off)}).{looks} Give the "
        "right freq, or repair the stamps."
    )


def _time_of_day(calendar: Calendar, position: Ints, row: int, raw: Ints) -> str:
    """When on its days a calendar has its points, where a stamp is off the grid by nothing but that."""
    if position[row] != OFF_GRID:
        return ""
    local = local_clock(raw[row : row + 1], calendar.time, calendar.time_of_day) if calendar.wall else raw[row : row + 1]
    if point_numbers(calendar.frequency, local // PER_DAY[calendar.time.unit])[0] == OFF_GRID:
        return ""
    clock = np.int64(calendar.time_of_day).view(f"m8[{calendar.time.unit}]").astype("m8[s]").astype(int)
    return f" at {clock // 3600:02d}:{clock // 60 % 60:02d}:{clock % 60:02d}, as the first stamp"


def _weekdays_only(keys: Keys, calendar: Calendar, lengths: Ints) -> Any:
    """Series of a week and more without a single weekend: business days among daily series."""
    local = local_clock(keys.raw, keys.time, calendar.time_of_day) if calendar.wall else keys.raw
    days = local // PER_DAY[keys.time.unit]
    weekends = np.add.reduceat(((days + 3) % 7 > 4).astype(np.int64), keys.indptr[:-1])
    return (weekends == 0) & (days[keys.indptr[1:] - 1] - days[keys.indptr[:-1]] >= 7) & (lengths > 5)


def _as_said(frequency: Any) -> str:
    return repr(str(frequency)) if frequency.base else str(frequency)


def _check_not_coarser(keys: Keys, calendar: Calendar, gaps: Ints, freq: Any) -> None:
    """No series is plainly of a coarser frequency: its holes would become missing values by the thousand."""
    lengths = np.diff(keys.indptr)
    own_gaps = np.append(gaps, 0)
    own_gaps[keys.indptr[1:] - 1] = np.iinfo(np.int64).max  # the last row of a series has no neighbour
    smallest = np.minimum.reduceat(own_gaps, keys.indptr[:-1])
    coarser = (lengths > 2) & (smallest > calendar.step)
    if freq is None and calendar.freq == "D":
        coarser |= _weekdays_only(keys, calendar, lengths)
    suspects = np.flatnonzero(coarser)
    for one in suspects[:20]:
        rows = slice(int(keys.indptr[one]), int(keys.indptr[one + 1]))
        own = infer(keys.raw[rows], np.array([0, rows.stop - rows.start]), keys.time)
        if own is not None:
            said = "which the other series have" if freq is None else "as said"
            raise DataError(
                f"All series are of one freq, {_as_said(calendar.frequency)} {said}; series {keys.label(int(one))} looks "
                f"like freq={_as_said(own)} from {keys.stamp(rows.start)} on ({len(suspects)} "
                "such series). Give the freq the data have, or resample; forecast series of different frequencies apart."
            )
