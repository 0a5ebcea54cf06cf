"""A fitted model on other rows than those of its fit: prepared for the model, moved to the end of a history, appended, refined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from deepforecast.core.capabilities import Capabilities
from deepforecast.core.conformal import Calibration
from deepforecast.core.state import Learned, State
from deepforecast.data import missing as gaps
from deepforecast.data.ahead import recoded
from deepforecast.data.covariates import Covariate, match
from deepforecast.data.frames import Frame, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, DataError, ParameterError, quietly, say, some

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

ROLES = ("future", "past", "static")


def prepared(model: Forecaster, panel: Panel) -> Panel:
    """The panel as this model takes it: its roles usable, its missing values filled, masked aloud, or refused."""
    columns, able = panel.series.columns, model.capabilities
    for role in ROLES:
        names = getattr(columns, role)
        if names and not able.can_use(role):
            raise CapabilityError(
                f"{model.name} cannot use {role} covariates ({some(names)}). Leave them out of columns=, or choose a model whose "
                f"capabilities.{role} is true; compare() runs models without what they cannot use."
            )
        named = [name for name in names if (panel.static if role == "static" else panel.covariates)[name].categories is not None]
        if named and not able.categorical:
            raise CapabilityError(f"{model.name} cannot use categorical covariates ({some(named)}). Encode them as numbers.")
    return _without_missing(model, panel)


def usable(panel: Panel, able: Capabilities) -> tuple[Panel, list[str]]:
    """The panel without the covariates a model cannot use, and their names."""
    columns = panel.series.columns
    dropped = [name for role in ROLES if not able.can_use(role) for name in getattr(columns, role)]
    if not able.categorical:
        held = {**panel.covariates, **panel.static}
        dropped += [name for name, one in held.items() if one.categories is not None and name not in dropped]
    if not dropped:
        return panel, []
    kept = replace(columns, **{role: tuple(n for n in getattr(columns, role) if n not in dropped) for role in ROLES})
    panel = replace(
        panel,
        series=replace(panel.series, columns=kept),
        covariates={n: c for n, c in panel.covariates.items() if n not in dropped},
        static={n: c for n, c in panel.static.items() if n not in dropped},
    )
    return panel, dropped


def _without_missing(model: Forecaster, panel: Panel) -> Panel:
    held: dict[str, Covariate] = dict(panel.covariates)
    y = panel.y
    missing = {panel.series.columns.target: panel.missing()} | {name: one.missing() for name, one in held.items()}
    lacking = [name for name, rows in missing.items() if rows.any()]
    if not lacking:
        return panel
    name = lacking[0]
    first = int(np.argmax(missing[name]))
    series = np.unique(np.searchsorted(panel.indptr, np.flatnonzero(missing[name]), side="right") - 1)
    where = f"column {name} is missing in {int(missing[name].sum())} rows of series {panel.series.labels(series)}, first at {panel.stamp(first)}"
    if model.missing == "auto":
        if not model.capabilities.missing:
            raise DataError(
                f"{model.name} needs complete data; {where} (rows absent from the frame count as missing). Say "
                "missing='interpolate', 'ffill' or 'zero', or repair the data: fill_gaps(frame)."
            )
        say(f"{model.name} forecasts through missing values: {where}.")
        return panel
    if panel.series.columns.target in lacking:
        y = gaps.filled(y, panel.indptr, model.missing)
    for name in lacking:
        if name in held and held[name].categories is None:
            held[name] = replace(held[name], values=gaps.filled(held[name].values, panel.indptr, model.missing))
    return replace(panel, y=y, covariates=held)


def moved(model: Forecaster, state: State, frame: Frame, static: Frame | None) -> State:
    """The state at the end of other histories: known series keep their parameters, unknown ones are fitted if they must be."""
    columns = state.series.columns
    panel = Panel.from_frame(frame, columns=columns, freq=state.series.calendar.frequency, static=static)
    panel = replace(panel, covariates=_recoded(panel.covariates, state), static=_recoded(panel.static, state))
    return moved_panel(model, state, panel, _known(state, panel))


def moved_panel(model: Forecaster, state: State, panel: Panel, rows: Ints) -> State:
    """`moved` for a panel; `rows` is the number of each of its series in the state, -1 for an unknown one."""
    panel = prepared(model, panel)
    needed = model._needs(panel)
    short = np.flatnonzero(panel.observed < needed)
    if len(short):
        raise DataError(
            f"{model.name} needs at least {needed} values of history a series; series {panel.series.labels(short)} has "
            f"{panel.observed[short[0]]}. Give longer histories."
        )
    new = np.flatnonzero(rows < 0)
    calibration = state.calibration
    if not model.capabilities.local:
        learned = model._advance(state.learned, panel, True)
        if calibration is not None:
            calibration = _calibration_of(calibration, panel, rows)
    elif not len(new):
        learned = model._advance(state.learned.take(rows), panel, True)
        calibration = None if calibration is None else calibration.take(rows)
    else:
        say(f"{model.name} learns each series apart: series {panel.series.labels(new)} was not there in fit and is fitted now.")
        learned, calibration = _with_unknown(model, state, panel, rows)
    return replace(state, series=panel.series, learned=learned, static=panel.static, calibration=calibration)


def _calibration_of(calibration: Calibration, panel: Panel, rows: Ints) -> Calibration:
    unknown = np.flatnonzero(rows < 0)
    if len(unknown):
        raise CapabilityError(
            f"Conformal bands come from a series' own errors; series {panel.series.labels(unknown)} was not there in fit. Fit with it, or "
            "construct the model without intervals."
        )
    return calibration.take(rows)


def calibrated(model: Forecaster, panel: Panel) -> Calibration:
    """The errors of rolling forecasts, for `intervals="conformal"`."""
    from deepforecast.core.rolling import errors

    if model.horizon is None:
        raise ParameterError(f"intervals='conformal' calibrates every step, so it needs a horizon: {type(model).__name__}(horizon=...).")
    with quietly():  # the fit itself has said what there is to say
        return Calibration(errors(model.clone(intervals=None), panel, model.horizon))


def _with_unknown(model: Forecaster, state: State, panel: Panel, rows: Ints) -> tuple[Learned, Calibration | None]:
    old, new = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
    fresh = model._learn(panel.take(new))
    if not len(old):
        return fresh.learned, fresh.calibration
    known = model._advance(state.learned.take(rows[old]), panel.take(old), True)
    back = np.argsort(np.concatenate([old, new]))
    calibration = None
    if state.calibration is not None and fresh.calibration is not None:
        calibration = state.calibration.take(rows[old]).join(fresh.calibration).take(back)
    return known.join(fresh.learned).take(back), calibration


def appended(model: Forecaster, state: State, frame: Frame) -> State:
    """The state after the rows of `frame`, which go on where each series stands."""
    series = state.series
    panel = Panel.from_frame(frame, columns=series.columns, calendar=series.calendar)
    panel = replace(panel, covariates=_recoded(panel.covariates, state))
    rows = _known(state, panel)
    unknown = np.flatnonzero(rows < 0)
    if len(unknown):
        raise DataError(
            f"update goes on with series known from fit; series {panel.series.labels(unknown)} is not. Fit again with it, or forecast "
            "it by predict(frame=...)."
        )
    step = series.calendar.step
    skipped = (panel.start - series.last[rows]) // step - 1
    early = np.flatnonzero((skipped < 0) | ((panel.start - series.last[rows]) % step != 0))
    if len(early):
        one = int(early[0])
        raise DataError(
            f"update takes rows after the last known one; series {panel.series.labels(early)} is known up to "
            f"{series.calendar.text(int(series.last[rows[one]]))} and the new rows start at {series.calendar.text(int(panel.start[one]))}. "
            "Give only rows that are new."
        )
    panel = prepared(model, _with_gap_before(panel, skipped))
    learned = state.learned.put(rows, model._advance(state.learned.take(rows), panel, False)) if model.capabilities.local else (
        model._advance(state.learned, panel, False)
    )
    last = series.last.copy()
    last[rows] = panel.series.last
    return replace(state, series=replace(series, last=last), learned=learned)


def refined(model: Forecaster, state: State, frame: Frame, static: Frame | None) -> State:
    """Learning goes on from the state on these histories; the model then stands at their end."""
    panel = Panel.from_frame(frame, columns=state.series.columns, freq=state.series.calendar.frequency, static=static)
    panel = prepared(model, replace(panel, covariates=_recoded(panel.covariates, state), static=_recoded(panel.static, state)))
    fresh = model._learn(panel) if model.capabilities.local else None
    if fresh is not None:
        rows = _known(state, panel)
        known = np.flatnonzero(rows >= 0)
        if len(known):
            warm = model._refine(state.learned.take(rows[known]), panel.take(known))
            fresh = replace(fresh, learned=fresh.learned.put(known, warm))
        return fresh
    return replace(state, series=panel.series, learned=model._refine(state.learned, panel), static=panel.static)


def _known(state: State, panel: Panel) -> Ints:
    """The number of each series of the panel in the state, -1 where it is not there."""
    if state.series.ids is None or panel.series.ids is None:
        return np.zeros(len(panel), dtype=np.int64)
    return match(panel.series.ids, state.series.ids, "fitted model", state.series.columns.id or "")


def _recoded(held: Mapping[str, Covariate], state: State) -> dict[str, Covariate]:
    return {name: recoded(one, name, state.categories.get(name)) for name, one in held.items()}


def _with_gap_before(panel: Panel, skipped: Ints) -> Panel:
    """The panel with `skipped[i]` missing rows before series i."""
    if not skipped.any():
        return panel
    lengths = panel.lengths + skipped
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.arange(len(panel.y)) + np.repeat(np.cumsum(skipped), panel.lengths)
    y = np.full(int(indptr[-1]), np.nan)
    y[rows] = panel.y
    held = {}
    for name, one in panel.covariates.items():
        values = np.full(len(y), np.nan if one.categories is None else -1.0)
        values[rows] = one.values
        held[name] = replace(one, values=values)
    return replace(panel, indptr=indptr, y=y, covariates=held)
