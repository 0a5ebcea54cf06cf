"""One regression for all series, with covariates of every kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast import Capabilities, Forecaster, Panel, param, register
from deepforecast.core.forecast import Forecast, PointForecast
from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate


@register
class PooledRegression(Forecaster):
    """The next value from the last `lags` values, what is known ahead of its step, what was known a step before, and constants.

    Least squares over all series at once; further steps take the forecasts of the steps before for values.
    """

    capabilities = Capabilities(
        future=True, past=True, static=True, categorical=True, local=False, scale_equivariant=True, shift_equivariant=True
    )

    lags: int = param(default=7, at_least=2, low=2, high=14, help="values that the next one is explained by")

    def _min_observations(self, panel: Panel) -> int:
        return self.lags + 1

    def _fit(self, panel: Panel, monitor: Any) -> LearnedState:
        windows, rows = self._windows(panel)
        level = float(np.mean(panel.y - panel.y[0])) + panel.y[0]
        scale = float(np.abs(panel.y - level).mean()) or 1.0
        roles = panel.series.columns
        sizes = [len(one.categories or ()) for one in (*panel.covariates.values(), *panel.static.values())]
        names = [*panel.covariates, *panel.static]
        shared = {"level": level, "scale": scale, "sizes": dict(zip(names, sizes, strict=True))}
        future = [_encoded(panel.covariates[name], sizes[names.index(name)])[rows] for name in roles.future]
        past = [_encoded(panel.covariates[name], sizes[names.index(name)])[rows - 1] for name in roles.past]
        held = [_encoded(panel.static[name], sizes[names.index(name)])[panel.row_series[rows]] for name in roles.static]
        inputs = _inputs(windows, [*past, *held, *future], level, scale)
        target = (panel.y[rows] - windows.mean(axis=1)) / scale
        weights = np.linalg.lstsq(inputs, target, rcond=1e-9)[0]
        return self._advance(LearnedState({}, {**shared, "weights": weights}), panel, True)

    def _advance(self, learned: LearnedState, panel: Panel, fresh: bool) -> LearnedState:
        sizes, columns = learned["sizes"], panel.series.columns
        tail = panel.padded(self.lags)
        if not fresh:
            new = np.minimum(panel.lengths, self.lags)
            both = np.concatenate([learned["tail"], tail], axis=1)
            place = np.arange(self.lags) + np.where(np.arange(self.lags) < self.lags - new[:, None], new[:, None], self.lags)
            tail = np.take_along_axis(both, place, axis=1)
        last = panel.indptr[1:] - 1
        past = [_encoded(panel.covariates[name], sizes[name])[last] for name in columns.past]
        held = [_encoded(panel.static[name], sizes[name]) for name in columns.static]
        constants = learned["held"] if not fresh else _side_by_side(held, len(panel))
        return LearnedState({"tail": tail, "past": _side_by_side(past, len(panel)), "held": constants}, learned.shared)

    def _forecast(self, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> Forecast:
        tail, past = learned["tail"], learned["past"]
        found = np.empty((len(tail), steps))
        for step in range(steps):
            ahead = [_encoded(Covariate(one.values[:, step], one.categories), learned["sizes"][n]) for n, one in future.items()]
            inputs = _inputs(tail, [past, learned["held"], *ahead], learned["level"], learned["scale"])
            found[:, step] = tail.mean(axis=1) + learned["scale"] * np.sum(inputs * learned["weights"], axis=1)
            tail, past = np.concatenate([tail[:, 1:], found[:, step : step + 1]], axis=1), np.zeros_like(past)
        return PointForecast(found, self.name)

    def _windows(self, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
        """The values before each row that has enough of them, and these rows."""
        rows = np.flatnonzero(np.arange(len(panel.y)) - panel.indptr[:-1][panel.row_series] >= self.lags)
        return panel.y[rows[:, None] - self.lags + np.arange(self.lags)], rows


def _inputs(windows: np.ndarray, covariates: list[np.ndarray], level: float, scale: float) -> np.ndarray:
    mean = windows.mean(axis=1, keepdims=True)
    return np.concatenate([(windows - mean) / scale, (mean - level) / scale, np.ones_like(mean), *covariates], axis=1)


def _encoded(one: Covariate, size: int) -> np.ndarray:
    """Numbers as a column, categories as a column each; an unknown category is none of them."""
    if one.categories is None:
        return one.values[:, None]
    return (one.values[:, None] == np.arange(size)).astype(np.float64)


def _side_by_side(columns: list[np.ndarray], rows: int) -> np.ndarray:
    return np.concatenate([np.empty((rows, 0)), *columns], axis=1)
