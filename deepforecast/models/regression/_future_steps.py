"""Future rows of fitted series: covariates, forecasts and inverse transformation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Floats
from deepforecast.models.regression import _forecast_loop, _recent_values, _series_state
from deepforecast.models.regression._design import exogenous_columns
from deepforecast.models.regression._plan import Plan

PredictRows = Callable[[Any, Floats], Floats]  # a regressor and rows of its feature matrix to predictions


class FutureSteps:
    """The next `steps` rows of every series. `future`: future covariates, (series, steps)."""

    def __init__(self, plan: Plan, learned: LearnedState, steps: int, future: Mapping[str, Covariate]) -> None:
        self.plan = plan
        self.learned = learned
        self.steps = steps
        self.future = future
        self._series = _series_state.learned_series(learned)
        self._elapsed = _series_state.count_elapsed(learned, self._series)
        self._scales = _series_state.select_scales(learned.by_series)

    def select_series(self, index: int) -> FutureSteps:
        """The future rows of a single series."""
        future = {name: covariate.take(np.array([index])) for name, covariate in self.future.items()}
        return FutureSteps(self.plan, self.learned.take(np.array([index])), self.steps, future)

    def predict(self, models: Sequence[Sequence[Any]], position: int, predict_rows: PredictRows) -> Floats:
        """Forecasts (series, steps) on the transformed scale by the regressors `models[step][position]`."""
        plan = self.plan
        transformed_tail = plan.target.transform_tail(self.learned["tail"], self._scales, self._elapsed)
        designs = [plan.design.shift(step) for step in range(1 if plan.multioutput else plan.block_size)]
        summaries = _recent_values.pad_summaries(plan.design, self.learned["seen"])
        history = _forecast_loop.History(designs, transformed_tail, summaries, self._n_block_steps)
        predicts = [partial(predict_rows, step_models[position]) for step_models in models]
        last_changes = self._last_changes()

        def to_changes(forecasts: Floats, start: int) -> None:
            plan.target.to_changes(forecasts, last_changes, plan.block_size, start)

        if plan.multioutput:
            forecasts = _forecast_loop.forecast_multioutput(
                history, predicts[0], self._exogenous, plan.block_size, plan.design.n_covariate_lags, to_changes
            )
            return forecasts[:, : self.steps]
        return _forecast_loop.forecast(history, predicts, self._exogenous, to_changes)

    def _last_changes(self) -> Floats:
        """The last transformed and differenced values of each series, (series, values)."""
        n_series, n_values = self.learned["ends"].shape
        indptr = np.arange(n_series + 1) * n_values
        changes = self.plan.target.difference_and_scale(self.learned["ends"].reshape(-1), indptr, self._scales)
        return changes.reshape(n_series, n_values)[:, self.plan.target.n_lost :]

    def invert(self, forecasts: Floats, error_std: Floats | None = None) -> Floats:
        """Forecasts on the original scale; `error_std` is used for the bias correction of power transformations."""
        return self.plan.target.invert(forecasts, self._scales, self._difference_starts, self._elapsed, error_std)

    @cached_property
    def _difference_starts(self) -> list[Floats]:
        return self.plan.target.difference_starts(self.learned["ends"])

    @cached_property
    def _exogenous(self) -> Floats:
        """Features that do not depend on the target, (steps, series, columns): lags of past covariates first.

        For multi-output regressors the steps are rounded up to whole blocks, and future covariates
        are padded with their last value.
        """
        design, series, steps = self.plan.design, self._series, self._n_block_steps
        positions = series.calendar.next_positions(series.last, steps).reshape(-1)
        learned = self.learned.by_series
        static = {name.partition(":")[2]: values for name, values in learned.items() if name.startswith("static:")}
        covariates: dict[str, Covariate] = {}
        for name, covariate in self.future.items():
            for lag, label in zip(design.future_lags, design.label_future_lags({name: covariate}), strict=True):
                covariates[label] = replace(covariate, values=self._shift_future(name, covariate, lag).reshape(-1))
        for name, values in static.items():
            categories = self.learned["categories"].get(name)
            covariates[name] = Covariate(np.repeat(values, steps), None if categories is None else tuple(categories))
        series_index = np.repeat(self.learned["owner"], steps)
        columns = exogenous_columns(design, series.calendar, positions, series_index, covariates)
        columns = columns.reshape(len(series), steps, -1).transpose(1, 0, 2)
        return np.ascontiguousarray(np.concatenate([self._past_covariate_columns(), columns], axis=2))

    def _past_covariate_columns(self) -> Floats:
        """Lags of past covariates, (steps, series, lags); NaN for lags within the horizon."""
        design, block_size = self.plan.design, self.plan.block_size
        columns = np.empty((self._n_block_steps, len(self._elapsed), design.n_covariate_lags))
        column = 0
        for name, lags in design.covariate_lags.items():
            tail = self.learned[f"past:{name}"]
            n_values = tail.shape[1]
            for lag in lags:
                for step in range(self._n_block_steps):
                    shift = 0 if self.plan.multioutput else step % block_size  # lags are larger at later steps of a block
                    position = n_values + step - lag.lag - shift
                    columns[step, :, column] = tail[:, position] if 0 <= position < n_values else np.nan
                column += 1
        return columns

    def _shift_future(self, name: str, covariate: Covariate, lag: int) -> Floats:
        """A future covariate `lag` rows later (earlier if negative), (series, steps); missing beyond its last value.

        For multi-output regressors padded with its last value up to whole blocks.
        """
        missing_value = np.nan if covariate.categories is None else -1.0
        history = self.learned.by_series.get(f"ahead:{name}", np.empty((len(self._elapsed), 0)))
        extended = np.concatenate(
            [history, covariate.values.reshape(-1, self.steps), np.full((len(history), max(lag, 0)), missing_value)], axis=1
        )
        start = history.shape[1] + lag
        window = extended[:, start : start + self.steps]
        return np.concatenate([window, np.repeat(window[:, -1:], self._n_block_steps - self.steps, axis=1)], axis=1)

    @property
    def _n_block_steps(self) -> int:
        """Number of steps, rounded up to whole blocks for multi-output regressors."""
        block = self.plan.block_size if self.plan.multioutput else 1
        return -(-self.steps // block) * block
