"""Time as an additive model hands it to a network: from 0 to 1 over the history of a fit, and the columns of declared parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deepforecast.data.calendar import Calendar
from deepforecast.data.components import REGRESSOR, ComponentSpecs, from_dicts, to_dicts
from deepforecast.data.design_columns import time_component_columns
from deepforecast.data.frames import Ints
from deepforecast.data.timestamps import timestamps_at


@dataclass(frozen=True)
class TimeFeatures:
    """What follows from time alone, learned in fit.

    `components`: of the forecast, regressors too, which bring no column here; `country`: whose holidays there are; `start`, `span`:
    where the history of a fit begins and how long it is, by the clock; `changepoints`: when the slope may change, from 0 to 1;
    `n_values`: how many there were to learn from.
    """

    components: ComponentSpecs
    country: str | None
    start: int
    span: int
    changepoints: tuple[float, ...]
    n_values: int

    @cached_property
    def time_components(self) -> ComponentSpecs:
        """The parts that follow from time."""
        return tuple(component for component in self.components if component.kind != REGRESSOR)

    @property
    def width(self) -> int:
        """How many columns there are: time itself, and those of the parts."""
        return 1 + sum(component.columns for component in self.time_components)

    def evaluate(self, calendar: Calendar, positions: Ints) -> Any:
        """The columns at positions (n,): (n, width) in float32."""
        timestamps = timestamps_at(calendar, positions)
        component_columns = time_component_columns(self.time_components, timestamps, self.country)
        time = ((timestamps.local_time - self.start) / self.span)[:, None]
        columns = np.concatenate([time, *(component_columns[component.name] for component in self.time_components)], axis=1, dtype=np.float32)
        return columns[timestamps.index]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "components": to_dicts(self.components), "country": self.country, "start": self.start, "span": self.span,
            "changepoints": list(self.changepoints), "n_values": self.n_values,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> TimeFeatures:
        """From plain values."""
        components, changepoints = from_dicts(record["components"]), tuple(record["changepoints"])
        return cls(**{**record, "components": components, "changepoints": changepoints})
