"""The scale of MASE, RMSSE and MSIS for each forecast, from the data before its cutoff."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deepforecast.data.covariates import match_ids
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.frequency import season_length as usual_season
from deepforecast.data.integers import validate_integer
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, format_list
from deepforecast.evaluation.forecast_rows import ForecastRows
from deepforecast.evaluation.timestamp_units import calendar_positions


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The training panel; `series` is the index in the panel of the series of each forecast."""

    rows: ForecastRows
    panel: Panel
    series: Ints
    season_length: int | None

    def scale(self, squared: bool = False) -> Floats:
        """The scale of each forecast, from the rows up to its cutoff or before its first
        timestamp."""
        return scale_until(self.panel.y, self.panel.indptr, self.series, self.ends, self._resolved_season, squared)

    @cached_property
    def ends(self) -> Ints:
        """For each forecast the row of the panel at which its training data end."""
        rows, calendar, start = self.rows, self.panel.calendar, self.panel.start[self.series]
        # the cutoff is the last training row, the first forecast timestamp the first row after it
        has_cutoffs = rows.cutoffs is not None
        timestamps = rows.cutoffs.timestamps if rows.cutoffs is not None else rows.first_timestamps
        elapsed = calendar_positions(timestamps, rows.time, calendar, rows.describe_forecast) - start
        steps = (elapsed + (calendar.step if has_cutoffs else calendar.step - 1)) // calendar.step
        ends: Ints = self.panel.indptr[self.series] + np.clip(steps, 0, self.panel.lengths[self.series])
        return ends

    @cached_property
    def _resolved_season(self) -> int:
        return usual_season(self.panel.calendar.frequency) if self.season_length is None else self.season_length


def read_training(train: Frame, rows: ForecastRows, freq: Any, season_length: Any) -> TrainingData:
    """Read the training frame, which must have all series of the forecasts."""
    names = rows.names
    panel = Panel.from_frame(train, columns={"id": names.id, "time": names.time, "target": names.target}, freq=freq)
    train_series = (
        np.zeros(1, np.int64) if rows.ids is None else match_ids(rows.ids, panel.series.ids, "train frame", str(names.id))
    )
    absent = np.flatnonzero(train_series < 0)
    if len(absent):
        labels = format_list([rows.ids[int(series_number)] for series_number in absent[:5]], len(absent))
        raise DataError(
            f"`train` must have rows of every series in the forecasts, but {labels} has none. Add them, or "
            "score the other series."
        )
    return TrainingData(rows, panel, train_series[rows.series], validate_season_length(season_length))


def validate_season_length(season_length: Any) -> int | None:
    """An integer of at least 1, or None for the default of the frequency."""
    if season_length is None or season_length == "auto":
        return None
    return validate_integer(season_length, "season_length")


def scale_until(values: Floats, indptr: Ints, series: Ints, ends: Ints, season: int, squared: bool) -> Floats:
    """`seasonal_scale` of series `series[i]` with its rows before `ends[i]`; NaN without a pair.

    One pass over the values for any number of ends. The ends of a series must be contiguous and
    non-decreasing.
    """
    change = _seasonal_differences(values, season, squared)
    is_repeated = np.concatenate([[False], series[1:] == series[:-1]])
    first = indptr[series] + season
    stop = np.maximum(ends, first)
    start = np.where(is_repeated, np.concatenate([first[:1], stop[:-1]]), first)
    order = np.argsort(start, kind="stable")  # forecasts may have another order of series than the panel
    sums, counts = np.empty(len(series)), np.empty(len(series))
    missing = np.isnan(change)
    sums[order] = _span_sums(np.where(missing, 0.0, change), start[order], stop[order])
    counts[order] = _span_sums((~missing).astype(np.float64), start[order], stop[order])
    _accumulate(is_repeated, sums, counts)
    if np.isinf(sums).any():
        raise DataError(
            "Squares of the training data must fit into float64, but they overflow. Divide the data by a constant first."
        )
    return np.asarray(np.divide(sums, counts, out=np.full(len(series), np.nan), where=counts > 0))


def _seasonal_differences(values: Floats, season: int, squared: bool) -> Floats:
    """The seasonal difference ending at each row, padded for the ends of short series."""
    change = np.full(len(values) + season + 1, np.nan)
    with np.errstate(over="ignore"):
        inside = values[season:] - values[:-season]
        change[season : len(values)] = np.square(inside) if squared else np.abs(inside)
    return change


def _span_sums(values: Floats, start: Ints, stop: Ints) -> Floats:
    sums = np.add.reduceat(values, np.column_stack([start, stop]).reshape(-1))[::2]
    return np.where(start < stop, sums, 0.0)


def _accumulate(is_repeated: Any, *totals: Floats) -> None:
    """Cumulative sums within each series, in place."""
    first = np.maximum.accumulate(np.where(is_repeated, 0, np.arange(len(is_repeated))))
    rank = np.arange(len(is_repeated)) - first
    order = np.argsort(rank, kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(rank))[:-1])[1:]:
        for total in totals:
            total[rows] += total[rows - 1]
