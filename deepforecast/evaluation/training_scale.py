"""The scale of MASE, RMSSE and MSIS for each forecast, from the data before its cutoff."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deepforecast.data.covariates import match_ids
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.frequency import season_length as usual_season
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, format_list, validate_integer
from deepforecast.evaluation.forecast_rows import ForecastRows
from deepforecast.evaluation.timestamp_units import calendar_positions


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The training panel of the forecasts.

    `series`: for each forecast the index of its series in the panel. `season_length`: None for the
    usual season of the frequency.
    """

    forecast_rows: ForecastRows
    panel: Panel
    series: Ints
    season_length: int | None

    def scale(self, squared: bool = False) -> Floats:
        """The scale of each forecast, from the rows up to its cutoff or before its first
        timestamp."""
        return scale_until(
            self.panel.y,
            self.panel.indptr,
            series=self.series,
            ends=self.ends,
            season=self._resolved_season,
            squared=squared,
        )

    @cached_property
    def ends(self) -> Ints:
        """For each forecast the row of the panel at which its training data end."""
        forecast_rows = self.forecast_rows
        calendar = self.panel.calendar
        start = self.panel.start[self.series]  # calendar position of the first row of each series
        # the cutoff is the last training row, the first forecast timestamp the first row after it
        has_cutoffs = forecast_rows.cutoffs is not None
        timestamps = forecast_rows.cutoffs.timestamps if forecast_rows.cutoffs is not None else forecast_rows.first_timestamps
        elapsed = calendar_positions(timestamps, forecast_rows.time, calendar, forecast_rows.describe_forecast) - start
        steps = (elapsed + (calendar.step if has_cutoffs else calendar.step - 1)) // calendar.step
        ends: Ints = self.panel.indptr[self.series] + np.clip(steps, 0, self.panel.lengths[self.series])
        return ends

    @cached_property
    def _resolved_season(self) -> int:
        return usual_season(self.panel.calendar.frequency) if self.season_length is None else self.season_length


def read_training(train: Frame, forecast_rows: ForecastRows, freq: Any, season_length: Any) -> TrainingData:
    """Read the training frame, which must have all series of the forecasts."""
    names = forecast_rows.names
    panel = Panel.from_frame(
        train, columns={"id": names.id, "time": names.time, "target": names.target}, freq=freq, allow_all_missing=True
    )
    train_series = (
        np.zeros(1, np.int64)
        if forecast_rows.ids is None
        else match_ids(forecast_rows.ids, panel.series.ids, "train frame", str(names.id))
    )
    missing_series = np.flatnonzero(train_series < 0)
    if len(missing_series):
        labels = format_list([forecast_rows.ids[int(series)] for series in missing_series[:5]], len(missing_series))
        raise DataError(
            f"`train` must have rows of every series in the forecasts; missing: {labels}.",
            hint="Add them, or score the other series.",
            parameter="train",
        )
    return TrainingData(forecast_rows, panel, train_series[forecast_rows.series], validate_season_length(season_length))


def validate_season_length(season_length: Any) -> int | None:
    """An integer of at least 1, or None for the default of the frequency."""
    if season_length is None or season_length == "auto":
        return None
    return validate_integer(season_length, "season_length")


def scale_until(values: Floats, indptr: Ints, series: Ints, ends: Ints, season: int, squared: bool) -> Floats:
    """`seasonal_scale` of series `series[i]` with its rows before `ends[i]`; NaN without a pair.

    One pass over the values for any number of ends: the sum up to an end is the sum up to the previous
    end of the same series plus that of the rows in between. The ends of a series must therefore be
    contiguous and non-decreasing.
    """
    differences = _seasonal_differences(values, season, squared)
    is_repeated = np.concatenate([[False], series[1:] == series[:-1]])  # not the first end of its series
    first_row = indptr[series] + season
    stop = np.maximum(ends, first_row)
    start = np.where(is_repeated, np.concatenate([first_row[:1], stop[:-1]]), first_row)
    order = np.argsort(start, kind="stable")  # forecasts may have another order of series than the panel
    sums = np.empty(len(series))
    counts = np.empty(len(series))
    missing = np.isnan(differences)
    sums[order] = _span_sums(np.where(missing, 0.0, differences), start[order], stop[order])
    counts[order] = _span_sums((~missing).astype(np.float64), start[order], stop[order])
    _accumulate(is_repeated, sums, counts)
    if np.isinf(sums).any():
        raise DataError(
            "Squares of the training data must fit into float64, but they overflow. Divide the data by a constant first."
        )
    return np.asarray(np.divide(sums, counts, out=np.full(len(series), np.nan), where=counts > 0))


def _seasonal_differences(values: Floats, season: int, squared: bool) -> Floats:
    """|y_t - y_{t - season}| or its square at each row t of the flat panel, NaN in the first season.

    Differences across the bounds of two series are meaningless, and `season` + 1 rows of NaN follow the
    last one, because spans of short series may end there.
    """
    differences = np.full(len(values) + season + 1, np.nan)
    with np.errstate(over="ignore"):
        signed = values[season:] - values[:-season]
        differences[season : len(values)] = np.square(signed) if squared else np.abs(signed)
    return differences


def _span_sums(values: Floats, start: Ints, stop: Ints) -> Floats:
    """Sums of `values[start[i]:stop[i]]`, 0 for empty spans; `start` must be non-decreasing."""
    sums = np.add.reduceat(values, np.column_stack([start, stop]).reshape(-1))[::2]
    return np.where(start < stop, sums, 0.0)


def _accumulate(is_repeated: Any, *totals: Floats) -> None:
    """Cumulative sums within each series, in place: the second ends of all series first, then the
    third, and so on."""
    first_end = np.maximum.accumulate(np.where(is_repeated, 0, np.arange(len(is_repeated))))
    rank = np.arange(len(is_repeated)) - first_end  # 0 for the first end of each series
    order = np.argsort(rank, kind="stable")
    for ends in np.split(order, np.cumsum(np.bincount(rank))[:-1])[1:]:
        for sums in totals:
            sums[ends] += sums[ends - 1]
