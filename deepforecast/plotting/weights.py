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
        """Ids of the series to plot (default: the first one, or all if `select_all`), and the number of all
        series. `single`: whether several ids are refused."""
        if series is None:
            return (self.keys if select_all else self.keys[:1]), len(self.keys)
        requested = [series] if isinstance(series, str) or not hasattr(series, "__iter__") else list(series)
        for key in requested:
            if key not in self.keys:
                raise unknown_choice("series", key, self.keys)
        if not requested:
            raise ParameterError(
                "`series` must contain at least one id, got an empty list.",
                hint="Pass an id, or None for the default.",
                parameter="series",
            )
        if single and len(requested) > 1:
            raise ParameterError(
                f"view='heads' requires a single series, got {format_list(requested)}.", hint="Pass one id.", parameter="series"
            )
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
        """Keys, queries and the mean weight of each pair, shape (queries, keys); NaN for missing pairs."""
        x, column = np.unique(self.lag, return_inverse=True)
        y, row = np.unique(self.time, return_inverse=True)
        pair = row * len(x) + column
        n_cells = len(x) * len(y)
        n_weights = np.bincount(pair, minlength=n_cells)
        sums = np.bincount(pair, self.weight, minlength=n_cells)
        return x, y, np.divide(sums, n_weights, out=np.full(n_cells, np.nan), where=n_weights > 0).reshape(len(y), len(x))

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
    explanation = door.materialize(explanation)
    tidy = open_frame(explanation, "explanation", _key_columns(inputs.open_input(explanation, "explanation")), target=False)
    kinds = tidy.frame.get_column("kind").to_numpy().astype(str)
    available = sorted(
        {label for label in kinds if not label.endswith(" variables")},  # which have weights, but no attention (TFT)
        key=lambda label: (KIND_ORDER.index(label) if label in KIND_ORDER else len(KIND_ORDER), label),
    )
    if kind is not None and kind not in available:
        raise unknown_choice("kind", kind, available)
    selected_kind = available[0] if kind is None else kind
    selected = tidy.take_rows(np.flatnonzero(kinds == selected_kind))
    code = selected.codes()
    first_rows = np.unique(code, return_index=True)[1]
    keys = [None] if tidy.id is None else selected.take_rows(first_rows).column(tidy.id).to_list()
    lag, zone = timestamp_array(selected.column("lag"))
    numbers = {name: door.read_numbers(selected.column(name), name) for name in ("layer", "head", "weight")}
    for name, values in numbers.items():
        if not np.isfinite(values).all():
            raise DataError(
                f"Column '{name}' of the explanation must be finite; {(~np.isfinite(values)).sum():,} of {len(values):,} rows are "
                "missing or infinite.",
                hint="Drop these rows.",
            )
    return AttentionWeights(
        keys=keys,
        kind=selected_kind,
        zone=zone,
        code=code,
        time=selected.timestamps(),
        cutoff=selected.timestamps("cutoff"),
        lag=lag,
        layer=numbers["layer"].astype(int),
        head=numbers["head"].astype(int),
        weight=numbers["weight"],
    )


def _key_columns(opened: Any) -> Columns:
    """Id and time column, by elimination.

    Of two remaining columns, the time column is the one with the dtype of `lag`, or the later one if both
    have it.
    """
    if not set(REQUIRED_COLUMNS) <= set(opened.columns):
        raise DataError(
            f"The explanation must have the columns {format_list(REQUIRED_COLUMNS, max_shown=10)}, got "
            f"{format_list(opened.columns, max_shown=10)}. {inputs.ADVICE['explanation']}"
        )
    remaining = [name for name in opened.columns if name not in (*REQUIRED_COLUMNS, "variable")]
    time_columns = [name for name in remaining if opened.schema[name] == opened.schema["lag"]]
    if not time_columns:
        raise DataError(
            f"The explanation must have a time column with the dtype of column 'lag' ({opened.schema['lag']}) besides the columns "
            f"{format_list(REQUIRED_COLUMNS, max_shown=10)}; other columns: {format_list(remaining) or 'none'}.",
            hint="Pass the result of `explain` unchanged.",
        )
    if len(remaining) > 2:
        raise DataError(
            "The explanation can have only a time column and an id column besides the columns "
            f"{format_list(REQUIRED_COLUMNS, max_shown=10)}; other columns: {format_list(remaining)}.",
            hint="Drop the additional ones.",
        )
    id_columns = [name for name in remaining if name != time_columns[-1]]
    return Columns(id=id_columns[0] if id_columns else None, time=time_columns[-1])


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
            f"`cutoff` must be a value of column 'cutoff', got {format_value(cutoff)}.",
            hint=f"Available: {format_list([format_timestamp(value) for value in np.unique(column)])}.",
            parameter="cutoff",
            value=cutoff,
        ) from None
