"""Moves a fitted state to other histories, appends observations to it, and fine-tunes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.conformal import Calibration
from deepforecast.core.fallback import apply_fallback, can_forecast_some, warn_of_failures
from deepforecast.core.monitor import SILENT, Monitor
from deepforecast.core.preprocessing import drop_unusable, preprocess, reason_for_short, refuse_short_series
from deepforecast.core.state import LearnedState, State, require_histories, value_range
from deepforecast.data import frames
from deepforecast.data.columns import warn_undeclared
from deepforecast.data.covariates import Covariate, recode_covariate
from deepforecast.data.frames import Frame, Ints
from deepforecast.data.frequency import parse_frequency
from deepforecast.data.panel import Panel, is_blown_up
from deepforecast.errors import (
    CapabilityError,
    DataError,
    ParameterError,
    ParameterTypeError,
    format_list,
    format_value,
    pluralize,
    warn,
)

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster


def move_state(model: Forecaster, state: State, frame: Frame, static: Frame | None, freq: Any = None) -> State:
    """The state at the end of other histories: `predict(frame=...)`.

    Known series keep their parameters; local models fit new series. Series of another frequency are new.
    """
    # models of single series are fitted to new ones
    trains = model.capabilities.by_series
    panel, series_index = _read_history(state, frame, static, trains, **_time_options(model, state, freq))
    series_index = _index_of_fitted(state, series_index)
    _refuse_off_grid(state, panel, series_index)
    return move_state_to_panel(model, state, panel, series_index)


def prepare_history(
    model: Forecaster, state: State, frame: Frame, static: Frame | None, trains: bool = False
) -> tuple[Panel, Ints]:
    """The preprocessed panel of a frame, and the index of each of its series in the state, -1 for new ones.

    It has the observation weights of the frame if a model `trains` on it.
    """
    panel, series_index = _read_history(state, frame, static, trains, calendar=state.series.calendar)
    series_index = _index_of_fitted(state, series_index)
    _refuse_off_grid(state, panel, series_index)
    return _recode_categories(preprocess(model, panel), state), series_index


def fit_with_fallback(model: Forecaster, panel: Panel, monitor: Monitor) -> State:
    """The state after fitting the series of a panel that can be fitted, and what became of the others (`on_failure`)."""
    strict = model.clone(on_failure="raise")
    no_series = None
    if model.on_failure == "fallback" and panel.observed.any():  # naive methods may forecast all series
        categories = {name: covariate.categories for name, covariate in {**panel.covariates, **panel.static}.items()}
        unfitted = State(panel.series, LearnedState(), categories, panel.static, undeclared=panel.undeclared)
        no_series = unfitted.take(np.empty(0, dtype=np.int64))
    required = (model._min_observations_to_fit if model.calibrates else model._min_observations)(panel)
    short = np.flatnonzero((panel.lengths < required) & (panel.observed > 0))
    reason = reason_for_short(model, required)
    too_short = dict.fromkeys(short.tolist(), reason) if len(short) < np.count_nonzero(panel.observed) else {}
    with np.errstate(all="ignore"):  # forecasts that are not finite are found
        state = apply_fallback(model, panel, lambda some, _: strict._fit_panel(some, monitor), no_series, too_short)
    if state.fallback is None or not state.fallback.parts or model.capabilities.by_series or not len(state.series):
        return warn_of_failures(model, state)
    # a global model forecasts the others as unseen series, if they are long enough for that
    index_in_state = np.full(len(panel), -1, dtype=np.int64)
    index_in_state[state.fallback.fitted] = np.arange(len(state.series))
    fitted = replace(state, fallback=None)

    def move(some: Panel, numbers: Ints) -> State:
        return _move_series(strict, fitted, some, index_in_state[numbers])

    failed = np.array([number for number in state.fallback.reasons if panel.observed[number]], dtype=np.int64)
    if not can_forecast_some(model, panel, failed, move):
        return warn_of_failures(model, state)
    moved = apply_fallback(model, panel, move)
    fallback = moved.fallback or replace(state.fallback, fitted=np.arange(len(panel)), parts=())
    return warn_of_failures(model, replace(moved, fallback=replace(fallback, reasons=state.fallback.reasons)))


def move_state_to_panel(model: Forecaster, state: State, panel: Panel, series_index: Ints) -> State:
    """`move_state` for a panel; `series_index` is the index of each of its series in the state, -1 for new ones."""
    if model.on_failure == "raise":
        return _move_series(model, state, panel, series_index)
    no_series = replace(state, fallback=None).take(np.empty(0, dtype=np.int64))
    moved = apply_fallback(model, panel, lambda some, numbers: _move_series(model, state, some, series_index[numbers]), no_series)
    if moved.fallback is not None and not len(moved.fallback.forecast_series):
        raise DataError(
            f"{model.name} cannot forecast any series of the frame, but the first, {panel.series.label(0)}, has "
            f"{pluralize(int(panel.observed[0]), 'value')}.",
            hint="Pass longer histories" + (", or set on_failure='fallback'." if model.on_failure == "drop" else "."),
            series=panel.series.id_texts(np.arange(len(panel))),
        )
    return warn_of_failures(model, moved)


def _move_series(model: Forecaster, state: State, panel: Panel, series_index: Ints) -> State:
    """The state of the model at the end of a panel, all of whose series it can forecast."""
    if not (state.learned.shared or state.learned.by_series or model.capabilities.by_series):
        raise DataError(
            f"{model.name} cannot forecast new series, as it could be fitted to none in fit.",
            hint="Fit it to longer series.",
            series=panel.series.id_texts(np.arange(len(panel))),
            reason=f"{model.name} could be fitted to no series.",
        )
    complete_panel = _recode_categories(preprocess(model, panel), state)
    refuse_short_series(model, complete_panel, model._min_observations(complete_panel), "values of history")
    new = np.flatnonzero(series_index < 0)
    if model.capabilities.by_series and len(new):
        warn(
            f"{model.name} fits each series separately, so series that were not seen in fit are fitted now: "
            f"{panel.series.labels(new)}.",
            subject=model.name,
        )
    calibration = _calibration_for_panel(model, state, complete_panel, panel, series_index)
    learned = _learned_for_panel(
        model,
        state,
        complete_panel,
        panel,
        series_index,
        lambda learned_known, panel_part: model._advance(learned_known, panel_part, True),
    )
    extremes = value_range(complete_panel, state.value_range, series_index)
    return replace(
        state,
        series=complete_panel.series,
        learned=replace(learned, series=None),
        static=complete_panel.static,
        calibration=calibration,
        value_range=extremes,
        fallback=None,
    )


def append_observations(model: Forecaster, state: State, frame: Frame) -> State:
    """The state after the rows of `frame`, which follow the last observation of each series; keeps the calibration."""
    series = require_histories(state, model.name, "Pass the old and the new observations to predict(frame=...).").all_series
    panel, series_index = _read_history(state, frame, None, False, calendar=series.calendar)
    unknown = np.flatnonzero(series_index < 0)
    if len(unknown):
        raise DataError(
            f"`update` cannot add new series, but these were not seen in fit: {panel.series.labels(unknown)}.",
            hint="Fit again with these series, or use predict(frame=...).",
            series=panel.series.id_texts(unknown),
        )
    if state.fallback is None:
        return _append_panel(model, state, panel, series_index)
    return _append_with_fallback(model, state, panel, series_index)


def _append_with_fallback(model: Forecaster, state: State, panel: Panel, series_index: Ints) -> State:
    """`append_observations` for a state with naive methods; `series_index` is the index of each series of the panel among all."""
    fallback: Any = state.fallback
    without_forecast = np.setdiff1d(series_index, fallback.forecast_series)
    if len(without_forecast):
        raise DataError(
            "`update` cannot append to series without a forecast (see failures_), but the frame has these: "
            f"{fallback.series.labels(without_forecast)}.",
            hint="Leave them out, or fit again.",
            series=fallback.series.id_texts(without_forecast),
        )

    def append(member: Forecaster, member_state: State, numbers: Ints) -> State:
        """The state of one of the models, whose series have these numbers among all, after its rows of the panel."""
        chosen = np.flatnonzero(np.isin(series_index, numbers))
        if not len(chosen):
            return member_state
        usable_panel, _ = drop_unusable(panel.take(chosen), member.capabilities)
        return _append_panel(member, member_state, usable_panel, np.searchsorted(numbers, series_index[chosen]))

    fitted = append(model, replace(state, fallback=None), fallback.fitted)
    parts = tuple(replace(part, state=append(part.model, part.state, part.numbers)) for part in fallback.parts)
    last = fallback.series.last.copy()
    last[series_index] = panel.series.last
    return replace(fitted, fallback=replace(fallback, series=replace(fallback.series, last=last), parts=parts))


def _append_panel(model: Forecaster, state: State, panel: Panel, series_index: Ints) -> State:
    """The state after the rows of a panel; `series_index` is the index of each of its series in the state."""
    series = state.series
    skipped = _skipped_steps(model, series.last[series_index], panel)
    _refuse_large_gap(panel, series.last[series_index], skipped, state.n_rows)
    panel_with_gaps = _insert_gap_rows(panel, skipped)
    panel = _recode_categories(preprocess(model, panel_with_gaps, continues=True), state)
    last = series.last.copy()
    last[series_index] = panel.series.last
    learned = state.learned.put(series_index, model._advance(state.learned_with_series.take(series_index), panel, False))
    if state.value_range is not None:
        extremes = state.value_range.copy()
        extremes[series_index] = value_range(panel, extremes, series_index)
        state = replace(state, value_range=extremes)
    return replace(state, series=replace(series, last=last), learned=learned, undeclared=panel.undeclared)


def fine_tune_state(
    model: Forecaster, state: State, frame: Frame, static: Frame | None, freq: Any = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> State:
    """The state at the end of these histories after training continued on them; `options` are passed to `_fine_tune`."""
    unknown = [name for name in options if name not in signature(model._fine_tune).parameters]
    if unknown:
        raise ParameterTypeError(
            f"`fine_tune` of {model.name} has no parameter {unknown[0]}.", hint="Leave it out.", parameter=unknown[0]
        )
    panel, series_index = _read_history(state, frame, static, True, **_time_options(model, state, freq))
    series_index = _index_of_fitted(state, series_index)
    _refuse_off_grid(state, panel, series_index)

    def tune(some: Panel, numbers: Ints) -> State:
        return _fine_tune_series(model, state, some, series_index[numbers], options)

    if model.on_failure == "raise":
        return tune(panel, np.arange(len(panel)))
    return warn_of_failures(model, apply_fallback(model, panel, tune))


def _fine_tune_series(model: Forecaster, state: State, panel: Panel, series_index: Ints, options: Mapping[str, Any]) -> State:
    """`fine_tune_state` for a panel whose series the model can all fit; `series_index` is their index in the state, -1 for new ones."""
    complete_panel = _recode_categories(preprocess(model, panel), state)
    refuse_short_series(model, complete_panel, model._min_observations_to_fit(complete_panel))
    calibration = model._calibrate(panel)
    learned = _learned_for_panel(model, state, complete_panel, panel, series_index, partial(model._fine_tune, **options))
    extremes = value_range(complete_panel, state.value_range, series_index)
    state = replace(state, undeclared=panel.undeclared, value_range=extremes, fallback=None)
    return replace(
        state,
        series=complete_panel.series,
        learned=replace(learned, series=None),
        static=complete_panel.static,
        calibration=calibration,
    )


def _learned_for_panel(
    model: Forecaster,
    state: State,
    complete_panel: Panel,
    panel: Panel,
    series_index: Ints,
    function: Callable[[LearnedState, Panel], LearnedState],
) -> LearnedState:
    """The learned state of the series of a panel: `function` applied to the known ones; local models fit new ones.

    `complete_panel` is the preprocessed one. `series_index` is the index of each series in the state, -1 for
    new ones. Global models apply `function` to all series.
    """
    if not model.capabilities.by_series:
        return function(state.learned_with_series, complete_panel)
    known_series, new_series = np.flatnonzero(series_index >= 0), np.flatnonzero(series_index < 0)
    if not len(new_series):
        return function(state.learned_with_series.take(series_index), complete_panel)
    learned_new = model._add_covariate_facts(model._fit(complete_panel.take(new_series), SILENT), panel.take(new_series))
    if not len(known_series):
        return learned_new
    learned_known = function(state.learned_with_series.take(series_index[known_series]), complete_panel.take(known_series))
    return learned_known.join(learned_new).take(np.argsort(np.concatenate([known_series, new_series])))


def _calibration_for_panel(
    model: Forecaster, state: State, complete_panel: Panel, panel: Panel, series_index: Ints
) -> Calibration | None:
    """The calibration for the series of a panel; `series_index` is the index of each in the state, -1 for new ones.

    If errors are per series, new series are calibrated on the original `panel`, not on the
    preprocessed `complete_panel`, as each window imputes missing values itself; global models
    cannot calibrate them and raise `CapabilityError`.
    """
    known_series, new_series = np.flatnonzero(series_index >= 0), np.flatnonzero(series_index < 0)
    if state.calibration is None and model.calibrates and len(new_series) == len(series_index):  # the model was fitted to no series
        return model._calibrate(panel)
    if state.calibration is None or state.calibration.shared or not len(new_series):
        return None if state.calibration is None else state.calibration.for_panel(complete_panel, series_index)
    if not model.capabilities.by_series:
        raise CapabilityError(
            "Conformal intervals require calibration errors, which are missing for series not seen in fit: "
            f"{panel.series.labels(new_series)}.",
            hint="Fit again with these series, pool the errors of all series "
            "(Conformal(model, pool=True)), or set intervals=None.",
            series=panel.series.id_texts(new_series),
        )
    calibration_new = model._calibrate(panel.take(new_series))
    if not len(known_series) or calibration_new is None:
        return calibration_new
    return (
        state.calibration.take(series_index[known_series])
        .join(calibration_new)
        .take(np.argsort(np.concatenate([known_series, new_series])))
    )


def refuse_without_frame(**arguments: Any) -> None:
    """Raise `ParameterError` if an argument that describes the series of a frame is passed without it."""
    for name, value in arguments.items():
        if value is not None:
            raise ParameterError(
                f"`{name}` cannot be passed without `frame`: the series seen in fit keep theirs.",
                hint="Pass both, or neither.",
                parameter=name,
            )


def _time_options(model: Forecaster, state: State, freq: Any) -> dict[str, Any]:
    """How to read the timestamps of a frame: on the calendar of the fit, or with another frequency.

    Raises `CapabilityError` if the model cannot forecast another frequency.
    """
    calendar = state.series.calendar
    if freq is None or parse_frequency(freq) == calendar.frequency:
        return {"calendar": calendar}
    if not model.forecasts_any_frequency:
        raise CapabilityError(
            f"{model.name} can forecast only the frequency that it was fitted to, {calendar.freq!r}, got freq={format_value(freq)}.",
            hint="Fit it to these series.",
            parameter="freq",
            value=freq,
        )
    return {"freq": freq}


def _read_history(state: State, frame: Frame, static: Frame | None, trains: bool, **time: Any) -> tuple[Panel, Ints]:
    """A frame as a panel with the columns of the fit, and the index of each of its series in the state, -1 for new ones.

    Static covariates that are neither in the frame nor in `static` are taken from the fit. Observation weights are read
    only if a model `trains` on the panel and the frame has them.
    """
    frame, series, columns = frames.materialize(frame), state.all_series, state.all_series.columns
    known_static = state.static
    if state.fallback is not None:
        known_static = {name: covariate.scatter(state.fallback.fitted, len(series)) for name, covariate in known_static.items()}
    expected_static, present_names = known_static if static is None else {}, frames.read_table(frame).columns
    if columns.id is not None and columns.id not in present_names:
        raise DataError(f"The frame must have the id column {columns.id}, as in fit.", hint="Add the column.")
    absent_names = [name for name in expected_static if name not in present_names]
    static_there = tuple(name for name in known_static if name not in absent_names)
    requested_columns = columns if columns.static == static_there else replace(columns, static=static_there)
    ignored = state.undeclared
    if columns.weight is not None and not (trains and columns.weight in present_names):
        requested_columns, ignored = replace(requested_columns, weight=None), (*ignored, columns.weight)
    panel = Panel.from_frame(frame, columns=requested_columns, static=static, **time)
    warn_undeclared(panel.undeclared, ignored)
    if series.native_ids is None or panel.series.native_ids is None:
        series_index = np.full(len(panel), 0 if state.has_histories else -1, dtype=np.int64)
    else:
        series_index = series.index_of(panel.series.native_ids)
    if panel.calendar.frequency != series.calendar.frequency:  # the same id is another series
        series_index = np.full(len(panel), -1, dtype=np.int64)
    unknown = np.flatnonzero(series_index < 0)
    if absent_names and len(unknown):
        raise DataError(
            f"New series must have static covariates; missing for series {panel.series.labels(unknown)}: "
            f"{format_list(absent_names)}.",
            hint="Add these columns to the frame or pass static=.",
            series=panel.series.id_texts(unknown),
        )
    if columns is panel.series.columns and panel.undeclared == state.undeclared:
        return panel, series_index
    static_covariates = {
        name: known_static[name].take(series_index) if name in absent_names else panel.static[name] for name in known_static
    }
    undeclared = tuple(dict.fromkeys((*state.undeclared, *panel.undeclared)))
    return replace(panel, series=replace(panel.series, columns=columns), static=static_covariates, undeclared=undeclared), series_index


def _index_of_fitted(state: State, series_index: Ints) -> Ints:
    """The index among the series that the model fitted, -1 for others; `series_index` is that among all series, -1 for new ones."""
    if state.fallback is None:
        return series_index
    index_in_state = np.full(len(state.all_series) + 1, -1, dtype=np.int64)  # the last element is for -1
    index_in_state[state.fallback.fitted] = np.arange(len(state.series))
    return index_in_state[series_index]


def _recode_categories(panel: Panel, state: State) -> Panel:
    """The panel with the category codes of the fit; categories not seen in fit become unknown.

    Called after imputation, as a new category is not a missing value.
    """
    categories = state.categories
    if all(covariate.categories == categories.get(name) for name, covariate in {**panel.covariates, **panel.static}.items()):
        return panel

    def recode_all(covariates: Mapping[str, Covariate]) -> dict[str, Covariate]:
        return {name: recode_covariate(covariate, name, categories.get(name)) for name, covariate in covariates.items()}

    return replace(panel, covariates=recode_all(panel.covariates), static=recode_all(panel.static))


def _skipped_steps(model: Forecaster, last: Ints, panel: Panel) -> Ints:
    """Number of missing time steps between the last known observation of each series and its first new row.

    Raises if rows overlap or are off the grid, or if the model imputes, which a gap before the rows does not allow.
    """
    calendar = panel.calendar
    steps_after, remainder = np.divmod(panel.start - last, calendar.step)
    early = np.flatnonzero((steps_after < 1) | (remainder != 0))
    if len(early):
        raise DataError(
            "Rows passed to `update` must be after the last known ones, on the same time grid, but "
            f"{_describe_ends(panel, last, early)}.",
            hint="Pass only new rows.",
        )
    late = np.flatnonzero(steps_after > 1)
    if len(late) and model.missing_method != "auto":
        raise DataError(
            f"`update` cannot fill a gap before the new rows with missing={model.missing_method!r}, as earlier rows are not "
            f"stored, but {_describe_ends(panel, last, late)}.",
            hint="Pass the rows between, or fit again.",
        )
    return steps_after - 1


def _refuse_off_grid(state: State, panel: Panel, series_index: Ints) -> None:
    """Raise if a known series is not on the time grid of the fit, on which its position in the season depends."""
    known_series = np.flatnonzero(series_index >= 0)
    off_grid = known_series[
        (panel.series.last[known_series] - state.series.last[series_index[known_series]]) % panel.calendar.step != 0
    ]
    if len(off_grid):
        calendar, series_number = panel.calendar, int(off_grid[0])
        raise DataError(
            f"Series seen in fit must be on the same time grid as in fit, {calendar.freq!r} through "
            f"{calendar.format(int(state.series.last[series_index[series_number]]))}; not on it: series "
            f"{panel.series.labels(off_grid)}, with the last row of {panel.series.label(series_number)} at "
            f"{calendar.format(int(panel.series.last[series_number]))}.",
            hint="Shift the timestamps, or fit again.",
            series=panel.series.id_texts(off_grid),
        )


def _refuse_large_gap(panel: Panel, last: Ints, skipped: Ints, n_known: int) -> None:
    """Raise if most rows that the frequency requires are absent, as in `fit`."""
    n_absent, n_rows = float(skipped.sum(dtype=np.float64)), n_known + len(panel.y)
    if is_blown_up(n_rows + n_absent, n_rows):
        largest = np.array([np.argmax(skipped)])
        raise DataError(
            f"`update` cannot skip most rows of freq={panel.calendar.freq!r}: {n_absent:,.0f} rows are missing before the new "
            f"ones, but there are {n_rows:,}; {_describe_ends(panel, last, largest)}.",
            hint="Correct the timestamps, pass the rows between, or fit again.",
        )


def _describe_ends(panel: Panel, last: Ints, numbers: Ints) -> str:
    """These series, and for the first of them the last known timestamp and the first new one, as a clause."""
    series_number, calendar = int(numbers[0]), panel.calendar
    label = panel.series.label(series_number)
    known_until, start = calendar.format(int(last[series_number])), calendar.format(int(panel.start[series_number]))
    others = f" ({len(numbers)} such series: {panel.series.labels(numbers)})" if len(numbers) > 1 else ""
    return f"series {label} is known up to {known_until} and its new rows start at {start}{others}"


def _insert_gap_rows(panel: Panel, skipped: Ints) -> Panel:
    """The panel with `skipped[i]` missing rows before series i."""
    if not skipped.any():
        return panel
    lengths = panel.lengths + skipped
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.arange(len(panel.y)) + np.repeat(np.cumsum(skipped), panel.lengths)
    y = np.full(int(indptr[-1]), np.nan)
    y[rows] = panel.y
    covariates = {name: covariate.scatter(rows, len(y)) for name, covariate in panel.covariates.items()}
    return replace(panel, indptr=indptr, y=y, covariates=covariates)
