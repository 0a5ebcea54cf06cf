"""The rows of a frame of forecasts, sorted by series, cutoff and time.

A *forecast* has one series and one cutoff; its points are contiguous after sorting. Frames that are
already sorted, such as those of `predict` and `cross_validate`, are not copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import frames
from deepforecast.data.calendar import format_timestamp
from deepforecast.data.columns import CUTOFF, SAMPLE, Columns
from deepforecast.data.frames import Ints
from deepforecast.data.key_columns import Runs, TimeType, find_runs
from deepforecast.errors import DataError, format_value
from deepforecast.evaluation.timestamp_units import convert_unit, finer_unit, read_time_column


@dataclass(frozen=True, eq=False)
class Cutoffs:
    """The cutoff of each forecast: its index in `column` (unique values) and its timestamp in the
    unit of the rows."""

    codes: Ints
    column: Any
    timestamps: Ints


@dataclass(frozen=True, eq=False)
class ForecastRows:
    """The points of all forecasts: those of forecast i are `indptr[i]:indptr[i + 1]`, of series
    number `series[i]`.

    `ids`: the series ids in the library of the caller (None: no id column). `order`: the
    permutation that sorts the rows (None: already sorted). `n_samples`: rows per point in a frame
    of sample paths, otherwise 0.
    """

    names: Columns
    library: str
    ids: Any
    order: Ints | None
    indptr: Ints
    series: Ints
    timestamps: Ints
    time: TimeType
    n_samples: int
    cutoffs: Cutoffs | None

    def __len__(self) -> int:
        """The number of forecasts."""
        return len(self.series)

    @property
    def forecast_of_point(self) -> Ints:
        """The index of the forecast of each point."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    @property
    def first_timestamps(self) -> Ints:
        """The first timestamp of each forecast."""
        return self.timestamps[self.indptr[:-1]]

    def in_point_order(self, values: Any) -> Any:
        """A column in the order of the points, shape (points,), or (samples, points) for sample
        paths."""
        values = values if self.order is None else values[self.order]
        return values if not self.n_samples else values.reshape(-1, self.n_samples).T

    def label(self, series: int) -> str:
        """The id of a series for messages."""
        return "the series" if self.ids is None else f"series {format_value(self.ids[int(series)])}"

    def describe_point(self, point: int) -> str:
        """A point for messages, e.g. `series A at 2024-01-31, cutoff 2024-01-24`."""
        forecast = int(np.searchsorted(self.indptr, point, side="right")) - 1
        description = f"{self.label(int(self.series[forecast]))} at {format_timestamp(int(self.timestamps[point]), self.time)}"
        return (
            description
            if self.cutoffs is None
            else f"{description}, cutoff {format_timestamp(int(self.cutoffs.timestamps[forecast]), self.time)}"
        )

    def describe_forecast(self, forecast: int) -> str:
        """The first point of a forecast for messages."""
        return self.describe_point(int(self.indptr[forecast]))


def read_rows(table: nw.DataFrame[Any], names: Columns) -> ForecastRows:
    """Read, check and sort the id, time, cutoff and sample columns."""
    timestamps, time = read_time_column(table, names.time, "forecasts")
    runs = (
        find_runs(table[names.id], names.id) if names.id is not None else Runs(np.zeros(1, np.int64), np.zeros(1, np.int64), 1)
    )
    series = np.arange(runs.count)
    cutoff = None
    if CUTOFF in table.columns:
        timestamps, time, cutoff = _read_cutoffs(table, timestamps, time, names)
        runs, series = _split_by_cutoff(runs, cutoff)
    order, indptr, n_samples = _sort_layout(table, runs, timestamps)
    first_rows = indptr[:-1] if order is None else order[indptr[:-1]]
    timestamps = timestamps if order is None else timestamps[order]
    rows_per_point = n_samples or 1
    first_of_series = first_rows[np.searchsorted(series, np.arange(series[-1] + 1))]
    ids = None if names.id is None else frames.take_rows(table[names.id], first_of_series)
    cutoffs = None if cutoff is None else _make_cutoffs(table, cutoff[first_rows], first_rows)
    forecast_rows = ForecastRows(
        names=names,
        library=frames.library_name(table),
        ids=ids,
        order=order,
        indptr=indptr // rows_per_point,
        series=series,
        timestamps=timestamps[::rows_per_point],
        time=time,
        n_samples=n_samples,
        cutoffs=cutoffs,
    )
    check_keys(forecast_rows)
    return forecast_rows


def _read_cutoffs(table: nw.DataFrame[Any], timestamps: Ints, time: TimeType, names: Columns) -> tuple[Ints, TimeType, Ints]:
    """Timestamps, their type, and cutoffs of all rows, in the finer unit of the two columns."""
    cutoff, cutoff_type = read_time_column(table, CUTOFF, "forecasts")
    unit = finer_unit(time, cutoff_type, f"{names.time} and {CUTOFF}")
    return convert_unit(timestamps, time, unit), TimeType(unit, time.tz, time.dtype), convert_unit(cutoff, cutoff_type, unit)


def _split_by_cutoff(runs: Runs, cutoff: Ints) -> tuple[Runs, Ints]:
    """Split runs of equal ids into runs of equal (id, cutoff).

    Returns the runs, and the series index of each forecast: a unique (id, cutoff) in sorted order.
    """
    import pandas as pd

    starts_run = np.concatenate([[True], cutoff[1:] != cutoff[:-1]])
    starts_run[runs.starts] = True
    starts = np.flatnonzero(starts_run)
    rank = runs.rank[np.searchsorted(runs.starts, starts, side="right") - 1]
    cutoff_codes, unique_cutoffs = pd.factorize(cutoff[starts], sort=True)
    pair, pairs = pd.factorize(rank * len(unique_cutoffs) + cutoff_codes, sort=True)
    return Runs(starts, pair.astype(np.int64), len(pairs)), np.asarray(pairs // len(unique_cutoffs))


def _sort_layout(table: nw.DataFrame[Any], runs: Runs, timestamps: Ints) -> tuple[Ints | None, Ints, int]:
    """The order that sorts the rows (None: sorted), the bounds of each forecast in sorted rows, and the
    number of samples per point (0: no sample paths)."""
    if SAMPLE not in table.columns:
        return *runs.layout(timestamps), 0
    import pandas as pd

    if not table[SAMPLE].dtype.is_integer() or table[SAMPLE].null_count():
        raise DataError(
            f"Column {SAMPLE} must have integers without missing values, got dtype {table[SAMPLE].dtype}.",
            hint="Convert or drop it.",
        )
    sample_code, sample_numbers = pd.factorize(np.asarray(table[SAMPLE].to_numpy()), sort=True)
    n_samples = len(sample_numbers)
    time_code = pd.factorize(timestamps, sort=True)[0]
    point_key = time_code.astype(np.int64) * n_samples + sample_code
    order, indptr = runs.layout(point_key)
    point_key = point_key if order is None else point_key[order]
    is_complete = len(point_key) % n_samples == 0 and bool(
        (point_key.reshape(-1, n_samples) == point_key[::n_samples, None] + np.arange(n_samples)).all()
    )
    if not is_complete or (point_key[::n_samples] % n_samples).any() or (indptr % n_samples).any():
        raise DataError(
            f"Every series and step must have each of the {n_samples} sample paths exactly once.",
            hint="Drop duplicate rows, or score each set of paths separately.",
        )
    return order, indptr, n_samples


def _make_cutoffs(table: nw.DataFrame[Any], cutoff: Ints, first_rows: Ints) -> Cutoffs:
    """The cutoff of each forecast; `first_rows` has the first row of each forecast in `table`."""
    _, first_forecasts, codes = np.unique(cutoff, return_index=True, return_inverse=True)
    return Cutoffs(codes.astype(np.int64), frames.take_rows(table[CUTOFF], first_rows[first_forecasts]), cutoff)


def check_keys(forecast_rows: ForecastRows) -> None:
    """Refuse duplicate keys and timestamps that are not after their cutoff."""
    is_duplicate = forecast_rows.timestamps[1:] == forecast_rows.timestamps[:-1]
    is_duplicate[forecast_rows.indptr[1:-1] - 1] = False
    if is_duplicate.any():
        key_columns = [
            name
            for name in (forecast_rows.names.id, forecast_rows.names.time, None if forecast_rows.cutoffs is None else CUTOFF)
            if name
        ]
        hint = f" Forecasts from several cutoffs must have the column {CUTOFF}." if forecast_rows.cutoffs is None else ""
        location = forecast_rows.describe_point(int(np.argmax(is_duplicate)))
        raise DataError(
            f"({', '.join(key_columns)}) must be unique in the forecasts, but {location} is a duplicate "
            f"({np.count_nonzero(is_duplicate)} such rows).",
            hint=f"Drop duplicates.{hint}",
        )
    if forecast_rows.cutoffs is not None:
        early = np.flatnonzero(forecast_rows.first_timestamps <= forecast_rows.cutoffs.timestamps)
        if len(early):
            raise DataError(
                f"Forecasts must be after their cutoff, but {forecast_rows.describe_forecast(int(early[0]))} is not ({len(early)} such "
                "forecasts).",
                hint=f"Set {CUTOFF} to the last timestamp of the training data.",
            )
