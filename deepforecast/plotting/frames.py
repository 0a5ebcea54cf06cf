"""Tidy frames of any library as input of plots: their columns, series and arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeGuard

import narwhals.stable.v2 as nw
import numpy as np

from deepforecast.data import frames as door
from deepforecast.data.columns import CUTOFF, declared_covariates, key_roles, resolve_columns
from deepforecast.errors import DataError, format_list, format_value
from deepforecast.plotting import inputs
from deepforecast.plotting.chart import Array, Axis, finite
from deepforecast.plotting.choices import unknown_choice
from deepforecast.plotting.timestamps import format_timestamp, timestamp_array, zone_title

MAX_SERIES = 8
HINTS = {
    CUTOFF: "Pass the result of `cross_validate` or `compare`.",
    "component": "Pass the result of `decompose`, or of `explain` for a model with components.",
}
NO_TARGET_HINTS = {  # inputs for which users often pass forecasts of `predict`
    "history": "Use plot(history, forecast) to plot forecasts.",
    "cross-validation": "Use plot(history, forecast) to plot forecasts of `predict`.",
    "frame": "Pass the result of `cross_validate` or `compare`.",
}
ROLES_HINT = "Pass other names as columns={'id': ..., 'time': ..., 'target': ...}."


class Board(Protocol):
    """Protocol of a `Leaderboard`, whose class is in a package that imports this one."""

    metrics: tuple[str, ...]
    criteria: Mapping[str, Any]
    forecasts: Any
    settings: Mapping[str, Any]

    def distances(self, metric: str) -> Any:
        """Return `model, metric, value, low, high, seconds, lower_is_better` of one metric."""


def is_board(table: Any) -> TypeGuard[Board]:
    """Whether `table` is a leaderboard; tests its class, since frames have attribute columns."""
    return hasattr(type(table), "distances")


@dataclass(frozen=True)
class TidyFrame:
    """Long frame with known columns; `id` is None for a single series."""

    frame: nw.DataFrame[Any]
    description: str
    id: str | None
    time: str
    target: str
    covariates: tuple[str, ...] = ()

    def series(self) -> list[Any]:
        """Sorted ids, independent of the order of rows; `[None]` for a single series."""
        return [None] if self.id is None else list(self._ids().unique().sort().to_list())

    def select_series(self, keys: Sequence[Any]) -> TidyFrame:
        """Rows of these series."""
        return self if self.id is None else replace(self, frame=self.frame.filter(self._ids().is_in(list(keys))))

    def series_rows(self, key: Any) -> TidyFrame:
        """Rows of one series, sorted by cutoff (if any) and time."""
        rows = self.select_series([key])
        keys = [rows.timestamps()] + ([rows.timestamps(CUTOFF)] if CUTOFF in rows.frame.columns else [])
        return rows.take_rows(np.lexsort(keys))

    def take_rows(self, positions: Array) -> TidyFrame:
        """Rows at these positions, in this order."""
        return replace(self, frame=self.frame[np.asarray(positions)])

    def timestamps(self, column: str | None = None) -> Array:
        """Timestamps as `datetime64[us]` in UTC (or without time zone), or integers."""
        return timestamp_array(self.column(column or self.time))[0]

    def codes(self) -> Array:
        """Series number of each row."""
        import pandas as pd

        return np.zeros(len(self), dtype=np.int64) if self.id is None else pd.factorize(self._ids().to_numpy())[0]

    def axis(self) -> Axis:
        """Time axis of this frame."""
        values, zone = timestamp_array(self.column(self.time)[:1])
        if values.dtype.kind == "M":
            return Axis(title=zone_title(zone), kind="time", zone=zone)
        return Axis(title=self.time, kind="integer")

    def values(self, column: str) -> Array:
        """A numeric column, with NaN for infinite values."""
        return finite(door.read_numbers(self.column(column), column))

    def column(self, name: str) -> nw.Series[Any]:
        """A column; raises an error that lists the available ones."""
        if name not in self.frame.columns:
            columns = format_list(self.frame.columns, max_shown=10)
            hint = ROLES_HINT if name in (self.id, self.time, self.target) else HINTS.get(name, "")
            raise DataError(
                f"The {self.description} must have a column {format_value(name)}, got the columns {columns}. {hint}".rstrip()
            )
        return self.frame.get_column(name)

    def numeric_columns(self) -> list[str]:
        """Numeric columns, in the order of the frame."""
        return [name for name, dtype in self.frame.schema.items() if dtype.is_numeric()]

    def __len__(self) -> int:
        return len(self.frame)

    def _ids(self) -> nw.Series[Any]:
        ids = self.column(self.id or "")
        return ids.cast(nw.String()) if ids.dtype in (nw.Categorical, nw.Enum) else ids


def open_frame(frame: Any, description: str, columns: Any = None, target: bool = True) -> TidyFrame:
    """Read a pandas, polars or pyarrow frame, a pandas Series or forecasts of a leaderboard."""
    if is_board(frame):
        columns = frame.settings["columns"] if columns is None else columns
        frame = frame.forecasts
    opened = inputs.open_input(frame, description)
    if len(opened) == 0:
        raise DataError(
            f"The {description} must be a non-empty DataFrame, got 0 rows with the columns "
            f"{format_list(opened.columns, max_shown=10)}."
        )
    try:
        names = resolve_columns(key_roles(columns), opened.columns, target=target)
    except DataError as error:
        if description not in NO_TARGET_HINTS:
            raise
        raise DataError(f"{error} {NO_TARGET_HINTS[description]}") from None
    id_column = names.id if names.id in opened.columns else None
    tidy = TidyFrame(
        opened,
        description,
        id=id_column,
        time=names.time,
        target=names.target,
        covariates=declared_covariates(columns),
    )
    for name in (tidy.id, tidy.time):
        if name is not None and (missing := tidy.column(name).null_count()):
            raise DataError(
                f"Column {format_value(name)} of the {description} cannot have missing values, got {missing} of them.",
                hint="Fill or drop these rows.",
            )
    return tidy


def choose_series(frames: Sequence[TidyFrame], ids: Any) -> tuple[list[Any], int]:
    """The series to plot, by default the first ones, and their total number."""
    _check_same_keys(frames)
    keys = frames[0].series()
    if ids is None:
        return keys[:MAX_SERIES], len(keys)
    requested = _to_list(ids)
    all_keys = list(dict.fromkeys(key for frame in frames for key in frame.series() if key is not None))
    for key in requested or [ids]:
        if key not in all_keys:
            raise unknown_choice("series", key, all_keys)
    return requested, len(requested)


def check_unique_timestamps(stamps: Array, key: Any, table: TidyFrame) -> None:
    """Raise `DataError` for duplicate timestamps in a series."""
    repeated = np.flatnonzero(stamps[1:] == stamps[:-1])
    if repeated.size == 0:
        return
    series_text = "" if key is None else f" of series {format_value(str(key))}"
    if CUTOFF in table.frame.columns:
        hint = "Use plot_cross_validation for frames with a column cutoff."
    elif key is None:
        hint = "If the frame contains several series, pass their id column as columns={'id': ...}."
    else:
        hint = "Drop the duplicates."
    raise DataError(
        f"Timestamps must be unique within a series; the {table.description}{series_text} repeats "
        f"{format_timestamp(stamps[repeated[0]])}.",
        hint=hint,
    )


def _check_same_keys(frames: Sequence[TidyFrame]) -> None:
    """Raise unless all frames have ids or none has, and their times are of the same kind."""
    first = frames[0]
    for second in frames[1:]:
        if (first.id is None) != (second.id is None):
            with_ids, without_ids = (first, second) if second.id is None else (second, first)
            raise DataError(
                f"Both frames must have an id column or none; the {with_ids.description} has the id column {with_ids.id}, the "
                f"{without_ids.description} has none.",
                hint="Add it there, or drop it here.",
            )
        axis_kinds = [(frame.axis().kind, frame.axis().zone is None) for frame in (first, second)]
        if axis_kinds[0] != axis_kinds[1]:
            dtypes = " and ".join(str(frame.column(frame.time).dtype) for frame in (first, second))
            raise DataError(
                f"The time columns of the {first.description} and the {second.description} must both be integers, timestamps or "
                f"timestamps with a time zone, got {dtypes}.",
                hint="Convert one of them.",
            )


def _to_list(ids: Any) -> list[Any]:
    """Unique ids as a list, from one id or any collection or column of them."""
    if isinstance(ids, str | bytes) or not hasattr(ids, "__iter__"):
        return [ids]
    if isinstance(ids, set | frozenset):
        ids = sorted(ids, key=str)  # the order of a set is arbitrary
    keys = list(ids.to_pylist() if hasattr(ids, "to_pylist") else ids)
    return [key for index, key in enumerate(keys) if key not in keys[:index]]
