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
    """The signed errors, actual - forecast, of each series in its last windows, at most `n_windows` (None: MAX_WINDOWS).

    NaN where a series has fewer windows than others, or the actual value is missing.
    """
    max_windows = MAX_WINDOWS if n_windows is None else n_windows
    n_windows_by_series = _count_windows(
        model, panel, horizon, min_observations=model._min_observations(panel), max_windows=max_windows
    )
    most_windows = int(n_windows_by_series.max())
    errors = np.full((len(panel), most_windows, horizon), np.nan)
    with progress_bar(most_windows, PROGRESS_LABEL) as tick:
        for fold, _ in _folds(model, panel, horizon, n_windows_by_series):
            errors[fold.window.series, fold.window.number] = _forecast_error(model, fold)
            tick(1)
    return SeriesErrors(errors)


def pooled_absolute_errors(model: Forecaster, panel: Panel, horizon: int, n_windows: int | None = None) -> PooledErrors:
    """Sorted absolute errors of all series per step, each divided by the scale of its series at the cutoff.

    About MAX_POOLED_ERRORS of them, or `n_windows` per series. Errors of series that are constant up
    to the cutoff have no scale and are left out.
    """
    scale = _series_scale(model, panel)
    # MAX_POOLED_ERRORS divided by the number of series that are not constant, rounded up
    max_windows = -(-MAX_POOLED_ERRORS // max(int(np.count_nonzero(scale)), 1)) if n_windows is None else n_windows
    min_observations = max(model._min_observations(panel), 2)  # the scale requires two values
    n_windows_by_series = _count_windows(model, panel, horizon, min_observations=min_observations, max_windows=max_windows)
    scores = []
    with progress_bar(int(n_windows_by_series.max()), PROGRESS_LABEL) as tick:
        for fold, history in _folds(model, panel, horizon, n_windows_by_series):
            absolute_errors, scale_at_cutoff = np.abs(_forecast_error(model, fold)), _series_scale(model, history)
            has_scale = scale_at_cutoff > 0
            with np.errstate(over="ignore"):
                scores.append(absolute_errors[has_scale] / scale_at_cutoff[has_scale, None])
            tick(1)
    return PooledErrors(np.sort(np.concatenate(scores), axis=0), scale)


def _count_windows(model: Forecaster, panel: Panel, horizon: int, min_observations: int, max_windows: int) -> Ints:
    """Number of windows per series, one row apart and at most `max_windows`; raises `CalibrationError` if there is none.

    At least half of the rows of each series, and `min_observations` values, are for training.
    """
    available_windows = panel.lengths - horizon - rows_until_observed(panel, min_observations) + 1
    short = np.flatnonzero(available_windows < 1)
    if len(short):
        raise CalibrationError(
            f"Conformal intervals of {model.name} require {min_observations} values to fit and {horizon} more "
            f"to compare with a forecast, but series {describe_short(panel, short)}. Leave these series out, pass longer "
            "series, or use a shorter horizon."
        )
    half_of_rows = np.maximum((panel.lengths - horizon + 1) // 2, 1)
    return np.asarray(np.minimum(np.minimum(available_windows, half_of_rows), max_windows))


def _folds(model: Forecaster, panel: Panel, horizon: int, n_windows_by_series: Ints) -> Iterator[tuple[Fold, Panel]]:
    """Forecasts of the last windows of each series, oldest first, and the histories before them.

    The model is fitted once, to the rows before the first window of each series.
    """
    first_cutoff = panel.lengths - horizon - n_windows_by_series + 1
    windows = [
        _make_window(panel, horizon, n_windows_by_series, window_number)
        for window_number in range(int(n_windows_by_series.max()))
    ]
    refuse_missing_future(panel, windows, horizon)
    with suppress_warnings():  # the fit of the whole panel issues them
        first_history = drop_unseen_categories(panel.between(np.zeros(len(panel), np.int64), first_cutoff))
        state = model._fit_panel(first_history, SILENT.fold(0))
    for window in windows:
        history = drop_unseen_categories(window.history(panel))
        with suppress_warnings():
            window_state = move_state_to_panel(model, state, history, window.series)
            fold = forecast_window(model, panel, window, window_state, gap=0, horizon=horizon)
        yield fold, history


def _make_window(panel: Panel, horizon: int, n_windows_by_series: Ints, window_number: int) -> BacktestWindow:
    """One window, with the series that have it; the last windows of all series have the same number."""
    windows_after = int(n_windows_by_series.max()) - 1 - window_number
    series = np.flatnonzero(n_windows_by_series > windows_after)
    cutoff = panel.lengths[series] - horizon - windows_after
    return BacktestWindow(window_number, series, train_start=np.zeros(len(series), np.int64), cutoff=cutoff)


def _series_scale(model: Forecaster, panel: Panel) -> Floats:
    """The mean absolute change of each series, after imputation if the model imputes."""
    if panel.complete or model.missing_method == "auto":
        return mean_absolute_change(panel)
    with suppress_warnings():
        return mean_absolute_change(preprocess(model, panel))


def _forecast_error(model: Forecaster, fold: Fold) -> Floats:
    """Actual value minus point forecast, shape (series, steps)."""
    return np.asarray(fold.actual - fold.forecast.point(model.point_kind))
