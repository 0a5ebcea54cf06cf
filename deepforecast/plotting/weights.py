"""A frame of weights of attention, read for drawing."""

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
from deepforecast.plotting.choices import unknown
from deepforecast.plotting.clock import read_stamps, text_of, zone_title
from deepforecast.plotting.frames import open_frame
from deepforecast.plotting.style import short

NEEDS = ("cutoff", "step", "lag", "kind", "layer", "head", "weight")
FIRST = ("cross", "self")


@dataclass(frozen=True, eq=False)
class Weights:
    """Its columns as arrays; `code` is the number of each row's series in `keys`. `key`: whose they are, where of one alone."""

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

    def take(self, rows: Array) -> Weights:
        """Some of the rows, by a mask."""
        held = {one.name: getattr(self, one.name) for one in fields(self)}
        taken: dict[str, Any] = {name: one[rows] for name, one in held.items() if isinstance(one, np.ndarray)}
        return replace(self, **taken)

    def chosen(self, series: Any, single: bool, every: bool = False) -> tuple[list[Any], int]:
        """The series to draw, the first or all where none is named, and how many there are."""
        if series is None:
            return (self.keys if every else self.keys[:1]), len(self.keys)
        listed = [series] if isinstance(series, str) or not hasattr(series, "__iter__") else list(series)
        for key in listed:
            if key not in self.keys:
                raise unknown("series", key, self.keys)
        if not listed:
            raise ParameterError("series names at least one series; got none. Leave it out, or name one.")
        if single and len(listed) > 1:
            raise ParameterError(f"The heads of one series are drawn at a time; got {format_list(listed)}. Name one.")
        return listed, len(self.keys)

    def among(self, keys: list[Any]) -> Weights:
        """The rows of these series."""
        return self.take(np.isin(self.code, [self.keys.index(key) for key in keys]))

    def of(self, key: Any, cutoff: Any) -> Weights:
        """One series, from the first of its cutoffs or the one named."""
        mine = replace(self.among([key]), key=key)
        known = np.unique(mine.cutoff)
        wanted = known[0] if cutoff is None else _stamp(cutoff, mine.cutoff)
        if wanted not in known:
            raise unknown("cutoff", cutoff, [text_of(one) for one in known])
        return mine.take(mine.cutoff == wanted)

    def matrix(self) -> tuple[Array, Array, Array]:
        """Rows looked at, rows that look, and the mean weight of each pair, missing where there is none."""
        x, column = np.unique(self.lag, return_inverse=True)
        y, row = np.unique(self.time, return_inverse=True)
        place, size = row * len(x) + column, len(x) * len(y)
        count, total = np.bincount(place, minlength=size), np.bincount(place, self.weight, minlength=size)
        return x, y, np.divide(total, count, out=np.full(size, np.nan), where=count > 0).reshape(len(y), len(x))

    def axes(self) -> tuple[Axis, Axis]:
        """Both tell time."""
        kind: Any = "time" if self.lag.dtype.kind == "M" else "integer"
        zone = f" ({zone_title(self.zone)})" if self.zone else ""
        steps = "step ahead" if self.kind == "cross" else "row that looks"
        return Axis(f"row looked at{zone}", kind, self.zone), Axis(steps, kind, self.zone)

    def title(self) -> str:
        """Whose they are, and from where."""
        end = f"after {text_of(self.cutoff[0]).replace('T', ' ').removesuffix(':00')}" if len(self.cutoff) else ""
        return end if self.key is None else f"{short(self.key)} {end}"

    def only(self, layer: int | None, head: int | None) -> Weights:
        """One layer, one head, where they are named."""
        found = self
        for name, value in (("layer", layer), ("head", head)):
            if value is not None:
                known = getattr(self, name)
                if value not in known:
                    raise unknown(name, value, sorted(set(known.tolist())))
                found = found.take(getattr(found, name) == value)
        return found


def open_weights(explanation: Frame, kind: str | None = None) -> Weights:
    """A frame of `explain()` of any library, the rows of one kind of attention."""
    tidy = open_frame(explanation, "explanation", _keys(inputs.opened(explanation, "explanation")), target=False)
    said = tidy.frame.get_column("kind").to_numpy().astype(str)
    there = sorted(set(said), key=lambda one: (FIRST.index(one) if one in FIRST else len(FIRST), one))
    if kind is not None and kind not in there:
        raise unknown("kind", kind, there)
    chosen = there[0] if kind is None else kind
    held = tidy.at(np.flatnonzero(said == chosen))
    code = held.codes()
    first = np.unique(code, return_index=True)[1]
    keys = [None] if tidy.id is None else held.at(first).column(tidy.id).to_list()
    lag, zone = read_stamps(held.column("lag"))
    numbers = {name: door.read_numbers(held.column(name), name) for name in ("layer", "head", "weight")}
    for name, values in numbers.items():
        if not np.isfinite(values).all():
            raise DataError(
                f"Every row of an explanation has a {name}; {(~np.isfinite(values)).sum():,} of {len(values):,} have none. "
                "Leave those rows out."
            )
    return Weights(keys, chosen, zone, code, held.stamps(), held.stamps("cutoff"), lag, numbers["layer"].astype(int),
                   numbers["head"].astype(int), numbers["weight"])  # fmt: skip


def _keys(opened: Any) -> Columns:
    """Which column is the time, whatever it is called: of the two that are left the one of the stamps' type, or the later."""
    if not set(NEEDS) <= set(opened.columns):
        raise DataError(
            f"The explanation must have the columns {format_list(NEEDS, max_shown=10)}, got {format_list(opened.columns, max_shown=10)}. "
            f"{inputs.ADVICE['explanation']}"
        )
    others = [name for name in opened.columns if name not in NEEDS]
    times = [name for name in others if opened.schema[name] == opened.schema["lag"]]
    if not times or len(others) > 2:
        raise DataError(
            "An explanation by attention has a column of stamps, like lag, and at most one of ids beside its own; there "
            f"are: {format_list(others) or 'none'}. Leave the rest out."
        )
    names = [name for name in others if name != times[-1]]
    return Columns(id=names[0] if names else None, time=times[-1])


def _stamp(cutoff: Any, like: Array) -> Any:
    """A cutoff as a user names one, as the frame has it."""
    try:
        if like.dtype.kind == "M":
            import pandas as pd

            stamp = pd.Timestamp(cutoff)
            return (stamp if stamp.tz is None else stamp.tz_convert("UTC").tz_localize(None)).to_numpy().astype("M8[us]")
        return np.int64(cutoff)
    except (ValueError, TypeError):
        raise ParameterError(f"cutoff is a stamp of the column cutoff; got {format_value(cutoff)}.") from None
