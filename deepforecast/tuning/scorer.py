"""Scores of a trial as in `compare`, for all windows or those completed so far."""

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
from deepforecast.data.windows import BacktestPlan, BacktestWindow, backtest_windows
from deepforecast.errors import ParameterError, TrainingError, format_value
from deepforecast.evaluation.aggregation import Groups
from deepforecast.evaluation.criteria import Criterion, list_metrics, resolve_criteria
from deepforecast.evaluation.cross_validation import BacktestRows
from deepforecast.evaluation.forecast_columns import find_models
from deepforecast.evaluation.forecast_rows import read_rows
from deepforecast.evaluation.metric_inputs import MAX_MAGNITUDE
from deepforecast.evaluation.metric_selection import LEVEL_PATTERN
from deepforecast.evaluation.metrics import get
from deepforecast.evaluation.scoring_data import INTERVAL_INPUTS, ScoringData
from deepforecast.evaluation.training_scale import read_training

FORECAST_NAME = "forecast of the trial"
DEFAULT_LEVEL = 80.0  # of interval metrics without a level
QUANTILE_LEVELS = (50.0, 80.0, 95.0)  # their bounds are the quantiles of quantile metrics


@dataclass(frozen=True, eq=False)
class Scorer:
    """The evaluated rows of a backtest and the metrics, prepared once for all trials.

    Forecast columns are in the order of windows; `order` sorts them by series, cutoff and step.
    `groups`: the series of each point.
    """

    windows: list[BacktestWindow]
    criteria: tuple[Criterion, ...]
    levels: tuple[float, ...]
    row_counts: list[Ints]  # evaluated rows of each series, per window
    order: Any
    scoring_data: ScoringData
    groups: Groups

    @classmethod
    def from_plan(cls, panel: Panel, plan: BacktestPlan, metrics: Sequence[Any], season: int | None) -> Scorer:
        """Create a scorer; `ParameterError` if a metric cannot be computed."""
        backtest_rows = BacktestRows.from_plan(panel, plan)
        levels = required_levels(metrics)
        criteria = resolve_criteria(list(metrics), [FORECAST_NAME], panel, backtest_rows, levels=levels, season=season)
        all_windows = backtest_windows(panel, plan)
        row_counts = [entry.test_rows(panel, plan.gap, plan.horizon)[1].sum(axis=1) for entry in all_windows]
        backtest_rows.columns = {name: np.zeros(len(backtest_rows.series)) for name in column_names(FORECAST_NAME, levels)}
        keys = panel.series.columns
        names = Columns(keys.id, keys.time, keys.target)
        table = frames.to_narwhals(backtest_rows.frame(panel))
        forecast_rows = read_rows(table, names)
        training = None
        if any({"scale", "squared_scale"} & set(entry.metric.needs) for entry in criteria.requested):
            training = read_training(panel.to_frame(), forecast_rows, panel.calendar.frequency, criteria.season_length)
        models = find_models(table, set(names.all), warn_non_numeric=False)
        scoring_data = ScoringData(
            table=table,
            forecast_rows=forecast_rows,
            models=models,
            actual=forecast_rows.in_point_order(backtest_rows.actual[backtest_rows.order]),
            training=training,
            reference=None,
        )
        for name in {"scale", "squared_scale"} & {need for entry in criteria.requested for need in entry.metric.needs}:
            scoring_data._scale(name)  # once, for all trials
        codes = forecast_rows.series[forecast_rows.forecast_of_point]
        groups = Groups(codes, int(codes.max()) + 1, forecast_rows.forecast_of_point)
        return cls(
            windows=all_windows,
            criteria=criteria.requested,
            levels=tuple(levels),
            row_counts=row_counts,
            order=backtest_rows.order,
            scoring_data=scoring_data,
            groups=groups,
        )

    @property
    def columns(self) -> list[str]:
        """Names of the scores."""
        return [criterion.column for criterion in self.criteria]

    def empty_forecasts(self) -> dict[str, Floats]:
        """Forecast columns of NaN for all evaluated rows."""
        return {name: np.full(sum(map(np.sum, self.row_counts)), np.nan) for name in column_names(FORECAST_NAME, self.levels)}

    def fill(self, forecasts: Mapping[str, Floats], fold: Fold, point: str) -> None:
        """Insert the forecasts of a window, or of some of its series."""
        positions = self._row_positions(fold.window.number, fold.window.series)
        for name, values in self._forecast_columns(fold.forecast, point).items():
            window_values = values[fold.has_row.reshape(-1)]
            invalid = np.flatnonzero(~(np.abs(window_values) < MAX_MAGNITUDE))
            if len(invalid):
                raise TrainingError(
                    f"Forecasts must be finite and below {MAX_MAGNITUDE:g} in magnitude, got {window_values[invalid[0]]} in "
                    f"window {fold.window.number + 1} ({len(invalid)} such values).",
                    hint="Use other parameters, or rescale the data.",
                )
            forecasts[name][positions] = window_values

    def select_window(self, forecasts: Mapping[str, Floats], window_number: int) -> dict[str, Floats]:
        """The forecasts of one window; NaN in all others."""
        selected = self.empty_forecasts()
        positions = self._row_positions(window_number, self.windows[window_number].series)
        for name, values in selected.items():
            values[positions] = forecasts[name][positions]
        return selected

    def scores(self, forecasts: Mapping[str, Floats]) -> list[float]:
        """For each metric the mean distance from its best value over series, in the windows with
        forecasts."""
        scoring_data = self._with_forecasts(forecasts)
        mean_scores = []
        for criterion in self.criteria:
            inputs = scoring_data.inputs(criterion.metric, scoring_data.models[0], criterion.level) or {}
            values = criterion.distance(criterion.metric.by_group(scoring_data.actual, self.groups, **inputs).value)
            defined = values[~np.isnan(values)]
            mean_scores.append(float(defined.mean()) if len(defined) else float("nan"))
        return mean_scores

    def _row_positions(self, window_number: int, series: Ints) -> Ints:
        """Positions of the rows of some series of a window."""
        is_selected = np.repeat(np.isin(self.windows[window_number].series, series), self.row_counts[window_number])
        return np.flatnonzero(is_selected) + sum(int(window_counts.sum()) for window_counts in self.row_counts[:window_number])

    def _forecast_columns(self, forecast: Forecast, point: str) -> dict[str, Floats]:
        return output_columns(forecast, FORECAST_NAME, point, self.levels, [])

    def _with_forecasts(self, forecasts: Mapping[str, Floats]) -> ScoringData:
        """The scoring data with these forecasts; actual values without a forecast are missing."""
        forecast_rows = self.scoring_data.forecast_rows
        ordered = {name: forecast_rows.in_point_order(values[self.order]) for name, values in forecasts.items()}
        is_missing: NDArray[np.bool_] = np.isnan(ordered[FORECAST_NAME])
        filled = {name: np.where(is_missing, 0.0, values) for name, values in ordered.items()}
        actual = np.where(is_missing, np.nan, self.scoring_data.actual)
        return replace(self.scoring_data, actual=actual, _cache={**self.scoring_data._cache, **filled})


def required_levels(metrics: Sequence[Any]) -> list[float]:
    """The interval levels that the metrics need."""
    levels: set[float] = set()
    for metric_spec in metrics:
        match = LEVEL_PATTERN.fullmatch(metric_spec) if isinstance(metric_spec, str) else None
        needs = set() if match else set(get(metric_spec).needs)
        if match:
            levels.add(float(match["level"]))
        elif needs & INTERVAL_INPUTS:
            levels.add(DEFAULT_LEVEL)
        elif needs & {"quantiles", "quantile_forecast"}:
            levels |= set(QUANTILE_LEVELS)
    return sorted(levels)


def resolve_metrics(metric: Any, scaled: bool) -> list[Any]:
    """The requested metrics, by default the one that `compare` ranks by."""
    metrics = list_metrics(metric, scaled)
    duplicates = [metric_spec for index, metric_spec in enumerate(metrics) if metric_spec in metrics[:index]]
    if duplicates:
        raise ParameterError(
            f"`metric` cannot contain an objective more than once, got {format_value(duplicates[0])} repeatedly.",
            hint="Drop the repetitions.",
            parameter="metric",
        )
    return metrics[:1] if metric is None else metrics
