"""Time as an additive model hands it to a network: from 0 to 1 over the history of a fit, and the columns of declared parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deepforecast.data.calendar import Calendar
from deepforecast.data.frames import Ints
from deepforecast.data.parts import REGRESSOR, Parts, read, written
from deepforecast.data.stamps import stamps_at
from deepforecast.data.time_columns import table


@dataclass(frozen=True)
class Moments:
    """What follows from time alone, learned in fit.

    `parts`: of the forecast, regressors too, which bring no column here; `country`: whose holidays there are; `start`, `span`:
    where the history of a fit begins and how long it is, by the clock; `changes`: when the slope may change, from 0 to 1;
    `values`: how many there were to learn from.
    """

    parts: Parts
    country: str | None
    start: int
    span: int
    changes: tuple[float, ...]
    values: int

    @cached_property
    def timed(self) -> Parts:
        """The parts that follow from time."""
        return tuple(one for one in self.parts if one.kind != REGRESSOR)

    @property
    def width(self) -> int:
        """How many columns there are: time itself, and those of the parts."""
        return 1 + sum(one.columns for one in self.timed)

    def of(self, calendar: Calendar, positions: Ints) -> Any:
        """The columns at positions (n,): (n, width) in float32."""
        stamps = stamps_at(calendar, positions)
        held = table(self.timed, stamps, self.country)
        time = ((stamps.clock - self.start) / self.span)[:, None]
        found = np.concatenate([time, *(held[one.name] for one in self.timed)], axis=1, dtype=np.float32)
        return found[stamps.place]

    def written(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "parts": written(self.parts), "country": self.country, "start": self.start, "span": self.span,
            "changes": list(self.changes), "values": self.values,
        }  # fmt: skip

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Moments:
        """From plain values."""
        return cls(**{**said, "parts": read(said["parts"]), "changes": tuple(said["changes"])})
