"""What was learned at any rows of time: the trend, and what each part adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.state import Learned
from deepforecast.data.calendar import Calendar
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.parts import Parts, places
from deepforecast.data.parts import read as read_parts
from deepforecast.data.stamps import Stamps, stamps_at
from deepforecast.data.time_columns import table
from deepforecast.models.additive._clock import scaled
from deepforecast.models.additive._design import column_of
from deepforecast.models.additive._scaling import Bounds, bounds

if TYPE_CHECKING:
    from deepforecast.models.additive.prophet import Prophet


@dataclass(frozen=True)
class Laid:
    """Rows taken apart, each of shape (rows,), in units of the values: `trend`; `moving`, what of it is multiplied (it lies on
    a base); `moved`, what it moves by as its line does; `shares`, what each part that multiplies is, and `grown`, 1 and their
    sum; `added`, what each other part is."""

    time: Floats
    line: Floats
    trend: Floats
    moving: Floats
    moved: Floats
    grown: Floats
    shares: Mapping[str, Floats]
    added: Mapping[str, Floats]
    cap: Floats
    limits: Bounds

    @property
    def components(self) -> dict[str, Floats]:
        """What each part adds to the sum."""
        return {"trend": self.trend, **{name: self.moving * share for name, share in self.shares.items()}, **self.added}

    @property
    def mean(self) -> Floats:
        """The sum."""
        return np.asarray(sum(self.components.values()))


def parts_of(learned: Learned) -> Parts:
    """The parts of a forecast."""
    return read_parts(learned["parts"])


def laid_out(
    model: Prophet, learned: Learned, calendar: Calendar, series: Ints, positions: Ints, covariates: Mapping[str, Covariate]
) -> Laid:
    """Rows of some series, flat: `series` says whose each is."""
    parts = parts_of(learned)
    stamps = stamps_at(calendar, positions)
    time = scaled(stamps.rows, learned["start"][series], learned["span"][series])
    limits, scale = bounds(model, covariates, len(series)), learned["scale"][series]
    base = learned["shift"][series] + (limits.floor if model.growth == "logistic" else 0.0)
    cap = (limits.cap - base) / scale
    line = line_of(model, learned, series, time)
    moving = bent(line, cap) if model.growth == "logistic" else line
    moved = moving * (1.0 - moving / cap) if model.growth == "logistic" else np.ones(len(line))
    shares, added = _parts(model, learned, parts, stamps, series, covariates)
    steady = learned["steady"][series]
    still = ~np.isnan(steady)
    return Laid(
        time,
        line,
        np.where(still, steady, base + scale * moving),
        np.where(still, 0.0, scale * moving),
        scale * moved,
        1.0 + sum(shares.values(), np.zeros(len(series))),
        shares,
        {name: scale * one for name, one in added.items()},
        cap,
        limits,
    )


def line_of(model: Prophet, learned: Learned, series: Ints, time: Floats) -> Floats:
    """The line with changes of slope, before it is bent by a cap."""
    rate, offset = learned["rate"][series], learned["offset"][series]
    line = rate * (time - offset) if model.growth == "logistic" else rate * time + offset
    for change in range(learned["delta"].shape[1]):
        delta = learned["delta"][series, change]
        if delta.any():
            line = line + delta * np.maximum(time - learned["changes"][series, change], 0.0)
    return np.asarray(line)


def bent(line: Floats, cap: Floats) -> Floats:
    """A line as a saturating trend."""
    return cap / (1.0 + np.exp(-np.clip(line, -500.0, 500.0)))


def _parts(
    model: Prophet, learned: Learned, parts: Parts, stamps: Stamps, series: Ints, covariates: Mapping[str, Covariate]
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """What each part is, scaled: those that multiply, and those that add."""
    held, every = table(parts, stamps, model.country), places(parts)
    shares: dict[str, Floats] = {}
    added: dict[str, Floats] = {}
    for one in parts:
        where, found = every[one.name], np.zeros(len(series))
        if learned["coefficients"][:, where].any():
            for number in range(one.columns):  # one at a time: all of them at once take much memory
                place = where.start + number
                column = column_of(one, number, held, stamps.place, covariates)
                centre, unit = learned["centre"][series, place], learned["unit"][series, place]
                found += learned["coefficients"][series, place] * ((column - centre) / unit)
        (shares if one.multiplies else added)[one.name] = found
    return shares, added
