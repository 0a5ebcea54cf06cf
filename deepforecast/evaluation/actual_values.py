"""Actual values of the forecast points, from the forecasts or matched by key from another frame."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import frames
from deepforecast.data.columns import Columns
from deepforecast.data.covariates import match_ids
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.keys import Keys, read_keys
from deepforecast.errors import DataError, ParameterError, format_list
from deepforecast.evaluation.forecast_rows import ForecastRows
from deepforecast.evaluation.metric_inputs import MAX_MAGNITUDE
from deepforecast.evaluation.timestamp_units import convert_unit, finer_unit


def read_actuals(forecast_rows: ForecastRows, table: nw.DataFrame[Any], actual: Frame | None, names: Columns) -> Floats:
    """The actual value of each point, NaN where missing; every point must have a row."""
    if actual is None:
        values = _read_actuals_from_forecasts(forecast_rows, table, names)
    elif names.target in table.columns:
        raise ParameterError(
            f"Actual values cannot be in both the forecasts and `actual`, and the forecasts have column {names.target}.",
            hint="Drop it from the forecasts, or leave out `actual`.",
            parameter="actual",
        )
    else:
        values = _match_actuals(forecast_rows, frames.to_narwhals(actual, "actual frame"), names)
    invalid_points = np.flatnonzero(np.abs(values) >= MAX_MAGNITUDE)
    if len(invalid_points):
        raise DataError(
            f"Actual values must be below {MAX_MAGNITUDE:g} in magnitude or missing; column {names.target} is "
            f"{values[invalid_points[0]]} for "
            f"{forecast_rows.describe_point(int(invalid_points[0]))} ({len(invalid_points)} such values).",
            hint="Correct them or set them to missing.",
        )
    if np.isnan(values).all():
        raise DataError(
            f"At least one point must have an actual value, but column {names.target} is missing at all {len(values)} points.",
            hint="Use forecasts of timestamps that have been observed.",
        )
    return values


def _read_actuals_from_forecasts(forecast_rows: ForecastRows, table: nw.DataFrame[Any], names: Columns) -> Floats:
    """The actual value of each point from the target column of the forecasts; it must be equal in all
    sample paths."""
    if names.target not in table.columns:
        raise ParameterError(
            f"The forecasts must have a column {names.target} with the actual values.",
            hint="Add it, or pass `actual`, a frame "
            f"with the columns {format_list([name for name in (names.id, names.time, names.target) if name])}.",
        )
    values = forecast_rows.in_point_order(frames.read_numbers(table[names.target], names.target))
    if not forecast_rows.n_samples:
        return np.asarray(values)
    is_different = ((values != values[0]) & ~(np.isnan(values) & np.isnan(values[0]))).any(axis=0)
    if is_different.any():
        location = forecast_rows.describe_point(int(np.argmax(is_different)))
        raise DataError(
            f"All sample paths of a point must have the same actual value, but column {names.target} differs for {location}.",
            hint="Correct it, or drop the column and pass `actual`.",
        )
    return np.asarray(values[0])


def _match_actuals(forecast_rows: ForecastRows, table: nw.DataFrame[Any], names: Columns) -> Floats:
    """The actual value of each point, matched by id and time from `table`, the `actual` frame."""
    if not len(table):
        raise DataError("`actual` must have at least one row, got an empty frame.", parameter="actual")
    absent_columns = [name for name in (names.id, names.time, names.target) if name is not None and name not in table.columns]
    if absent_columns:
        raise DataError(
            f"`actual` must have the column {absent_columns[0]}, which the forecasts have or `columns` names, got the columns "
            f"{format_list(table.columns, max_shown=12)}.",
            hint="Rename the column, or pass `columns`.",
            parameter="actual",
        )
    keys = read_keys(frames.read_table(table.to_native()), names, "actual frame")
    actual_series = (
        np.zeros(1, np.int64) if names.id is None else match_ids(forecast_rows.ids, keys.ids, "actual frame", names.id)
    )
    row_index = _find_actual_rows(forecast_rows, keys, actual_series)
    missing = np.flatnonzero(row_index < 0)
    if len(missing):
        missing_series = np.unique(forecast_rows.series[np.searchsorted(forecast_rows.indptr, missing, side="right") - 1])
        raise DataError(
            f"`actual` must have a row for every forecast point; {len(missing)} of {len(row_index)} are missing, in "
            f"{len(missing_series)} series, the first {forecast_rows.describe_point(int(missing[0]))}. Score only forecasts "
            f"with actual values, or add the rows (with a missing {names.target} where it is unknown).",
            parameter="actual",
        )
    return keys.sorted(frames.read_numbers(table[names.target], names.target))[row_index]


def _find_actual_rows(forecast_rows: ForecastRows, keys: Keys, actual_series: Ints) -> Ints:
    """For each point the index of its row in the sorted `actual` frame, -1 if there is none.

    `actual_series` maps the index of each series of the forecasts to that in the actual frame (-1: not
    there).
    """
    import pandas as pd

    unit = finer_unit(forecast_rows.time, keys.time, "the forecasts and of the actual frame")
    forecast_times = convert_unit(forecast_rows.timestamps, forecast_rows.time, unit)
    actual_times = convert_unit(keys.timestamps, keys.time, unit)
    # timestamps repeat across series: their codes are small enough to share one integer key with the series
    time_codes, timestamps = pd.factorize(actual_times, sort=True)
    actual_keys = np.repeat(np.arange(len(keys.indptr) - 1), np.diff(keys.indptr)) * len(timestamps) + time_codes
    forecast_codes = pd.Index(timestamps).get_indexer(pd.Index(forecast_times))
    series = actual_series[forecast_rows.series][forecast_rows.forecast_of_point]
    forecast_keys = series * len(timestamps) + forecast_codes
    row_index = np.minimum(np.searchsorted(actual_keys, forecast_keys), len(actual_keys) - 1)
    return np.where((series >= 0) & (forecast_codes >= 0) & (actual_keys[row_index] == forecast_keys), row_index, -1)
