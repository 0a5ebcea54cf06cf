"""A panel as rows for windows: padded, its columns standardised, the calendar beside them; and the windows there are.

A window is `input_size` rows up to a cutoff and `horizon` rows after it. Only this module separates past from future.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from deepforecast.data import calendar_features
from deepforecast.data.calendar import Calendar
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.moments import Moments
from deepforecast.data.panel import Panel


@dataclass(frozen=True)
class Channels:
    """Which columns a network is given, and by what they are standardised: learned in fit, kept with the model.

    Columns of numbers and of categories, those known ahead (`ahead`, `ahead_codes` of them) before those known up to now.
    """

    input_size: int
    horizon: int
    numbers: tuple[str, ...]
    ahead: int
    codes: tuple[str, ...]
    ahead_codes: int
    static: tuple[str, ...]
    static_codes: tuple[str, ...]
    counts: Mapping[str, int]
    centre: Mapping[str, float]
    spread: Mapping[str, float]
    clock: tuple[str, ...]
    moments: Moments | None = None

    @property
    def timed(self) -> bool:
        """Whether it counts when a row is."""
        return bool(self.clock) or self.moments is not None

    @property
    def clock_width(self) -> int:
        """Columns of the calendar: what comes round is a point on a circle. Those of `moments` come behind them."""
        own = sum(2 if name in calendar_features.PERIODS else 1 for name in self.clock)
        return own if self.moments is None else own + self.moments.width

    @property
    def circles(self) -> tuple[tuple[int, int], ...]:
        """Of each feature that comes round, the columns of its sine before and after the cutoff."""
        found, place = [], 0
        for name in self.clock:
            if name in calendar_features.PERIODS:
                found.append((len(self.numbers) + place, self.ahead + place))
            place += 2 if name in calendar_features.PERIODS else 1
        return tuple(found)

    def written(self) -> dict[str, Any]:
        """As plain values."""
        held = {one.name: getattr(self, one.name) for one in fields(self)}
        found = {name: list(value) if isinstance(value, tuple) else value for name, value in held.items()}
        return {**found, "moments": None if self.moments is None else self.moments.written()}

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Channels:
        """From plain values."""
        plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}
        if plain.get("moments") is not None:
            plain["moments"] = Moments.read(plain["moments"])
        return cls(**plain)

    def standardised(self, name: str, values: Floats) -> Floats:
        """A column of numbers around 0 with spread 1; 0 where it is missing, and always if it never varied (of spread 0)."""
        return np.nan_to_num((values - self.centre[name]) / (self.spread[name] or np.inf), nan=0.0).astype(np.float32)

    def clock_of(self, calendar: Calendar, positions: Ints) -> Any:
        """The calendar's columns at these positions, (positions, clock_width)."""
        own = calendar_features.on_circles(calendar, positions, self.clock)
        return own if self.moments is None else np.concatenate([own, self.moments.of(calendar, positions)], axis=1)


def channels(panel: Panel, input_size: int, horizon: int, clock: tuple[str, ...]) -> Channels:
    """What a panel has to give, standardised by its own rows."""
    names = panel.series.columns
    every = {**panel.covariates, **panel.static}

    def of(some: tuple[str, ...], coded: bool) -> tuple[str, ...]:
        return tuple(name for name in some if name in every and (every[name].categories is not None) == coded)

    ahead, ahead_codes = of(names.future, False), of(names.future, True)
    numbers = (*ahead, *of(names.past, False))
    centre, spread = {}, {}
    for name in (*numbers, *of(tuple(panel.static), False)):
        values = every[name].values
        known = values[~np.isnan(values)]
        still = bool(len(known)) and known.min() == known.max()  # their mean is not quite them: what is left would count as 1
        centre[name] = float(known[0] if still else known.mean()) if len(known) else 0.0
        wide = float(np.abs(known - centre[name]).max()) if len(known) else 0.0
        spread[name] = float(np.sqrt(np.mean(((known - centre[name]) / wide) ** 2)) * wide) if wide > 0 else 0.0
    codes = (*ahead_codes, *of(names.past, True))
    coded = (*codes, *of(tuple(panel.static), True))
    counts = {name: len(every[name].categories or ()) for name in coded}
    static = of(tuple(panel.static), False), of(tuple(panel.static), True)
    return Channels(
        input_size, horizon, numbers, len(ahead), codes, len(ahead_codes), *static, counts, centre, spread, clock
    )


@dataclass(frozen=True)
class Rows:
    """The rows of all series, each behind empty ones, as many as no window reaches across, with what is known beside them.

    `first`: where each series' own rows begin; `first_time`: their place on the clock.
    """

    y: Floats
    numbers: Any
    codes: Ints
    clock: Any
    static: Any
    static_codes: Ints
    place: Floats
    spread: Floats
    input_size: int
    horizon: int
    ahead: int
    ahead_codes: int
    first: Ints
    first_time: Ints
    lengths: Ints

    def begin(self, series: Ints, cutoff: Ints) -> tuple[Ints, Ints]:
        """Where windows begin, in the rows and on the clock; `cutoff`: how many rows of the series lie before it."""
        back = cutoff - self.input_size
        return self.first[series] + back, self.first_time[series] + back


def rows(panel: Panel, channels: Channels) -> Rows:
    """A panel for the windows of these channels."""
    length, horizon, calendar = channels.input_size, channels.horizon, panel.calendar
    count, gap = len(panel), max(length, horizon)
    first = panel.indptr[:-1] + gap * np.arange(1, count + 1)
    total = len(panel.y) + gap * count + horizon
    own = np.ones(total, dtype=bool)  # which rows are series'; a number for each would take as much memory as their values
    own[first[:, None] - gap + np.arange(gap)] = False
    own[total - horizon :] = False
    y = np.full(total, np.nan)
    y[own] = panel.y
    numbers = np.zeros((total, len(channels.numbers)), dtype=np.float32)
    for place, name in enumerate(channels.numbers):
        numbers[own, place] = channels.standardised(name, panel.covariates[name].values)
    codes = np.zeros((total, len(channels.codes)), dtype=np.int64)
    for place, name in enumerate(channels.codes):
        codes[own, place] = panel.covariates[name].values.astype(np.int64) + 1
    begin = int(panel.start.min())
    time = np.arange(-length, (int(panel.series.last.max()) - begin) // calendar.step + 1 + horizon)
    clock = channels.clock_of(calendar, begin + calendar.step * time)
    static, static_codes = static_of(channels, panel.static, count)
    return Rows(
        y, numbers, codes, clock, static, static_codes, np.zeros((count, 1)), np.ones((count, 1)), length, horizon,
        channels.ahead, channels.ahead_codes, first, (panel.start - begin) // calendar.step + length, panel.lengths,
    )  # fmt: skip


def static_of(channels: Channels, static: Mapping[str, Covariate], count: int) -> tuple[Any, Ints]:
    """The static columns of `count` series: numbers, and codes."""
    numbers = np.zeros((count, len(channels.static)), dtype=np.float32)
    for place, name in enumerate(channels.static):
        numbers[:, place] = channels.standardised(name, static[name].values)
    codes = np.zeros((count, len(channels.static_codes)), dtype=np.int64)
    for place, name in enumerate(channels.static_codes):
        codes[:, place] = static[name].values.astype(np.int64) + 1
    return numbers, codes


@dataclass(frozen=True)
class Places:
    """The windows a panel has: series i those with `least[i]` to `most[i]` rows up to the cutoff. They are counted, not listed.

    Series stand in an order told by their values, not by their names, so that what is drawn is drawn whatever they are called.
    """

    order: Ints
    least: Ints
    most: Ints
    until: Ints | None = None  # of each series so many rows may be learned from, where not all may

    @cached_property
    def ends(self) -> Ints:
        """Number of windows up to and including each series, in order."""
        return np.cumsum((self.most - self.least + 1)[self.order])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def at(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Series and cutoff of the windows of these numbers."""
        place = np.searchsorted(self.ends, numbers, side="right")
        series = self.order[place]
        return series, self.most[series] - (self.ends[place] - 1 - numbers)

    def draw(self, seed: int, step: int, size: int, evenly: bool) -> tuple[Ints, Ints]:
        """The windows of one step of training, the same for the same seed and step; `evenly`: as many of each series."""
        random = np.random.default_rng([seed, step])
        if not evenly:
            return self.at(random.integers(len(self), size=size))
        series = self.order[random.integers(len(self.order), size=size)]
        return series, random.integers(self.least[series], self.most[series] + 1)


def places(panel: Panel, input_size: int, horizon: int, held_out: int = 0, recent: int | None = None) -> Places:
    """The windows that lie in a panel but for its last `held_out` rows. A series too short for a whole one gives those that
    reach beyond its ends, where nothing is known. `recent`: only so many of the last ones."""
    lengths = panel.lengths - held_out
    most = np.maximum(np.where(lengths > horizon, lengths - horizon, lengths - 1), 0)
    least = np.minimum(np.where(lengths >= input_size + horizon, input_size, 1), most)
    if recent is not None:
        least = np.maximum(least, most - recent + 1)
    usable = np.flatnonzero(lengths >= 2)
    held = [one.values for each in (panel.static, panel.covariates) for _, one in sorted(each.items())]
    beside = [one if len(one) == len(panel) else _sums(one, panel) for one in held]
    ends = panel.indptr[1:]
    own = (_sums(panel.y, panel), np.nan_to_num(panel.y[ends - 1]), np.nan_to_num(panel.y[panel.indptr[:-1]]), panel.lengths)
    keys = [panel.start, *beside, *own]
    return Places(usable[np.lexsort([key[usable] for key in keys])], least, most, lengths if held_out else None)


def _sums(values: Any, panel: Panel) -> Any:
    """Of each series."""
    return np.add.reduceat(np.nan_to_num(values) if np.isnan(values).any() else values, panel.indptr[:-1])


def held_out(panel: Panel, horizon: int, rows: int) -> Places:
    """The windows whose steps ahead lie in the last `rows` rows."""
    first = np.maximum(panel.lengths - rows, 1)
    last = np.maximum(panel.lengths - min(horizon, rows), first)
    return Places(np.flatnonzero(panel.lengths > rows), first, last)
