"""How many steps ahead of its cutoff each point of a forecast lies."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import calendar as calendars
from deepforecast.data.calendar import Calendar
from deepforecast.data.forecast_names import STEP
from deepforecast.data.frames import Ints
from deepforecast.data.frequency import parse
from deepforecast.data.frequency_inference import infer
from deepforecast.errors import DataError
from deepforecast.evaluation.clock import positions
from deepforecast.evaluation.forecast_rows import ForecastRows


def steps_ahead(rows: ForecastRows, table: nw.DataFrame[Any], freq: Any, calendar: Calendar | None) -> Ints:
    """1 for the first step after the cutoff; without a cutoff, for the first stamp forecast of each series.

    Counted on the calendar, so that a point left out of a forecast moves no other. A column `step` is taken as it is.
    """
    if STEP in table.columns:
        return _given(rows, table)
    first, number = rows.indptr[:-1], np.arange(len(rows.raw))
    if rows.cutoffs is None and len(first) == len(number):
        return np.ones(len(number), np.int64)
    if calendar is None:
        calendar = _calendar(rows, freq)
    at = positions(rows.raw, rows.time, calendar, rows.where)
    origin = at[first] - calendar.step
    if rows.cutoffs is not None:
        origin = positions(rows.cutoffs.raw, rows.time, calendar, rows.where_forecast)
    steps, rest = np.divmod(at - origin[rows.forecast_of_point], calendar.step)
    off = np.flatnonzero(rest)
    if len(off):
        raise DataError(
            f"Every stamp is a whole number of steps of freq {calendar.freq!r} after the cutoff; "
            f"{rows.where(int(off[0]))} is not ({len(off)} stamps in all). Give the right freq, or repair the stamps."
        )
    return np.asarray(steps, dtype=np.int64)


def _given(rows: ForecastRows, table: nw.DataFrame[Any]) -> Ints:
    column = table[STEP]
    if not column.dtype.is_integer() or column.null_count():
        raise DataError(f"Column {STEP} numbers the steps ahead: integers, none missing; it holds {column.dtype}. Or drop it.")
    values = rows.sorted(np.asarray(column.to_numpy()).astype(np.int64))
    return np.asarray(values[0] if rows.samples else values)


def _calendar(rows: ForecastRows, freq: Any) -> Calendar:
    """From what was said, or from the stamps of the forecasts and their cutoffs."""
    raw, bounds = rows.raw, rows.indptr
    if rows.cutoffs is not None:
        raw, bounds = np.insert(raw, bounds[:-1], rows.cutoffs.raw), bounds + np.arange(len(bounds))
    frequency = infer(raw, bounds, rows.time) if freq is None else parse(freq)
    if frequency is None:
        raise DataError(
            f"Steps are counted by freq, which could not be inferred from column {rows.names.time}. Give it, e.g. freq='D', or "
            "give train=."
        )
    return calendars.make_calendar(frequency, rows.time, int(raw[0]))
