"""Steps of `Panel.from_frame`: checks of values, insertion of gaps, static covariates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.data import covariates, frames
from deepforecast.data.columns import Columns
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.keys import Keys
from deepforecast.data.native_columns import Table
from deepforecast.errors import DataError, format_value, pluralize, warn

if TYPE_CHECKING:
    from deepforecast.data.panel import Panel

# rows with gaps per row of the frame above which freq must be wrong (days for months, hours for
# days)
MAX_EXPANSION = 12
SMALL_FRAME_ROWS = 100  # additional rows that are allowed in any frame


def check_values(y: Floats, keys: Keys, may_be_empty: bool) -> None:
    """Raise for infinite targets and, unless `may_be_empty`, for series without values."""
    infinite = np.flatnonzero(np.isinf(y))
    target = format_value(keys.names.target)
    if len(infinite):
        raise DataError(
            f"Column {target} must be finite or missing, but is infinite in "
            f"{pluralize(len(infinite), 'row')} of series {keys.describe_rows(infinite)}. Replace these "
            "values, e.g. by NaN."
        )
    missing_before = np.append(0, np.cumsum(np.isnan(y)))[keys.indptr]
    empty = np.flatnonzero(np.diff(missing_before) == np.diff(keys.indptr))
    if len(empty) and not may_be_empty:
        raise DataError(
            f"Every series must have at least one value in column {target}; all values are missing in "
            f"series {keys.labels(keys.indptr[empty])}. Drop these series."
        )


def read_panel_covariate(table: Table, name: str, keys: Keys) -> Covariate:
    """Read a covariate in the order of the keys; infinite values raise `DataError`."""
    column = covariates.read_covariate(table.native[name], name)
    column = column if keys.order is None else column.take(keys.order)
    infinite = np.flatnonzero(np.isinf(column.values))
    if len(infinite):
        raise DataError(
            f"Covariate {format_value(name)} must be finite or missing, but is infinite in "
            f"{pluralize(len(infinite), 'row')} of series {keys.describe_rows(infinite)}. Replace these "
            "values, e.g. by NaN."
        )
    return column


def is_blown_up(n_rows_with_gaps: float, n_rows: int) -> bool:
    """Whether gaps add so many rows that the frequency must be wrong."""
    return n_rows_with_gaps > MAX_EXPANSION * n_rows + SMALL_FRAME_ROWS


def insert_gaps(panel: Panel, position: Ints, steps: Ints) -> Panel:
    """Insert missing rows so that each series has a row at every step.

    `position` is the calendar position of each row, `steps[i]` the number of rows of series i with
    its gaps. Raises `DataError` if gaps add so many rows that the frequency must be wrong.
    """
    series, step = panel.series, panel.calendar.step
    row_bounds = np.append(0, np.cumsum(steps, dtype=np.float64))
    n_rows = len(panel.y)
    if is_blown_up(row_bounds[-1], n_rows):
        longest_series = int(np.argmax(steps))
        raise DataError(
            f"The frame must have most of the rows of its frequency; freq={series.calendar.freq!r} "
            f"requires {row_bounds[-1]:,.0f} rows, but there are {n_rows:,}; series "
            f"{series.label(longest_series)} alone spans {steps[longest_series]:,} steps. Pass the "
            "right freq, or split the series."
        )
    indptr = row_bounds.astype(np.int64)
    row_offset = np.repeat(indptr[:-1] - position[panel.indptr[:-1]] // step, np.diff(panel.indptr))
    row_index = position // step + row_offset
    y = np.full(int(indptr[-1]), np.nan)
    y[row_index] = panel.y
    covariates = {name: covariate.scatter(row_index, len(y)) for name, covariate in panel.covariates.items()}
    return replace(panel, indptr=indptr, y=y, covariates=covariates)


def add_static(panel: Panel, table: Table, static: Frame | None, keys: Keys) -> Panel:
    """Add static covariates of the frame or of the static frame.

    Declared ones may be in either; if none is declared, all columns of the static frame are used.
    """
    series, names = panel.series, keys.names
    names_in_frame = [name for name in names.static if name in table.columns]
    other_names = [name for name in names.static if name not in table.columns]
    if static is None and other_names:
        raise DataError(
            f"A static column must be in the frame or in static=, but column {format_value(other_names[0])} "
            "is in neither. Add it, or remove it from columns=."
        )
    static_covariates = {}
    for name in names_in_frame:
        covariate = read_panel_covariate(table, name, keys)
        static_covariates[name] = covariates.constant_per_series(covariate, keys.indptr, name, series)
    undeclared: list[str] = []
    if static is not None and names_in_frame and not other_names:
        warn("static= is ignored: the static columns are in the frame itself. Leave out static=.")
    elif static is not None:
        static_covariates |= covariates.read_static(static, series, tuple(other_names))
        known_names = (*static_covariates, *names.all, *panel.undeclared)
        undeclared = [name for name in frames.to_narwhals(static).columns if name not in known_names]
    declared: Columns = replace(names, static=tuple(static_covariates))
    return replace(
        panel, series=replace(series, columns=declared), static=static_covariates, undeclared=(*panel.undeclared, *undeclared)
    )
