"""The one engine behind cross-validation, conformal calibration, ensembles and tuning: forecasts of a model at many cutoffs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.forecast import Forecast
from deepforecast.core.histories import moved_panel
from deepforecast.core.monitor import SILENT, Monitor
from deepforecast.core.state import State
from deepforecast.data.covariates import Covariate
from deepforecast.data.cutoffs import Plan, Window, windows
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import ParameterError, quietly, shown

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

CALIBRATION_WINDOWS = 100  # beyond this more errors change a band by less than the noise in them


@dataclass(frozen=True)
class Fold:
    """The forecasts of one window, arrays of shape (series of the window, steps); `there`: which steps the panel has rows for."""

    window: Window
    forecast: Forecast
    actual: Floats
    there: NDArray[np.bool_]
    fit_seconds: float
    predict_seconds: float


def refit_every(refit: Any, local: bool) -> int:
    """`refit` as a number of windows: 0 = once at the first, 1 = at every one, k = at every k-th."""
    if refit == "auto":
        return int(local)
    if isinstance(refit, bool):
        return int(refit)
    if hasattr(refit, "__index__") and int(refit) >= 1:
        return int(refit)
    raise ParameterError(f"refit is 'auto', True, False or a number of windows, at least 1; got {shown(refit)}.")


def roll(model: Forecaster, panel: Panel, plan: Plan, *, every: int, monitor: Monitor = SILENT) -> Iterator[Fold]:
    """Forecasts of `model` (left untouched) at every window of the plan, the oldest first.

    Between refits the parameters stay and the state moves to the end of each window's history.
    """
    state: State | None = None
    fitted_on = np.empty(0, dtype=np.int64)
    worker = model.clone(horizon=plan.gap + plan.horizon)
    for window in windows(panel, plan):
        history = window.history(panel)
        started = time.perf_counter()
        with nullcontext() if window.number == plan.n_windows - 1 else quietly():  # said once, of the longest history
            if state is None or (every and window.number % every == 0):
                state = worker._learn(history, monitor.fold(window.number))
                fitted_on, at = window.series, state
            else:
                at = moved_panel(worker, state, history, _places(fitted_on, window.series, len(panel)))
        yield _fold(worker, panel, plan, window, at, started)


def errors(model: Forecaster, panel: Panel, horizon: int, n_windows: int | None = None) -> Floats:
    """`actual - forecast` at rolling cutoffs, shape (series, windows, steps), fitted once on what lies before the first of them.

    Every series gives as many windows as it can, one row apart and at most `n_windows`, learning from at least half of its rows;
    NaN where a series has fewer than the others.
    """
    able = np.maximum((panel.lengths - horizon + 1) // 2, 1)
    wanted = np.minimum(able, CALIBRATION_WINDOWS if n_windows is None else n_windows)
    found = np.full((len(panel), int(wanted.max()), horizon), np.nan)
    for count in np.unique(wanted):
        group = np.flatnonzero(wanted == count)
        for fold in roll(model, panel.take(group), Plan(horizon, int(count), 1), every=0):
            place = found.shape[1] - int(count) + fold.window.number
            found[group[fold.window.series], place] = fold.actual - fold.forecast.point(model.point_kind)
    return found


def _fold(model: Forecaster, panel: Panel, plan: Plan, window: Window, state: State, started: float) -> Fold:
    fitted = time.perf_counter()
    steps = plan.gap + plan.horizon
    rows, _ = window.ahead(panel, 0, steps)
    future = {name: panel.covariates[name] for name in panel.series.columns.future}
    forecast = model.forecast_from(state, steps, {name: Covariate(one.values[rows], one.categories) for name, one in future.items()})
    predicted = time.perf_counter()
    rows, there = window.ahead(panel, plan.gap, plan.horizon)
    actual = np.where(there, panel.y[rows], np.nan)
    return Fold(window, forecast.after(plan.gap) if plan.gap else forecast, actual, there, fitted - started, predicted - fitted)


def _places(fitted_on: Ints, series: Ints, count: int) -> Ints:
    place = np.full(count, -1, dtype=np.int64)
    place[fitted_on] = np.arange(len(fitted_on))
    return place[series]
