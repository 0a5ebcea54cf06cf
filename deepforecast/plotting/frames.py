"""Tidy frames of any library, read for drawing: which columns they have, which series, and the arrays of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeGuard

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import frames as door
from deepforecast.data.columns import resolve
from deepforecast.data.forecast_names import CUTOFF, declared_covariates, key_roles
from deepforecast.errors import DataError, format_list, format_value
from deepforecast.plotting import inputs
from deepforecast.plotting.chart import Array, Axis, finite
from deepforecast.plotting.choices import unknown
from deepforecast.plotting.clock import read_stamps, text_of, zone_title

MOST_SERIES = 8
HINTS = {
    CUTOFF: "Pass what `cross_validate` or `compare` returns.",
    "component": "Pass what `decompose` returns, or what `explain` returns for a model with components.",
}
WITHOUT_TARGET = {  # in which forecasts of `predict` are the usual frame
    "history": "Draw forecasts with plot(history, forecast).",
    "cross-validation": "Draw forecasts of `predict` with plot(history, forecast).",
    "frame": "Pass what `cross_validate` or `compare` returns.",
}
ROLES = "Pass other names as columns={'id': ..., 'time': ..., 'target': ...}."


class Board(Protocol):
    """What the plots need of a `Leaderboard`; its class lies above this package."""

    metrics: tuple[str, ...]
    criteria: Mapping[str, Any]
    forecasts: Any
    settings: Mapping[str, Any]

    def distances(self, metric: str) -> Any:
        """Return `model, metric, value, low, high, seconds, lower_is_better` of one metric."""


def is_board(table: Any) -> TypeGuard[Board]:
    """Whether `table` is a leaderboard; asked of its class, since a frame has its columns as attributes."""
    return hasattr(type(table), "distances")


@dataclass(frozen=True)
class Tidy:
    """A long frame whose columns are known: `id` is None where the frame holds a single series."""

    frame: nw.DataFrame[Any]
    what: str
    id: str | None
    time: str
    target: str
    covariates: tuple[str, ...] = ()

    def series(self) -> list[Any]:
        """The ids in order, so that the order of rows never matters; `[None]` for a single series."""
        return [None] if self.id is None else list(self._ids().unique().sort().to_list())

    def only(self, keys: Sequence[Any]) -> Tidy:
        """The rows of these series."""
        return self if self.id is None else replace(self, frame=self.frame.filter(self._ids().is_in(list(keys))))

    def of(self, key: Any) -> Tidy:
        """The rows of one series in order of cutoff (if there is one) and time."""
        rows = self.only([key])
        keys = [rows.stamps()] + ([rows.stamps(CUTOFF)] if CUTOFF in rows.frame.columns else [])
        return rows.at(np.lexsort(keys))

    def at(self, positions: Array) -> Tidy:
        """The rows at these positions, in that order."""
        return replace(self, frame=self.frame[np.asarray(positions)])

    def stamps(self, column: str | None = None) -> Array:
        """The stamps as `datetime64[us]` in UTC (or without zone), or as whole numbers."""
        return read_stamps(self.column(column or self.time))[0]

    def codes(self) -> Array:
        """A number for the series of each row."""
        import pandas as pd

        return np.zeros(len(self), dtype=np.int64) if self.id is None else pd.factorize(self._ids().to_numpy())[0]

    def axis(self) -> Axis:
        """The axis on which this frame's time is told."""
        values, zone = read_stamps(self.column(self.time)[:1])
        if values.dtype.kind == "M":
            return Axis(title=zone_title(zone), kind="time", zone=zone)
        return Axis(title=self.time, kind="integer")

    def values(self, column: str) -> Array:
        """A column of numbers, missing where it is not finite."""
        return finite(door.read_numbers(self.column(column), column))

    def column(self, name: str) -> nw.Series[Any]:
        """A column, or an error that lists the ones there are."""
        if name not in self.frame.columns:
            columns = format_list(self.frame.columns, max_shown=10)
            hint = ROLES if name in (self.id, self.time, self.target) else HINTS.get(name, "")
            raise DataError(f"The {self.what} must have a column {format_value(name)}, got the columns {columns}. {hint}".rstrip())
        return self.frame.get_column(name)

    def numeric_columns(self) -> list[str]:
        """The numeric columns, in the order of the frame."""
        return [name for name, dtype in self.frame.schema.items() if dtype.is_numeric()]

    def __len__(self) -> int:
        return len(self.frame)

    def _ids(self) -> nw.Series[Any]:
        ids = self.column(self.id or "")
        return ids.cast(nw.String()) if ids.dtype in (nw.Categorical, nw.Enum) else ids


def open_frame(frame: Any, what: str, columns: Any = None, target: bool = True) -> Tidy:
    """`frame` of pandas, polars or pyarrow, a pandas Series indexed by time or the forecasts of a leaderboard."""
    if is_board(frame):
        columns = frame.settings["columns"] if columns is None else columns
        frame = frame.forecasts
    opened = inputs.opened(frame, what)
    if len(opened) == 0:
        raise DataError(f"The {what} must have rows, got none under the columns {format_list(opened.columns, max_shown=10)}.")
    try:
        names = resolve(key_roles(columns), opened.columns, target=target)
    except DataError as error:
        if what not in WITHOUT_TARGET:
            raise
        raise DataError(f"{error} {WITHOUT_TARGET[what]}") from None
    own_id = names.id if names.id in opened.columns else None
    tidy = Tidy(opened, what, own_id, names.time, names.target, declared_covariates(columns))
    for name in (tidy.id, tidy.time):
        if name is not None and (missing := tidy.column(name).null_count()):
            raise DataError(f"Column {format_value(name)} of the {what} has no missing value; it has {missing}. Fill or drop them.")
    return tidy


def choose_series(frames: Sequence[Tidy], ids: Any) -> tuple[list[Any], int]:
    """The series to draw and how many there are: those asked for, else the first few of the first frame."""
    _check_same_keys(frames)
    known = frames[0].series()
    if ids is None:
        return known[:MOST_SERIES], len(known)
    wanted = _listed(ids)
    every = list(dict.fromkeys(key for frame in frames for key in frame.series() if key is not None))
    for key in wanted or [ids]:
        if key not in every:
            raise unknown("series", key, every)
    return wanted, len(wanted)


def check_stamps(stamps: Array, key: Any, table: Tidy) -> None:
    """Each stamp once in a series: what is repeated could not be drawn as one line."""
    repeated = np.flatnonzero(stamps[1:] == stamps[:-1])
    if repeated.size == 0:
        return
    where = "" if key is None else f" of series {format_value(str(key))}"
    if CUTOFF in table.frame.columns:
        way = "It has a column cutoff: draw it with plot_cross_validation."
    elif key is None:
        way = "If the frame holds several series, name their column: columns={'id': ...}."
    else:
        way = "Drop the duplicates."
    raise DataError(f"A stamp stands once in a series; the {table.what}{where} repeats {text_of(stamps[repeated[0]])}. {way}")


def _check_same_keys(frames: Sequence[Tidy]) -> None:
    """All frames have ids or none has, and all tell time in the same way: else nothing would meet."""
    first = frames[0]
    for other in frames[1:]:
        if (first.id is None) != (other.id is None):
            named, bare = (first, other) if other.id is None else (other, first)
            raise DataError(f"The {named.what} names series in {named.id}, the {bare.what} does not. Name them in both.")
        kinds = [(frame.axis().kind, frame.axis().zone is None) for frame in (first, other)]
        if kinds[0] != kinds[1]:
            told = " and ".join(str(frame.column(frame.time).dtype) for frame in (first, other))
            raise DataError(f"The {first.what} and the {other.what} tell time in the same way; they have {told}. Convert one.")


def _listed(ids: Any) -> list[Any]:
    """The ids asked for as a list without repetition: one id, or any collection or column of them."""
    if isinstance(ids, str | bytes) or not hasattr(ids, "__iter__"):
        return [ids]
    if isinstance(ids, set | frozenset):
        ids = sorted(ids, key=str)  # a set has no order that lasts
    wanted = list(ids.to_pylist() if hasattr(ids, "to_pylist") else ids)
    return [key for index, key in enumerate(wanted) if key not in wanted[:index]]
