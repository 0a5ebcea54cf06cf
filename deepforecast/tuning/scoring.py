"""One number for the forecasts of a trial, as `compare` would compute it, for all its windows or for those there are so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.backtest import Fold
from deepforecast.core.forecast import Forecast, column_names, output_columns
from deepforecast.data import frames
from deepforecast.data.columns import Columns
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.splits import BacktestPlan, BacktestWindow, backtest_windows
from deepforecast.errors import ParameterError, TrainingError, format_value
from deepforecast.evaluation.criteria import Criterion, listed, settled
from deepforecast.evaluation.cross_validation import Rows
from deepforecast.evaluation.forecast_columns import find_models
from deepforecast.evaluation.forecast_rows import read_rows
from deepforecast.evaluation.groups import Groups
from deepforecast.evaluation.inputs import LARGEST
from deepforecast.evaluation.material import BANDS, Material
from deepforecast.evaluation.metrics import get
from deepforecast.evaluation.requests import OF_LEVEL
from deepforecast.evaluation.training_scale import read_training

NAME = "forecast of the trial"
LEVEL = 80.0  # of intervals, where a metric needs them and does not say
SPREAD = (50.0, 80.0, 95.0)  # whose ends are the quantiles, where a metric needs some


@dataclass(frozen=True, eq=False)
class Scorer:
    """The rows judged, in the order of windows, and what is asked of forecasts there."""

    windows: list[BacktestWindow]
    criteria: tuple[Criterion, ...]
    levels: tuple[float, ...]
    counts: list[Ints]  # rows judged of each series of each window
    order: Any
    material: Material
    groups: Groups

    @classmethod
    def of(cls, panel: Panel, plan: BacktestPlan, metrics: Sequence[Any], season: int | None) -> Scorer:
        """Refused where a metric cannot be computed."""
        rows = Rows.of(panel, plan)
        levels = levels_of(metrics)
        criteria = settled(list(metrics), [NAME], panel, rows, levels, season)
        every = backtest_windows(panel, plan)
        counts = [one.test_rows(panel, plan.gap, plan.horizon)[1].sum(axis=1) for one in every]
        rows.columns = {name: np.zeros(len(rows.series)) for name in column_names(NAME, levels)}
        keys = panel.series.columns
        names = Columns(keys.id, keys.time, keys.target)
        table = frames.to_narwhals(rows.frame(panel))
        held = read_rows(table, names)
        training = None
        if any({"scale", "squared_scale"} & set(one.metric.needs) for one in criteria.asked):
            training = read_training(panel.to_frame(), held, panel.calendar.frequency, criteria.season)
        models = find_models(table, set(names.all), quiet=True)
        material = Material(table, held, models, held.sorted(rows.actual[rows.order]), training, None)
        for name in {"scale", "squared_scale"} & {need for one in criteria.asked for need in one.metric.needs}:
            material._scale(name)  # once, for all trials
        codes = held.series[held.forecast_of_point]
        groups = Groups(codes, int(codes.max()) + 1, held.forecast_of_point)
        return cls(every, criteria.asked, tuple(levels), counts, rows.order, material, groups)

    @property
    def columns(self) -> list[str]:
        """What the scores are called: the metrics."""
        return [one.column for one in self.criteria]

    def empty(self) -> dict[str, Floats]:
        """Forecasts of which none is there yet: a value for each row judged."""
        return {name: np.full(sum(map(np.sum, self.counts)), np.nan) for name in column_names(NAME, self.levels)}

    def fill(self, held: Mapping[str, Floats], fold: Fold, point: str) -> None:
        """Put the forecasts of a window, or of some of its series, in their place."""
        there = self._places(fold.window.number, fold.window.series)
        for name, values in self._flat(fold.forecast, point).items():
            own = values[fold.has_row.reshape(-1)]
            wrong = np.flatnonzero(~(np.abs(own) < LARGEST))
            if len(wrong):
                raise TrainingError(
                    f"Forecasts must be finite and below {LARGEST:g}; in window {fold.window.number + 1} it is {own[wrong[0]]} "
                    f"({len(wrong)} such values)."
                )
            held[name][there] = own

    def only(self, held: Mapping[str, Floats], number: int) -> dict[str, Floats]:
        """The forecasts of one window alone."""
        found, there = self.empty(), self._places(number, self.windows[number].series)
        for name, values in found.items():
            values[there] = held[name][there]
        return found

    def scores(self, held: Mapping[str, Floats]) -> list[float]:
        """Of each metric the mean over series of how far from good it is, by the windows that are filled; less is better."""
        material = self._with(held)
        found = []
        for one in self.criteria:
            inputs = material.inputs(one.metric, material.models[0], one.level) or {}
            values = one.distance(one.metric.by_group(material.actual, self.groups, **inputs).value)
            known = values[~np.isnan(values)]
            found.append(float(known.mean()) if len(known) else float("nan"))
        return found

    def _places(self, number: int, some: Ints) -> Ints:
        """Where the rows of some series of a window are."""
        own = np.repeat(np.isin(self.windows[number].series, some), self.counts[number])
        return np.flatnonzero(own) + sum(int(one.sum()) for one in self.counts[:number])

    def _flat(self, forecast: Forecast, point: str) -> dict[str, Floats]:
        return output_columns(forecast, NAME, point, self.levels, [])

    def _with(self, held: Mapping[str, Floats]) -> Material:
        """The rows that are forecast; actual values of the others count as missing."""
        rows = self.material.rows
        ordered = {name: rows.sorted(values[self.order]) for name, values in held.items()}
        open_still: NDArray[np.bool_] = np.isnan(ordered[NAME])
        filled = {name: np.where(open_still, 0.0, values) for name, values in ordered.items()}
        actual = np.where(open_still, np.nan, self.material.actual)
        return replace(self.material, actual=actual, _held={**self.material._held, **filled})


def levels_of(metrics: Sequence[Any]) -> list[float]:
    """The levels of intervals that metrics need."""
    found: set[float] = set()
    for one in metrics:
        match = OF_LEVEL.fullmatch(one) if isinstance(one, str) else None
        needs = set() if match else set(get(one).needs)
        if match:
            found.add(float(match["level"]))
        elif needs & BANDS:
            found.add(LEVEL)
        elif needs & {"quantiles", "quantile_forecast"}:
            found |= set(SPREAD)
    return sorted(found)


def metrics_of(metric: Any, scaled: bool) -> list[Any]:
    """The metrics asked for; by default the one that `compare` ranks by."""
    found = listed(metric, scaled)
    twice = [one for place, one in enumerate(found) if one in found[:place]]
    if twice:
        raise ParameterError(f"metric names each objective once; {format_value(twice[0])} is there twice.")
    return found[:1] if metric is None else found
