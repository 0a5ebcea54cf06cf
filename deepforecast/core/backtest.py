"""Forecasts of a model at many cutoffs, used by cross-validation, calibration and tuning."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.forecast import Forecast
from deepforecast.core.monitor import SILENT, Monitor
from deepforecast.core.preprocessing import drop_unseen_categories, occurring_categories
from deepforecast.core.state import State
from deepforecast.core.state_updates import move_state_to_panel
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.future_covariates import recode_covariate
from deepforecast.data.panel import Panel
from deepforecast.data.splits import BacktestPlan, BacktestWindow, backtest_windows
from deepforecast.errors import CollectedWarnings, DataError, ParameterError, collect_warnings, emit_warnings, format_value

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster


@dataclass(frozen=True)
class Fold:
    """The forecasts and actual values of one window, shape (series, steps).

    actual: NaN where the value is missing or the panel has no row.
    has_row: the steps for which the panel has rows.
    fit_cpu, predict_cpu: CPU time of this process in seconds.
    value_range: minimum and maximum of each series up to the cutoff, shape (series, 2).
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


def refit_every(refit: Any, is_local: bool) -> int:
    """The number of windows between fits: 0 fits only in the first window, k in every k-th.

    "auto" fits local models in each window, global ones only in the first.
    """
    if refit == "auto":
        return int(is_local)
    if isinstance(refit, bool):
        return int(refit)
    if hasattr(refit, "__index__") and int(refit) >= 1:
        return int(refit)
    raise ParameterError(
        f"`refit` must be 'auto', True, False or a number of windows of at least 1, got {format_value(refit)}."
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
    fitted_series = np.empty(0, dtype=np.int64)
    clone = model.clone(horizon=plan.gap + plan.horizon)
    windows = backtest_windows(panel, plan)
    refuse_missing_future(panel, windows, plan.gap + plan.horizon)
    collected: CollectedWarnings = {}
    for window in windows:
        history = drop_unseen_categories(window.history(panel))
        started, cpu_started = time.perf_counter(), time.process_time()
        with collect_warnings(collected):
            if state is None or (refit_interval and window.number % refit_interval == 0):
                state = clone._fit_panel(history, monitor.fold(window.number))
                fitted_series, state_at_cutoff = window.series, state
            else:
                state_at_cutoff = move_state_to_panel(
                    clone, state, history, _rows_in_state(fitted_series, window.series, len(panel))
                )
            if monitor.cancelled:
                break
            fit_finished, cpu_fitted = time.perf_counter(), time.process_time()
            fold = forecast_window(clone, panel, window, state_at_cutoff, gap=plan.gap, horizon=plan.horizon)
        yield replace(
            fold,
            fit_seconds=fit_finished - started,
            predict_seconds=time.perf_counter() - fit_finished,
            fit_cpu=cpu_fitted - cpu_started,
            predict_cpu=time.process_time() - cpu_fitted,
            value_range=state_at_cutoff.value_range,
        )
    emit_warnings(collected)


def forecast_window(model: Forecaster, panel: Panel, window: BacktestWindow, state: State, gap: int, horizon: int) -> Fold:
    """The forecasts of a window from the state at its cutoff, and the actual values of the panel.

    The first `gap` steps after the cutoff are skipped.
    """
    steps = gap + horizon
    rows, _ = window.test_rows(panel, 0, steps)
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
    for name in panel.series.columns.future:
        missing = panel.covariates[name].missing()
        for window in windows if missing.any() else ():
            rows, has_row = window.test_rows(panel, 0, steps)
            absent = np.argwhere(missing[rows] & has_row)
            if len(absent):
                series_number, step = absent[0]
                raise DataError(
                    f"Future covariates must have a value at every step of the forecast, but column {name} is missing for "
                    f"series {panel.series.label(int(window.series[series_number]))} at "
                    f"{panel.format_timestamp(int(rows[series_number, step]))}. Fill in the value."
                )


def _rows_in_state(fitted_series: Ints, series: Ints, n_series: int) -> Ints:
    """The index of each of `series` among `fitted_series`, -1 if it is not there; `n_series` is the number in the panel."""
    index_in_state = np.full(n_series, -1, dtype=np.int64)
    index_in_state[fitted_series] = np.arange(len(fitted_series))
    return index_in_state[series]
