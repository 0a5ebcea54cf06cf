"""Interpolation of missing values by seasons and a linear trend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.imputation import fill_missing
from deepforecast.models.baselines._arrays import segment_reduce

MAX_ROUNDS = 30  # of backfitting several seasons
RELATIVE_TOLERANCE = 1e-12  # of the largest value


class SeriesRows(NamedTuple):
    """Rows of several series: values (NaN: missing), series index, and position in the series."""

    y: Floats
    series: Ints
    position: Ints
    indptr: Ints


def fill_with_seasons(y: Floats, indptr: Ints, lengths: Sequence[int], cycles: int) -> Floats:
    """Fill missing values by a least squares fit of seasons and line plus interpolated residuals.

    Seasons are fitted to series of at least `cycles` cycles with enough values to identify them;
    without a season the interpolation is linear, and constant at the ends.
    """
    linear = fill_missing(y, indptr, "interpolate")
    missing, counts = np.isnan(y), np.diff(indptr)
    longest = [length for length in sorted(set(lengths), reverse=True) if length > 1]
    selected = segment_reduce(missing, indptr[:-1], indptr[1:]) > 0
    selected &= counts >= cycles * min(longest, default=len(y) + 1)
    inside = np.repeat(selected, counts)
    if not inside.any():
        return linear
    bounds = np.concatenate([[0], np.cumsum(counts[selected])])
    series = np.repeat(np.arange(len(bounds) - 1), counts[selected])
    base = segment_reduce(np.nan_to_num(linear), indptr[:-1], indptr[:-1] + 1)[selected][series]  # exact for constants
    with np.errstate(over="ignore", invalid="ignore"):
        rows = SeriesRows(y[inside] - base, series, np.arange(len(series)) - bounds[:-1][series], bounds)
        smooth = _fit_seasons_and_line(rows, longest, cycles)
        filled_rows = fill_missing(rows.y - smooth, bounds, "interpolate") + smooth + base
    linear[inside] = np.where(missing[inside] & np.isfinite(filled_rows), filled_rows, linear[inside])
    return linear


def _fit_seasons_and_line(rows: SeriesRows, longest: Sequence[int], cycles: int) -> Floats:
    """Backfitting: one season and the line at a time, until each series has converged by itself."""
    seasons, line, largest = np.zeros((len(longest), len(rows.y))), np.zeros(len(rows.y)), np.nan_to_num(np.abs(rows.y))
    limit = RELATIVE_TOLERANCE * segment_reduce(largest, rows.indptr[:-1], rows.indptr[1:], np.maximum)
    is_moving = np.ones(len(limit), dtype=bool)
    for _ in range(MAX_ROUNDS if len(longest) > 1 else 1):
        largest_change, is_row_moving = np.zeros(len(limit)), is_moving[rows.series]
        for number, length in enumerate(longest):
            previous = seasons[number].copy()
            season, new_line = _fit_season_and_line(rows, seasons.sum(axis=0) - previous, line, length, cycles)
            seasons[number], line = np.where(is_row_moving, season, previous), np.where(is_row_moving, new_line, line)
            change = np.abs(seasons[number] - previous)
            largest_change = np.maximum(largest_change, segment_reduce(change, rows.indptr[:-1], rows.indptr[1:], np.maximum))
        is_moving &= largest_change > limit
        if not is_moving.any():
            break
    return np.asarray(seasons.sum(axis=0) + line)


def _fit_season_and_line(
    rows: SeriesRows, other_seasons: Floats, line: Floats, length: int, cycles: int
) -> tuple[Floats, Floats]:
    """Least squares fit of a season with mean 0 and a line to the values without the other seasons.

    If they are not identified, the season is 0 and the line unchanged.
    """
    is_observed, size = ~np.isnan(rows.y), len(rows.indptr) - 1
    key = rows.series * length + rows.position % length
    observed_key, observed_series = key[is_observed], rows.series[is_observed]
    residuals = (rows.y - other_seasons)[is_observed]
    observed_position = rows.position[is_observed].astype(np.float64)
    count = np.bincount(observed_key, minlength=size * length)
    mean, row = (
        np.bincount(observed_key, column, size * length) / np.maximum(count, 1) for column in (residuals, observed_position)
    )
    row_deviation = observed_position - row[observed_key]
    squares = np.bincount(observed_series, row_deviation * row_deviation, size)
    slope = np.bincount(observed_series, row_deviation * (residuals - mean[observed_key]), size) / np.where(
        squares > 0, squares, 1.0
    )
    has_value = count.reshape(size, length) > 0
    index = (mean - np.repeat(slope, length) * row).reshape(size, length)
    index -= np.where(has_value, index, 0.0).sum(axis=1, keepdims=True) / np.maximum(has_value.sum(axis=1, keepdims=True), 1)
    is_identified = (count.reshape(size, length).sum(axis=1) >= has_value.sum(axis=1) + 2) & (
        np.diff(rows.indptr) >= cycles * length
    )
    phases = np.arange(length)
    for number in np.flatnonzero(is_identified & ~has_value.all(axis=1)):  # phases without values are interpolated
        index[number] = np.interp(phases, phases[has_value[number]], index[number, has_value[number]], period=length)
    is_row_identified = is_identified[rows.series]
    return np.where(is_row_identified, index.reshape(-1)[key], 0.0), np.where(
        is_row_identified, slope[rows.series] * rows.position, line
    )
