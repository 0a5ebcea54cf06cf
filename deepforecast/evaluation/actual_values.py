"""The actual value of each point forecast: a column of the forecasts themselves, or matched by key from another frame."""

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


def read_actuals(rows: ForecastRows, table: nw.DataFrame[Any], actual: Frame | None, names: Columns) -> Floats:
    """The actual value of each point, NaN where the frame holds a missing one; a point without a row is refused."""
    if actual is None:
        values = _read_own_actuals(rows, table, names)
    elif names.target in table.columns:
        raise ParameterError(
            f"The actual values are in the forecasts or in actual=; column {names.target} is in both. Drop it from the "
            "forecasts, or leave actual= out."
        )
    else:
        values = _match_actuals(rows, frames.to_narwhals(actual, "actual frame"), names)
    wrong = np.flatnonzero(np.abs(values) >= MAX_MAGNITUDE)
    if len(wrong):
        raise DataError(
            f"Actual values are finite or missing; column {names.target} is {values[wrong[0]]} for {rows.describe_point(int(wrong[0]))} "
            f"({len(wrong)} such values in all). Correct them or make them missing."
        )
    if np.isnan(values).all():
        raise DataError(
            f"Forecasts are scored where there are actual values; column {names.target} is missing at all {len(values)} points."
        )
    return values


def _read_own_actuals(rows: ForecastRows, table: nw.DataFrame[Any], names: Columns) -> Floats:
    if names.target not in table.columns:
        raise ParameterError(
            f"The forecasts have no column {names.target} with the actual values. Give actual=frame, whose rows are matched by "
            f"{' and '.join(name for name in (names.id, names.time) if name)}."
        )
    values = rows.sorted(frames.read_numbers(table[names.target], names.target))
    if not rows.n_samples:
        return np.asarray(values)
    is_different = ((values != values[0]) & ~(np.isnan(values) & np.isnan(values[0]))).any(axis=0)
    if is_different.any():
        location = rows.describe_point(int(np.argmax(is_different)))
        raise DataError(f"All sample paths of a point have one actual value; column {names.target} differs for {location}.")
    return np.asarray(values[0])


def _match_actuals(rows: ForecastRows, table: nw.DataFrame[Any], names: Columns) -> Floats:
    if not len(table):
        raise DataError("The actual frame has rows; this one is empty.")
    absent_columns = [name for name in (names.id, names.time, names.target) if name is not None and name not in table.columns]
    if absent_columns:
        raise DataError(
            f"The actual frame has the column {absent_columns[0]}, as the forecasts have or columns= says; the columns found are "
            f"{format_list(table.columns, max_shown=12)}."
        )
    keys = read_keys(frames.read_table(table.to_native()), names, "actual frame")
    actual_series = np.zeros(1, np.int64) if names.id is None else match_ids(rows.ids, keys.ids, "actual frame", names.id)
    row_index = _find_actual_rows(rows, keys, actual_series)
    missing = np.flatnonzero(row_index < 0)
    if len(missing):
        missing_series = np.unique(rows.series[np.searchsorted(rows.indptr, missing, side="right") - 1])
        raise DataError(
            f"The actual frame has a row for every point forecast; {len(missing)} of {len(row_index)} are missing, in {len(missing_series)} "
            f"series, first {rows.describe_point(int(missing[0]))}. Score the forecasts that have actual values, or add the rows (with "
            f"a missing {names.target} where it is not known)."
        )
    return keys.sorted(frames.read_numbers(table[names.target], names.target))[row_index]


def _find_actual_rows(rows: ForecastRows, keys: Keys, actual_series: Ints) -> Ints:
    """The sorted row of the actual frame for each point, -1 where there is none."""
    import pandas as pd

    unit = finer_unit(rows.time, keys.time, "the forecasts and of the actual frame")
    forecast_times, actual_times = convert_unit(rows.timestamps, rows.time, unit), convert_unit(keys.timestamps, keys.time, unit)
    # stamps repeat from series to series: as small numbers they fit into one key together with the series
    time_codes, timestamps = pd.factorize(actual_times, sort=True)
    actual_keys = np.repeat(np.arange(len(keys.indptr) - 1), np.diff(keys.indptr)) * len(timestamps) + time_codes
    forecast_codes = pd.Index(timestamps).get_indexer(pd.Index(forecast_times))
    series = actual_series[rows.series][rows.forecast_of_point]
    forecast_keys = series * len(timestamps) + forecast_codes
    row_index = np.minimum(np.searchsorted(actual_keys, forecast_keys), len(actual_keys) - 1)
    return np.where((series >= 0) & (forecast_codes >= 0) & (actual_keys[row_index] == forecast_keys), row_index, -1)
