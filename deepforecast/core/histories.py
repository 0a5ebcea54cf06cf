"""A fitted model on other rows than those of its fit: moved to the end of a history, appended, refined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.conformal import Calibration
from deepforecast.core.monitor import SILENT
from deepforecast.core.plausibility import value_range
from deepforecast.core.preparing import prepared, refuse_short
from deepforecast.core.state import Learned, State
from deepforecast.data import frames
from deepforecast.data.ahead import recoded
from deepforecast.data.assembly import blown_up
from deepforecast.data.columns import say_undeclared
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import Frame, Ints
from deepforecast.data.panel import Panel
from deepforecast.errors import CapabilityError, DataError, ParameterTypeError, say, some

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster


def moved(model: Forecaster, state: State, frame: Frame, static: Frame | None) -> State:
    """The state at the end of other histories: known series keep their parameters, unknown ones are fitted if they must be."""
    panel, rows = _read(state, frame, static, calendar=state.series.calendar)
    _refuse_off_grid(state, panel, rows)
    return moved_panel(model, state, panel, rows)


def looked_at(model: Forecaster, state: State, frame: Frame, static: Frame | None) -> tuple[Panel, Ints]:
    """A frame as a model in this state sees it, and the number of each of its series in the state, -1 for an unknown one."""
    panel, rows = _read(state, frame, static, calendar=state.series.calendar)
    _refuse_off_grid(state, panel, rows)
    return _recoded(prepared(model, panel), state), rows


def moved_panel(model: Forecaster, state: State, panel: Panel, rows: Ints) -> State:
    """`moved` for a panel; `rows` is the number of each of its series in the state, -1 for an unknown one."""
    whole = _recoded(prepared(model, panel), state)
    refuse_short(model, whole, model._needs(whole), "values of history")
    new = np.flatnonzero(rows < 0)
    if model.capabilities.by_series and len(new):
        say(f"{model.name} learns each series apart: series {panel.series.labels(new)} was not there in fit and is fitted now.")
    calibration = _calibration(model, state, panel, whole, rows)
    learned = _learned(model, state, whole, rows, lambda known, part: model._advance(known, part, True))
    extremes = value_range(whole, state.value_range, rows)
    return replace(
        state, series=whole.series, learned=learned, static=whole.static, calibration=calibration, value_range=extremes
    )


def appended(model: Forecaster, state: State, frame: Frame) -> State:
    """The state after the rows of `frame`, which go on where each series stands. A calibration of bands stays as it is."""
    series = state.series
    panel, rows = _read(state, frame, None, calendar=series.calendar)
    unknown = np.flatnonzero(rows < 0)
    if len(unknown):
        raise DataError(
            f"update goes on with series known from fit; series {panel.series.labels(unknown)} is not. Fit again with it, or "
            "forecast it by predict(frame=...)."
        )
    skipped = _skipped(model, series.last[rows], panel)
    _refuse_far(panel, series.last[rows], skipped, state.rows)
    late = _with_gap_before(panel, skipped)
    panel = _recoded(prepared(model, late, goes_on=True), state)
    last = series.last.copy()
    last[rows] = panel.series.last
    learned = state.learned.put(rows, model._advance(state.standing.take(rows), panel, False))
    if state.value_range is not None:
        extremes = state.value_range.copy()
        extremes[rows] = value_range(panel, extremes, rows)
        state = replace(state, value_range=extremes)
    return replace(state, series=replace(series, last=last), learned=learned, undeclared=panel.undeclared)


def refined(
    model: Forecaster, state: State, frame: Frame, static: Frame | None, how: Mapping[str, Any] = MappingProxyType({})
) -> State:
    """Learning goes on from the state on these histories; the model then stands at their end. `how`: for its `_refine`."""
    unknown = [name for name in how if name not in signature(model._refine).parameters]
    if unknown:
        raise ParameterTypeError(f"fine_tune of {model.name} takes frame and static; it has no {unknown[0]}. Leave it out.")
    panel, rows = _read(state, frame, static, calendar=state.series.calendar)
    _refuse_off_grid(state, panel, rows)
    whole = _recoded(prepared(model, panel), state)
    refuse_short(model, whole, model._needs_to_fit(whole))
    calibration = model._calibrated(panel)
    learned = _learned(model, state, whole, rows, partial(model._refine, **how))
    extremes = value_range(whole, state.value_range, rows)
    state = replace(state, undeclared=panel.undeclared, value_range=extremes)
    return replace(state, series=whole.series, learned=learned, static=whole.static, calibration=calibration)


def _learned(model: Forecaster, state: State, panel: Panel, rows: Ints, act: Callable[[Learned, Panel], Learned]) -> Learned:
    """What a model knows of the series of a panel: `act` on what it learned; a local one fits the series it has not seen."""
    if not model.capabilities.by_series:
        return act(state.standing, panel)
    known, new = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
    if not len(new):
        return act(state.standing.take(rows), panel)
    fresh = model._fit(panel.take(new), SILENT)
    if not len(known):
        return fresh
    old = act(state.standing.take(rows[known]), panel.take(known))
    return old.join(fresh).take(np.argsort(np.concatenate([known, new])))


def _calibration(model: Forecaster, state: State, panel: Panel, whole: Panel, rows: Ints) -> Calibration | None:
    """The bands for the series of a panel (`whole`: as the model sees it); a model that was calibrated series by series is so
    on the new ones too, each window filling what is missing for itself."""
    known, new = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
    if state.calibration is None or state.calibration.shared or not len(new):
        return None if state.calibration is None else state.calibration.at_end_of(whole, rows)
    if not model.capabilities.by_series:
        raise CapabilityError(
            f"Conformal bands come from a series' own errors; series {panel.series.labels(new)} was not there in fit. Fit "
            "with it, share errors among series (Conformal(model, pool=True)), or construct the model without intervals."
        )
    fresh = model._calibrated(panel.take(new))
    if not len(known) or fresh is None:
        return fresh
    return state.calibration.take(rows[known]).join(fresh).take(np.argsort(np.concatenate([known, new])))


def _read(state: State, frame: Frame, static: Frame | None, **time: Any) -> tuple[Panel, Ints]:
    """A frame as a panel with the columns of the fit, and the number of each of its series in the state, -1 for an unknown one.

    Static columns that are given neither in the frame nor beside it are those of the fit.
    """
    columns = state.series.columns
    looked_for = state.static if static is None else {}
    absent = [name for name in looked_for if name not in frames.table(frame).columns]
    static_there = tuple(name for name in state.static if name not in absent)
    asked = columns if columns.static == static_there else replace(columns, static=static_there)
    panel = Panel.from_frame(frame, columns=asked, static=static, **time)
    say_undeclared(panel.undeclared, state.undeclared)
    if state.series.own_ids is None or panel.series.own_ids is None:
        if state.series.own_ids is not None:
            raise DataError(
                f"The model was fitted with the id column {columns.id}; the frame has none, so its series cannot be told. Add "
                "the column."
            )
        rows = np.zeros(len(panel), dtype=np.int64)
    else:
        rows = state.series.numbers_of(panel.series.own_ids)
    unknown = np.flatnonzero(rows < 0)
    if absent and len(unknown):
        raise DataError(
            f"Static columns of a new series are in the frame or in static=; {some(absent)} of series "
            f"{panel.series.labels(unknown)} is in neither. Add them."
        )
    if columns is panel.series.columns and panel.undeclared == state.undeclared:
        return panel, rows
    held = {name: state.static[name].take(rows) if name in absent else panel.static[name] for name in state.static}
    undeclared = tuple(dict.fromkeys((*state.undeclared, *panel.undeclared)))
    return replace(panel, series=replace(panel.series, columns=columns), static=held, undeclared=undeclared), rows


def _recoded(panel: Panel, state: State) -> Panel:
    """The panel with the categories of the fit. Done after what is missing was seen to: a new category is not a missing one."""
    known = state.categories
    if all(one.categories == known.get(name) for name, one in {**panel.covariates, **panel.static}.items()):
        return panel

    def again(held: Mapping[str, Covariate]) -> dict[str, Covariate]:
        return {name: recoded(one, name, known.get(name)) for name, one in held.items()}

    return replace(panel, covariates=again(panel.covariates), static=again(panel.static))


def _skipped(model: Forecaster, last: Ints, panel: Panel) -> Ints:
    """The rows that lie between where each series stands and the first of its new rows."""
    calendar = panel.calendar
    skipped, rest = np.divmod(panel.start - last, calendar.step)
    early = np.flatnonzero((skipped < 1) | (rest != 0))
    if len(early):
        raise DataError(
            f"update takes rows after the last known one, on the same grid of time; {_stand(panel, last, early)}. Give only "
            "rows that are new."
        )
    late = np.flatnonzero(skipped > 1)
    if len(late) and model.filling != "auto":
        raise DataError(
            f"update with missing={model.filling!r} goes on without a gap, as what was before it is not kept to fill it from; "
            f"{_stand(panel, last, late)}. Give the rows between, or fit again."
        )
    return skipped - 1


def _refuse_off_grid(state: State, panel: Panel, rows: Ints) -> None:
    """Histories of known series lie on the grid of time of the fit: their season is counted on it."""
    known = np.flatnonzero(rows >= 0)
    off = known[(panel.series.last[known] - state.series.last[rows[known]]) % panel.calendar.step != 0]
    if len(off):
        calendar, one = panel.calendar, int(off[0])
        raise DataError(
            f"The history of a known series lies on the grid of time of the fit, {calendar.freq!r} through "
            f"{calendar.text(int(state.series.last[rows[one]]))}; series {panel.series.labels(off)} has stamps beside it, "
            f"the last of {panel.series.label(one)} at {calendar.text(int(panel.series.last[one]))}. Shift the "
            "stamps, or fit again."
        )


def _refuse_far(panel: Panel, last: Ints, skipped: Ints, known: int) -> None:
    """The new rows and the `known` ones are most of the rows that the frequency asks for, as in a fit."""
    absent, rows = float(skipped.sum(dtype=np.float64)), known + len(panel.y)
    if blown_up(rows + absent, rows):
        worst = np.array([np.argmax(skipped)])
        raise DataError(
            f"update goes on with most of the rows that freq asks for; with {panel.calendar.freq!r} {absent:,.0f} are absent "
            f"before the new ones, and {rows:,} there; {_stand(panel, last, worst)}. Repair the stamps, give the rows between, "
            "or fit again."
        )


def _stand(panel: Panel, last: Ints, numbers: Ints) -> str:
    """Where these series stand and where their new rows start; of several, the first says it."""
    one, calendar = int(numbers[0]), panel.calendar
    first = f"; the first, {panel.series.label(one)}," if len(numbers) > 1 else ""
    known, start = calendar.text(int(last[one])), calendar.text(int(panel.start[one]))
    return f"series {panel.series.labels(numbers)}{first} is known up to {known} and the new rows start at {start}"


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
