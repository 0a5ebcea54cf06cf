"""Steps from the cutoff to each point of a forecast."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import calendar as calendars
from deepforecast.data.calendar import Calendar, infer_frequency
from deepforecast.data.columns import STEP
from deepforecast.data.frames import Ints
from deepforecast.data.frequency import parse_frequency
from deepforecast.errors import DataError
from deepforecast.evaluation.forecast_rows import ForecastRows
from deepforecast.evaluation.timestamp_units import calendar_positions


def steps_ahead(forecast_rows: ForecastRows, table: nw.DataFrame[Any], freq: Any, calendar: Calendar | None) -> Ints:
    """The step of each point: 1 for the first after the cutoff or, without cutoffs, for the first
    of each series.

    Steps are counted on the calendar, so that missing points do not shift others. A column `step`
    takes precedence.
    """
    if STEP in table.columns:
        return _read_steps(forecast_rows, table)
    first_points = forecast_rows.indptr[:-1]
    n_points = len(forecast_rows.timestamps)
    if forecast_rows.cutoffs is None and len(first_points) == n_points:  # one point per series: no frequency is needed
        return np.ones(n_points, np.int64)
    if calendar is None:
        calendar = _infer_calendar(forecast_rows, freq)
    point_positions = calendar_positions(forecast_rows.timestamps, forecast_rows.time, calendar, forecast_rows.describe_point)
    origin = point_positions[first_points] - calendar.step
    if forecast_rows.cutoffs is not None:
        origin = calendar_positions(
            forecast_rows.cutoffs.timestamps, forecast_rows.time, calendar, forecast_rows.describe_forecast
        )
    steps, remainder = np.divmod(point_positions - origin[forecast_rows.forecast_of_point], calendar.step)
    off_grid = np.flatnonzero(remainder)
    if len(off_grid):
        raise DataError(
            f"Every timestamp must be a whole number of steps of freq={calendar.freq!r} after the cutoff; "
            f"{forecast_rows.describe_point(int(off_grid[0]))} is not ({len(off_grid)} such timestamps).",
            hint="Pass the correct `freq`, or correct the timestamps.",
        )
    return np.asarray(steps, dtype=np.int64)


def _read_steps(forecast_rows: ForecastRows, table: nw.DataFrame[Any]) -> Ints:
    """The step of each point from the column `step`."""
    column = table[STEP]
    if not column.dtype.is_integer() or column.null_count():
        raise DataError(
            f"Column {STEP} must have integers without missing values, got dtype {column.dtype}.", hint="Convert or drop it."
        )
    values = forecast_rows.in_point_order(np.asarray(column.to_numpy()).astype(np.int64))
    return np.asarray(values[0] if forecast_rows.n_samples else values)


def _infer_calendar(forecast_rows: ForecastRows, freq: Any) -> Calendar:
    """The calendar of `freq`, or inferred from the forecasts and their cutoffs."""
    timestamps = forecast_rows.timestamps
    bounds = forecast_rows.indptr
    if forecast_rows.cutoffs is not None:  # prepend to each forecast its cutoff
        timestamps = np.insert(timestamps, bounds[:-1], forecast_rows.cutoffs.timestamps)
        bounds = bounds + np.arange(len(bounds))
    frequency = infer_frequency(timestamps, bounds, forecast_rows.time) if freq is None else parse_frequency(freq)
    if frequency is None:
        raise DataError(
            f"The frequency, in which steps are counted, cannot be inferred from column {forecast_rows.names.time}.",
            hint="Pass `freq`, e.g. freq='D', or `train`.",
        )
    return calendars.make_calendar(frequency, forecast_rows.time, int(timestamps[0]))
