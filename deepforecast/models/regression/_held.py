"""What each series keeps of a fit and of the rows since: tails of its columns, its scale, where it began, who it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepforecast.core.state import LearnedState
from deepforecast.data.covariates import match_ids
from deepforecast.data.frames import Floats, Ints
from deepforecast.data.panel import Panel, Series
from deepforecast.errors import DeepForecastError
from deepforecast.models.regression import _tails
from deepforecast.models.regression._plan import Plan

SCALES = ("power", "unit", "line", "scale", "centre", "drift")


def begun(plan: Plan, panel: Panel, scales: Mapping[str, Any], began: Ints, owners: Floats) -> dict[str, Any]:
    """All of it after a whole history."""
    held: dict[str, Any] = {**scales, "began": began, "owner": owners}
    y, since = plan.imputed(panel.y, panel.indptr), (panel.start - began) // panel.calendar.step
    held["tail"] = _tails.tail(y, panel.indptr, plan.rows)
    held["seen"] = _tails.seen(plan.design, plan.target.apply(y, panel.indptr, scales, since), panel.indptr)
    straight = plan.target.straight(panel.y, panel.indptr, scales, since)
    held["ends"] = plan.target.ends(straight, panel.indptr, scales["drift"], plan.block)
    for name, lags in plan.design.columns.items():
        rows = max(one.n_rows_needed for one in lags) + plan.block
        held[f"past:{name}"] = _tails.tail(panel.covariates[name].values, panel.indptr, rows)
    before = max(0, -min(plan.design.future_rows))
    for name in panel.series.columns.future:
        if name in panel.covariates and before:
            held[f"ahead:{name}"] = _tails.tail(panel.covariates[name].values, panel.indptr, before)
    for name, one in panel.static.items():
        held[f"static:{name}"] = one.values.astype(np.float64)
    return held


def moved(plan: Plan, learned: LearnedState, panel: Panel) -> dict[str, Any]:
    """All of it after further rows of the same series."""
    held = dict(learned.by_series)
    for name in [one for one in held if one.startswith(("past:", "ahead:"))]:
        values = panel.covariates[name.partition(":")[2]].values
        held[name] = _tails.gone_on(held[name], values, panel.indptr)
    before, rows, last = learned.by_series["tail"], np.diff(panel.indptr), passed(learned, panel.series)
    y, indptr = joined(before, panel.y, panel.indptr)
    y = plan.imputed(y, indptr)
    held["tail"] = _tails.tail(y, indptr, before.shape[1])
    if not held["scale"].all():  # some never varied in the fit: they may have begun to
        found = plan.target.measured(plan.target.straight(y, indptr, held, last - np.diff(indptr)), indptr)
        held.update({name: np.where(held["scale"] > 0, held[name], found[name]) for name in found})
    if held["seen"].shape[1]:
        z = plan.target.apply(y, indptr, scales_of(held), last - np.diff(indptr))
        held["seen"] = _tails.seen_on(plan.design, held["seen"], z, indptr, before.shape[1])
    straight = plan.target.straight(panel.y, panel.indptr, held, last - rows)
    held["ends"] = plan.target.ends(*joined(held["ends"], straight, panel.indptr), held["drift"], plan.block)
    return held


def joined(before: Floats, y: Floats, indptr: Ints) -> tuple[Floats, Ints]:
    """The tails with the further rows behind them, as flat series."""
    rows, more = before.shape[1], np.diff(indptr)
    indptr = indptr + rows * np.arange(len(indptr))
    found = np.empty(indptr[-1])
    into = np.arange(indptr[-1]) - np.repeat(indptr[:-1], rows + more)
    found[into < rows] = before.reshape(-1)
    found[into >= rows] = y
    return found, indptr


def scales_of(held: Mapping[str, Any]) -> dict[str, Any]:
    """What the target of each series is scaled by."""
    return {name: held[name] for name in SCALES}


def passed(learned: LearnedState, series: Series) -> Ints:
    """Rows from the first one of the fit to the last one of each series."""
    return np.asarray((series.last - learned.by_series["began"]) // series.calendar.step + 1)


def standing(learned: LearnedState) -> Series:
    """Whose numbers these are."""
    if learned.series is None:
        raise DeepForecastError("A regression model forecasts for series with stamps; the model around it hands none on.")
    return learned.series


def known_rows(learned: LearnedState, panel: Panel) -> Ints:
    """The number of each series of a panel among those of the fit, -1 for an unknown one."""
    ours, theirs = standing(learned).ids, panel.series.ids
    if ours is None or theirs is None:
        return np.zeros(len(panel), dtype=np.int64)
    return match_ids(theirs, ours, "fitted model", "")
