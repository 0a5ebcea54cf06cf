"""The score columns of a leaderboard, validated before any model runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deepforecast.core.forecast import interval_columns
from deepforecast.data import frames
from deepforecast.data.columns import CUTOFF, SAMPLE, STEP, Columns
from deepforecast.data.frames import Floats
from deepforecast.data.frequency import season_length as usual_season
from deepforecast.data.frequency import seasons
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, format_value
from deepforecast.evaluation.cross_validation import BacktestRows
from deepforecast.evaluation.forecast_columns import find_models, refuse_ambiguous_names
from deepforecast.evaluation.forecast_rows import read_rows
from deepforecast.evaluation.grouping import MODEL
from deepforecast.evaluation.metric_classes import Metric
from deepforecast.evaluation.metric_selection import LEVEL_PATTERN, MetricColumn, select_metrics
from deepforecast.evaluation.metrics import get
from deepforecast.evaluation.scoring_data import ScoringData
from deepforecast.evaluation.training_scale import read_training, validate_season_length

SCALED_METRICS = ("mase", "rmsse", "smape", "relative_bias")
UNSCALED_METRICS = ("mae", "rmse", "smape", "relative_bias")  # if the season is unknown
INTERVAL_METRICS = ("coverage", "width", "winkler")
LEFT_OUT = "left_out"
DISTANCE = "distance"
INTERVAL_SUFFIXES = ("", "-low", "-high")  # columns of a mean and its confidence interval


@dataclass(frozen=True)
class Criterion:
    """One score column: a metric and, for interval metrics, a level. `requested`: whether the caller
    asked for it (or for the defaults); otherwise it was added because intervals were requested."""

    column: str
    metric: Metric
    level: float | None = None
    requested: bool = True

    def distance(self, values: ArrayLike) -> Floats:
        """Distance from the best value, lower being better."""
        return self.metric.distance(values, self.level)

    @property
    def target_value(self) -> float | None:
        """The best value of metrics such as bias (0) and coverage (the level), None for metrics that are
        best as low or as high as possible.

        Deviations of opposite sign cancel in the mean of these metrics, so models are ranked by the
        mean distance.
        """
        if self.metric.better in ("low", "high"):
            return None
        return 0.0 if self.level is None else self.level / 100

    @property
    def ranking_column(self) -> str:
        """The column that ranks the models: the mean, or the mean distance from the target
        value."""
        return self.column if self.target_value is None else f"{self.column}-{DISTANCE}"

    @property
    def columns(self) -> list[str]:
        """All columns of this criterion in the table of a leaderboard."""
        return [f"{name}{suffix}" for name in dict.fromkeys((self.column, self.ranking_column)) for suffix in INTERVAL_SUFFIXES]


@dataclass(frozen=True)
class Criteria:
    """All score columns, the ranking one first.

    `metrics`: the requests from which `all` was made, as for `score`. `season_length`: the season of
    scaled metrics, None if unknown.
    """

    all: tuple[Criterion, ...]
    metrics: tuple[Any, ...]
    season_length: int | None

    @property
    def requested(self) -> tuple[Criterion, ...]:
        """The requested or default metrics."""
        return tuple(criterion for criterion in self.all if criterion.requested)


def resolve_criteria(
    metrics: Any, models: Sequence[str], panel: Panel, backtest_rows: BacktestRows, levels: Sequence[float], season: Any
) -> Criteria:
    """The score columns for `metrics` (None: the defaults), validated on a few series without a
    model.

    Interval metrics for `levels` that were not requested follow the requested ones.
    """
    season_length = validate_season_length(season)
    if season_length is None and seasons(panel.calendar.frequency):
        season_length = usual_season(panel.calendar.frequency)
    scaled = season_length is not None
    requested = list_metrics(metrics, scaled)
    _check_metrics(requested, scaled)
    extra_metrics = [name for name in INTERVAL_METRICS if levels and name not in requested]
    scoring_data = _sample_scoring_data(models, panel, backtest_rows, levels, season_length)
    criteria = [_make_criterion(metric_column, True) for metric_column in select_metrics(requested, scoring_data)]
    extra_criteria = (
        [_make_criterion(metric_column, False) for metric_column in select_metrics(extra_metrics, scoring_data)]
        if extra_metrics
        else []
    )
    criteria += [
        criterion for criterion in extra_criteria if criterion.column not in {existing.column for existing in criteria}
    ]
    _check_columns(panel.series.columns, criteria)
    return Criteria(tuple(criteria), (*requested, *extra_metrics), season_length)


def list_metrics(metrics: Any, scaled: bool) -> list[Any]:
    """`metrics`, one or several names, functions or `Metric` objects, as a list."""
    if metrics is None:
        return list(SCALED_METRICS if scaled else UNSCALED_METRICS)
    single = isinstance(metrics, str | Metric) or callable(metrics) or not isinstance(metrics, Iterable)
    return [metrics] if single else list(metrics)


def check_model_names(models: Sequence[str], columns: Columns, levels: Sequence[float]) -> None:
    """Refuse models whose columns are keys of the frame or columns of another model."""
    used_names = {name: "column of the frame" for name in (columns.id, columns.time, columns.target) if name is not None}
    for name in (CUTOFF, SAMPLE):
        if name in used_names:
            raise ParameterError(
                f"The frame cannot have a column {name}: {CUTOFF} and {SAMPLE} are reserved column names of forecasts.",
                hint="Rename the column.",
            )
    used_names |= dict.fromkeys((CUTOFF, STEP, SAMPLE), "reserved column name")
    for name in models:
        model_columns = _model_columns(name, levels)
        for column in model_columns:
            if column in used_names:
                raise ParameterError(
                    f"Columns of models must be unique, but {format_value(column)} of model {format_value(name)} is a "
                    f"{used_names[column]}.",
                    hint="Set another `alias` on the model.",
                )
        used_names |= dict.fromkeys(model_columns, f"column of model {format_value(name)}")
    refuse_ambiguous_names(models)


def _check_metrics(metrics: Sequence[Any], scaled: bool) -> None:
    """Raise `ParameterError` for metrics of a reference, and for scaled metrics if not `scaled`."""
    for metric_spec in metrics:
        metric = get(metric_spec) if not isinstance(metric_spec, str) or LEVEL_PATTERN.fullmatch(metric_spec) is None else None
        if metric is None:
            continue
        if "reference" in metric.needs:
            raise ParameterError(
                f"{metric.name} cannot be computed per series, only from totals over all series.",
                hint=f"Use, for example, score(board.forecasts, metrics={metric.name!r}, train=frame, reference='Naive2').",
            )
        if not scaled and {"scale", "squared_scale"} & set(metric.needs):
            raise ParameterError(
                f"{metric.name} requires a season, which cannot be inferred from integer timestamps.",
                hint="Pass `season_length` (1: no season).",
            )


def _sample_scoring_data(
    models: Sequence[str], panel: Panel, backtest_rows: BacktestRows, levels: Sequence[float], season: int | None
) -> ScoringData:
    """Scoring data of the first, middle and last evaluated series with forecasts of zero, to check
    requested metrics before any model runs."""
    sample_series = np.unique(backtest_rows.series[backtest_rows.order[[0, len(backtest_rows.order) // 2, -1]]])
    positions = np.flatnonzero(np.isin(backtest_rows.series[backtest_rows.order], sample_series))
    sample = replace(backtest_rows, order=backtest_rows.order[positions], columns={})
    for name in models:
        sample.columns |= dict.fromkeys(_model_columns(name, levels), np.zeros(len(backtest_rows.series)))
    table = frames.to_narwhals(sample.frame(panel))
    keys = panel.series.columns
    names = Columns(keys.id, keys.time, keys.target)
    forecast_rows = read_rows(table, names)
    training = None
    if season is not None:
        training = read_training(panel.take(sample_series).to_frame(), forecast_rows, panel.calendar.frequency, season)
    return ScoringData(
        table=table,
        forecast_rows=forecast_rows,
        models=find_models(table, set(names.all), warn_non_numeric=False),
        actual=sample.actual[sample.order],
        training=training,
        reference=None,
    )


def _model_columns(model: str, levels: Sequence[float]) -> list[str]:
    """The column of the point forecast, followed by the interval bounds."""
    return [model, *(bound for _, low, high in interval_columns(model, levels) for bound in (low, high))]


def _make_criterion(metric_column: MetricColumn, requested: bool) -> Criterion:
    return Criterion(metric_column.column, metric_column.metric, metric_column.level, requested)


def _check_columns(columns: Columns, criteria: Sequence[Criterion]) -> None:
    """Refuse duplicate columns in the tables of scores, and an id column with the name of one."""
    column_names = [name for criterion in criteria for name in criterion.columns]
    duplicates = [name for index, name in enumerate(column_names) if name in column_names[:index]]
    if duplicates:
        raise ParameterError(
            f"Columns of metrics must be unique, but two metrics have a column {format_value(duplicates[0])}.",
            hint="Rename one of them.",
        )
    reserved = [
        MODEL,
        LEFT_OUT,
        *(name for criterion in criteria for name in (criterion.column, f"{criterion.column}-{LEFT_OUT}")),
    ]
    if columns.id in reserved:
        raise ParameterError(
            f"The id column cannot be named {columns.id}, because the table of scores has a column of that name.",
            hint="Rename the id column.",
        )
