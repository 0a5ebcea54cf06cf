"""Covariates: numbers as float64, categories as codes, matched by id and time to a panel or to the steps of a forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from deepforecast.data import frames
from deepforecast.data.columns import resolve_columns, warn_undeclared
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.keys import Keys, read_keys
from deepforecast.errors import DataError, format_list, format_value, pluralize, warn

if TYPE_CHECKING:
    from deepforecast.data.panel import Panel, Series

UNKNOWN = -1  # code of a missing or unseen category
EXPECTED_ROWS_HINT = "model.future_frame(horizon) returns the expected rows"
MAX_CORRELATION = 0.999
MIN_PAIRS = 8  # minimum number of pairs for a correlation

Categories = Mapping[str, tuple[str, ...] | None]


@dataclass(frozen=True)
class Covariate:
    """A covariate: numeric `values`, or codes into `categories`."""

    values: Floats
    categories: tuple[str, ...] | None = None

    def take(self, rows: Ints) -> Covariate:
        """Select rows."""
        return replace(self, values=self.values[rows])

    def scatter(self, rows: Ints, n_rows: int) -> Covariate:
        """Place the values at `rows` of `n_rows` rows; the others are missing."""
        values = np.full(n_rows, np.nan if self.categories is None else float(UNKNOWN))
        values[rows] = self.values
        return replace(self, values=values)

    def recode(self, categories: tuple[str, ...]) -> Covariate:
        """Map the codes to other `categories`; those not among them become `UNKNOWN`."""
        if self.categories is None or self.categories == categories:
            return self
        code_by_name = {name: code for code, name in enumerate(categories)}
        # the last element is for UNKNOWN: index -1
        new_codes = np.array([code_by_name.get(name, UNKNOWN) for name in self.categories] + [UNKNOWN], dtype=np.float64)
        return Covariate(new_codes[self.values.astype(np.int64)], categories)

    def missing(self) -> Any:
        """Mask of missing values."""
        return np.isnan(self.values) if self.categories is None else self.values == UNKNOWN

    def to_column(self, name: str, library: str) -> Any:
        """The covariate as a numeric or categorical column of `library`."""
        if self.categories is None:
            return self.values
        return frames.make_categorical(name, self.categories, self.values.astype(np.int64), library)


def read_covariate(column: Any, name: str) -> Covariate:
    """Read a numeric or categorical column; other dtypes raise `DataError`."""
    series = frames.to_narwhals_series(column)
    if series.dtype in (nw.Categorical, nw.Enum):
        return _read_categorical(series, name)
    return Covariate(frames.read_numbers(series, name, extra_hint=", or to a category if it is one"))


def read_static(frame: Frame, series: Series, names: tuple[str, ...]) -> dict[str, Covariate]:
    """Read the static frame (one row per series), matched by id; rows of other series are ignored.

    Without `names`, all columns are read.
    """
    table = frames.to_narwhals(frame, "static frame")
    key = series.columns.id
    key_names = (key, series.columns.time, series.columns.target)
    static_names = names or tuple(name for name in table.columns if name not in key_names)
    required = static_names if key is None else (key, *static_names)
    missing_names = [name for name in required if name not in table.columns]
    if missing_names:
        raise DataError(
            f"The static frame must have the columns {format_list(required)}, but it lacks "
            f"{format_list(missing_names)} and has {format_list(table.columns)}.",
            hint="Add or rename the missing columns.",
        )
    if key is None:
        if len(table) != 1:
            raise DataError(
                f"The static frame of a single series must have one row, got {len(table)}.", hint="Drop the other rows."
            )
        rows = np.zeros(1, dtype=np.int64)
    else:
        rows = match_ids(series.ids, table[key], frame_name="static frame", column_name=key)
    absent = np.flatnonzero(rows < 0)
    if len(absent):
        type_hint, hint = "", "Add them."
        if len(absent) == len(rows):
            hint = "Add them, or convert the ids to the dtype of those of the series."
            type_hint = f" (its ids have dtype {table[str(key)].dtype}, those of the series {series.ids.dtype})"
        raise DataError(
            f"The static frame must have one row per series; rows are missing for series: {series.labels(absent)}{type_hint}.",
            hint=hint,
            series=series.id_texts(absent),
        )
    return {name: _check_complete(read_covariate(table[name], name).take(rows), name, series) for name in static_names}


def match_ids(ids: Any, candidates: Any, frame_name: str, column_name: str) -> Ints:
    """The row of each of `ids` in `candidates`, -1 if there is none.

    Duplicates in `candidates` raise `DataError`, which names the frame and the column.
    """
    import pandas as pd

    index = pd.Index(frames.to_list(candidates))
    if not index.is_unique:
        duplicates = format_list(index[index.duplicated()].unique())
        raise DataError(
            f"The {frame_name} must have one row per series; ids repeated in column {format_value(column_name)}: {duplicates}.",
            hint="Drop the duplicates.",
        )
    return np.asarray(index.get_indexer(pd.Index(frames.to_list(ids))), dtype=np.int64)


def constant_per_series(covariate: Covariate, indptr: Ints, name: str, series: Series) -> Covariate:
    """Reduce a static column of the frame to one value per series.

    Values that differ within a series, missing ones included, raise `DataError`.
    """
    first_values = covariate.values[indptr[:-1]]
    expected = np.repeat(first_values, np.diff(indptr))
    differs = (covariate.values != expected) & ~(np.isnan(covariate.values) & np.isnan(expected))
    if differs.any():
        changing = np.flatnonzero(np.logical_or.reduceat(differs, indptr[:-1]))
        raise DataError(
            f"A static column must have one value per series, but column {format_value(name)} changes "
            f"within series {series.labels(changing)}.",
            hint="Declare it as a past or future covariate.",
            series=series.id_texts(changing),
        )
    return _check_complete(replace(covariate, values=first_values), name, series)


def _check_complete(covariate: Covariate, name: str, series: Series) -> Covariate:
    """Return the static covariate if it is finite for every series; raise `DataError` otherwise."""
    invalid = np.flatnonzero(covariate.missing() | np.isinf(covariate.values))
    if len(invalid):
        raise DataError(
            f"A static column must have a finite value for every series, but column {format_value(name)} "
            f"is missing or infinite for series {series.labels(invalid)}.",
            hint="Fill in the values, or drop the column.",
            series=series.id_texts(invalid),
        )
    return covariate


def _read_categorical(series: nw.Series[Any], name: str) -> Covariate:
    """Read a categorical column; its categories are those that occur, as sorted text. Duplicates raise `DataError`."""
    labels, codes = frames.read_categories(series)
    names = [str(label) for label in labels]
    if len(set(names)) < len(names):
        duplicates = sorted({category for category in names if names.count(category) > 1})
        raise DataError(
            f"The categories of a column must differ as text, but column {format_value(name)} has "
            f"{format_list(duplicates)} more than once.",
            hint="Convert the categories to one type.",
        )
    occurring = sorted(names[code] for code in np.unique(codes) if code >= 0)
    return Covariate(codes.astype(np.float64), tuple(names)).recode(tuple(occurring))


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
    expected, horizon = format_list(categories_by_name), f"the next {steps} steps of each series"
    if future is None:
        raise DataError(
            f"`future` must contain the future covariates seen in fit ({expected}) for {horizon}, got None.",
            hint=f"Pass future=; {EXPECTED_ROWS_HINT}: add these columns to it.",
            parameter="future",
        )
    table = frames.read_table(future, "future frame")
    roles = {role: getattr(series.columns, role) for role in ("id", "time", "target")}
    names = resolve_columns(roles | {"future": tuple(categories_by_name)}, table.columns, target=False, what="future frame")
    warn_undeclared([name for name in table.columns if name not in (*series.columns.all, *categories_by_name)], undeclared)
    if not len(table.native):
        raise DataError("The future frame cannot be empty.", hint=f"Pass {expected} for {horizon}; {EXPECTED_ROWS_HINT}.")
    rows = _rows_of_steps(read_keys(table, names, "future frame"), series, steps)
    if (rows < 0).any():
        rule = f"The future frame must have a row with {expected} for every series and step"
        raise _steps_error(f"{rule}; rows are missing", rows < 0, series, f"Add them; {EXPECTED_ROWS_HINT}.")
    return {
        name: _read_column(table.native[name], name, rows, series, categories)
        for name, categories in categories_by_name.items()
    }


def recode_covariate(covariate: Covariate, name: str, fit_categories: tuple[str, ...] | None) -> Covariate:
    """Map categories to those seen in fit; unseen ones become unknown with a warning.

    A numeric covariate that was categorical in fit, or the reverse, raises `DataError`.
    """
    if fit_categories is None and covariate.categories is None:
        return covariate
    if fit_categories is None or covariate.categories is None:
        expected, observed = ("numbers", "categories") if fit_categories is None else ("categories", "numbers")
        raise DataError(
            f"Column {format_value(name)} must contain {expected}, as in fit, got {observed}.",
            hint="Convert it to the dtype it had in fit.",
        )
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
    row_series = np.repeat(series_index, np.diff(keys.indptr))
    order = np.arange(len(row_series)) if keys.order is None else keys.order
    if (series_index < 0).any():  # rows of other series are not validated
        known, known_rows = np.flatnonzero(series_index >= 0), np.flatnonzero(row_series >= 0)
        row_series, order = row_series[known_rows], order[known_rows]
        keys = keys._replace(
            ids=frames.take_native_rows(keys.ids, known),
            order=order,
            indptr=np.append(0, np.cumsum(np.diff(keys.indptr)[known])),
            timestamps=keys.timestamps[known_rows],
        )
    rows = np.full((len(series), steps), -1, dtype=np.int64)
    if len(order):
        offset = keys.place_on_calendar(None, series.calendar)[1] - series.last[row_series]
        step, remainder = offset // series.calendar.step - 1, offset % series.calendar.step
        in_horizon = (remainder == 0) & (step >= 0) & (step < steps)
        rows[row_series[in_horizon], step[in_horizon]] = order[in_horizon]
    return rows


def _read_column(column: Any, name: str, rows: Ints, series: Series, categories: tuple[str, ...] | None) -> Covariate:
    """Read a column at `rows` (series, steps), with the categories seen in fit; other rows are not validated."""
    used_rows, row_index = np.unique(rows, return_inverse=True)
    row_index = row_index.reshape(rows.shape)
    try:
        observed = read_covariate(frames.take_native_rows(column, used_rows), name)
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
        rule = f"Future covariates must be finite at every step, but column {format_value(name)} of the future frame"
        raise _steps_error(f"{rule} is missing or infinite", is_invalid, series, "Fill in these values.")
    return covariate


def _steps_error(message: str, is_affected: NDArray[np.bool_], series: Series, hint: str) -> DataError:
    """The error for the affected series and steps, which are appended to the message."""
    affected_series = np.flatnonzero(is_affected.any(axis=1))
    first_series, first_step = np.argwhere(is_affected)[0]
    position = series.calendar.next_positions(series.last[[first_series]], int(first_step) + 1)[0, -1]
    series_text = f" (series {series.label(int(first_series))})" if len(affected_series) > 1 else ""
    return DataError(
        f"{message} for series {series.labels(affected_series)}, first at {series.calendar.format(int(position))}{series_text}, "
        f"{pluralize(int(is_affected.sum()), 'step')} in all.",
        hint=hint,
        series=series.id_texts(affected_series),
    )


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
    previous, following = np.roll(panel.y, 1), np.roll(panel.y, -1)
    previous[panel.indptr[:-1]] = following[panel.indptr[1:] - 1] = np.nan
    return [
        name
        for name, covariate in panel.covariates.items()
        if name in panel.series.columns.future and covariate.categories is None
        and any(_is_correlated(covariate.values, target, panel.indptr) for target in (panel.y, previous, following))
    ]  # fmt: skip


def _is_correlated(x: Floats, y: Floats, indptr: Ints) -> bool:
    """Whether |correlation| exceeds MAX_CORRELATION in at least half of the series.

    Series with fewer than MIN_PAIRS pairs or a constant variable are left out; False if no series is left.
    """
    lengths, first_rows = np.diff(indptr), indptr[:-1]
    is_observed = ~(np.isnan(x) | np.isnan(y))
    n_pairs = np.add.reduceat(is_observed.astype(np.float64), first_rows)
    pairs = np.where(is_observed, np.stack([x, y]), 0.0)
    largest = np.abs(pairs).max(axis=1, keepdims=True)
    pairs /= np.where(largest > 0, largest, 1.0)  # no square overflows
    mean = np.add.reduceat(pairs, first_rows, axis=1) / np.maximum(n_pairs, 1)
    x, y = np.where(is_observed, pairs - np.repeat(mean, lengths, axis=1), 0.0)
    xx, yy, xy = np.add.reduceat(np.stack([x * x, y * y, x * y]), first_rows, axis=1)
    is_informative = (n_pairs >= MIN_PAIRS) & (xx > 0) & (yy > 0)
    exceeds = is_informative & (np.abs(xy) > MAX_CORRELATION * np.sqrt(xx) * np.sqrt(yy))
    return bool(is_informative.any() and 2 * exceeds.sum() >= is_informative.sum())
