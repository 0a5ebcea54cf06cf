"""The steps ahead of fitted series: their columns, the regressors' walk through them, and the way back to values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.models.regression import _held, _stepping, _tails
from deepforecast.models.regression._design import known
from deepforecast.models.regression._plan import Plan

Values = Callable[[Any, Floats], Floats]


class Ahead:
    """The next `steps` rows of every series. `future`: the columns known ahead, (series, steps)."""

    def __init__(self, plan: Plan, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> None:
        self.plan, self.learned, self.steps, self.future = plan, learned, steps, future
        self._series = _held.standing(learned)
        self._passed = _held.passed(learned, self._series)
        self._scales = _held.scales_of(learned.by_series)

    def only(self, one: int) -> Ahead:
        """Of one series."""
        future = {name: each.take(np.array([one])) for name, each in self.future.items()}
        return Ahead(self.plan, self.learned.take(np.array([one])), self.steps, future)

    def run(self, models: Sequence[Sequence[Any]], place: int, values: Values) -> Floats:
        """Forecasts on the scale that is learned: those at `place` of the regressors of each step."""
        plan, width = self.plan, sum(map(len, self.plan.design.columns.values()))
        tail = plan.target.learned_tail(self.learned["tail"], self._scales, self._passed)
        designs = [plan.design.shifted(step) for step in range(1 if plan.together else plan.block)]
        past = _stepping.Past(designs, tail, _tails.whole(plan.design, self.learned["seen"]), self._whole_steps)
        predicts = [partial(values, one[place]) for one in models]
        count, rows = self.learned["ends"].shape
        indptr = np.arange(count + 1) * rows
        before = plan.target.scaled(self.learned["ends"].reshape(-1), indptr, self._scales).reshape(count, rows)
        before = before[:, plan.target.reach :]

        def to_changes(found: Floats, start: int) -> None:
            plan.target.to_changes(found, before, plan.block, start)

        if plan.together:
            found = _stepping.forecast_together(past, predicts[0], self._beside, plan.block, width, to_changes)
            return found[:, : self.steps]
        return _stepping.forecast(past, predicts, self._beside, to_changes)

    def back(self, found: Floats, spread: Floats | None = None) -> Floats:
        """Forecasts as values of the target; with the `spread` of a step's errors, as their mean where a power bends them."""
        return self.plan.target.back(found, self._scales, self._tails_kept, self._passed, spread)

    @cached_property
    def _tails_kept(self) -> list[Floats]:
        return self.plan.target.tails(self.learned["ends"])

    @cached_property
    def _beside(self) -> Floats:
        """The columns that need no past of the target, (steps, series, columns): of whole blocks, where a regressor gives all
        steps of one; columns known ahead then stay as they were last known."""
        design, series, steps = self.plan.design, self._series, self._whole_steps
        count = len(series)
        parts = [self._past_columns()]
        positions = series.calendar.next_positions(series.last, steps).reshape(-1)
        learned = self.learned.by_series
        static = {name.partition(":")[2]: values for name, values in learned.items() if name.startswith("static:")}
        held: dict[str, Covariate] = {}
        for name, one in self.future.items():
            for row, label in zip(design.future_rows, design.read_around({name: one}), strict=True):
                held[label] = replace(one, values=self._around(name, one, row).reshape(-1))
        for name, values in static.items():
            categories = self.learned["categories"].get(name)
            held[name] = Covariate(np.repeat(values, steps), None if categories is None else tuple(categories))
        owners = np.repeat(self.learned["owner"], steps)
        found = known(design, series.calendar, positions, owners, held).reshape(count, steps, -1)
        return np.ascontiguousarray(np.concatenate([*parts, found.transpose(1, 0, 2)], axis=2))

    def _past_columns(self) -> Floats:
        design, block = self.plan.design, self.plan.block
        found = np.empty((self._whole_steps, len(self._passed), sum(map(len, design.columns.values()))))
        place = 0
        for name, lags in design.columns.items():
            tail = self.learned[f"past:{name}"]
            for lag in lags:
                for step in range(self._whole_steps):
                    back = tail.shape[1] + step - lag.lag - (0 if self.plan.together else step % block)
                    found[step, :, place] = tail[:, back] if 0 <= back < tail.shape[1] else np.nan
                place += 1
        return found

    def _around(self, name: str, one: Covariate, row: int) -> Floats:
        """A column known ahead as the steps see it `row` rows later."""
        lost = np.nan if one.categories is None else -1.0
        before = self.learned.by_series.get(f"ahead:{name}", np.empty((len(self._passed), 0)))
        whole = np.concatenate([before, one.values.reshape(-1, self.steps), np.full((len(before), max(row, 0)), lost)], axis=1)
        start = before.shape[1] + row
        found = whole[:, start : start + self.steps]
        return np.concatenate([found, np.repeat(found[:, -1:], self._whole_steps - self.steps, axis=1)], axis=1)

    @property
    def _whole_steps(self) -> int:
        """The steps, up to the end of the last block where it is forecast as a whole."""
        block = self.plan.block if self.plan.together else 1
        return -(-self.steps // block) * block
