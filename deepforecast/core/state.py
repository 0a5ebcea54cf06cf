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
class LearnedState:
    """What a model's `_fit` returns. `by_series`: arrays whose first axis is the series; `shared`: arrays, numbers, text, and
    lists and dicts (with text as keys) of these. `history`: the rows it was learned from, where a model looks back at them; not
    saved. `series`: whose these are and where each stands, as the hooks of a model are given it; kept in the `State`."""

    by_series: Mapping[str, Any] = field(default_factory=dict)
    shared: Mapping[str, Any] = field(default_factory=dict)
    history: Panel | None = field(default=None, compare=False, repr=False)
    series: Series | None = field(default=None, compare=False, repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.by_series[name] if name in self.by_series else self.shared[name]

    def take(self, numbers: Ints) -> LearnedState:
        """Some of the series, in the order given."""
        history = None if self.history is None else self.history.take(numbers)
        series = None if self.series is None else self.series.take(numbers)
        arrays = {name: values[numbers] for name, values in self.by_series.items()}
        return replace(self, by_series=arrays, history=history, series=series)

    def put(self, numbers: Ints, source: LearnedState) -> LearnedState:
        """These series' arrays replaced by another's."""
        arrays = {name: values.copy() for name, values in self.by_series.items()}
        for name, values in arrays.items():
            values[numbers] = source.by_series[name]
        return replace(self, by_series=arrays)

    def join(self, added: LearnedState) -> LearnedState:
        """Another's series after ours; what is shared stays ours."""
        arrays = {name: np.concatenate([values, added.by_series[name]]) for name, values in self.by_series.items()}
        return replace(self, by_series=arrays, history=None, series=None)


@dataclass(frozen=True)
class State:
    """A fitted model: the series it knows, what it learned of them, and the covariates it was fitted with.

    `categories`: declared covariate -> its categories, None for a numeric one. `static`: the values of each series. `fingerprint`: the
    panel it was fitted on as its number of rows and a checksum of values and stamps (no seal: it can be forged). `undeclared`:
    columns left out so far, and said to be. `value_range`: the smallest and the largest value of each series so far, shape
    (series, 2); None in files of version 0.1.0.
    """

    series: Series
    learned: LearnedState
    categories: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    static: Mapping[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None
    fingerprint: str = ""
    undeclared: tuple[str, ...] = ()
    value_range: Floats | None = None

    @property
    def n_rows(self) -> int:
        """How many rows it was fitted on, as `fingerprint` says; 0 where it does not."""
        row_count = self.fingerprint.partition("-")[0]
        return int(row_count) if row_count.isdecimal() and len(row_count) < 19 else 0

    @property
    def learned_with_series(self) -> LearnedState:
        """What was learned, with the series it was learned of."""
        return replace(self.learned, series=self.series)

    def take(self, numbers: Ints) -> State:
        """Some of the series, in the order given."""
        return replace(
            self,
            series=self.series.take(numbers),
            learned=self.learned.take(numbers),
            static={name: covariate.take(numbers) for name, covariate in self.static.items()},
            calibration=None if self.calibration is None else self.calibration.take(numbers),
            value_range=None if self.value_range is None else self.value_range[numbers],
        )

