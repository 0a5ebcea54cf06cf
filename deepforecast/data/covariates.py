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

    def scatter(self, rows: Ints, count: int) -> Covariate:
        """Place the values at `rows` of `count` rows; the others are missing."""
        values = np.full(count, np.nan if self.categories is None else float(UNKNOWN))
        values[rows] = self.values
        return replace(self, values=values)

    def recode(self, categories: tuple[str, ...]) -> Covariate:
        """Map the codes to other `categories`; those not among them become `UNKNOWN`."""
        if self.categories is None or self.categories == categories:
            return self
        code_by_name = {name: code for code, name in enumerate(categories)}
        table = np.array([code_by_name.get(name, UNKNOWN) for name in self.categories] + [UNKNOWN], dtype=np.float64)
        return Covariate(table[self.values.astype(np.int64)], categories)

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
            f"The static frame must have the columns {format_list(required)}; it lacks "
            f"{format_list(missing_names)} and has {format_list(table.columns)}. Add or rename it."
        )
    if key is None or series.ids is None:
        if len(table) != 1:
            raise DataError(
                f"The static frame of a single series must have one row; it has {len(table)}. Keep "
                "the valid row."
            )
        rows = np.zeros(1, dtype=np.int64)
    else:
        rows = match_ids(series.ids, table[str(key)], "static frame", str(key))
    absent = np.flatnonzero(rows < 0)
    if len(absent):
        type_hint = ""
        if len(absent) == len(rows):
            type_hint = f" (its ids have dtype {table[str(key)].dtype}, those of the series {series.ids.dtype})"
        raise DataError(
            f"The static frame must have one row per series; series {series.labels(absent)} has "
            f"none{type_hint}. Add the missing rows."
        )
    return {name: _check_complete(read_covariate(table[name], name).take(rows), name, series) for name in static_names}


def match_ids(ids: Any, candidates: Any, frame_name: str, name: str) -> Ints:
    """The row of each of `ids` in `candidates`, -1 if there is none.

    Duplicates raise `DataError`.
    """
    import pandas as pd

    index = pd.Index(frames.to_list(candidates))
    if not index.is_unique:
        duplicates = format_list(index[index.duplicated()].unique())
        raise DataError(
            f"The {frame_name} must have one row per series; {format_value(name)} {duplicates} "
            "occurs more than once. Drop the duplicates."
        )
    return np.asarray(index.get_indexer(pd.Index(frames.to_list(ids))), dtype=np.int64)


def constant_per_series(covariate: Covariate, indptr: Ints, name: str, series: Series) -> Covariate:
    """Reduce a static column of the frame to one value per series.

    Differing values raise `DataError`.
    """
    first = covariate.values[indptr[:-1]]
    differs = covariate.values != np.repeat(first, np.diff(indptr))
    differs &= ~covariate.missing() | ~np.repeat(replace(covariate, values=first).missing(), np.diff(indptr))
    if differs.any():
        changing = np.unique(np.searchsorted(indptr, np.flatnonzero(differs), side="right") - 1)
        raise DataError(
            f"A static column must have one value per series; {format_value(name)} changes within "
            f"series {series.labels(changing)}. Declare it as past or future."
        )
    return _check_complete(replace(covariate, values=first), name, series)


def _check_complete(covariate: Covariate, name: str, series: Series) -> Covariate:
    """Return the static covariate if it is finite for every series."""
    is_invalid = covariate.missing() | np.isinf(covariate.values)
    if is_invalid.any():
        raise DataError(
            f"A static column must have a finite value for every series; {format_value(name)} is "
            f"missing or infinite for series {series.labels(np.flatnonzero(is_invalid))}. Fill it, "
            "or leave the column out."
        )
    return covariate


def _read_categorical(series: nw.Series[Any], name: str) -> Covariate:
    """Read the categories that occur, as sorted text."""
    labels, codes = frames.read_categories(series)
    names = [str(label) for label in labels]
    if len(set(names)) < len(names):
        duplicates = sorted({category for category in names if names.count(category) > 1})
        raise DataError(
            f"The categories of a column must differ as text; {format_value(name)} has "
            f"{format_list(duplicates)} more than once. Convert them to one type."
        )
    occurs = np.zeros(len(names) + 1, dtype=bool)
    occurs[codes] = True
    occurring = tuple(sorted(category for category, is_used in zip(names, occurs[:-1], strict=True) if is_used))
    return Covariate(codes.astype(np.float64), tuple(names)).recode(occurring)
