"""Create a leaderboard from the runs of all models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.data import frames
from deepforecast.data.columns import models_in_columns
from deepforecast.data.frames import Floats, Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, format_list, warn
from deepforecast.evaluation import significance
from deepforecast.evaluation.criteria import INTERVAL_SUFFIXES, LEFT_OUT, Criteria, Criterion
from deepforecast.evaluation.cross_validation import BacktestRows
from deepforecast.evaluation.leaderboard import Leaderboard
from deepforecast.evaluation.metric_classes import zero_rounding_errors
from deepforecast.evaluation.metric_selection import parse_metric
from deepforecast.evaluation.point import BIAS, RELATIVE_BIAS
from deepforecast.evaluation.score import score
from deepforecast.evaluation.scoring_data import INTERVAL_INPUTS

if TYPE_CHECKING:
    from deepforecast.evaluation.compare import ModelRun


def make_leaderboard(
    runs: Sequence[ModelRun],
    backtest_rows: BacktestRows,
    panel: Panel,
    history: Frame,
    criteria: Criteria,
    settings: Mapping[str, Any],
) -> Leaderboard:
    """Score the forecasts of all runs without an error and rank the models."""
    runs, forecasts, by_series = _score_runs(runs, backtest_rows, panel, history=history, criteria=criteria)
    successful = [run for run in runs if not run.error]
    scores = SeriesScores.from_table(by_series, successful, criteria)
    deciding = scores.deciding_criterion(criteria)
    successful, scores = scores.sort_models(successful, deciding)
    failed = [run for run in runs if run.error]
    requested = tuple(criterion.column for criterion in criteria.requested)
    return Leaderboard(
        table=_board_table([*successful, *failed], scores, _statistics(scores, criteria, deciding, backtest_rows.actual)),
        by_series=by_series,
        forecasts=forecasts,
        significance=_significance_table(deciding.distance(scores.values[deciding.column]), successful),
        metrics=(deciding.column, *(name for name in requested if name != deciding.column)),
        settings=settings,
        history=history,
        criteria={criterion.column: criterion for criterion in criteria.all},
    )


@dataclass(frozen=True)
class SeriesScores:
    """Scores of each criterion, shape (models, series), and counts of points left out, shape
    (models,)."""

    values: Mapping[str, Floats]
    left_out: Mapping[str, Any]

    @classmethod
    def from_table(cls, by_series: Any, runs: Sequence[ModelRun], criteria: Criteria) -> SeriesScores:
        """Read the table of scores, which has a row for each series and, within it, each model; models
        are put in the order of `runs`."""
        n_models = len(runs)

        def pivot(name: str) -> Any:
            return by_series[name].to_numpy().reshape(-1, n_models).T

        model_index = {name: index for index, name in enumerate(by_series["model"].iloc[:n_models])}
        order = [model_index[run.name] for run in runs]
        values = {criterion.column: pivot(criterion.column)[order].astype(np.float64) for criterion in criteria.all}
        count_columns = [LEFT_OUT, *(f"{criterion.column}-{LEFT_OUT}" for criterion in criteria.all)]
        left_out = {name: pivot(name)[order].sum(axis=1).astype(np.int64) for name in count_columns if name in by_series}
        return cls(values, left_out)

    def deciding_criterion(self, criteria: Criteria) -> Criterion:
        """The first requested criterion that is defined for any series; warn if it is not the first
        one."""
        defined = [criterion for criterion in criteria.requested if not np.isnan(self.values[criterion.column]).all()]
        if not defined:
            raise _undefined_error(criteria)
        if defined[0] is not criteria.requested[0]:
            warn(
                f"{criteria.requested[0].column} is undefined for all series (constant histories, or actual values of zero), so "
                f"models are ranked by {defined[0].column}. Pass another first metric in `metrics` to rank by it."
            )
        return defined[0]

    def sort_models(self, runs: Sequence[ModelRun], deciding: Criterion) -> tuple[list[ModelRun], SeriesScores]:
        """Sort by the mean distance from the best value over series; stable, undefined means
        last."""
        mean = significance.mean_interval(deciding.distance(self.values[deciding.column]), n_resamples=1).mean
        order = np.argsort(np.nan_to_num(mean, nan=np.inf), kind="stable")
        sorted_arrays = ({name: values[order] for name, values in arrays.items()} for arrays in (self.values, self.left_out))
        return [runs[index] for index in order], SeriesScores(*sorted_arrays)


def _score_runs(
    runs: Sequence[ModelRun], backtest_rows: BacktestRows, panel: Panel, history: Frame, criteria: Criteria
) -> tuple[list[ModelRun], Frame, Any]:
    """The runs, the frame of forecasts and the table of scores by series.

    A model whose forecasts cannot be scored is marked as failed; if this applies to all models, the
    error is raised.
    """

    def score_subset(scored_runs: Sequence[ModelRun]) -> tuple[Frame, Any]:
        backtest_rows.columns = {name: values for run in scored_runs for name, values in run.columns.items()}
        forecasts = backtest_rows.frame(panel)
        models = [run.name for run in scored_runs]
        return forecasts, _score_by_series(forecasts, models, panel, history=history, criteria=criteria)

    successful = [run for run in runs if not run.error]
    try:
        return list(runs), *score_subset(successful)
    except Exception as error:  # custom metrics may raise anything: score each model alone to find the cause
        blamed: dict[str, Exception] = {}
        for run in successful:
            try:
                score_subset([run])
            except Exception as run_error:
                blamed[run.name] = run_error
        if len(blamed) in (0, len(successful)):
            raise error
    runs = [run.with_error(blamed[run.name]) if run.name in blamed else run for run in runs]
    return runs, *score_subset([run for run in runs if not run.error])


def _score_by_series(forecasts: Frame, models: Sequence[str], panel: Panel, history: Frame, criteria: Criteria) -> Any:
    """All metrics for each series and model, as a pandas frame."""
    names = panel.series.columns
    needs = {need for entry in criteria.all for need in entry.metric.needs}
    metrics = [entry for entry in criteria.metrics if _is_computable(entry, forecasts, models)]
    if not metrics:
        raise _undefined_error(criteria)
    scores = score(
        forecasts,
        metrics=metrics,
        train=history if needs & {"scale", "squared_scale"} else None,
        by=["series"] if names.id is not None else ["model"],
        columns={"id": names.id, "time": names.time, "target": names.target},
        models=models,
        freq=panel.calendar.frequency,
        season_length=criteria.season_length,
    )
    table = frames.to_narwhals(scores).to_pandas()
    undefined = [entry.column for entry in criteria.all if entry.column not in table]
    return table.assign(**dict.fromkeys(undefined, np.nan))


def _undefined_error(criteria: Criteria) -> DataError:
    """The error if no requested metric is defined for any series."""
    names = format_list([criterion.column for criterion in criteria.requested], max_shown=9)
    return DataError(
        f"At least one of the metrics {names} must be defined for at least one series, but all are undefined (actual values "
        "missing in all windows, a scale of zero, or no prediction intervals).",
        hint="Use other windows or metrics.",
    )


def _is_computable(metric: Any, forecasts: Frame, models: Sequence[str]) -> bool:
    """Whether any model has the intervals that a metric needs, which are missing if calibration
    failed."""
    metric, level = parse_metric(metric)
    if not (INTERVAL_INPUTS | {"quantile_forecast"}) & set(metric.needs):
        return True
    forecast_models = models_in_columns(frames.to_narwhals(forecasts).columns)
    levels = {model_level for model in forecast_models if model.name in models for model_level in model.lo}
    return bool(levels) if level is None else level in levels


def _board_table(runs: Sequence[ModelRun], scores: SeriesScores, statistics: Mapping[str, Floats]) -> Any:
    """A row per model, without scores if it failed."""
    import pandas as pd

    columns: dict[str, Any] = {"model": [run.name for run in runs]}
    for name, values in statistics.items():
        columns[name] = np.concatenate([values, np.full(len(runs) - len(values), np.nan)])
    columns[LEFT_OUT] = np.concatenate([_count_left_out(scores), np.zeros(len(runs), np.int64)])[: len(runs)]
    for name in ("fit_seconds", "predict_seconds", "peak_mb"):
        costs = [getattr(run, name) for run in runs]
        columns[name] = np.array([np.nan if cost is None else cost for cost in costs], dtype=np.float64)
    columns["failed_series"] = [run.failed_series for run in runs]
    columns["unused"] = [", ".join(run.unused) for run in runs]
    columns["error"] = [run.error for run in runs]
    return pd.DataFrame(columns)


def _statistics(scores: SeriesScores, criteria: Criteria, deciding: Criterion, actual: Floats) -> dict[str, Floats]:
    """Ranks by the deciding metric, and means over series with bootstrap intervals from the same
    resamples.

    Metrics with a target value also have the mean distance from it.
    """
    ranks = significance.ranks(deciding.distance(scores.values[deciding.column]))
    ranks = ranks[:, ~np.isnan(ranks).any(axis=0)]
    undefined = np.full(len(ranks), np.nan)
    columns: dict[str, Floats] = {
        "rank": ranks.mean(axis=1) if ranks.size else undefined,
        "rank-median": np.median(ranks, axis=1) if ranks.size else undefined,
    }
    criterion_values = dict(scores.values)
    for criterion in criteria.all:
        if criterion.target_value is not None:
            criterion_values[criterion.ranking_column] = criterion.distance(scores.values[criterion.column])
    interval = significance.mean_interval(np.concatenate(list(criterion_values.values())))
    for index, name in enumerate(criterion_values):
        model_rows = slice(index * len(ranks), (index + 1) * len(ranks))
        for end, means in zip(INTERVAL_SUFFIXES, (interval.mean, interval.low, interval.high), strict=True):
            columns[f"{name}{end}"] = means[model_rows]
    for criterion in criteria.all:
        if criterion.target_value == 0:
            error_scale = np.nanmax(np.abs(actual)) if criterion.metric is BIAS else float(criterion.metric is RELATIVE_BIAS)
            columns |= {
                name: _zero_rounding(columns[name], scores.values[criterion.column], error_scale) for name in criterion.columns
            }
    return columns


def _zero_rounding(means: Floats, values: Floats, error_scale: float) -> Floats:
    """Means over series of bias or relative bias, set to 0 where they are within the rounding error of
    their sums.

    The bias of a series is itself a sum of errors that may cancel; `error_scale` is the magnitude of the
    terms of that sum.
    """
    defined = ~np.isnan(values)
    n_defined = np.maximum(defined.sum(axis=1), 1)
    return zero_rounding_errors(means, error_scale + np.where(defined, np.abs(values), 0.0).sum(axis=1) / n_defined, n_defined)


def _count_left_out(scores: SeriesScores) -> Any:
    """For each model the number of points without an actual value, plus the number of further points
    without the metric that is undefined most often."""
    n_models = len(next(iter(scores.values.values())))
    n_missing = scores.left_out.get(LEFT_OUT, np.zeros(n_models, np.int64))
    n_undefined = [values for name, values in scores.left_out.items() if name != LEFT_OUT]
    return n_missing + np.max(n_undefined, axis=0) if n_undefined else n_missing


def _significance_table(distance: Floats, runs: Sequence[ModelRun]) -> Any:
    """A row per ordered pair of models, over the series for which both have a value."""
    import pandas as pd

    tests = significance.pairwise(distance)
    pairs = [(i, j) for i in range(len(runs)) for j in range(len(runs)) if i != j]
    models, opponents = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    names = pd.Series([run.name for run in runs])
    return pd.DataFrame(
        {
            "model": names.iloc[models].to_numpy(),
            "against": names.iloc[opponents].to_numpy(),
            "wins": tests.wins[models, opponents],
            "p_value": tests.corrected[models, opponents],
            "series": tests.n_series[models, opponents],
        }
    )
