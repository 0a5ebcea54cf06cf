"""What a regressor learns from: rows of features with what follows each, how much each counts, and when it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deepforecast.data.frames import Floats, Ints
from deepforecast.data.lags import parse_lag_feature
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError
from deepforecast.models.regression._design import around_all, known, table
from deepforecast.models.regression._plan import Plan

AT_ONCE = 50_000  # rows that are moved


@dataclass(frozen=True)
class Sample:
    """`target`: one value a row, or one a step (rows, steps). `names`: of the columns; `categories`: which of them hold codes.
    `ends`: how many rows of its series come after each row. `series`: the number of its series. `past`: how many of the first
    columns are values of the target."""

    rows: Any
    target: Floats
    weight: Floats | None
    names: list[str]
    categories: list[int]
    ends: Ints
    series: Ints
    past: int = 0

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: Any) -> Sample:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(
            self, rows=self.rows[rows], target=self.target[rows], weight=weight, ends=self.ends[rows], series=self.series[rows]
        )

    def divisors(self, centre: Floats, spread: Floats, target: float) -> Floats:
        """What brings columns of this spread to about 1: infinity for what never varies; never less than what one value as far
        off as the `target` spreads moves. What means several values and hardly varied would weigh so much that a forecast
        among them moves the next without end, and the last digits of a mean over whole seasons would be a signal."""
        moved = [target * parse_lag_feature(name).influence for name in self.names[: self.past]]
        least = np.array([*moved, *[0.0] * (len(spread) - self.past)])
        return np.where(spread > 1e-12 * np.maximum(np.abs(centre), 1e-300), np.maximum(spread, least), np.inf)

    def kept(self, good: Any) -> Sample:
        """Some of the rows, in the place of the whole: the table is the largest there is, a copy would double the memory."""
        places = np.flatnonzero(good)
        for start in range(0, len(places), AT_ONCE):
            some = places[start : start + AT_ONCE]
            self.rows[start : start + len(some)] = self.rows[some]  # each from its own place or one behind it
        weight = None if self.weight is None else self.weight[places]
        rows = self.rows[: len(places)]
        ends, series = self.ends[places], self.series[places]
        return replace(self, rows=rows, target=self.target[places], weight=weight, ends=ends, series=series)

    def parted(self, last: int) -> tuple[Sample, Sample]:
        """The rows before the last `last` of each series, and these: a validation that respects time."""
        late = self.ends < last
        return self.take(~late), self.take(late)


class Sampling:
    """The samples of a panel: one for each step of a block, of some of the series."""

    def __init__(
        self, plan: Plan, panel: Panel, scales: Mapping[str, Any], kind: type, takes_missing: bool, passed: Ints | None = None
    ) -> None:
        self._plan, self._panel, self._kind, self._takes_missing = plan, panel, kind, takes_missing
        passed = np.zeros(len(panel), np.int64) if passed is None else passed
        self._scales, self._straight = scales, plan.target.straight(panel.y, panel.indptr, scales, passed)
        self._z = plan.target.apply(plan.imputed(panel.y, panel.indptr), panel.indptr, scales, passed)
        self.weight: Floats | None = None
        future = {name: one for name, one in panel.covariates.items() if name in panel.series.columns.future}
        static = {name: one.take(panel.row_series) for name, one in panel.static.items()}
        columns = {**around_all(plan.design, future, panel.indptr), **static}
        self.beside = known(plan.design, panel.calendar, panel.row_positions, panel.row_series, columns)
        self.names = plan.design.names(future, panel.static)
        self.categories = plan.design.categories(future, panel.static)
        if plan.together:
            first = len(self.names) - self.beside.shape[1]
            later = [f"{name} in {step}" for step in range(1, plan.block) for name in self.names[first:]]
            width = self.beside.shape[1]
            self.categories += [at + width * step for step in range(1, plan.block) for at in self.categories if at >= first]
            self.names = [*self.names, *later]

    def of(self, step: int) -> Sample:
        """What the regressor of a step in a block learns from."""
        plan, panel = self._plan, self._panel
        beside, target = self.beside, self._target(step)
        if plan.together:
            beside = np.concatenate([_later(beside, panel.indptr, ahead) for ahead in range(plan.block)], axis=1)
            target = np.stack([_later(self._target(ahead), panel.indptr, ahead) for ahead in range(plan.block)], axis=1)
        design = plan.design.shifted(step)
        rows = table(design, panel, self._z, beside, self._kind)
        if not self._takes_missing:
            _leave_out_short(rows, target)
        good = usable(rows, target, panel.indptr, design.reach + plan.target.reach, self._takes_missing)
        if self.weight is not None:
            good &= self.weight > 0
        if not good.any():
            raise DataError(
                f"No row of any series has all features: they look back {design.reach + plan.target.reach} rows, and the "
                f"longest series has {int(panel.lengths.max())}. Say fewer lags=, windows= or differences=, or give longer "
                "series."
            )
        number, after = len(design.past), ends(panel.indptr)
        whole = Sample(rows, target, self.weight, self.names, self.categories, after, panel.row_series, number)
        return whole if good.all() else whole.kept(good)


    def _target(self, step: int) -> Floats:
        """What the regressor of a step in a block is to give at each row."""
        return self._plan.target.scaled(self._straight, self._panel.indptr, self._scales, step)


def weights(panel: Panel, column: str | None, half_life: float | None) -> Floats | None:
    """How much each row counts: its column's value, and less the older it is; 1 in the mean of those that count."""
    found = np.ones(len(panel.y))
    if column is not None:
        found = panel.covariates[column].values.copy()
        bad = np.flatnonzero(~(found >= 0))
        if len(bad):
            raise DataError(
                f"Weights are numbers of at least 0; column {column} has {found[bad[0]]:g} at {panel.format_timestamp(int(bad[0]))} in "
                f"series {panel.series.labels(panel.row_series[bad[:1]])}. Fill or leave out such rows."
            )
        if not found.any():
            raise DataError(
                f"Weights are numbers of at least 0, some of them above; column {column} is 0 in every row of series "
                f"{panel.series.labels(np.arange(len(panel)))}. Give the rows that count a weight."
            )
    if half_life is not None:
        found = found * 0.5 ** (ends(panel.indptr) / half_life)
    return None if column is None and half_life is None else found / found[found > 0].mean()  # limits of learners mean rows


def without_empty(rows: Any) -> Any:
    """Rows whose columns without any value are 0: some learners look for one in each."""
    empty = np.isnan(rows).all(axis=0)
    return np.where(empty, 0, rows) if empty.any() else rows


def _leave_out_short(rows: Any, target: Floats) -> None:
    """Set features to 0 that are known in fewer than half of the rows with a target: those that look back too far for series as
    short as these. What is always the same is no feature to a regressor."""
    there = np.isfinite(rows)
    with_target = np.isfinite(target).reshape(len(target), -1).all(axis=1)
    if with_target.any():
        rows[:, there[with_target].mean(axis=0) < 0.5] = 0.0


def _later(values: Floats, indptr: Ints, rows: int) -> Floats:
    """Values as they are some rows later; NaN past the ends of series."""
    found = np.full(values.shape, np.nan)
    if rows < len(values):
        found[: len(values) - rows] = values[rows:]
    found[ends(indptr) < rows] = np.nan
    return found


def usable(rows: Any, target: Floats, indptr: Ints, reach: int, takes_missing: bool) -> Any:
    """Which rows can be learned from: those with a target and (where a regressor needs them) all features; the first rows of a
    series, whose windows are not filled yet, only as far as it is too short to do without."""
    found = np.isfinite(target) if target.ndim == 1 else np.isfinite(target).all(axis=1)
    if not takes_missing:
        return found & np.isfinite(rows).all(axis=1)
    lengths = np.diff(indptr)
    into = np.arange(len(target)) - np.repeat(indptr[:-1], lengths)
    return found & (into >= np.repeat(np.minimum(reach, lengths // 2), lengths))


def ends(indptr: Ints) -> Ints:
    """How many rows of its series come after each row."""
    return np.asarray(np.repeat(indptr[1:], np.diff(indptr)) - 1 - np.arange(indptr[-1]))
