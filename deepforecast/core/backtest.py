"""Rolling backtests of one model, and the calibration of conformal intervals by their errors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.conformal import PooledErrors, SeriesErrors, mean_absolute_change
from deepforecast.core.fallback import add_failures
from deepforecast.core.forecast import Forecast
from deepforecast.core.monitor import SILENT, Monitor, progress_bar
from deepforecast.core.preprocessing import (
    describe_short,
    drop_unseen_categories,
    hints_without_on_failure,
    occurring_categories,
    preprocess,
)
from deepforecast.core.state import State
from deepforecast.core.state_updates import move_state_to_panel
from deepforecast.data.covariates import recode_covariate
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.data.windows import BacktestPlan, BacktestWindow, backtest_windows, rows_until_observed
from deepforecast.errors import (
    CalibrationError,
    CollectedWarnings,
    DataError,
    ParameterError,
    collect_warnings,
    emit_warnings,
    format_value,
    suppress_warnings,
)

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster


@dataclass(frozen=True)
class Fold:
    """The forecasts and actual values of one window, shape (series, steps).

    actual: NaN where the value is missing or the panel has no row.
    has_row: the steps for which the panel has rows.
    fit_cpu, predict_cpu: CPU time of this process in seconds.
    value_range: minimum and maximum of each series up to the cutoff, shape (series, 2).
    failed: index in the panel of the series that the model could not fit, which a naive method may have forecast.
    """

    window: BacktestWindow
    forecast: Forecast
    actual: Floats
    has_row: NDArray[np.bool_]
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    fit_cpu: float = 0.0
    predict_cpu: float = 0.0
    value_range: Floats | None = None
    failed: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))


def refit_every(refit: Any, is_local: bool) -> int:
    """The number of windows between fits: 0 fits only in the first window, k in every k-th.

    "auto" fits local models in each window, global ones only in the first.
    """
    if refit == "auto":
        return int(is_local)
    if isinstance(refit, bool) or (hasattr(refit, "__index__") and int(refit) >= 1):
        return int(refit)
    raise ParameterError(
        f"`refit` must be 'auto', True, False or a number of windows of at least 1, got {format_value(refit)}.",
        parameter="refit",
        value=refit,
    )


def rolling_folds(
    model: Forecaster, panel: Panel, plan: BacktestPlan, *, refit_interval: int, monitor: Monitor = SILENT
) -> Iterator[Fold]:
    """Forecasts of a clone of `model` for every window of the plan, oldest first.

    Each forecast is that of `fit` (between refits: of `predict(frame=...)`) on the rows before the
    cutoff alone. `refit_interval` is that of `refit_every`. Warnings are issued once, at the end.
    Stops if the monitor cancels.
    """
    state: State | None = None
    index_in_state = np.full(len(panel), -1, dtype=np.int64)  # of each series in the panel, -1 if it was not fitted
    clone = model.clone(horizon=plan.gap + plan.horizon)
    windows = backtest_windows(panel, plan)
    missing_by_name = _missing_future(panel)
    if model.on_failure == "raise":
        refuse_missing_future(panel, windows, plan.gap + plan.horizon)
    collected: CollectedWarnings = {}
    for window in windows:
        history = drop_unseen_categories(window.history(panel))
        started, cpu_started = time.perf_counter(), time.process_time()
        with collect_warnings(collected):
            if state is None or (refit_interval and window.number % refit_interval == 0):
                state = clone._fit_panel(history, monitor.fold(window.number))
                if state.fallback is not None and not len(state.series):  # scores would be those of naive methods alone
                    with hints_without_on_failure():
                        clone.clone(on_failure="raise")._fit_panel(history)  # raises
                fitted_series = window.series if state.fallback is None else window.series[state.fallback.fitted]
                index_in_state[:] = -1
                index_in_state[fitted_series] = np.arange(len(fitted_series))
                state_at_cutoff = state
            else:
                state_at_cutoff = move_state_to_panel(clone, state, history, index_in_state[window.series])
            if monitor.cancelled:
                break
            if reasons := _reasons_of_missing_future(panel, missing_by_name, window, plan.gap + plan.horizon):
                state_at_cutoff = add_failures(clone, history, state_at_cutoff, reasons)
                if not len(state_at_cutoff.series):  # scores would be those of naive methods alone
                    refuse_missing_future(panel, [window], plan.gap + plan.horizon)
            fit_finished, cpu_fitted = time.perf_counter(), time.process_time()
            fold = forecast_window(clone, panel, window, state_at_cutoff, gap=plan.gap, horizon=plan.horizon)
        yield replace(
            fold,
            fit_seconds=fit_finished - started,
            predict_seconds=time.perf_counter() - fit_finished,
            fit_cpu=cpu_fitted - cpu_started,
            predict_cpu=time.process_time() - cpu_fitted,
            value_range=state_at_cutoff.all_ranges,
            failed=window.series[sorted(state_at_cutoff.fallback.reasons) if state_at_cutoff.fallback is not None else []],
        )
    emit_warnings(collected)


def forecast_window(model: Forecaster, panel: Panel, window: BacktestWindow, state: State, gap: int, horizon: int) -> Fold:
    """The forecasts of a window from the state at its cutoff, and the actual values of the panel.

    The first `gap` steps after the cutoff are skipped.
    """
    steps = gap + horizon
    rows, _ = window.test_rows(panel, 0, steps)
    if state.fallback is not None:
        rows = rows[state.fallback.fitted]
    names = panel.series.columns.future
    future = {
        name: recode_covariate(occurring_categories(panel.covariates[name].take(rows)), name, state.categories[name])
        for name in names
    }
    forecast = model.forecast_from(state, steps, future)
    rows, has_row = window.test_rows(panel, gap, horizon)
    return Fold(window, forecast.skip_steps(gap) if gap else forecast, np.where(has_row, panel.y[rows], np.nan), has_row)


def refuse_missing_future(panel: Panel, windows: Sequence[BacktestWindow], steps: int) -> None:
    """Raise if a future covariate is missing at one of the `steps` steps after the cutoff of a window."""
    missing_by_name = _missing_future(panel)
    for window in windows:
        if reasons := _reasons_of_missing_future(panel, missing_by_name, window, steps):
            numbers = window.series[list(reasons)]
            raise DataError(
                "Future covariates must have a value at every step of the forecast, but some are missing for series "
                f"{panel.series.labels(numbers)}. {next(iter(reasons.values()))}",
                hint="Fill in the values.",
                series=panel.series.id_texts(numbers),
            )


def _missing_future(panel: Panel) -> dict[str, NDArray[np.bool_]]:
    """Mask of the missing rows of each future covariate that has any."""
    masks = {name: panel.covariates[name].missing() for name in panel.series.columns.future}
    return {name: mask for name, mask in masks.items() if mask.any()}


def _reasons_of_missing_future(
    panel: Panel, missing_by_name: Mapping[str, NDArray[np.bool_]], window: BacktestWindow, steps: int
) -> dict[int, str]:
    """Series of a window with a missing future covariate at one of the `steps` steps after the cutoff, and where it is."""
    reasons: dict[int, str] = {}
    for name, missing in missing_by_name.items():
        rows, has_row = window.test_rows(panel, 0, steps)
        is_missing = missing[rows] & has_row
        for number in np.flatnonzero(is_missing.any(axis=1)).tolist():
            time = panel.format_timestamp(int(rows[number, np.argmax(is_missing[number])]))
            reasons.setdefault(number, f"Column {name} is missing at {time}, a step of the forecast.")
    return reasons


MAX_WINDOWS = 100  # per series; more errors hardly change the intervals
MAX_POOLED_ERRORS = 1000  # total over all series
PROGRESS_LABEL = "calibration windows"


def series_errors(model: Forecaster, panel: Panel, horizon: int, n_windows: int | None = None) -> SeriesErrors:
    """The signed errors, actual - forecast, of each series in its last windows, at most `n_windows` (None: MAX_WINDOWS).

    NaN where a series has fewer windows than others, or the actual value is missing.
    """
    n_windows_by_series = _count_windows(model, panel, horizon, model._min_observations(panel), n_windows or MAX_WINDOWS)
    most_windows = int(n_windows_by_series.max())
    errors = np.full((len(panel), most_windows, horizon), np.nan)
    with progress_bar(most_windows, PROGRESS_LABEL) as tick:
        for window, window_errors, _ in _window_errors(model, panel, horizon, n_windows_by_series):
            errors[window.series, window.number] = window_errors
            tick(1)
    return SeriesErrors(errors)


def pooled_absolute_errors(model: Forecaster, panel: Panel, horizon: int, n_windows: int | None = None) -> PooledErrors:
    """Sorted absolute errors of all series per step, each divided by the scale of its series at the cutoff.

    About MAX_POOLED_ERRORS of them, or `n_windows` per series. Errors of series that are constant up
    to the cutoff have no scale and are left out.
    """
    scale = _series_scale(model, panel)
    # MAX_POOLED_ERRORS divided by the number of series that are not constant, rounded up
    max_windows = n_windows or -(-MAX_POOLED_ERRORS // max(int(np.count_nonzero(scale)), 1))
    min_observations = max(model._min_observations(panel), 2)  # the scale requires two values
    n_windows_by_series = _count_windows(model, panel, horizon, min_observations, max_windows)
    scores = []
    with progress_bar(int(n_windows_by_series.max()), PROGRESS_LABEL) as tick:
        for _, errors, history in _window_errors(model, panel, horizon, n_windows_by_series):
            scale_at_cutoff = _series_scale(model, history)
            has_scale = scale_at_cutoff > 0
            with np.errstate(over="ignore"):
                scores.append(np.abs(errors[has_scale]) / scale_at_cutoff[has_scale, None])
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
            f"to compare with a forecast, but series {describe_short(panel, short)}.",
            hint="Leave these series out, pass longer series, or use a shorter horizon.",
            series=panel.series.id_texts(short),
            reason=f"It is too short to calibrate intervals of {model.name}.",
        )
    half_of_rows = np.maximum((panel.lengths - horizon + 1) // 2, 1)
    return np.asarray(np.minimum(np.minimum(available_windows, half_of_rows), max_windows))


def _window_errors(
    model: Forecaster, panel: Panel, horizon: int, n_windows_by_series: Ints
) -> Iterator[tuple[BacktestWindow, Floats, Panel]]:
    """The last windows of each series, oldest first, with the errors (actual - point forecast) and the histories before them.

    The model is fitted once, to the rows before the first window of each series.
    """
    first_row = np.zeros(len(panel), np.int64)
    first_cutoff = panel.lengths - horizon - n_windows_by_series + 1
    most_windows = int(n_windows_by_series.max())
    windows = []
    for number in range(most_windows):  # the last windows of all series have the same number
        series = np.flatnonzero(n_windows_by_series >= most_windows - number)
        cutoff = panel.lengths[series] - horizon - (most_windows - 1 - number)
        windows.append(BacktestWindow(number, series, train_start=first_row[series], cutoff=cutoff))
    refuse_missing_future(panel, windows, horizon)
    with suppress_warnings():  # the fit of the whole panel issues them
        first_history = drop_unseen_categories(panel.between(first_row, first_cutoff))
        state = model._fit_panel(first_history, SILENT.fold(0))
    for window in windows:
        history = drop_unseen_categories(window.history(panel))
        with suppress_warnings():
            window_state = move_state_to_panel(model, state, history, window.series)
            fold = forecast_window(model, panel, window, window_state, gap=0, horizon=horizon)
        yield window, fold.actual - fold.forecast.point(model.point_kind), history


def _series_scale(model: Forecaster, panel: Panel) -> Floats:
    """The mean absolute change of each series, after imputation if the model imputes."""
    if panel.complete or model.missing_method == "auto":
        return mean_absolute_change(panel)
    with suppress_warnings():
        return mean_absolute_change(preprocess(model, panel))
