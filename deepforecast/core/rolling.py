"""The one engine behind cross-validation, ensembles and tuning: forecasts of a model at many cutoffs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deepforecast.core.forecast import Forecast
from deepforecast.core.histories import moved_panel
from deepforecast.core.monitor import SILENT, Monitor
from deepforecast.core.preparing import as_seen, occurring
from deepforecast.core.state import State
from deepforecast.data.ahead import recoded
from deepforecast.data.cutoffs import Plan, Window, windows
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import DataError, Kept, ParameterError, keeping, say_kept, shown

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster


@dataclass(frozen=True)
class Fold:
    """The forecasts of one window, arrays of shape (series, steps); `there`: which steps the panel has rows for.

    `value_range`: the smallest and the largest value of each series up to the cutoff, shape (series, 2).
    """

    window: Window
    forecast: Forecast
    actual: Floats
    there: NDArray[np.bool_]
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    fit_cpu: float = 0.0
    predict_cpu: float = 0.0
    value_range: Floats | None = None


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

    Every window is what `fit` (or between refits, where the parameters stay, `predict(frame=...)`) makes of the rows before its
    cutoff and of no other. What there is to say is said once, at the end. It ends where who listens tells a fit to end.
    """
    state: State | None = None
    fitted_on = np.empty(0, dtype=np.int64)
    worker = model.clone(horizon=plan.gap + plan.horizon)
    every_window = windows(panel, plan)
    refuse_unknown_ahead(panel, every_window, plan.gap + plan.horizon)
    kept: Kept = {}
    for window in every_window:
        history = as_seen(window.history(panel))
        started, before = time.perf_counter(), time.process_time()
        with keeping(kept):
            if state is None or (every and window.number % every == 0):
                state = worker._learn(history, monitor.fold(window.number))
                fitted_on, at = window.series, state
            else:
                at = moved_panel(worker, state, history, _places(fitted_on, window.series, len(panel)))
            if monitor.dismissed:
                break
            fitted, between = time.perf_counter(), time.process_time()
            fold = forecast_at(worker, panel, window, at, plan.gap, plan.horizon)
        seconds = (fitted - started, time.perf_counter() - fitted, between - before, time.process_time() - between)
        yield Fold(fold.window, fold.forecast, fold.actual, fold.there, *seconds, at.value_range)
    say_kept(kept)


def forecast_at(model: Forecaster, panel: Panel, window: Window, state: State, gap: int, horizon: int) -> Fold:
    """The forecasts from a state that stands at the cutoff of a window, beside what the panel says of these steps."""
    steps = gap + horizon
    rows, _ = window.ahead(panel, 0, steps)
    names = panel.series.columns.future
    future = {name: recoded(occurring(panel.covariates[name].take(rows)), name, state.categories[name]) for name in names}
    forecast = model.forecast_from(state, steps, future)
    rows, there = window.ahead(panel, gap, horizon)
    return Fold(window, forecast.after(gap) if gap else forecast, np.where(there, panel.y[rows], np.nan), there)


def refuse_unknown_ahead(panel: Panel, every_window: Sequence[Window], steps: int) -> None:
    """What is known ahead is known at every step of every window."""
    for name in panel.series.columns.future:
        missing = panel.covariates[name].missing()
        for window in every_window if missing.any() else ():
            rows, there = window.ahead(panel, 0, steps)
            lacking = np.argwhere(missing[rows] & there)
            if len(lacking):
                one, step = lacking[0]
                raise DataError(
                    f"Columns known ahead are known at every step that is forecast; {name} is missing for series "
                    f"{panel.series.label(int(window.series[one]))} at {panel.stamp(int(rows[one, step]))}. Fill it."
                )


def _places(fitted_on: Ints, series: Ints, count: int) -> Ints:
    place = np.full(count, -1, dtype=np.int64)
    place[fitted_on] = np.arange(len(fitted_on))
    return place[series]
