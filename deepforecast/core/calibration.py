"""Calibration errors of a model: forecasts at rolling cutoffs compared with the actual values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.backtest import Fold, forecast_window, refuse_missing_future
from deepforecast.core.conformal import PooledErrors, SeriesErrors, mean_absolute_change
from deepforecast.core.monitor import SILENT
from deepforecast.core.preprocessing import describe_short, drop_unseen_categories, preprocess
from deepforecast.core.progress import progress_bar
from deepforecast.core.state_updates import move_state_to_panel
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.splits import BacktestWindow, rows_until_observed
from deepforecast.errors import CalibrationError, suppress_warnings

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

MAX_WINDOWS = 100  # per series; more errors hardly change the intervals
MAX_POOLED_ERRORS = 1000  # total over all series
PROGRESS_LABEL = "calibration windows"


def series_errors(model: Forecaster, panel: Panel, horizon: int, n_windows: int | None = None) -> SeriesErrors:
    """The errors of each series in at most `n_windows` windows; NaN where a series has fewer windows than others."""
    count = _count_windows(
        model, panel, horizon, model._min_observations(panel), MAX_WINDOWS if n_windows is None else n_windows
    )
    errors = np.full((len(panel), int(count.max()), horizon), np.nan)
    with progress_bar(int(count.max()), PROGRESS_LABEL) as tick:
        for fold, _ in _folds(model, panel, horizon, count):
            errors[fold.window.series, fold.window.number] = _forecast_error(model, fold)
            tick(1)
    return SeriesErrors(errors)


def pooled_errors(model: Forecaster, panel: Panel, horizon: int, n_windows: int | None = None) -> PooledErrors:
    """The errors of all series divided by their scale at the cutoff: about MAX_POOLED_ERRORS, or `n_windows` per series.

    Errors of series that are constant up to the cutoff have no scale and are left out.
    """
    scale = _series_scale(model, panel)
    max_windows = -(-MAX_POOLED_ERRORS // max(int(np.count_nonzero(scale)), 1)) if n_windows is None else n_windows
    min_observations = max(model._min_observations(panel), 2)  # the scale requires two values
    count = _count_windows(model, panel, horizon, min_observations, max_windows)
    scores = []
    with progress_bar(int(count.max()), PROGRESS_LABEL) as tick:
        for fold, history in _folds(model, panel, horizon, count):
            absolute_errors, scale_at_cutoff = np.abs(_forecast_error(model, fold)), _series_scale(model, history)
            has_scale = scale_at_cutoff > 0
            with np.errstate(over="ignore"):
                scores.append(absolute_errors[has_scale] / scale_at_cutoff[has_scale, None])
            tick(1)
    return PooledErrors(np.sort(np.concatenate(scores), axis=0), scale)


def _count_windows(model: Forecaster, panel: Panel, horizon: int, min_observations: int, max_windows: int) -> Ints:
    """Number of windows per series, one row apart; at least half of its rows, and the model's minimum, are for training."""
    available_windows = panel.lengths - horizon - rows_until_observed(panel, min_observations) + 1
    short = np.flatnonzero(available_windows < 1)
    if len(short):
        raise CalibrationError(
            f"Conformal intervals of {model.name} require {min_observations} values to fit and {horizon} more "
            f"to compare with a forecast; series {describe_short(panel, short)}. Leave them out, pass longer "
            "series, or use a shorter horizon."
        )
    half_of_rows = np.maximum((panel.lengths - horizon + 1) // 2, 1)
    return np.asarray(np.minimum(np.minimum(available_windows, half_of_rows), max_windows))


def _folds(model: Forecaster, panel: Panel, horizon: int, count: Ints) -> Iterator[tuple[Fold, Panel]]:
    """Forecasts of the last `count[i]` windows of each series, oldest first, and the histories before them; fitted once."""
    max_count = int(count.max())
    first = panel.lengths - horizon - count + 1
    every_window = [_make_window(panel, horizon, count, number) for number in range(max_count)]
    refuse_missing_future(panel, every_window, horizon)
    with suppress_warnings():  # the fit of the whole panel issues them
        first_history = drop_unseen_categories(panel.between(np.zeros(len(panel), np.int64), first))
        state = model._fit_panel(first_history, SILENT.fold(0))
    for window in every_window:
        history = drop_unseen_categories(window.history(panel))
        with suppress_warnings():
            window_state = move_state_to_panel(model, state, history, window.series)
            fold = forecast_window(model, panel, window, window_state, gap=0, horizon=horizon)
        yield fold, history


def _make_window(panel: Panel, horizon: int, count: Ints, number: int) -> BacktestWindow:
    """Window `number` out of the largest count; the windows of all series are aligned at the end."""
    windows_after = int(count.max()) - 1 - number
    series = np.flatnonzero(count > windows_after)
    return BacktestWindow(number, series, np.zeros(len(series), np.int64), panel.lengths[series] - horizon - windows_after)


def _series_scale(model: Forecaster, panel: Panel) -> Floats:
    """The scale of each series, after imputation if the model imputes."""
    if panel.complete or model.missing_method == "auto":
        return mean_absolute_change(panel)
    with suppress_warnings():
        return mean_absolute_change(preprocess(model, panel))


def _forecast_error(model: Forecaster, fold: Fold) -> Floats:
    return np.asarray(fold.actual - fold.forecast.point(model.point_kind))
