"""Covariates: numbers as float64, categories as codes, matched to a panel by id and time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import frames
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.errors import DataError, format_list, format_value

if TYPE_CHECKING:
    from deepforecast.data.panel import Series

UNKNOWN = -1  # code of a missing or unseen category


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
    if key is None or series.ids is None:
        if len(table) != 1:
            raise DataError(
                f"The static frame of a single series must have one row, got {len(table)}.", hint="Drop the other rows."
            )
        rows = np.zeros(1, dtype=np.int64)
    else:
        rows = match_ids(series.ids, table[str(key)], frame_name="static frame", column_name=str(key))
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
    differs = covariate.values != np.repeat(first_values, np.diff(indptr))
    # NaN differs from itself: two missing values are equal
    differs &= ~covariate.missing() | ~np.repeat(replace(covariate, values=first_values).missing(), np.diff(indptr))
    if differs.any():
        changing = np.unique(np.searchsorted(indptr, np.flatnonzero(differs), side="right") - 1)
        raise DataError(
            f"A static column must have one value per series, but column {format_value(name)} changes "
            f"within series {series.labels(changing)}.",
            hint="Declare it as a past or future covariate.",
            series=series.id_texts(changing),
        )
    return _check_complete(replace(covariate, values=first_values), name, series)


def _check_complete(covariate: Covariate, name: str, series: Series) -> Covariate:
    """Return the static covariate if it is finite for every series; raise `DataError` otherwise."""
    is_invalid = covariate.missing() | np.isinf(covariate.values)
    if is_invalid.any():
        raise DataError(
            f"A static column must have a finite value for every series, but column {format_value(name)} "
            f"is missing or infinite for series {series.labels(np.flatnonzero(is_invalid))}.",
            hint="Fill in the values, or drop the column.",
            series=series.id_texts(np.flatnonzero(is_invalid)),
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
    occurs = np.zeros(len(names) + 1, dtype=bool)  # the last element is for code -1
    occurs[codes] = True
    occurring = tuple(sorted(category for category, is_used in zip(names, occurs[:-1], strict=True) if is_used))
    return Covariate(codes.astype(np.float64), tuple(names)).recode(occurring)
