"""The columns a regressor sees of a row: the past of the target, the calendar, columns known ahead, static ones, the series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.data import calendar_features
from deepforecast.data.calendar import Calendar
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.lags import FEATURE_KINDS, LagFeature
from deepforecast.data.panel import Panel

Table = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """What stands in which column. `past`: features of the target's past; `columns`: of each past covariate, its lags;
    `future_rows`: how far from its own row a column known ahead is read (1: one row later).

    `cyclic`: what comes round stands as a point on a circle and categories as columns of their own, for models that add up;
    otherwise both stand as numbers of their kind. `first`: the position that `time_index` counts from.
    """

    past: tuple[LagFeature, ...]
    columns: Mapping[str, tuple[LagFeature, ...]]
    future_rows: tuple[int, ...] = (0,)
    calendar: tuple[str, ...] = ()
    holidays: str | None = None
    fourier: tuple[tuple[int, int], ...] = ()  # (season, pairs)
    time_index: bool = False
    identity: bool = False
    cyclic: bool = False
    first: int = 0

    @property
    def reach(self) -> int:
        """Rows before the first whole one."""
        return max((one.n_rows_needed for one in (*self.past, *(lag for lags in self.columns.values() for lag in lags))), default=1)

    def shifted(self, steps: int) -> Design:
        """The same, seen from `steps` rows earlier: what a forecast that far ahead of its origin may know."""
        if not steps:
            return self
        past = tuple(replace(one, lag=one.lag + steps) for one in self.past)
        return replace(self, past=past, columns={name: later(lags, steps) for name, lags in self.columns.items()})

    def names(self, future: Mapping[str, Covariate], static: Mapping[str, Covariate]) -> list[str]:
        """The names of the columns, in their order."""
        found = [str(one) for one in self.past]
        found += [f"{name}_{one}" for name, lags in self.columns.items() for one in lags]
        for name in self.calendar:
            found += [f"{name}_sin", f"{name}_cos"] if self.cyclic and name in calendar_features.PERIODS else [name]
        found += ["holiday", "days_to_holiday"] if self.holidays else []
        for season, pairs in self.fourier:
            found += [f"{wave}_{season}_{k}" for k in range(1, pairs + 1) for wave in ("sin", "cos")]
        found += ["time_index"] if self.time_index else []
        for name, one in {**self.read_around(future), **static}.items():
            spread = self.cyclic and one.categories is not None
            found += [f"{name}={category}" for category in one.categories or ()] if spread else [name]
        return [*found, *(["series"] if self.identity else [])]


    def read_around(self, future: Mapping[str, Any]) -> dict[str, Any]:
        """A name for each column known ahead and each row it is read at."""
        return {f"{name}{f'{row:+d}' if row else ''}": one for name, one in future.items() for row in self.future_rows}

    def categories(self, future: Mapping[str, Covariate], static: Mapping[str, Covariate]) -> list[int]:
        """The places of columns that hold codes of categories, in the order of `names`."""
        named = {name for name, one in {**self.read_around(future), **static}.items() if one.categories is not None}
        named |= {"series"} if self.identity else set()
        return [place for place, name in enumerate(self.names(future, static)) if name in named and not self.cyclic]


def later(lags: tuple[LagFeature, ...], steps: int) -> tuple[LagFeature, ...]:
    """Lags of what is known up to an origin alone, for a row so many steps further from it."""
    return tuple(replace(one, lag=one.lag + steps) for one in lags)


def coded(features: Sequence[LagFeature]) -> tuple[Ints, Floats]:
    """Features as the kernel takes them."""
    numbers = [[FEATURE_KINDS.index(one.kind), one.lag, one.size, one.stride] for one in features]
    return np.array(numbers, np.int64).reshape(-1, 4), np.array([one.level for one in features], np.float64)


def known(design: Design, calendar: Calendar, positions: Ints, owners: Ints, columns: Mapping[str, Covariate]) -> Floats:
    """The columns that need no past: one row for each of `positions`, whose series are `owners`; `columns` hold these rows."""
    parts: list[Floats] = []
    table = calendar_features.compute_features(calendar, positions, design.calendar)
    for place, name in enumerate(design.calendar):
        parts += calendar_features.encode_cyclic(table[:, place], name) if design.cyclic else (table[:, place],)
    if design.holidays:
        parts += calendar_features.holiday_features(calendar, positions, design.holidays)
    counted = positions // calendar.step
    for season, pairs in design.fourier:
        angle = 2 * np.pi * (counted % season) / season
        parts += [wave(k * angle) for k in range(1, pairs + 1) for wave in (np.sin, np.cos)]
    if design.time_index:
        parts.append((counted - design.first).astype(np.float64))
    for one in columns.values():
        values = one.values.reshape(-1)
        if design.cyclic and one.categories is not None:
            parts += [(values == code).astype(np.float64) for code in range(len(one.categories))]
        else:
            parts.append(np.where(values < 0, np.nan, values) if one.categories is not None else values)
    if design.identity:
        parts.append(owners.astype(np.float64))
    return np.stack(parts, axis=1) if parts else np.empty((len(positions), 0))


def around(one: Covariate, indptr: Ints, row: int) -> Covariate:
    """A column as each row sees it `row` rows later; missing past the ends of its series."""
    if not row:
        return one
    place = np.arange(len(one.values)) + row
    owner = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    inside = (place >= indptr[owner]) & (place < indptr[owner + 1])
    lost = np.nan if one.categories is None else -1.0
    return replace(one, values=np.where(inside, one.values[np.where(inside, place, 0)], lost))


def around_all(design: Design, future: Mapping[str, Covariate], indptr: Ints) -> dict[str, Covariate]:
    """Every column known ahead, at every row it is read."""
    rows = [row for _ in future for row in design.future_rows]
    return {name: around(one, indptr, row) for (name, one), row in zip(design.read_around(future).items(), rows, strict=True)}


def table(design: Design, panel: Panel, z: Floats, beside: Floats, dtype: type) -> Table:
    """The columns of every row of a panel; `z` is its target as it is learned, `beside` the columns that need no past."""
    from deepforecast.kernels import features as kernel

    found = np.empty((len(z), len(design.past) + sum(map(len, design.columns.values())) + beside.shape[1]), dtype)
    start = 0
    others = [(panel.covariates[name].values, lags) for name, lags in design.columns.items()]
    for values, features in [(z, design.past), *others]:
        kernel.fill_features(np.ascontiguousarray(values), panel.indptr, *coded(features), start, found)
        start += len(features)
    found[:, start:] = beside
    return found
