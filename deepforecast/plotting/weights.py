"""Frames of attention weights as input of plots."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from deepforecast.data import frames as door
from deepforecast.data.columns import Columns
from deepforecast.data.frames import Frame
from deepforecast.errors import DataError, ParameterError, format_list, format_value
from deepforecast.plotting import inputs
from deepforecast.plotting.chart import Array, Axis
from deepforecast.plotting.choices import unknown_choice
from deepforecast.plotting.frames import open_frame
from deepforecast.plotting.style import shorten
from deepforecast.plotting.timestamps import format_timestamp, timestamp_array, zone_title

REQUIRED_COLUMNS = ("cutoff", "step", "lag", "kind", "layer", "head", "weight")
KIND_ORDER = ("cross", "self")


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """Columns of a frame of attention weights as arrays.

    `code`: index of each row's series in `keys`. `key`: id of the series, if there is only one.
    """

    keys: list[Any]
    kind: str
    zone: str | None
    code: Array
    time: Array
    cutoff: Array
    lag: Array
    layer: Array
    head: Array
    weight: Array
    key: Any = None

    def take(self, rows: Array) -> AttentionWeights:
        """Rows selected by a mask."""
        columns = {column.name: getattr(self, column.name) for column in fields(self)}
        selected: dict[str, Any] = {name: column[rows] for name, column in columns.items() if isinstance(column, np.ndarray)}
        return replace(self, **selected)

    def choose_series(self, series: Any, single: bool, select_all: bool = False) -> tuple[list[Any], int]:
        """Series to plot, by default the first or all, and their total number."""
        if series is None:
            return (self.keys if select_all else self.keys[:1]), len(self.keys)
        requested = [series] if isinstance(series, str) or not hasattr(series, "__iter__") else list(series)
        for key in requested:
            if key not in self.keys:
                raise unknown_choice("series", key, self.keys)
        if not requested:
            raise ParameterError("`series` must have at least one id, got none. Pass one, or None for the default.")
        if single and len(requested) > 1:
            raise ParameterError(f"view='heads' can show one series only, got {format_list(requested)}. Pass one id.")
        return requested, len(self.keys)

    def select_series(self, keys: list[Any]) -> AttentionWeights:
        """Rows of these series."""
        return self.take(np.isin(self.code, [self.keys.index(key) for key in keys]))

    def select_forecast(self, key: Any, cutoff: Any) -> AttentionWeights:
        """Weights of one series and cutoff, by default the first."""
        series_weights = replace(self.select_series([key]), key=key)
        cutoffs = np.unique(series_weights.cutoff)
        selected = cutoffs[0] if cutoff is None else _read_cutoff(cutoff, series_weights.cutoff)
        if selected not in cutoffs:
            raise unknown_choice("cutoff", cutoff, [format_timestamp(value) for value in cutoffs])
        return series_weights.take(series_weights.cutoff == selected)

    def matrix(self) -> tuple[Array, Array, Array]:
        """Keys, queries and the mean weight of each pair; NaN for missing pairs."""
        x, column = np.unique(self.lag, return_inverse=True)
        y, row = np.unique(self.time, return_inverse=True)
        pair, size = row * len(x) + column, len(x) * len(y)
        count, total = np.bincount(pair, minlength=size), np.bincount(pair, self.weight, minlength=size)
        return x, y, np.divide(total, count, out=np.full(size, np.nan), where=count > 0).reshape(len(y), len(x))

    def axes(self) -> tuple[Axis, Axis]:
        """Axes of keys and queries; both are time."""
        axis_kind: Any = "time" if self.lag.dtype.kind == "M" else "integer"
        zone = f" ({zone_title(self.zone)})" if self.zone else ""
        query_title = "forecast step" if self.kind == "cross" else "attending time step"
        return Axis(f"attended time step{zone}", axis_kind, self.zone), Axis(query_title, axis_kind, self.zone)

    def title(self) -> str:
        """Title: series and forecast origin."""
        origin = f"cutoff {format_timestamp(self.cutoff[0]).replace('T', ' ').removesuffix(':00')}" if len(self.cutoff) else ""
        return origin if self.key is None else ", ".join(part for part in (shorten(self.key), origin) if part)

    def select_head(self, layer: int | None, head: int | None) -> AttentionWeights:
        """Weights of one layer or head, if given."""
        selected = self
        for name, value in (("layer", layer), ("head", head)):
            if value is not None:
                available = getattr(self, name)
                if value not in available:
                    raise unknown_choice(name, value, sorted(set(available.tolist())))
                selected = selected.take(getattr(selected, name) == value)
        return selected


def open_weights(explanation: Frame, kind: str | None = None) -> AttentionWeights:
    """Read the result of `explain` as attention weights of one kind."""
    tidy = open_frame(explanation, "explanation", _key_columns(inputs.open_input(explanation, "explanation")), target=False)
    kinds = tidy.frame.get_column("kind").to_numpy().astype(str)
    available = sorted(
        set(kinds), key=lambda label: (KIND_ORDER.index(label) if label in KIND_ORDER else len(KIND_ORDER), label)
    )
    if kind is not None and kind not in available:
        raise unknown_choice("kind", kind, available)
    selected_kind = available[0] if kind is None else kind
    selected = tidy.take_rows(np.flatnonzero(kinds == selected_kind))
    code = selected.codes()
    first = np.unique(code, return_index=True)[1]
    keys = [None] if tidy.id is None else selected.take_rows(first).column(tidy.id).to_list()
    lag, zone = timestamp_array(selected.column("lag"))
    numbers = {name: door.read_numbers(selected.column(name), name) for name in ("layer", "head", "weight")}
    for name, values in numbers.items():
        if not np.isfinite(values).all():
            raise DataError(
                f"Every row of the explanation must have a {name}; {(~np.isfinite(values)).sum():,} of "
                f"{len(values):,} have none. Drop those rows."
            )
    return AttentionWeights(
        keys,
        selected_kind,
        zone,
        code,
        selected.timestamps(),
        selected.timestamps("cutoff"),
        lag,
        numbers["layer"].astype(int),
        numbers["head"].astype(int),
        numbers["weight"],
    )


def _key_columns(opened: Any) -> Columns:
    """Id and time column, by elimination.

    Of two remaining columns, the time is the one of the type of `lag`, or else the later one.
    """
    if not set(REQUIRED_COLUMNS) <= set(opened.columns):
        raise DataError(
            f"The explanation must have the columns {format_list(REQUIRED_COLUMNS, max_shown=10)}, got "
            f"{format_list(opened.columns, max_shown=10)}. "
            f"{inputs.ADVICE['explanation']}"
        )
    remaining = [name for name in opened.columns if name not in REQUIRED_COLUMNS]
    times = [name for name in remaining if opened.schema[name] == opened.schema["lag"]]
    if not times or len(remaining) > 2:
        raise DataError(
            "Besides the required columns, an explanation must have a time column of the type of `lag` and at "
            f"most one id column, got: {format_list(remaining) or 'none'}. Drop the others."
        )
    names = [name for name in remaining if name != times[-1]]
    return Columns(id=names[0] if names else None, time=times[-1])


def _read_cutoff(cutoff: Any, column: Array) -> Any:
    """Convert a cutoff passed by the user to the type of the column."""
    try:
        if column.dtype.kind == "M":
            import pandas as pd

            stamp = pd.Timestamp(cutoff)
            return (stamp if stamp.tz is None else stamp.tz_convert("UTC").tz_localize(None)).to_numpy().astype("M8[us]")
        return np.int64(cutoff)
    except (ValueError, TypeError):
        raise ParameterError(
            f"`cutoff` must be a value of the column cutoff, got {format_value(cutoff)}. Pass one of them."
        ) from None
