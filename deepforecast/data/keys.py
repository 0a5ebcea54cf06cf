"""Ids and timestamps of a frame: reading, validation, sorting, calendar positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepforecast.data import calendar as calendars
from deepforecast.data import frames, key_columns
from deepforecast.data.calendar import PER_DAY, Calendar, find_off_grid, format_timestamp, infer_frequency, nominal_local_time
from deepforecast.data.columns import Columns
from deepforecast.data.frames import Floats, Ints, Table
from deepforecast.data.frequency import GRIDS, OFF_GRID, parse_frequency, point_numbers
from deepforecast.data.key_columns import SINGLE_RUN, Runs, TimeType, find_runs
from deepforecast.errors import DataError, DeepForecastError, format_list, format_value, pluralize, raise_error

Report = Callable[[DeepForecastError], None]  # receives an error: raises or collects it
NOT_A_TIME = np.iinfo(np.int64).min  # NaT of numpy
MAX_CHECKED_SERIES = 20  # number of series whose frequency is inferred separately


class Keys(NamedTuple):
    """The sorted (id, time) pairs: `ids` has one entry per series, `timestamps` one per row.

    `order` is the permutation of the frame's rows, None if they are sorted; series i has the sorted
    rows `indptr[i]` to `indptr[i + 1]`. `what` names the frame in messages.
    """

    names: Columns
    library: str
    ids: Any
    order: Ints | None
    indptr: Ints
    timestamps: Ints
    time: TimeType
    what: str

    def sorted(self, values: Floats) -> Floats:
        """Sort a column like the keys."""
        return values if self.order is None else values[self.order]

    def caller_row(self, row: int) -> int:
        """The row of the caller's frame that is sorted to `row`."""
        return row if self.order is None else int(self.order[row])

    def format_timestamp(self, row: Any) -> str:
        """The timestamp of a row as text for messages."""
        return format_timestamp(int(self.timestamps[row]), self.time)

    def describe_row(self, row: int) -> str:
        """`series A at 2024-01-31` for messages."""
        timestamp = self.format_timestamp(row)
        return timestamp if self.ids is None else f"series {self.label(self.series_of(row))} at {timestamp}"

    @property
    def is_duplicate(self) -> NDArray[np.bool_]:
        """Mask of the rows that repeat the timestamp of the previous row of their series."""
        repeats = np.append(False, self.timestamps[1:] == self.timestamps[:-1])
        repeats[self.indptr[:-1]] = False
        return repeats

    def where(self, rows: Ints) -> str:
        """The series of sorted rows and the first timestamp, for findings."""
        return self.describe_rows(rows) if self.ids is not None else f"the series, first at {self.format_timestamp(rows[0])}"

    def series_of(self, row: int) -> int:
        """The number of the series of a sorted row."""
        return int(np.searchsorted(self.indptr, row, side="right")) - 1

    def label(self, number: int) -> str:
        """The id of a series as text for messages."""
        return series_label(self.ids, number)

    def describe_rows(self, rows: Ints) -> str:
        """The series of sorted rows and the first timestamp, for messages."""
        has_several_series = self.series_of(rows[0]) != self.series_of(rows[-1])
        series_text = f" (series {self.label(self.series_of(rows[0]))})" if has_several_series else ""
        return f"{self.labels_of_rows(rows)}, first at {self.format_timestamp(rows[0])}{series_text}"

    def id_texts_of_rows(self, rows: Ints) -> tuple[str, ...]:
        """The ids of the series of sorted rows as text, for errors."""
        series = self._series_with(rows)
        if self.ids is None:
            return (self.label(0),) * len(series)
        return tuple(map(str, frames.to_list(frames.take_native_rows(self.ids, series))))

    def _series_with(self, rows: Ints) -> Ints:
        """The numbers of the series of sorted rows."""
        return np.unique(np.searchsorted(self.indptr, rows, side="right") - 1)

    def labels_of_rows(self, rows: Ints) -> str:
        """The first few series of sorted rows and their number, for messages."""
        series = self._series_with(rows)
        return format_list([self.label(int(series_number)) for series_number in series[:5]], len(series))

    def place_on_calendar(self, freq: Any, calendar: Calendar | None) -> tuple[Calendar, Ints]:
        """The calendar (the passed one, else that of `freq`, inferred if None) and the position of each row on it.

        Raises `DataError` if a timestamp is not on the calendar, or a series clearly has a coarser frequency.
        """
        timestamps, reference_calendar = self.timestamps, calendar
        if calendar is not None:
            timestamps = _convert_units(calendar, self)
        else:
            if freq is None and not self.time.unit:
                _refuse_dates_as_integers(self)
            frequency = infer_frequency(timestamps, self.indptr, self.time) if freq is None else parse_frequency(freq)
            if frequency is None:
                raise _no_frequency_error(self)
            calendar = calendars.make_calendar(frequency, self.time, timestamps[:2], self.names.time)
        timestamps_are_positions = calendar.time.tz is None and calendar.frequency.base not in GRIDS
        position = timestamps if timestamps_are_positions else calendar.positions(timestamps)
        first_position, gaps = position[self.indptr[:-1]], np.diff(position)
        gaps[self.indptr[1:-1] - 1] = calendar.step  # between series
        if (gaps != calendar.step).any() or (first_position == OFF_GRID).any():
            _check_grid(self, calendar, position, gaps)
            if reference_calendar is None:
                _check_not_coarser(self, calendar, gaps, freq)
        return calendar, position


def read_keys(table: Table, names: Columns, what: str = "frame", report: Report | None = raise_error) -> Keys:
    """Read and sort the id and time columns; missing ids or timestamps raise `DataError`.

    Duplicates are reported and left out; with report=None they are kept.
    """
    time_column = table.native[names.time]
    dtype = getattr(time_column, "dtype", None)
    has_numpy_dtype = isinstance(dtype, np.dtype) and dtype.kind != "O"
    if not has_numpy_dtype and frames.to_narwhals_series(time_column).null_count():
        raise missing_timestamp_error(table, names, what)
    timestamps, time_type = key_columns.read_timestamps(time_column, names.time)
    if has_numpy_dtype and time_type.unit and (timestamps == NOT_A_TIME).any():
        raise missing_timestamp_error(table, names, what)
    id_column = None if names.id is None else table.native[names.id]
    runs = Runs(SINGLE_RUN, SINGLE_RUN, 1) if id_column is None or names.id is None else find_runs(id_column, names.id)
    order, indptr = runs.layout(timestamps)
    first_rows = indptr[:-1]
    if order is not None:
        timestamps, first_rows = timestamps[order], order[first_rows]
    ids = None if id_column is None else frames.take_native_rows(id_column, first_rows)
    keys = Keys(names, table.library, ids, order, indptr, timestamps, time_type, what)
    if report is None or not (timestamps[1:] == timestamps[:-1]).any():
        return keys
    return _report_and_drop_duplicates(keys, report)


def _report_and_drop_duplicates(keys: Keys, report: Report) -> Keys:
    """The keys without rows that repeat the timestamp of the previous one; these are reported."""
    is_duplicate = keys.is_duplicate
    rows = np.flatnonzero(is_duplicate)
    if not len(rows):
        return keys
    report(_duplicates_error(keys, rows))
    order = np.arange(len(keys.timestamps)) if keys.order is None else keys.order
    indptr = np.concatenate([[0], np.cumsum(~is_duplicate)])[keys.indptr]
    return keys._replace(order=order[~is_duplicate], indptr=indptr, timestamps=keys.timestamps[~is_duplicate])


def series_label(ids: Any, number: int) -> str:
    """The id of a series as text for messages, after the word "series".

    Without an id column it is "(no id)".
    """
    if ids is None:
        return "(no id)"
    series_id = frames.to_narwhals_series(ids)[int(number)]
    return format_value(series_id.item() if isinstance(series_id, np.generic) else series_id)


def missing_timestamp_error(table: Table, names: Columns, what: str = "frame") -> DataError:
    """The error for rows without a timestamp, with their number and the first one."""
    rows = np.flatnonzero(frames.to_narwhals_series(table.native[names.time]).is_null().to_numpy())
    series_text = "" if names.id is None else f", of series {series_label(table.native[names.id], int(rows[0]))}"
    return DataError(
        f"Every row of the {what} must have a timestamp in column {format_value(names.time)}, but it "
        f"is missing in {pluralize(len(rows), 'row')}, first in row {rows[0]}{series_text}.",
        hint="Fill in the timestamps or drop these rows.",
    )


def _duplicates_error(keys: Keys, rows: Ints) -> DataError:
    """The error for rows that repeat a timestamp of their series."""
    time = format_value(keys.names.time)
    if keys.ids is None:
        message = (
            f"Timestamps of column {time} must be unique in the {keys.what}, which is one series without an id column "
            f"(unique_id), but {keys.format_timestamp(rows[0])} is repeated ({pluralize(len(rows), 'duplicate row')} in all)."
        )
    else:
        message = (
            f"Pairs of {format_value(keys.names.id)} and {time} must be unique in the {keys.what}, but there are "
            f"duplicates in series {keys.describe_rows(rows)} (row {keys.caller_row(int(rows[0]))})."
        )
    hint = "Drop or aggregate the duplicates"
    if keys.what == "frame" and keys.ids is None:
        hint = "Pass the id column, e.g. columns={'id': 'shop'}, or drop the duplicates"
    elif keys.what == "frame":
        hint += "; if several columns identify a series, join them into one id column first"
    return DataError(
        message,
        hint=f"{hint}.",
        problem="duplicates",
        count=len(rows),
        where=keys.where(rows),
    )


def _refuse_dates_as_integers(keys: Keys) -> None:
    """Raise if all integers look like dates, such as 20240131 or 202401."""
    for date_format, per_year in (("%Y%m%d", 10_000), ("%Y%m", 100)):
        year, month_and_day = np.divmod(keys.timestamps, per_year)
        month, day = np.divmod(month_and_day, 100) if per_year > 100 else (month_and_day, np.ones_like(month_and_day))
        is_date = (year >= 1800) & (year < 2200) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
        if is_date.all():
            name = format_value(keys.names.time)
            raise DataError(
                f"The time column {name} of the {keys.what} must contain dates, or integers that "
                f"count steps; its integers look like dates written as {date_format}, the first is "
                f"{keys.timestamps[0]}.",
                hint="Convert them, e.g. with pandas.to_datetime(..., "
                f"format={date_format!r}), or pass freq=1 if they count steps.",
            )


def _convert_units(calendar: Calendar, keys: Keys) -> Ints:
    """The timestamps in the unit of `calendar`, which was created from another frame; raises if that is not exact."""
    time_type, reference_type = keys.time, calendar.time
    if (bool(time_type.unit), time_type.tz is None) != (bool(reference_type.unit), reference_type.tz is None):
        raise DataError(
            f"The time column {format_value(keys.names.time)} of the {keys.what} must have the "
            f"type and time zone (tz) seen in fit, {reference_type.dtype}, got "
            f"{time_type.dtype}.",
            hint="Convert the column.",
        )
    if time_type.unit == reference_type.unit:
        return keys.timestamps
    multiplier = PER_DAY[reference_type.unit] // PER_DAY[time_type.unit]  # 0 if the unit of the calendar is coarser
    divisor = PER_DAY[time_type.unit] // PER_DAY[reference_type.unit]
    max_exact = np.iinfo(np.int64).max // max(multiplier, 1)
    is_inexact = np.abs(keys.timestamps) > max_exact if multiplier else keys.timestamps % divisor != 0
    if is_inexact.any():
        raise DataError(
            f"The timestamps of the {keys.what} must be exact in the time type seen in fit, "
            f"{reference_type.dtype}, but {keys.describe_row(int(np.argmax(is_inexact)))} is not "
            f"({pluralize(int(np.count_nonzero(is_inexact)), 'timestamp')} in all).",
            hint=f"Round or convert column {format_value(keys.names.time)}.",
        )
    return keys.timestamps * multiplier if multiplier else keys.timestamps // divisor


def _no_frequency_error(keys: Keys) -> DataError:
    """The error if no frequency can be inferred: too few rows, a few rows off the grid, days in the month, or no pattern."""
    lengths = np.diff(keys.indptr)
    time = format_value(keys.names.time)
    if lengths.max() < 2:
        series_text = "the frame has" if keys.ids is None else f"series {keys.label(0)} has"
        if len(lengths) > 1:
            series_text = f"all {len(lengths)} series ({keys.labels_of_rows(keys.indptr[:-1])}) have"
        return DataError(
            f"`freq` cannot be inferred from fewer than 2 rows; {series_text} 1.",
            hint="Pass freq, e.g. freq='D', or longer series.",
            parameter="freq",
            problem="frequency",
            count=len(lengths),
        )
    if off_grid := find_off_grid(keys.timestamps, keys.indptr, keys.time):
        frequency, rows = off_grid
        return DataError(
            f"The timestamps of column {time} must be regularly spaced in each series; nearly all follow "
            f"freq={_format_frequency(frequency)}, but {keys.describe_row(int(rows[0]))} does not "
            f"({pluralize(len(rows), 'timestamp')} in all, in series {keys.labels_of_rows(rows)}).",
            hint="Correct these timestamps, or resample irregular events.",
            series=keys.id_texts_of_rows(rows),
            problem=f"off the grid of {str(frequency)!r}",
            count=len(rows),
            where=keys.where(rows),
        )
    longest_series = int(np.argmax(lengths))
    some_rows = range(int(keys.indptr[longest_series]), int(keys.indptr[longest_series]) + min(5, int(lengths[longest_series])))
    first_timestamps = format_list([keys.format_timestamp(row) for row in some_rows], int(lengths[longest_series]))
    series_text = "" if keys.ids is None else f" of series {keys.label(longest_series)}"
    series_timestamps = keys.timestamps[keys.indptr[longest_series] : keys.indptr[longest_series + 1]]
    days = np.diff(series_timestamps) // PER_DAY[keys.time.unit] if keys.time.unit else np.zeros(1)
    if 28 <= np.median(days) <= 31 and days.max() <= 31:
        return DataError(
            "Monthly timestamps must be the first or last (business) days of months; those of column "
            f"{time}{series_text} are on other days: {first_timestamps}.",
            hint=f"Move them, e.g. frame[{time!r}].dt.to_period('M').dt.to_timestamp(), and pass freq='MS'.",
            problem="frequency",
            count=len(lengths),
        )
    return DataError(
        f"`freq` cannot be inferred unless at least half of the timestamps of column {time} are one step "
        "apart, the same step in all series; they are irregular, or of several frequencies: "
        f"those{series_text} are {first_timestamps}.",
        hint="Pass freq, e.g. freq='D' (check(frame, freq='D') shows what does not fit), or resample the series.",
        parameter="freq",
        problem="frequency",
        count=len(lengths),
    )


def _check_grid(keys: Keys, calendar: Calendar, position: Ints, gaps: Ints) -> None:
    """Raise unless all timestamps are on the calendar, a whole number of steps after the first of their series.

    `gaps` are the differences of consecutive positions.
    """
    off_grid = np.flatnonzero(position == OFF_GRID)
    if not len(off_grid):
        off_grid = np.flatnonzero((gaps % calendar.step != 0) | (gaps < 0)) + 1
    if not len(off_grid):
        return
    inferred = infer_frequency(keys.timestamps, keys.indptr, keys.time)
    inferred_text = ""
    if inferred is not None and str(inferred) != calendar.freq:
        inferred_text = f" The data look like freq={_format_frequency(inferred)}."
    time_of_day = _describe_time_of_day(calendar, position, off_grid[0], keys.timestamps)
    raise DataError(
        f"Every timestamp of the {keys.what} must be on the grid of "
        f"freq={_format_frequency(calendar.frequency)}{time_of_day}, but "
        f"{keys.describe_row(int(off_grid[0]))} is not ({pluralize(len(off_grid), 'timestamp')} in "
        f"all, in series {keys.labels_of_rows(off_grid)}).{inferred_text}",
        hint="Pass the right freq, or correct the timestamps.",
        series=keys.id_texts_of_rows(off_grid),
        problem=f"off the grid of {str(calendar.frequency)!r}",
        count=len(off_grid),
        where=keys.where(off_grid),
    )


def _describe_time_of_day(calendar: Calendar, position: Ints, row: int, timestamps: Ints) -> str:
    """The time of day of the calendar as text, if the timestamp of `row` is off the grid only for its time of day."""
    if position[row] != OFF_GRID:
        return ""
    local = timestamps[row : row + 1]
    if calendar.counts_local_time:
        local = nominal_local_time(local, calendar.time, calendar.time_of_day)
    if point_numbers(calendar.frequency, local // PER_DAY[calendar.time.unit])[0] == OFF_GRID:
        return ""
    clock = np.int64(calendar.time_of_day).view(f"m8[{calendar.time.unit}]").astype("m8[s]").astype(int)
    return f" at {clock // 3600:02d}:{clock // 60 % 60:02d}:{clock % 60:02d}, as the first timestamp"


def _has_no_weekends(keys: Keys, calendar: Calendar, lengths: Ints) -> Any:
    """Mask of the series without weekends that span at least a week and have more than 5 rows: business days."""
    local = keys.timestamps
    if calendar.counts_local_time:
        local = nominal_local_time(local, keys.time, calendar.time_of_day)
    days = local // PER_DAY[keys.time.unit]
    # day 0 was a Thursday, so (day + 3) % 7 is 0 on Mondays
    n_weekend_days = np.add.reduceat(((days + 3) % 7 > 4).astype(np.int64), keys.indptr[:-1])
    return (n_weekend_days == 0) & (days[keys.indptr[1:] - 1] - days[keys.indptr[:-1]] >= 7) & (lengths > 5)


def _format_frequency(frequency: Any) -> str:
    return repr(str(frequency)) if frequency.base else str(frequency)


def _check_not_coarser(keys: Keys, calendar: Calendar, gaps: Ints, freq: Any) -> None:
    """Raise if a series clearly has a coarser frequency, such as weekly or business days among daily series.

    `gaps` are the differences of consecutive positions; `freq` is the argument, None if it was inferred.
    """
    lengths = np.diff(keys.indptr)
    gaps_to_next = np.append(gaps, 0)
    # the last row of a series has no neighbour
    gaps_to_next[keys.indptr[1:] - 1] = np.iinfo(np.int64).max
    smallest_gap = np.minimum.reduceat(gaps_to_next, keys.indptr[:-1])
    may_be_coarser = (lengths > 2) & (smallest_gap > calendar.step)
    if freq is None and calendar.freq == "D":
        may_be_coarser |= _has_no_weekends(keys, calendar, lengths)
    suspects = np.flatnonzero(may_be_coarser)
    for series_number in suspects[:MAX_CHECKED_SERIES]:
        rows = slice(int(keys.indptr[series_number]), int(keys.indptr[series_number + 1]))
        inferred = infer_frequency(keys.timestamps[rows], np.array([0, rows.stop - rows.start]), keys.time)
        if inferred is not None:
            source = "as in the other series" if freq is None else "as passed"
            raise DataError(
                f"All series must have the same frequency, {_format_frequency(calendar.frequency)} "
                f"{source}, but series {keys.label(int(series_number))}, which starts at "
                f"{keys.format_timestamp(rows.start)}, looks like freq={_format_frequency(inferred)} "
                f"({len(suspects)} such series).",
                hint="Pass the freq of the data, or resample; forecast series of different frequencies separately.",
                problem="frequency",
                count=len(suspects),
            )
