"""Covariates: numbers as float64, categories as codes; matched to the rows of a panel or to the steps ahead by key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import frames
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.errors import DataError, shown, some

if TYPE_CHECKING:
    from deepforecast.data.panel import Series

UNKNOWN = -1  # the code of a missing or never seen category


@dataclass(frozen=True)
class Covariate:
    """One column: `values` are numbers, or codes into `categories` where there are any."""

    values: Floats
    categories: tuple[str, ...] | None = None

    def take(self, rows: Ints) -> Covariate:
        """Some of the rows."""
        return replace(self, values=self.values[rows])

    def spread(self, rows: Ints, count: int) -> Covariate:
        """The values at these of `count` rows, missing at the others."""
        values = np.full(count, np.nan if self.categories is None else float(UNKNOWN))
        values[rows] = self.values
        return replace(self, values=values)

    def recoded(self, categories: tuple[str, ...]) -> Covariate:
        """Codes into `categories` instead; one that is not there becomes `UNKNOWN`."""
        if self.categories is None or self.categories == categories:
            return self
        place = {name: code for code, name in enumerate(categories)}
        table = np.array([place.get(name, UNKNOWN) for name in self.categories] + [UNKNOWN], dtype=np.float64)
        return Covariate(table[self.values.astype(np.int64)], categories)

    def missing(self) -> Any:
        """Rows without a value."""
        return np.isnan(self.values) if self.categories is None else self.values == UNKNOWN

    def column(self, name: str, library: str) -> Any:
        """A column for a frame of `library`: numbers, or a categorical column."""
        if self.categories is None:
            return self.values
        return frames.categorical(name, self.categories, self.values.astype(np.int64), library)


def read(column: Any, name: str) -> Covariate:
    """A covariate column: real numbers or a categorical dtype; anything else is refused by name."""
    series = frames.wrapped(column)
    if series.dtype in (nw.Categorical, nw.Enum):
        return _categorical(series, name)
    return Covariate(frames.numbers(series, name, or_else=", or to a category if it is one"))


def read_static(frame: Frame, series: Series, names: tuple[str, ...]) -> dict[str, Covariate]:
    """The static frame: one row a series, matched by id; rows of other series are ignored. Without `names`, all its columns."""
    table = frames.opened(frame, "static frame")
    key = series.columns.id
    wanted = names or tuple(name for name in table.columns if name not in (key, series.columns.time, series.columns.target))
    needed = wanted if key is None else (key, *wanted)
    lacking = [name for name in needed if name not in table.columns]
    if lacking:
        raise DataError(
            f"The static frame needs the columns {some(needed)}; it lacks {some(lacking)} and has {some(table.columns)}. "
            "Add or rename it."
        )
    if key is None or series.ids is None:
        if len(table) != 1:
            raise DataError(f"The static frame of a single series has one row; it has {len(table)}. Keep the one that holds.")
        rows = np.zeros(1, dtype=np.int64)
    else:
        rows = match(series.ids, table[str(key)], "static frame", str(key))
    absent = np.flatnonzero(rows < 0)
    if len(absent):
        kinds = ""
        if len(absent) == len(rows):
            kinds = f" Its ids are of type {table[str(key)].dtype}, those of the series of type {series.ids.dtype}."
        raise DataError(f"The static frame has one row a series; series {series.labels(absent)} has none.{kinds} Add the rows.")
    return {name: _complete(read(table[name], name).take(rows), name, series) for name in wanted}


def match(ids: Any, others: Any, what: str, name: str) -> Ints:
    """For each of `ids` its row in `others`, -1 where there is none; a doubled id is refused."""
    import pandas as pd

    index = pd.Index(frames.listed(others))
    if not index.is_unique:
        twice = some(index[index.duplicated()].unique())
        raise DataError(
            f"The {what} has one row a series; {shown(name)} {twice} is there more than once. Drop the rows that do not "
            "hold."
        )
    return np.asarray(index.get_indexer(pd.Index(frames.listed(ids))), dtype=np.int64)


def constant(covariate: Covariate, indptr: Ints, name: str, series: Series) -> Covariate:
    """A static column given with the rows of the frame: its one value a series, or a `DataError`."""
    first = covariate.values[indptr[:-1]]
    differs = covariate.values != np.repeat(first, np.diff(indptr))
    differs &= ~covariate.missing() | ~np.repeat(replace(covariate, values=first).missing(), np.diff(indptr))
    if differs.any():
        changing = np.unique(np.searchsorted(indptr, np.flatnonzero(differs), side="right") - 1)
        raise DataError(
            f"A static column has one value a series; {shown(name)} changes within series {series.labels(changing)}. "
            "Declare it as past or future."
        )
    return _complete(replace(covariate, values=first), name, series)


def _complete(covariate: Covariate, name: str, series: Series) -> Covariate:
    """A value for every series: nothing could be learned from a missing one, and nothing filled in for it."""
    bad = covariate.missing() | np.isinf(covariate.values)
    if bad.any():
        raise DataError(
            f"A static column has a value for every series; {shown(name)} is missing or infinite for series "
            f"{series.labels(np.flatnonzero(bad))}. Fill it, or leave the column out."
        )
    return covariate


def _categorical(series: nw.Series[Any], name: str) -> Covariate:
    """Categories by their text, sorted; only those that occur, so that what is never seen in fit is unknown later."""
    labels, codes = frames.categories(series)
    names = [str(label) for label in labels]
    if len(set(names)) < len(names):
        twice = sorted({one for one in names if names.count(one) > 1})
        raise DataError(
            f"Categories differ by their text; those of column {shown(name)} hold {some(twice)} more than once. Make them "
            "of one type."
        )
    seen = np.zeros(len(names) + 1, dtype=bool)
    seen[codes] = True
    kept = tuple(sorted(one for one, there in zip(names, seen[:-1], strict=True) if there))
    return Covariate(codes.astype(np.float64), tuple(names)).recoded(kept)
