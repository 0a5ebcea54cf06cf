"""Covariates: numbers as float64, categories as codes; matched to the rows of a panel or to the steps ahead by key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import frames
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.errors import DataError, some

UNKNOWN = -1  # the code of a missing or never seen category


@dataclass(frozen=True)
class Covariate:
    """One column: `values` are numbers, or codes into `categories` where there are any."""

    values: Floats
    categories: tuple[str, ...] | None = None

    def take(self, rows: Ints) -> Covariate:
        """Some of the rows."""
        return replace(self, values=self.values[rows])

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

    def column(self) -> Any:
        """Numbers as they are, categories as their names."""
        if self.categories is None:
            return self.values.copy()
        names = np.array([*self.categories, None], dtype=object)
        return names[self.values.astype(np.int64)]


def read(series: nw.Series[Any], name: str) -> Covariate:
    """A covariate column: real numbers or a categorical dtype; anything else is refused by name."""
    if series.dtype in (nw.Categorical, nw.Enum):
        return _categorical(series)
    values = frames.numbers(series, name)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise DataError(f"Covariate {name} is finite; it is infinite in {len(infinite)} rows, first in row {infinite[0]}. Repair or drop them.")
    return Covariate(values)


def read_static(frame: Frame, ids: Any, id_name: str | None, names: tuple[str, ...], label: Any) -> dict[str, Covariate]:
    """The static frame: one row a series, matched by id; missing, doubled or unknown rows are said by name."""
    table = frames.opened(frame, "static frame")
    wanted = names or tuple(name for name in table.columns if name != id_name)
    lacking = [name for name in wanted if name not in table.columns]
    if lacking:
        raise DataError(f"The static frame has the columns {some(wanted)}; {some(lacking)} is missing.")
    if id_name is None or ids is None:
        if len(table) != 1:
            raise DataError(f"The static frame of a single series has one row; it has {len(table)}.")
        return {name: read(table[name], name) for name in wanted}
    if id_name not in table.columns:
        raise DataError(f"The static frame has the id column {id_name}; the columns found are {some(table.columns)}.")
    rows = match(ids, table[id_name], "static frame", id_name)
    absent = np.flatnonzero(rows < 0)
    if len(absent):
        raise DataError(f"The static frame has one row a series; {label(absent)} has none. Add the rows.")
    return {name: read(table[name], name).take(rows) for name in wanted}


def match(ids: Any, others: nw.Series[Any], what: str, name: str) -> Ints:
    """For each of `ids` its row in `others`, -1 where there is none; a doubled id is refused."""
    import pandas as pd

    index = pd.Index(others.to_list())
    if not index.is_unique:
        raise DataError(f"The {what} has one row a series; {name} {some(index[index.duplicated()].unique())} is there twice.")
    return np.asarray(index.get_indexer(pd.Index(ids.to_list())), dtype=np.int64)


def constant(covariate: Covariate, indptr: Ints, name: str, label: Any) -> Covariate:
    """A static column given with the rows of the frame: its one value a series, or a `DataError`."""
    first = covariate.values[indptr[:-1]]
    spread = np.repeat(first, np.diff(indptr))
    differs = (covariate.values != spread) & ~(np.isnan(covariate.values) & np.isnan(spread))
    if differs.any():
        series = np.unique(np.searchsorted(indptr, np.flatnonzero(differs), side="right") - 1)
        raise DataError(f"A static column has one value a series; {name} changes within {label(series)}. Declare it as past or future.")
    return replace(covariate, values=first)


def _categorical(series: nw.Series[Any]) -> Covariate:
    import pandas as pd

    values = pd.Series(series.to_list(), dtype=object)
    codes, names = pd.factorize(values.map(str, na_action="ignore"), sort=True)
    return Covariate(codes.astype(np.float64), tuple(str(name) for name in names))
