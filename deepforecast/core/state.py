"""What a fit leaves behind, in one slot: arrays, by series or shared; no objects that would need pickle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deepforecast.core.conformal import Calibration
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel, Series


@dataclass(frozen=True)
class Learned:
    """What a model's `_fit` returns. `by_series`: arrays whose first axis is the series; `shared`: arrays, numbers, text, and
    lists and dicts (with text as keys) of these. `history`: the rows it was learned from, where a model looks back at them; not
    saved. `series`: whose these are and where each stands, as the hooks of a model are given it; kept in the `State`."""

    by_series: Mapping[str, Any] = field(default_factory=dict)
    shared: Mapping[str, Any] = field(default_factory=dict)
    history: Panel | None = field(default=None, compare=False, repr=False)
    series: Series | None = field(default=None, compare=False, repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.by_series[name] if name in self.by_series else self.shared[name]

    def take(self, numbers: Ints) -> Learned:
        """Some of the series, in the order given."""
        history = None if self.history is None else self.history.take(numbers)
        series = None if self.series is None else self.series.take(numbers)
        held = {name: values[numbers] for name, values in self.by_series.items()}
        return replace(self, by_series=held, history=history, series=series)

    def put(self, numbers: Ints, other: Learned) -> Learned:
        """These series' arrays replaced by another's."""
        held = {name: values.copy() for name, values in self.by_series.items()}
        for name, values in held.items():
            values[numbers] = other.by_series[name]
        return replace(self, by_series=held)

    def join(self, other: Learned) -> Learned:
        """Another's series after ours; what is shared stays ours."""
        held = {name: np.concatenate([values, other.by_series[name]]) for name, values in self.by_series.items()}
        return replace(self, by_series=held, history=None, series=None)


@dataclass(frozen=True)
class State:
    """A fitted model: the series it knows, what it learned of them, and the covariates it was fitted with.

    `categories`: declared covariate -> its categories, None for a numeric one. `static`: the values of each series. `data`: the
    panel it was fitted on as its number of rows and a checksum of values and stamps (no seal: it can be forged). `undeclared`:
    columns left out so far, and said to be. `value_range`: the smallest and the largest value of each series so far, shape
    (series, 2); None in files of version 0.1.0.
    """

    series: Series
    learned: Learned
    categories: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    static: Mapping[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None
    data: str = ""
    undeclared: tuple[str, ...] = ()
    value_range: Floats | None = None

    @property
    def rows(self) -> int:
        """How many rows it was fitted on, as `data` says; 0 where it does not."""
        said = self.data.partition("-")[0]
        return int(said) if said.isdecimal() and len(said) < 19 else 0

    @property
    def standing(self) -> Learned:
        """What was learned, with the series it was learned of."""
        return replace(self.learned, series=self.series)

    def take(self, numbers: Ints) -> State:
        """Some of the series, in the order given."""
        return replace(
            self,
            series=self.series.take(numbers),
            learned=self.learned.take(numbers),
            static={name: one.take(numbers) for name, one in self.static.items()},
            calibration=None if self.calibration is None else self.calibration.take(numbers),
            value_range=None if self.value_range is None else self.value_range[numbers],
        )

