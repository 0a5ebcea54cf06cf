"""Compile kernels and import libraries before anything is timed: they cost the first run on a machine or in a process only.

A model is fitted and forecasts on a few short series of made-up values, shaped like the data at hand: a model family
whose models compile or import something says by `warm_up_params` with which parameters that is cheapest.
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
from deepforecast.core.preprocessing import drop_unusable
from deepforecast.core.progress import hide_progress
from deepforecast.data.frequency import seasons
from deepforecast.data.panel import Panel
from deepforecast.data.splits import BacktestPlan
from deepforecast.errors import suppress_warnings

LOGGER = logging.getLogger(__name__)
HORIZON = 2  # steps: a strategy for the first step may differ from that for later ones
N_WINDOWS = 2  # a fit at the first cutoff, an update of its state at the second
MAX_ROWS = 500  # of a series, beyond what the model needs

_warm_keys = set[tuple[Any, ...]]()


def warm_up(model: Forecaster, panel: Panel, levels: Sequence[float]) -> None:
    """Compile and import what the model, or a model nested in it, needs for a panel of this kind; once in a process."""
    for small_model in _cheap_models(model):
        key = _kernel_key(small_model, panel, levels)
        if key in _warm_keys:
            continue
        _warm_keys.add(key)
        with suppress_warnings(), hide_progress(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                _fit_and_forecast(small_model, panel, levels)
            except Exception as error:  # the run itself reports what is wrong with a model
                LOGGER.debug("warm-up of %r failed: %s", small_model, error)


def _cheap_models(model: Forecaster) -> Iterator[Forecaster]:
    """The model, or the models that a wrapper holds, with the parameters that cost least."""
    cheap_params = getattr(model, "warm_up_params", None)
    if cheap_params is not None:
        horizon = min(model.default_horizon or HORIZON, HORIZON)
        yield model.clone(**{"horizon": horizon, "alias": None, "intervals": None, **cheap_params})
    for value in model.get_params(deep=False).values():
        for nested in value if isinstance(value, list | tuple) else [value]:
            if isinstance(nested, Forecaster):
                yield from _cheap_models(nested)


def _kernel_key(model: Forecaster, panel: Panel, levels: Sequence[float]) -> tuple[Any, ...]:
    """What decides on the kernels: choices among the parameters, not numbers, and the kind of the data."""
    choices = [
        (name, value) for name, value in model.get_params(deep=False).items() if value is None or isinstance(value, str | bool)
    ]
    columns, frequency = panel.series.columns, panel.calendar.frequency
    roles = (bool(columns.future), bool(columns.past), bool(columns.static))
    negative = bool(len(panel.y)) and bool(np.nanmin(panel.y) <= 0)
    return type(model), tuple(choices), roles, frequency, panel.complete, negative, bool(levels)


def _fit_and_forecast(model: Forecaster, panel: Panel, levels: Sequence[float]) -> None:
    usable_panel, _ = drop_unusable(panel, model.capabilities)
    levels = levels if model.capabilities.distribution is not None else ()
    usable_panel = _synthetic_panel(usable_panel, model)
    for fold in rolling_folds(model, usable_panel, BacktestPlan(int(model.horizon or HORIZON), N_WINDOWS, 1), refit_interval=0):
        output_columns(fold.forecast, model.name, model.point_kind, levels, [])


def _synthetic_panel(panel: Panel, model: Forecaster) -> Panel:
    """The ends of at most two series with the signs, zeros and gaps of their values, but other values."""
    lowest = np.fmin.reduceat(panel.y, panel.indptr[:-1])
    panel = panel.take(np.unique([int(np.argmin(panel.observed - panel.lengths)), int(np.nanargmin(lowest))]))
    season = max(seasons(panel.calendar.frequency), default=1)
    needed = model._min_observations_to_fit(panel) + N_WINDOWS + HORIZON
    incomplete = panel.observed < panel.lengths
    panel = panel.tail(max(needed, min(needed + 3 * season, MAX_ROWS)))
    step = np.arange(len(panel.y))
    values = 10.0 + 3.0 * np.sin(2.0 * np.pi * step / max(season, 4)) + np.random.default_rng(0).random(len(step))
    sign, gaps = np.sign(panel.y), panel.missing() & (panel.observed > needed)[panel.row_series]
    gaps[(panel.indptr[:-1] + panel.lengths // 2)[incomplete]] = True  # there may be none in the part taken
    zero = np.maximum.reduceat(np.nan_to_num(np.abs(sign)), panel.indptr[:-1]) == 0
    sign[np.isnan(sign) | zero[panel.row_series]] = 1.0
    return panel.with_target(np.where(gaps, np.nan, sign * values))
