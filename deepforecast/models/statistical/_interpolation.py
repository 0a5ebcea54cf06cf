"""Interpolation of missing values by seasons and a linear trend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deepforecast.core.arrays import segment_reduce
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import fill_missing

MAX_ROUNDS = 30  # of backfitting several seasons
RELATIVE_TOLERANCE = 1e-12  # change relative to the largest value at which backfitting has converged


class SeriesRows(NamedTuple):
    """Rows of several series: values (NaN: missing), series index, and position in the series."""

    y: Floats
    series: Ints
    position: Ints
    indptr: Ints


def fill_with_seasons(y: Floats, indptr: Ints, lengths: Sequence[int], min_cycles: int) -> Floats:
    """Fill missing values by a least squares fit of seasons and a line plus interpolated residuals.

    A season is fitted to series of at least `min_cycles` cycles with enough values to identify it;
    other series are interpolated linearly, and constant at the ends. Observed values are unchanged.
    """
    linear = fill_missing(y, indptr, "interpolate")
    missing, n_rows = np.isnan(y), np.diff(indptr)
    longest_first = [length for length in sorted(set(lengths), reverse=True) if length > 1]
    selected = segment_reduce(missing, indptr[:-1], indptr[1:]) > 0
    selected &= n_rows >= min_cycles * min(longest_first, default=len(y) + 1)
    is_selected_row = np.repeat(selected, n_rows)
    if not is_selected_row.any():
        return linear
    bounds = np.concatenate([[0], np.cumsum(n_rows[selected])])
    series = np.repeat(np.arange(len(bounds) - 1), n_rows[selected])
    first_values = segment_reduce(np.nan_to_num(linear), indptr[:-1], indptr[:-1] + 1)[selected][series]
    with np.errstate(over="ignore", invalid="ignore"):
        rows = SeriesRows(
            y=y[is_selected_row] - first_values,  # exactly 0 for constants
            series=series,
            position=np.arange(len(series)) - bounds[:-1][series],
            indptr=bounds,
        )
        fitted = _fit_seasons_and_line(rows, longest_first, min_cycles)
        filled = fill_missing(rows.y - fitted, bounds, "interpolate") + fitted + first_values
    is_filled = missing[is_selected_row] & np.isfinite(filled)
    linear[is_selected_row] = np.where(is_filled, filled, linear[is_selected_row])
    return linear


def _fit_seasons_and_line(rows: SeriesRows, lengths: Sequence[int], min_cycles: int) -> Floats:
    """Fitted values by backfitting: one season and the line at a time, until each series has converged.

    A converged series does not change any more, so that results do not depend on the other series.
    """
    seasons, line = np.zeros((len(lengths), len(rows.y))), np.zeros(len(rows.y))
    absolute = np.nan_to_num(np.abs(rows.y))
    tolerance = RELATIVE_TOLERANCE * segment_reduce(absolute, rows.indptr[:-1], rows.indptr[1:], np.maximum)
    is_changing = np.ones(len(tolerance), dtype=bool)
    for _ in range(MAX_ROUNDS if len(lengths) > 1 else 1):
        largest_change, is_row_changing = np.zeros(len(tolerance)), is_changing[rows.series]
        for index, length in enumerate(lengths):
            previous = seasons[index].copy()
            season, new_line = _fit_season_and_line(rows, seasons.sum(axis=0) - previous, line, length, min_cycles)
            seasons[index] = np.where(is_row_changing, season, previous)
            line = np.where(is_row_changing, new_line, line)
            change = np.abs(seasons[index] - previous)
            largest_change = np.maximum(largest_change, segment_reduce(change, rows.indptr[:-1], rows.indptr[1:], np.maximum))
        is_changing &= largest_change > tolerance
        if not is_changing.any():
            break
    return np.asarray(seasons.sum(axis=0) + line)


def _fit_season_and_line(
    rows: SeriesRows, other_seasons: Floats, line: Floats, length: int, min_cycles: int
) -> tuple[Floats, Floats]:
    """Least squares fit of a season with mean 0 and a line to the values without the other seasons.

    Return both for all rows. For series with fewer than `min_cycles` cycles or two values more than
    phases the season is 0 and the line unchanged; phases without a value are interpolated.
    """
    is_observed, n_series = ~np.isnan(rows.y), len(rows.indptr) - 1
    phase_key = rows.series * length + rows.position % length  # one number per series and phase
    observed_key, observed_series = phase_key[is_observed], rows.series[is_observed]
    residuals = (rows.y - other_seasons)[is_observed]
    positions = rows.position[is_observed].astype(np.float64)
    n_values = np.bincount(observed_key, minlength=n_series * length)
    mean, mean_position = (
        np.bincount(observed_key, column, n_series * length) / np.maximum(n_values, 1) for column in (residuals, positions)
    )
    position_deviation = positions - mean_position[observed_key]
    squares = np.bincount(observed_series, position_deviation * position_deviation, n_series)
    products = np.bincount(observed_series, position_deviation * (residuals - mean[observed_key]), n_series)
    slope = products / np.where(squares > 0, squares, 1.0)
    n_values = n_values.reshape(n_series, length)
    has_value = n_values > 0
    n_phases = has_value.sum(axis=1)  # with a value
    index = (mean - np.repeat(slope, length) * mean_position).reshape(n_series, length)
    index -= np.where(has_value, index, 0.0).sum(axis=1, keepdims=True) / np.maximum(n_phases[:, None], 1)
    is_long_enough = np.diff(rows.indptr) >= min_cycles * length
    is_identified = (n_values.sum(axis=1) >= n_phases + 2) & is_long_enough
    phases = np.arange(length)
    for series in np.flatnonzero(is_identified & ~has_value.all(axis=1)):
        index[series] = np.interp(phases, phases[has_value[series]], index[series, has_value[series]], period=length)
    is_row_identified = is_identified[rows.series]
    season = np.where(is_row_identified, index.reshape(-1)[phase_key], 0.0)
    return season, np.where(is_row_identified, slope[rows.series] * rows.position, line)
