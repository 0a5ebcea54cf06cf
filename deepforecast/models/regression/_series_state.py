"""State of each series after a fit: tails of its columns, scale, origin and id."""

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


def initial_state(plan: Plan, panel: Panel, scales: Mapping[str, Any], train_start: Ints, train_rows: Floats) -> dict[str, Any]:
    """State after the whole history."""
    state: dict[str, Any] = {**scales, "began": train_start, "owner": train_rows}
    y, elapsed = plan.impute(panel.y, panel.indptr), (panel.start - train_start) // panel.calendar.step
    state["tail"] = _recent_values.tail(y, panel.indptr, plan.n_target_values)
    state["seen"] = _recent_values.summarize_expanding(
        plan.design, plan.target.apply(y, panel.indptr, scales, elapsed), panel.indptr
    )
    detrended = plan.target.detrend_power(panel.y, panel.indptr, scales, elapsed)
    state["ends"] = plan.target.start_values(detrended, panel.indptr, scales["drift"], plan.block_size)
    for name, lags in plan.design.covariate_lags.items():
        rows = max(one.n_rows_needed for one in lags) + plan.block_size
        state[f"past:{name}"] = _recent_values.tail(panel.covariates[name].values, panel.indptr, rows)
    n_before = max(0, -min(plan.design.future_lags))
    for name in panel.series.columns.future:
        if name in panel.covariates and n_before:
            state[f"ahead:{name}"] = _recent_values.tail(panel.covariates[name].values, panel.indptr, n_before)
    for name, one in panel.static.items():
        state[f"static:{name}"] = one.values.astype(np.float64)
    return state


def update_state(plan: Plan, learned: LearnedState, panel: Panel) -> dict[str, Any]:
    """State after further rows of the same series."""
    state = dict(learned.by_series)
    for name in [key for key in state if key.startswith(("past:", "ahead:"))]:
        values = panel.covariates[name.partition(":")[2]].values
        state[name] = _recent_values.extend_tail(state[name], values, panel.indptr)
    previous, rows, elapsed = learned.by_series["tail"], np.diff(panel.indptr), count_elapsed(learned, panel.series)
    y, indptr = append_rows(previous, panel.y, panel.indptr)
    y = plan.impute(y, indptr)
    state["tail"] = _recent_values.tail(y, indptr, previous.shape[1])
    if not state["scale"].all():  # series constant in the fit may vary now
        scales = plan.target.measure_scales(plan.target.detrend_power(y, indptr, state, elapsed - np.diff(indptr)), indptr)
        state.update({name: np.where(state["scale"] > 0, state[name], scales[name]) for name in scales})
    if state["seen"].shape[1]:
        z = plan.target.apply(y, indptr, select_scales(state), elapsed - np.diff(indptr))
        state["seen"] = _recent_values.extend_summaries(plan.design, state["seen"], z, indptr, previous.shape[1])
    detrended = plan.target.detrend_power(panel.y, panel.indptr, state, elapsed - rows)
    state["ends"] = plan.target.start_values(
        *append_rows(state["ends"], detrended, panel.indptr), state["drift"], plan.block_size
    )
    return state


def append_rows(tails: Floats, y: Floats, indptr: Ints) -> tuple[Floats, Ints]:
    """Tails with further rows appended, as flat series."""
    rows, n_new = tails.shape[1], np.diff(indptr)
    indptr = indptr + rows * np.arange(len(indptr))
    extended = np.empty(indptr[-1])
    position = np.arange(indptr[-1]) - np.repeat(indptr[:-1], rows + n_new)
    extended[position < rows] = tails.reshape(-1)
    extended[position >= rows] = y
    return extended, indptr


def select_scales(state: Mapping[str, Any]) -> dict[str, Any]:
    """Scales of the target of each series."""
    return {name: state[name] for name in SCALE_NAMES}


def count_elapsed(learned: LearnedState, series: Series) -> Ints:
    """Number of rows from the first one of the fit to the last one of each series."""
    return np.asarray((series.last - learned.by_series["began"]) // series.calendar.step + 1)


def learned_series(learned: LearnedState) -> Series:
    """Series ids of the fitted state."""
    if learned.series is None:
        raise DeepForecastError(
            "A regression model requires the ids and timestamps of the series, but the learned state has none. Set `series` of "
            "the learned state in the model that calls it."
        )
    return learned.series


def match_series(learned: LearnedState, panel: Panel) -> Ints:
    """Index of each series of a panel in the fit, -1 for unknown series."""
    fitted_ids, panel_ids = learned_series(learned).ids, panel.series.ids
    if fitted_ids is None or panel_ids is None:
        return np.zeros(len(panel), dtype=np.int64)
    return match_ids(panel_ids, fitted_ids, "fitted model", "")
