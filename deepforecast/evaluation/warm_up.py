"""Compilation of kernels and import of libraries before anything is timed.

A model is fitted to short synthetic series that resemble the data. `warm_up_params` of a model
class has the cheapest parameters that compile and import everything.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from deepforecast.core.backtest import rolling_folds
from deepforecast.core.forecast import output_columns
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.monitor import hide_progress
from deepforecast.core.preprocessing import drop_unusable
from deepforecast.data.frequency import seasons
from deepforecast.data.panel import Panel
from deepforecast.data.windows import BacktestPlan
from deepforecast.errors import suppress_warnings

LOGGER = logging.getLogger(__name__)
HORIZON = 2  # the first step may use other code than later ones
N_WINDOWS = 2  # a fit at the first cutoff, a state update at the second
MAX_ROWS = 500  # rows per series, unless the model needs more

_warm_keys = set[tuple[Any, ...]]()


def warm_up(model: Forecaster, panel: Panel, levels: Sequence[float]) -> None:
    """Compile and import what the model and its wrapped models need for such a panel, once per
    process."""
    for small_model in _cheap_models(model):
        key = _kernel_key(small_model, panel, levels)
        if key in _warm_keys:
            continue
        _warm_keys.add(key)
        with suppress_warnings(), hide_progress(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                _fit_and_forecast(small_model, panel, levels)
            except Exception as error:  # the run reports the error
                LOGGER.debug("warm-up of %r failed: %s", small_model, error)


def _cheap_models(model: Forecaster) -> Iterator[Forecaster]:
    """The model and its wrapped models, with their cheapest parameters."""
    cheap_params = getattr(model, "warm_up_params", None)
    if cheap_params is not None:
        horizon = min(model.default_horizon or HORIZON, HORIZON)
        yield model.clone(**{"horizon": horizon, "alias": None, "intervals": None, **cheap_params})
    for value in model.get_params(deep=False).values():
        for nested in value if isinstance(value, list | tuple) else [value]:
            if isinstance(nested, Forecaster):
                yield from _cheap_models(nested)


def _kernel_key(model: Forecaster, panel: Panel, levels: Sequence[float]) -> tuple[Any, ...]:
    """What determines the kernels: categorical parameters and properties of the data."""
    choices = [
        (name, value) for name, value in model.get_params(deep=False).items() if value is None or isinstance(value, str | bool)
    ]
    columns = panel.series.columns
    frequency = panel.calendar.frequency
    roles = (bool(columns.future), bool(columns.past), bool(columns.static))
    negative = bool(len(panel.y)) and bool(np.nanmin(panel.y) <= 0)
    return type(model), tuple(choices), roles, frequency, panel.complete, negative, bool(levels)


def _fit_and_forecast(model: Forecaster, panel: Panel, levels: Sequence[float]) -> None:
    """Fit, forecast and update the model on a synthetic panel, which compiles its kernels."""
    usable_panel, _ = drop_unusable(panel, model.capabilities)
    levels = levels if model.capabilities.distribution is not None else ()
    usable_panel = _synthetic_panel(usable_panel, model)
    for fold in rolling_folds(model, usable_panel, BacktestPlan(int(model.horizon or HORIZON), N_WINDOWS, 1), refit_interval=0):
        output_columns(fold.forecast, model.name, model.point_kind, levels, [])


def _synthetic_panel(panel: Panel, model: Forecaster) -> Panel:
    """The ends of at most two series with synthetic values of the same signs, zeros and gaps.

    The series are the one with the most missing values and the one with the lowest value, because
    kernels may differ for gaps and for values that are not positive.
    """
    lowest = np.fmin.reduceat(panel.y, panel.indptr[:-1])
    panel = panel.take(np.unique([int(np.argmin(panel.observed - panel.lengths)), int(np.nanargmin(lowest))]))
    season = max(seasons(panel.calendar.frequency), default=1)
    needed = model._min_observations_to_fit(panel) + N_WINDOWS + HORIZON
    incomplete = panel.observed < panel.lengths
    panel = panel.tail(max(needed, min(needed + 3 * season, MAX_ROWS)))
    step = np.arange(len(panel.y))
    values = 10.0 + 3.0 * np.sin(2.0 * np.pi * step / max(season, 4)) + np.random.default_rng(0).random(len(step))
    sign = np.sign(panel.y)
    gaps = panel.missing() & (panel.observed > needed)[panel.row_series]
    gaps[(panel.indptr[:-1] + panel.lengths // 2)[incomplete]] = True  # the selected rows may have no gap
    is_all_zero = np.maximum.reduceat(np.nan_to_num(np.abs(sign)), panel.indptr[:-1]) == 0
    sign[np.isnan(sign) | is_all_zero[panel.row_series]] = 1.0
    return panel.with_target(np.where(gaps, np.nan, sign * values))
