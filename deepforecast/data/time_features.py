"""Time features of additive networks: scaled time, seasons, holidays and events."""

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
    """The time features of a fitted model.

    `components` are all components of the model; regressors have no column here. `country` is that
    of the holidays. `start` and `span` are the start and duration of the training data in local
    time; `changepoints` are shares of the duration, in (0, 1). `n_values` is the number of training
    values.
    """

    components: ComponentSpecs
    country: str | None
    start: int
    span: int
    changepoints: tuple[float, ...]
    n_values: int

    @cached_property
    def time_components(self) -> ComponentSpecs:
        """The components that depend on time only."""
        return tuple(component for component in self.components if component.kind != REGRESSOR)

    @property
    def width(self) -> int:
        """Number of columns: scaled time and those of the components."""
        return 1 + sum(component.columns for component in self.time_components)

    def evaluate(self, calendar: Calendar, positions: Ints) -> Any:
        """The features at positions (n,) as float32 (n, width); scaled time is 0 at the start and 1 after `span`."""
        timestamps = timestamps_at(calendar, positions)
        component_columns = time_component_columns(self.time_components, timestamps, self.country)
        time = ((timestamps.local_time - self.start) / self.span)[:, None]
        blocks = [component_columns[component.name] for component in self.time_components]
        return np.concatenate([time, *blocks], axis=1, dtype=np.float32)[timestamps.index]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for model files."""
        return {
            "components": to_dicts(self.components), "country": self.country, "start": self.start, "span": self.span,
            "changepoints": list(self.changepoints), "n_values": self.n_values,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> TimeFeatures:
        """Create from plain values, the inverse of `to_dict`."""
        components, changepoints = from_dicts(record["components"]), tuple(record["changepoints"])
        return cls(**{**record, "components": components, "changepoints": changepoints})
