"""From a model and a panel to a calibration: forecasts at rolling cutoffs, held against what came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.conformal import OwnErrors, PooledErrors, scale_of
from deepforecast.core.histories import moved_panel
from deepforecast.core.monitor import SILENT
from deepforecast.core.preparing import as_seen, fewer, prepared
from deepforecast.core.progress import counting
from deepforecast.core.rolling import Fold, forecast_at, refuse_unknown_ahead
from deepforecast.data.cutoffs import Window, ready
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import CalibrationError, quietly

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

MOST_WINDOWS = 100  # of a series; beyond this more errors change a band by less than the noise in them
MOST_POOLED = 1000  # of all series together
BAR = "calibration windows"


def own_errors(model: Forecaster, panel: Panel, horizon: int, n_windows: int | None = None) -> OwnErrors:
    """The errors of each series, as many windows as it can give and at most `n_windows`; NaN where it has fewer than others."""
    count = _windows(model, panel, horizon, model._needs(panel), MOST_WINDOWS if n_windows is None else n_windows)
    found = np.full((len(panel), int(count.max()), horizon), np.nan)
    with counting(int(count.max()), BAR) as tick:
        for fold, _ in _folds(model, panel, horizon, count):
            found[fold.window.series, fold.window.number] = _error(model, fold)
            tick(1)
    return OwnErrors(found)


def pooled_errors(model: Forecaster, panel: Panel, horizon: int, n_windows: int | None = None) -> PooledErrors:
    """The errors of all series over the scale each had at the cutoff: a thousand, or `n_windows` of each.

    A series that was constant up to a cutoff had no scale there, and its error, 0 or not, tells nothing of those that have one:
    it is left out of the pool.
    """
    scale = _scale(model, panel)
    wanted = -(-MOST_POOLED // max(int(np.count_nonzero(scale)), 1)) if n_windows is None else n_windows
    count = _windows(model, panel, horizon, max(model._needs(panel), 2), wanted)  # of one value alone no scale is known
    scores = []
    with counting(int(count.max()), BAR) as tick:
        for fold, history in _folds(model, panel, horizon, count):
            size, before = np.abs(_error(model, fold)), _scale(model, history)
            moved = before > 0
            with np.errstate(over="ignore"):
                scores.append(size[moved] / before[moved, None])
            tick(1)
    return PooledErrors(np.sort(np.concatenate(scores), axis=0), scale)


def _windows(model: Forecaster, panel: Panel, horizon: int, needed: int, most: int) -> Ints:
    """How many windows each series gives, one row apart: learning from half of its rows at least, and from what is needed."""
    room = panel.lengths - horizon - ready(panel, needed) + 1
    short = np.flatnonzero(room < 1)
    if len(short):
        raise CalibrationError(
            f"Conformal bands of {model.name} need {needed} values to learn from and {horizon} more to compare a forecast "
            f"with; series {fewer(panel, short)}. Leave such series out, give longer ones or a shorter horizon."
        )
    half = np.maximum((panel.lengths - horizon + 1) // 2, 1)
    return np.asarray(np.minimum(np.minimum(room, half), most))


def _folds(model: Forecaster, panel: Panel, horizon: int, count: Ints) -> Iterator[tuple[Fold, Panel]]:
    """The last `count[i]` windows of each series, the oldest first, and the histories before them; fitted once."""
    most = int(count.max())
    first = panel.lengths - horizon - count + 1
    every_window = [_window(panel, horizon, count, number) for number in range(most)]
    refuse_unknown_ahead(panel, every_window, horizon)
    with quietly():  # the fit of the whole panel says what there is to say
        before = as_seen(panel.between(np.zeros(len(panel), np.int64), first))
        state = model._learn(before, SILENT.fold(0))
    for window in every_window:
        history = as_seen(window.history(panel))
        with quietly():
            at = moved_panel(model, state, history, window.series)
            fold = forecast_at(model, panel, window, at, gap=0, horizon=horizon)
        yield fold, history


def _window(panel: Panel, horizon: int, count: Ints, number: int) -> Window:
    """Window `number` of as many as the series that gives most has: the last of all series come together at the end."""
    later = int(count.max()) - 1 - number
    series = np.flatnonzero(count > later)
    return Window(number, series, np.zeros(len(series), np.int64), panel.lengths[series] - horizon - later)


def _scale(model: Forecaster, panel: Panel) -> Floats:
    """The scale of each series as the model sees it: with what was missing filled, where the model is told to."""
    if panel.complete or model.filling == "auto":
        return scale_of(panel)
    with quietly():
        return scale_of(prepared(model, panel))


def _error(model: Forecaster, fold: Fold) -> Floats:
    return np.asarray(fold.actual - fold.forecast.point(model.point_kind))
