"""State of each series after a fit, from which forecasts start.

The keys of the state are part of the file format:

began               position of the first row of the series in fit
owner               index of the series in fit, -1 for a new series
tail                last values of the target, (series, `Plan.n_target_values`)
seen                summaries of expanding windows
ends                last values from which inverse differences start
past:NAME           last values of a past covariate
ahead:NAME          values of a future covariate before the first step, for negative future lags
static:NAME         value of a static covariate
power, unit, line   power transformation, its unit, and linear trend
drift, centre, scale  mean change over the longest difference, and standardization after differencing
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import match_ids
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel, Series
from deepforecast.errors import DeepForecastError
from deepforecast.models.regression import _recent_values
from deepforecast.models.regression._plan import Plan

SCALE_NAMES = ("power", "unit", "line", "scale", "centre", "drift")


def initial_state(
    plan: Plan, panel: Panel, scales: Mapping[str, Any], train_start: Ints, series_index: Floats
) -> dict[str, Any]:
    """State after the histories in `panel`.

    `train_start`: positions of the first rows in fit; `series_index`: indices of the series in fit, -1 for new ones.
    """
    state: dict[str, Any] = {**scales, "began": train_start, "owner": series_index}
    y = plan.impute(panel.y, panel.indptr)
    elapsed = (panel.start - train_start) // panel.calendar.step
    state["tail"] = _recent_values.tail(y, panel.indptr, plan.n_target_values)
    state["seen"] = _recent_values.summarize_expanding(
        plan.design, plan.target.apply(y, panel.indptr, scales, elapsed), panel.indptr
    )
    detrended = plan.target.detrend_power(panel.y, panel.indptr, scales, elapsed)
    state["ends"] = plan.target.start_values(detrended, panel.indptr, scales["drift"], plan.block_size)
    for name, lags in plan.design.covariate_lags.items():
        n_values = max(lag.n_rows_needed for lag in lags) + plan.block_size
        state[f"past:{name}"] = _recent_values.tail(panel.covariates[name].values, panel.indptr, n_values)
    n_before = max(0, -min(plan.design.future_lags))
    for name in panel.series.columns.future:
        if name in panel.covariates and n_before:
            state[f"ahead:{name}"] = _recent_values.tail(panel.covariates[name].values, panel.indptr, n_before)
    for name, covariate in panel.static.items():
        state[f"static:{name}"] = covariate.values.astype(np.float64)
    return state


def update_state(plan: Plan, learned: LearnedState, panel: Panel) -> dict[str, Any]:
    """State after further rows of the same series.

    The target transformation of fit is kept, but series that were constant get the scales of their new values.
    """
    state = dict(learned.by_series)
    for name in [key for key in state if key.startswith(("past:", "ahead:"))]:
        values = panel.covariates[name.partition(":")[2]].values
        state[name] = _recent_values.extend_tail(state[name], values, panel.indptr)
    previous_tail = learned.by_series["tail"]
    n_previous = previous_tail.shape[1]
    n_new = np.diff(panel.indptr)
    elapsed = count_elapsed(learned, panel.series)
    y, indptr = append_rows(previous_tail, panel.y, panel.indptr)
    y = plan.impute(y, indptr)
    state["tail"] = _recent_values.tail(y, indptr, n_previous)
    if not state["scale"].all():  # series constant in fit may vary now
        scales = plan.target.measure_scales(plan.target.detrend_power(y, indptr, state, elapsed - np.diff(indptr)), indptr)
        state.update({name: np.where(state["scale"] > 0, state[name], scales[name]) for name in scales})
    if state["seen"].shape[1]:
        z = plan.target.apply(y, indptr, select_scales(state), elapsed - np.diff(indptr))
        state["seen"] = _recent_values.extend_summaries(plan.design, state["seen"], z, indptr, n_previous)
    detrended = plan.target.detrend_power(panel.y, panel.indptr, state, elapsed - n_new)
    start_values, start_indptr = append_rows(state["ends"], detrended, panel.indptr)
    state["ends"] = plan.target.start_values(start_values, start_indptr, state["drift"], plan.block_size)
    return state


def append_rows(tails: Floats, y: Floats, indptr: Ints) -> tuple[Floats, Ints]:
    """Tails (series, values) followed by the new values `y` of each series: flat values and their row pointers."""
    width, n_new = tails.shape[1], np.diff(indptr)
    indptr = indptr + width * np.arange(len(indptr))
    extended = np.empty(indptr[-1])
    position = np.arange(indptr[-1]) - np.repeat(indptr[:-1], width + n_new)
    extended[position < width] = tails.reshape(-1)
    extended[position >= width] = y
    return extended, indptr


def select_scales(state: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of the state that `TargetTransform` uses."""
    return {name: state[name] for name in SCALE_NAMES}


def count_elapsed(learned: LearnedState, series: Series) -> Ints:
    """Number of rows from the first one in fit to the last one of each series, both included."""
    return np.asarray((series.last - learned.by_series["began"]) // series.calendar.step + 1)


def learned_series(learned: LearnedState) -> Series:
    """The series of the learned state; `DeepForecastError` if a wrapping model did not set them."""
    if learned.series is None:
        raise DeepForecastError(
            "A regression model requires the ids and timestamps of the series, but the learned state has none.",
            hint="Set `series` of the learned state in the model that calls it.",
        )
    return learned.series


def match_series(learned: LearnedState, panel: Panel) -> Ints:
    """For each series of a panel its index in fit, -1 for series not seen in fit."""
    fitted_ids, panel_ids = learned_series(learned).ids, panel.series.ids
    if fitted_ids is None or panel_ids is None:
        return np.zeros(len(panel), dtype=np.int64)
    return match_ids(panel_ids, fitted_ids, "fitted model", "")
