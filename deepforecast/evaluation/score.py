"""Metrics of forecasts by model, series, cutoff and step.

forecasts = cross_validate([SeasonalNaive(), Naive2()], frame, horizon=12, level=[80, 95])
score(forecasts, train=frame)
score(forecasts, metrics=["mase", "coverage"], train=frame, by=("series", "step"))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from deepforecast.data import frames
from deepforecast.data.columns import STEP, Columns, declared_covariates, key_roles, resolve_columns
from deepforecast.data.frames import Floats, Frame
from deepforecast.errors import DataError, ParameterError, format_list
from deepforecast.evaluation.actual_values import read_actuals
from deepforecast.evaluation.forecast_columns import find_models, get_model, select_models
from deepforecast.evaluation.forecast_rows import read_rows
from deepforecast.evaluation.forecast_steps import steps_ahead
from deepforecast.evaluation.grouping import MODEL, Grouping, make_grouping, validate_by
from deepforecast.evaluation.leaderboard import Leaderboard
from deepforecast.evaluation.metric_selection import MetricColumn, select_metrics
from deepforecast.evaluation.scoring_data import ScoringData, leave_out_missing
from deepforecast.evaluation.training_scale import read_training
from deepforecast.plotting.inputs import is_decomposition, open_input

LEFT_OUT = "left_out"


def score(
    forecasts: Frame | Leaderboard,
    *,
    actual: Frame | None = None,
    metrics: Any = None,
    train: Frame | None = None,
    by: str | Sequence[str] = (MODEL,),
    season_length: int | None = None,
    columns: Columns | Mapping[str, Any] | None = None,
    models: str | Iterable[str] | None = None,
    reference: str | None = None,
    freq: Any = None,
) -> Frame:
    """Compute metrics of every model in a frame of forecasts.

    Parameters
    ----------
    forecasts : DataFrame or Leaderboard
        Forecasts with actual values from `cross_validate` or `compare`, or from `predict` or
        `simulate` (column `sample`) together with `actual`. Every numeric column is a model,
        with its intervals `<model>-lo-80`, `<model>-hi-80` and quantiles `<model>-q-0.1`, except
        keys (cutoff, step, sample) and covariates declared in `columns`. Other numeric columns,
        such as prices, would be scored as models: pass `columns={"future": ["price"]}`, or list
        the models in `models`.
    actual : DataFrame, optional
        Actual values, matched by id and time; rows without a forecast are ignored.
    metrics : str, callable, Metric or list of these, optional
        Names such as "mase" or, for a single level, "coverage-80"; functions
        `(actual, forecast) -> number`; or `Metric` objects. None: mae, rmse, smape, wape and
        bias; with `train` also mase and rmsse; with `reference` owa; with intervals coverage,
        width, winkler and, with `train`, msis; with quantiles weighted_quantile_loss; for
        sample paths only crps_from_samples.
    train : DataFrame, optional
        Training data that scale mase, rmsse and msis by the seasonal naive error of each series
        up to each cutoff (or the first forecast timestamp); later rows do not count. A
        leaderboard provides its own.
    by : str or sequence of str, default ("model",)
        Additional groups, one row each and sorted in this order: "series" (or the name of the
        id column), "cutoff", "step".
    season_length : int, optional
        Season of the seasonal naive error. None: from the frequency (h 24, D 7, W 52, MS 12,
        QS 4, YS 1). The M4 competition used 1 for weekly and daily series.
    columns : Columns or dict, optional
        Names of the columns and roles of the covariates.
    models : str or iterable of str, optional
        Models to score. None: all.
    reference : str, optional
        Model that owa is relative to, such as "Naive2".
    freq : str or int, optional
        Frequency of the time column. None: inferred.

    Returns
    -------
    DataFrame
        One row per group and model, of the same library as `forecasts`. Interval metrics have a
        column per level (`coverage-80`). A value is missing where a model lacks what a metric
        needs. Points at which the interval of a model is missing are left out of interval metrics
        for all models, so that these are compared on the same points. `left_out` counts points
        without an actual value; columns such as `mase-left_out` count further points where a
        metric is undefined (mase of a constant series). Both are
        present only if there is something to count.

    Raises
    ------
    DataError
        If actual values do not match the forecasts, or forecasts are not finite.
    ParameterError
        If no model has what a metric needs.

    See Also
    --------
    compare : Rank models by their scores.

    Notes
    -----
    Quantile metrics use the same probabilities for all models: those of the `-q-` columns, or, if
    there are none, the interval bounds and the median. An interval bound substitutes a missing
    quantile, the point forecast the median. For a skewed distribution with `point="mean"` the
    latter is inexact: pass `quantiles=[0.5]` to `predict`.

    Examples
    --------
    >>> import pandas as pd
    >>> days = pd.date_range("2024-01-01", periods=2)
    >>> score(pd.DataFrame({"ds": days, "y": [10.0, 20.0], "A": [12.0, 19.0], "B": [10.0, 24.0]}), metrics=["mae", "bias"])
      model  mae  bias
    0     A  1.5   0.5
    1     B  2.0   2.0
    """
    if isinstance(forecasts, Leaderboard):
        board = forecasts
        forecasts = board.forecasts
        columns = board.settings["columns"] if columns is None else columns
        season_length = board.settings["season_length"] if season_length is None else season_length
        if train is None and season_length is not None:
            board_freq = str(board.settings["freq"])
            train = board.history
            freq = freq or (int(board_freq) if board_freq.isdecimal() else board_freq)
    actual = frames.materialize(actual)
    table = open_input(forecasts, "frame of forecasts")
    if models is None and is_decomposition(table.columns):
        raise DataError(
            "The frame of forecasts must have a numeric column for each model, got a decomposition with the columns "
            f"{format_list(table.columns)}.",
            hint="Pass what `cross_validate` or `predict` returns, or list the models in `models`.",
        )
    names, covariates = _resolve_columns(columns, table.columns, actual)
    if not len(table):
        raise DataError("`forecasts` must have at least one row, got an empty frame.", parameter="forecasts")
    available = find_models(table, {*names.all, *covariates}, warn_non_numeric=models is None)
    reference_model = None if reference is None else get_model(available, reference, "reference")
    forecast_rows = read_rows(table, names)
    training = None if train is None else read_training(train, forecast_rows, freq, season_length)
    keys = validate_by(by, forecast_rows)
    scoring_data = ScoringData(
        table=table,
        forecast_rows=forecast_rows,
        models=select_models(available, models),
        actual=read_actuals(forecast_rows, table, actual, names),
        training=training,
        reference=reference_model,
    )
    metric_columns = select_metrics(metrics, scoring_data)
    calendar = None if training is None else training.panel.calendar
    steps = steps_ahead(forecast_rows, table, freq, calendar) if STEP in keys else None
    return _score_table(scoring_data, metric_columns, make_grouping(forecast_rows, keys, steps))


def _score_table(scoring_data: ScoringData, metric_columns: Sequence[MetricColumn], point_groups: Grouping) -> Frame:
    """The table of scores: key columns, model, metrics and counts of points left out."""
    n_models = len(scoring_data.models)
    groups = point_groups.groups
    n_missing = np.bincount(groups.codes, weights=np.isnan(scoring_data.actual), minlength=groups.count).astype(np.int64)
    names = np.tile(np.array([model.name for model in scoring_data.models], dtype=object), groups.count)
    table = _add_columns(point_groups.columns(n_models), {MODEL: names})
    left_out = {} if not n_missing.any() else {LEFT_OUT: np.repeat(n_missing, n_models)}
    for metric_column in metric_columns:
        values, n_undefined = _score_models(scoring_data, metric_column, point_groups, n_missing)
        table = _add_columns(table, {metric_column.column: values.T.reshape(-1)})
        if n_undefined.any():
            left_out[f"{metric_column.column}-{LEFT_OUT}"] = n_undefined.T.reshape(-1)
    return frames.build(scoring_data.forecast_rows.library, _add_columns(table, left_out))


def _score_models(
    scoring_data: ScoringData, metric_column: MetricColumn, point_groups: Grouping, n_missing: Any
) -> tuple[Floats, Any]:
    """The metric, and the number of points with an actual value at which it is undefined, both of shape
    (models, groups); `n_missing`: points of each group without an actual value."""
    shape = (len(scoring_data.models), point_groups.groups.count)
    values = np.full(shape, np.nan)
    n_undefined = np.zeros(shape, np.int64)
    inputs_by_model = [
        scoring_data.inputs(metric_column.metric, model, metric_column.level) for model in scoring_data.models
    ]
    actual = leave_out_missing(scoring_data.actual, inputs_by_model)
    for index, inputs in enumerate(inputs_by_model):
        if inputs is not None:
            aggregated = metric_column.metric.by_group(actual, point_groups.groups, **inputs)
            values[index] = aggregated.value
            n_undefined[index] = aggregated.left_out - n_missing
    return values, n_undefined


def _add_columns(table: dict[str, Any], new_columns: dict[str, Any]) -> dict[str, Any]:
    """Both dicts of columns in one; a name in both raises `ParameterError`."""
    duplicates = [name for name in new_columns if name in table]
    if duplicates:
        raise ParameterError(
            f"Columns of the table of scores must be unique, but two are named {duplicates[0]}.",
            hint="Rename the id column or the metric.",
        )
    return {**table, **new_columns}


def _resolve_columns(columns: Any, table_columns: Sequence[str], actual: Frame | None) -> tuple[Columns, tuple[str, ...]]:
    """The key and target columns, and the declared covariates: none of them is a model.

    The target defaults to the first of "y" and "target" that is a column of `actual`, or of the
    forecasts if that is None.
    """
    roles = {} if columns is None else key_roles(columns)
    if isinstance(roles, dict) and "target" not in roles:
        candidates = table_columns if actual is None else frames.to_narwhals(actual, "actual frame").columns
        roles["target"] = next((name for name in ("y", "target") if name in candidates), "y")
    return resolve_columns(roles, table_columns, target=False, what="frame of forecasts"), declared_covariates(columns)
