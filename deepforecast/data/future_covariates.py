"""Future covariates: matched to the forecast steps by id and time, and checked for target leakage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.data import covariates, frames
from deepforecast.data.columns import resolve, warn_undeclared
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.keys import Keys, read_keys
from deepforecast.data.panel import Panel, Series
from deepforecast.errors import DataError, format_list, format_value, pluralize, warn

Categories = Mapping[str, tuple[str, ...] | None]
EXPECTED_ROWS_HINT = "model.future_frame(horizon) returns the expected rows"


def read_future_covariates(
    future: Frame | None, series: Series, steps: int, categories_by_name: Categories, undeclared: Sequence[str] = ()
) -> dict[str, Covariate]:
    """Read each future covariate as an array (series, steps), with the categories seen in fit.

    `categories_by_name` are the future covariates of the fit with their categories, None for
    numeric ones. Rows after the horizon, other series and the target are ignored; missing rows or
    values raise `DataError`. Columns without a role are reported, except for those in `undeclared`,
    already reported in `fit`.
    """
    if not categories_by_name:
        if future is not None:
            warn("future= is ignored: the model was fitted without future covariates. Leave out future=.")
        return {}
    if future is None:
        raise DataError(
            f"`future` must contain the future covariates seen in fit ({format_list(categories_by_name)}) "
            f"for the next {steps} steps of each series, got None.",
            hint=f"Pass future=; {EXPECTED_ROWS_HINT}: add these columns to it.",
            parameter="future",
        )
    table = frames.read_table(future, "future frame")
    names = resolve(
        {
            "id": series.columns.id,
            "time": series.columns.time,
            "target": series.columns.target,
            "future": tuple(categories_by_name),
        },
        table.columns,
        target=False,
        what="future frame",
    )
    warn_undeclared([name for name in table.columns if name not in (*series.columns.all, *categories_by_name)], undeclared)
    if not len(table.native):
        raise DataError(
            "The future frame cannot be empty.",
            hint=f"Pass {format_list(categories_by_name)} for the next {steps} steps of each series; {EXPECTED_ROWS_HINT}.",
        )
    rows = _rows_of_steps(read_keys(table, names, "future frame"), series, steps)
    if (rows < 0).any():
        raise _missing_rows_error(rows, series, categories_by_name)
    return {
        name: _read_column(table.native[name], name, rows, series, categories)
        for name, categories in categories_by_name.items()
    }


def recode_covariate(covariate: Covariate, name: str, fit_categories: tuple[str, ...] | None) -> Covariate:
    """Map categories to those seen in fit; unseen ones become unknown with a warning.

    A numeric covariate that was categorical in fit, or the reverse, raises `DataError`.
    """
    if (fit_categories is None) != (covariate.categories is None):
        expected, observed = ("numbers", "categories") if fit_categories is None else ("categories", "numbers")
        raise DataError(
            f"Column {format_value(name)} must contain {expected}, as in fit, got {observed}.",
            hint="Convert it to the dtype it had in fit.",
        )
    if fit_categories is None or covariate.categories is None:
        return covariate
    new = [category for category in covariate.categories if category not in fit_categories]
    if new:
        warn(
            f"Column {format_value(name)} has categories not seen in fit, which are treated as unknown: {format_list(new)}.",
            subject=name,
        )
    return covariate.recode(fit_categories)


def _rows_of_steps(keys: Keys, series: Series, steps: int) -> Ints:
    """The row of the future frame of each series and step, -1 if there is none."""
    series_index = np.zeros(1, np.int64) if keys.ids is None else series.index_of(keys.ids)
    if (series_index < 0).any():  # rows of other series are not validated
        keys = _select_series(keys, series_index)
        series_index = series_index[series_index >= 0]
    rows = np.full((len(series), steps), -1, dtype=np.int64)
    if not len(series_index):
        return rows
    row_series = np.repeat(series_index, np.diff(keys.indptr))
    position = keys.place_on_calendar(None, series.calendar)[1]
    offset = position - series.last[row_series]
    step, remainder = offset // series.calendar.step - 1, offset % series.calendar.step
    in_horizon = np.flatnonzero((remainder == 0) & (step >= 0) & (step < steps))
    rows[row_series[in_horizon], step[in_horizon]] = in_horizon if keys.order is None else keys.order[in_horizon]
    return rows


def _select_series(keys: Keys, series_index: Ints) -> Keys:
    """The keys of the series with an index of at least 0."""
    lengths = np.diff(keys.indptr)
    rows = np.flatnonzero(np.repeat(series_index >= 0, lengths))
    known_series = np.flatnonzero(series_index >= 0)
    order = rows if keys.order is None else keys.order[rows]
    ids = None if keys.ids is None else frames.take_native_rows(keys.ids, known_series)
    indptr = np.append(0, np.cumsum(lengths[known_series]))
    return keys._replace(ids=ids, order=order, indptr=indptr, timestamps=keys.timestamps[rows])


def _missing_rows_error(rows: Ints, series: Series, categories_by_name: Categories) -> DataError:
    """The error for series and steps without a row, for which `rows` (series, steps) is -1."""
    absent = np.argwhere(rows < 0)
    series_number, step = (int(number) for number in absent[0])
    timestamp = _format_step(series, series_number, step)
    incomplete_series = np.unique(absent[:, 0])
    return DataError(
        "The future frame must have a row for every series and step; rows are missing: "
        f"{len(absent)}, in series {series.labels(incomplete_series)}, first that of "
        f"{series.label(series_number)} at {timestamp} (columns "
        f"{format_list(categories_by_name)}).",
        hint=f"Add them; {EXPECTED_ROWS_HINT}.",
        series=series.id_texts(incomplete_series),
    )


def _format_step(series: Series, series_number: int, step: int) -> str:
    """The timestamp of a step of a series as text; steps are counted from 0."""
    positions = series.calendar.next_positions(series.last[series_number : series_number + 1], step + 1)
    return series.calendar.format(int(positions[0, -1]))


def _read_column(column: Any, name: str, rows: Ints, series: Series, categories: tuple[str, ...] | None) -> Covariate:
    """Read a column at `rows` (series, steps), with the categories seen in fit; other rows are not validated."""
    used_rows, row_index = np.unique(rows, return_inverse=True)
    row_index = row_index.reshape(rows.shape)
    try:
        observed = covariates.read_covariate(frames.take_native_rows(column, used_rows), name)
    except DataError as error:
        reason = str(error) if categories is None else (
            f"Column {format_value(name)} must be categorical, as in fit, got dtype "
            f"{format_value(str(frames.to_narwhals_series(column).dtype))}. Convert it to a "
            "categorical dtype"
        )  # fmt: skip
        raise DataError(f"The future frame cannot be read, first for series {series.label(0)}: {reason.rstrip('.')}.") from None
    covariate = recode_covariate(observed, name, categories).take(row_index)
    is_invalid = observed.missing()[row_index] | np.isinf(covariate.values)
    if is_invalid.any():
        series_number, step = (int(number) for number in np.argwhere(is_invalid)[0])
        incomplete_series = np.flatnonzero(is_invalid.any(axis=1))
        series_text = f" (series {series.label(series_number)})" if len(incomplete_series) > 1 else ""
        timestamp = _format_step(series, series_number, step)
        raise DataError(
            f"Future covariates must be finite at every step, but column {format_value(name)} of the future "
            f"frame is missing or infinite for series {series.labels(incomplete_series)}, first at "
            f"{timestamp}{series_text}, {pluralize(int(is_invalid.sum()), 'value')} in all.",
            hint="Fill in these values.",
            series=series.id_texts(incomplete_series),
        )
    return covariate


MAX_CORRELATION = 0.999
MIN_PAIRS = 8  # minimum number of pairs for a correlation


def warn_of_leakage(panel: Panel) -> None:
    """Warn of future covariates that look like target leakage."""
    leaking = leaking_columns(panel)
    if leaking:
        warn(
            "Future covariates are almost perfectly correlated with the target: "
            f"{format_list(leaking)}. Declare them as past covariates if their values are not known "
            "when forecasting."
        )


def leaking_columns(panel: Panel) -> list[str]:
    """Numeric future covariates whose |correlation| with the target exceeds 0.999 in at least half of the series.

    The target of the previous and of the next step are checked, too.
    """
    leaking = []
    for name in filter(panel.covariates.__contains__, panel.series.columns.future):
        covariate = panel.covariates[name]
        if covariate.categories is None and _follows_target(covariate.values, panel.y, panel.indptr):
            leaking.append(name)
    return leaking


def _follows_target(x: Floats, y: Floats, indptr: Ints) -> bool:
    """Whether `x` is almost perfectly correlated with the target of the same, the next or the previous step."""
    starts, stops = indptr[:-1], indptr[1:]
    return (
        _is_correlated(x, y, starts, stops)
        or _is_correlated(x[:-1], y[1:], starts, stops - 1)
        or _is_correlated(x[1:], y[:-1], starts, stops - 1)
    )


def _is_correlated(x: Floats, y: Floats, starts: Ints, stops: Ints) -> bool:
    """Whether |correlation| exceeds MAX_CORRELATION in at least half of the segments `starts[i]:stops[i]`.

    Segments with fewer than MIN_PAIRS pairs or a constant variable are left out; False if no segment is left.
    """
    is_observed = ~(np.isnan(x) | np.isnan(y))
    n_pairs = _sums(is_observed.astype(np.float64), starts, stops)
    x, y = (_center(np.where(is_observed, values, 0.0), is_observed, n_pairs, starts, stops) for values in (x, y))
    xx, yy, xy = _sums(x * x, starts, stops), _sums(y * y, starts, stops), _sums(x * y, starts, stops)
    is_informative = (n_pairs >= MIN_PAIRS) & (xx > 0) & (yy > 0)
    if not is_informative.any():
        return False
    exceeds = np.abs(xy[is_informative]) > MAX_CORRELATION * np.sqrt(xx[is_informative]) * np.sqrt(yy[is_informative])
    return bool(2 * np.count_nonzero(exceeds) >= len(exceeds))


def _center(values: Floats, is_observed: NDArray[np.bool_], n_pairs: Floats, starts: Ints, stops: Ints) -> Floats:
    """Subtract the mean of each segment; 0 where not observed and outside of the segments.

    The values are first divided by the largest one, so that no square overflows.
    """
    largest = np.abs(values).max() if len(values) else 0.0
    values = values / largest if largest > 0 else values
    mean = _sums(values, starts, stops) / np.maximum(n_pairs, 1)
    centered = np.zeros(len(values))
    lengths = np.maximum(stops - starts, 0)
    rows = np.arange(lengths.sum()) + np.repeat(starts - np.append(0, np.cumsum(lengths)[:-1]), lengths)
    centered[rows] = np.where(is_observed[rows], values[rows] - np.repeat(mean, lengths), 0.0)
    return centered


def _sums(values: Floats, starts: Ints, stops: Ints) -> Floats:
    """The sum of each segment; 0 if it is empty."""
    sums = np.zeros(len(starts))
    non_empty = np.flatnonzero(stops > starts)
    if len(non_empty):
        bounds = np.stack([starts[non_empty], stops[non_empty]], axis=1).reshape(-1)
        bounds = bounds[:-1] if bounds[-1] == len(values) else bounds  # reduceat takes no bound at the end
        sums[non_empty] = np.add.reduceat(values, bounds)[::2]  # the odd elements sum the rows between segments
    return sums
