"""Series that a model cannot fit: they are left out, or forecast by a naive method (`on_failure`).

A series fails if it has no values or too few, if its fit fails, or if its forecast is not finite.
`apply_fallback` fits the others, and `SeasonalNaive` or, below one season, `Naive` to those that fail.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core import registry
from deepforecast.core.encoding import InvalidManifest, check_keys, check_list
from deepforecast.core.forecast import Forecast, JoinedForecast
from deepforecast.core.preprocessing import drop_unusable, hints_without_on_failure
from deepforecast.core.state import State
from deepforecast.data import frames
from deepforecast.data.frames import Floats, Frame, Ints
from deepforecast.data.id_serialization import decode_texts, encode_texts
from deepforecast.data.panel import Panel, Series
from deepforecast.errors import (
    CapabilityError,
    DataError,
    DeepForecastError,
    ParameterError,
    ParameterTypeError,
    TrainingError,
    format_list,
    format_value,
    suppress_warnings,
    warn,
)

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

FALLBACK_MODELS = ("SeasonalNaive", "Naive")  # tried in this order
FALLBACK_KEYS = ("series", "fitted", "parts", "failed", "reasons")  # in a model file
PART_KEYS = ("model", "parameters", "numbers", "series", "learned", "value_range")
NO_VALUES = "It has no values."
FitSome = Callable[[Panel, Ints], Any]  # fits some series of a panel, and their numbers in it, and returns a State


@dataclass(frozen=True)
class FallbackPart:
    """Series that a naive method forecasts: the method, their index among all series, and its state."""

    model: Forecaster
    numbers: Ints
    state: State

    def take(self, numbers: Ints, reindex: bool = True) -> FallbackPart:
        """The part restricted to `numbers`; with `reindex`, its series have the index that they have in `numbers`."""
        positions, index = _find(self.numbers, numbers)
        return FallbackPart(self.model, positions if reindex else numbers[positions], self.state.take(index))


@dataclass(frozen=True)
class Fallback:
    """Series that a model could not fit.

    series: all series, also those without a forecast; `State.series` has only those that the model fitted.
    fitted: index in `series` of those that the model fitted, in increasing order.
    parts: the naive methods that forecast others.
    reasons: why the model could not fit a series, by its index in `series`.
    """

    series: Series
    fitted: Ints
    parts: tuple[FallbackPart, ...]
    reasons: Mapping[int, str]

    @cached_property
    def forecast_series(self) -> Ints:
        """Index in `series` of those with a forecast, in increasing order."""
        return np.sort(np.concatenate([self.fitted, *(part.numbers for part in self.parts)]))

    def join(self, forecast: Forecast | None, steps: int) -> Forecast:
        """The forecasts of all series, NaN for those without one; `forecast` is that of the model, None if it fitted none."""
        forecasts = [] if forecast is None else [(self.fitted, forecast)]
        forecasts += [(part.numbers, part.model.forecast_from(part.state, steps, {})) for part in self.parts]
        return JoinedForecast(len(self.series), tuple(forecasts))

    def take(self, numbers: Ints) -> tuple[Ints, Fallback]:
        """Some of the series: those that the model fitted, as index among the fitted ones, and the fallback of all of them."""
        positions, index = _find(self.fitted, numbers)
        reasons = {position: self.reasons[number] for position, number in enumerate(numbers.tolist()) if number in self.reasons}
        parts = tuple(part for part in (part.take(numbers) for part in self.parts) if len(part.numbers))
        return index, Fallback(self.series.take(numbers), positions, parts, reasons)

    def split_columns(self, columns: Mapping[str, Floats], steps: int) -> tuple[Series, dict[str, Floats], dict[str, Floats]]:
        """The series with a forecast, the columns of those that the model fitted, and the columns of all with a forecast."""
        with_forecast = self.forecast_series
        by_series = {name: values.reshape(-1, steps) for name, values in columns.items()}
        fitted, forecast = (
            {name: values[numbers].reshape(-1) for name, values in by_series.items()}
            for numbers in (self.fitted, with_forecast)
        )
        return self.series.take(with_forecast), fitted, forecast

    def join_paths(self, paths: Floats, seed: int) -> tuple[Series, Floats]:
        """The series with a forecast and their sample paths (series, samples, steps); `paths` are those of the model."""
        _, samples, steps = paths.shape
        joined = np.full((len(self.series), samples, steps), np.nan)
        joined[self.fitted] = paths
        for part in self.parts:
            joined[part.numbers] = part.model._paths_from(part.state, steps, samples, seed, None)
        with_forecast = self.forecast_series
        return self.series.take(with_forecast), joined[with_forecast]

    def failures(self, model: Forecaster) -> dict[str, Any]:
        """The failed series as columns: id, reason and the model that forecasts it ("": no forecast)."""
        numbers = np.array(sorted(self.reasons), dtype=np.int64)
        model_by_number = dict.fromkeys(self.fitted.tolist(), type(model).__name__)
        for part in self.parts:
            model_by_number |= dict.fromkeys(part.numbers.tolist(), type(part.model).__name__)
        columns: dict[str, Any] = {}
        if self.series.columns.id is not None and self.series.native_ids is not None:
            columns[self.series.columns.id] = frames.take_native_values(self.series.native_ids, numbers)
        suffix = "_" if columns.keys() & {"reason", "model"} else ""  # the id column has one of these names
        columns[f"reason{suffix}"] = np.array([self.reasons[number] for number in numbers.tolist()], dtype=np.str_)
        columns[f"model{suffix}"] = np.array([model_by_number.get(number, "") for number in numbers.tolist()], dtype=np.str_)
        return columns


def _find(sorted_numbers: Ints, numbers: Ints) -> tuple[Ints, Ints]:
    """Positions of the `numbers` that are among the sorted ones, and their index there; few numbers take little time."""
    index = np.searchsorted(sorted_numbers, numbers)
    is_found = index < len(sorted_numbers)
    is_found[is_found] = sorted_numbers[index[is_found]] == numbers[is_found]
    return np.flatnonzero(is_found), index[is_found]


def failures_frame(model: Forecaster, state: State) -> Frame:
    """The frame `failures_` of a fitted model, empty if the model fitted all series."""
    fallback = state.fallback
    if fallback is None:
        fallback = Fallback(state.series, np.arange(len(state.series)), (), {})
    return frames.build(state.series.library, fallback.failures(model))


def find_ids(state: State, ids: Any) -> Ints:
    """The index among all series of those with these ids, in increasing order; raises for ids without a forecast."""
    series = state.all_series
    if isinstance(ids, np.ndarray) and not ids.ndim:
        ids = ids.item()
    if hasattr(ids, "to_list") or hasattr(ids, "to_pylist"):
        requested = frames.to_list(ids)
    else:
        requested = list(ids) if isinstance(ids, Iterable) and not isinstance(ids, str) else [ids]
    if not all(isinstance(name, Hashable) and not isinstance(name, bool | np.bool_) for name in requested):
        raise ParameterTypeError(
            f"`ids` must be an id or a flat list of ids, got {format_value(ids)}.", parameter="ids", value=ids
        )
    if series.native_ids is None:
        raise ParameterError(
            "`ids` cannot be used, as the model was fitted on a single series without an id column.",
            hint="Leave out `ids`.",
            parameter="ids",
            value=ids,
        )
    index_by_id = series.index_by_id
    unknown = [name for name in requested if name not in index_by_id]
    if unknown or not requested:
        example = next(iter(index_by_id))
        raise ParameterError(
            f"`ids` must be ids of series seen in fit, got {', '.join(map(repr, unknown[:5])) or 'none'}.",
            hint=f"Pass ids such as {example!r}.",
            parameter="ids",
            value=ids,
        )
    numbers = np.unique(np.array([index_by_id[name] for name in requested], dtype=np.int64))
    forecast_series = numbers if state.fallback is None else state.fallback.forecast_series
    without = np.delete(numbers, _find(forecast_series, numbers)[0])
    if len(without):
        raise ParameterError(
            f"`ids` must be ids of series with a forecast, got {format_list(series.id_texts(without[:5]), len(without))}.",
            hint="Leave them out; failures_ says why they have none.",
            parameter="ids",
            value=ids,
        )
    return numbers


def apply_fallback(
    model: Forecaster,
    panel: Panel,
    fit_some: FitSome,
    no_series: State | None = None,
    too_short: Mapping[int, str] = MappingProxyType({}),
) -> State:
    """The state after `fit_some` on all series that can be fitted, and naive methods for the others.

    `no_series` is the state to return if none of the series can be fitted; None: the first error is raised.
    `too_short` has the reasons for series known to be too short, to which `fit_some` is not applied.
    """
    reasons = {int(number): NO_VALUES for number in np.flatnonzero(panel.observed == 0)}
    can_be_fitted = panel.observed > 0
    can_be_fitted[list(too_short)] = False
    state, fitted, failed, error = _fit_most(model, panel, np.flatnonzero(can_be_fitted), fit_some)
    failed |= too_short
    if state is None and (error is None or error.series):  # not if the model itself is broken
        state = no_series
    if state is None and error is not None:
        with hints_without_on_failure():
            raise error
    if state is None:
        raise DataError(
            f"At least one series must have values, but all values of column {panel.series.columns.target} are missing.",
            hint="Pass series with values.",
        )
    reasons |= failed
    if not reasons:
        return state
    parts = _fit_naive(model, panel, np.array(sorted(failed), dtype=np.int64)) if model.on_failure == "fallback" else ()
    return replace(state, fallback=Fallback(panel.series, fitted, parts, reasons))


def add_failures(model: Forecaster, panel: Panel, state: State, reasons: Mapping[int, str]) -> State:
    """The state after more series failed for these reasons, which naive methods forecast now, or nothing (`on_failure`)."""
    numbers = np.array(sorted(reasons), dtype=np.int64)
    fallback = state.fallback or Fallback(state.series, np.arange(len(state.series)), (), {})
    parts = [part.take(np.setdiff1d(part.numbers, numbers), reindex=False) for part in fallback.parts]
    if model.on_failure == "fallback":
        parts += _fit_naive(model, panel, numbers)
    is_fitted = ~np.isin(fallback.fitted, numbers)
    outcome = "naive methods forecast them" if model.on_failure == "fallback" else "they are left out"
    warn(
        f"{model.name} cannot forecast series {panel.series.labels(numbers)}; {outcome}. The first reason: "
        f"{reasons[int(numbers[0])]}",
        subject=model.name,
    )
    fallback = replace(
        fallback,
        fitted=fallback.fitted[is_fitted],
        parts=tuple(part for part in parts if len(part.numbers)),
        reasons={**reasons, **fallback.reasons},
    )
    return replace(replace(state, fallback=None).take(np.flatnonzero(is_fitted)), fallback=fallback)


def can_forecast_some(model: Forecaster, panel: Panel, numbers: Ints, fit_some: FitSome) -> bool:
    """Whether `fit_some` succeeds for some of the series `numbers` of a panel."""
    try:
        return _fit_most(model, panel, numbers, fit_some)[0] is not None
    except CapabilityError:
        return False


def _fit_naive(model: Forecaster, panel: Panel, numbers: Ints) -> tuple[FallbackPart, ...]:
    """The naive methods for the series `numbers` of a panel: each series gets the first one that can be fitted to it."""
    parts = []
    for name in FALLBACK_MODELS if len(numbers) else ():
        parameters = {"season_length": _season_length(model)} if name == "SeasonalNaive" else {}
        naive: Forecaster = registry.get(name)(
            alias=model.name, horizon=model.default_horizon, missing=model.missing_method, **parameters
        )
        plain_panel, _ = drop_unusable(panel, naive.capabilities)

        def fit_some(some: Panel, _: Ints, model: Forecaster = naive) -> State:
            return model._fit_panel(some)

        try:
            with suppress_warnings():
                state, fitted, *_ = _fit_most(naive, plain_panel, numbers, fit_some)
        except ParameterError:  # integer time has no usual season
            continue
        if state is not None:
            parts.append(FallbackPart(naive, fitted, state))
            numbers = numbers[~np.isin(numbers, fitted)]
    return tuple(parts)


def _season_length(model: Any) -> Any:
    """The season of a model or of the one that it wraps, the shortest of several; "auto" if it has none."""
    season_length = getattr(getattr(model, "model", model), "season_length", "auto")
    if isinstance(season_length, list | tuple):
        season_length = min(season_length, default="auto")
    return season_length if isinstance(season_length, int) else "auto"


def _fit_most(
    model: Forecaster, panel: Panel, numbers: Ints, fit_some: FitSome
) -> tuple[State | None, Ints, dict[int, str], DeepForecastError | None]:
    """Fit as many of the series `numbers` as possible: state, fitted numbers, reasons of the others, and the first error."""
    reasons: dict[int, str] = {}
    first_error = None
    while len(numbers):
        try:
            state: State = fit_some(panel if len(numbers) == len(panel) else panel.take(numbers), numbers)
        except (DataError, TrainingError, CapabilityError) as error:
            failed = _failed_series(model, panel, numbers, error, fit_some)
            first_error = first_error or error
            reasons |= failed
            numbers = numbers[~np.isin(numbers, list(failed))]
            continue
        is_finite = _has_finite_forecasts(model, state)
        if not is_finite.all():
            text = f"The forecast of {model.name} is not finite."
            reasons |= dict.fromkeys(numbers[~is_finite].tolist(), text)
            numbers, first_error = numbers[is_finite], first_error or DataError(text)
            if not len(numbers):
                break
            state = state.take(np.flatnonzero(is_finite))
        return state, numbers, reasons, first_error
    return None, numbers, reasons, first_error


def _failed_series(
    model: Forecaster, panel: Panel, numbers: Ints, error: DeepForecastError, fit_some: FitSome
) -> dict[int, str]:
    """The series that an error is about, with its message; found by bisection if it names none. Raises other errors."""
    if error.series:
        named = set(error.series)
        failed = [int(number) for number, text in zip(numbers, panel.series.id_texts(numbers), strict=True) if text in named]
        if failed:
            return dict.fromkeys(failed, getattr(error, "reason", error.message))
    if error.parameter is not None or isinstance(error, CapabilityError) or not model.capabilities.by_series:
        raise error
    if len(numbers) == 1:
        return {int(numbers[0]): error.message}
    found: dict[int, str] = {}
    for half in np.array_split(numbers, 2):
        try:
            with suppress_warnings():
                fit_some(panel.take(half), half)
        except (DataError, TrainingError) as half_error:
            found |= _failed_series(model, panel, half, half_error, fit_some)
    if not found:  # the series fail only together
        raise error
    return found


def _has_finite_forecasts(model: Forecaster, state: State) -> Any:
    """Mask of the series with finite point forecasts.

    All series of global models, whose parameters are those of all series, and of models with future covariates, which are
    unknown.
    """
    if state.series.columns.future or not model.capabilities.by_series:
        return np.ones(len(state.series), dtype=bool)
    with np.errstate(all="ignore"):
        try:
            point = model._forecast(state.learned_with_series, model.default_horizon or 1, {}).point(model.point_kind)
        except CapabilityError:
            return np.ones(len(state.series), dtype=bool)
    return np.isfinite(point).all(axis=1)


def warn_of_failures(model: Forecaster, state: State) -> State:
    """Warn once of all series that the model could not fit, with the models that forecast them; return the state."""
    fallback = state.fallback
    if fallback is None:
        return state
    failed = np.array(sorted(fallback.reasons), dtype=np.int64)
    used = [f"{len(part.numbers):,} by {type(part.model).__name__}" for part in fallback.parts]
    unseen = len(np.intersect1d(failed, fallback.fitted))
    if unseen:
        used.insert(0, f"{unseen:,} by {model.name} as unseen series")
    n_dropped = len(fallback.series) - len(fallback.forecast_series)
    if n_dropped:
        used.append(f"{n_dropped:,} without a forecast")
    warn(
        f"{model.name} could not be fitted to {len(failed):,} of {len(fallback.series):,} series "
        f"({fallback.series.labels(failed)}): {', '.join(used)}. The first reason: {fallback.reasons[int(failed[0])]}",
        subject=model.name,
    )
    return state


def warn_of_missing_intervals(name: str, series: Series, numbers: Ints) -> None:
    """Warn of the series with these numbers, which are too short for intervals or sample paths of this model."""
    if len(numbers):
        warn(
            f"{name}: intervals and sample paths are missing for series that are too short for them: {series.labels(numbers)}.",
            subject=name,
        )


def write_fallback(writer: Any, fallback: Fallback) -> dict[str, Any]:
    """The series that the model could not fit, and the naive methods that forecast them."""
    parts = [
        {
            **writer.model(part.model),
            "numbers": writer.array(part.numbers),
            "series": writer.series(part.state.series),
            "learned": writer.learned(part.state.learned),
            "value_range": None if part.state.value_range is None else writer.array(part.state.value_range),
        }
        for part in fallback.parts
    ]
    return {
        "series": writer.series(fallback.series),
        "fitted": writer.array(fallback.fitted),
        "parts": parts,
        "failed": writer.array(np.array(list(fallback.reasons), dtype=np.int64)),
        "reasons": writer.array_dict(encode_texts(fallback.reasons.values())),
    }


def read_fallback(reader: Any, content: Any) -> Fallback:
    """The series that the model could not fit; each series has at most one forecast, and a reason if it failed."""
    check_keys(content, FALLBACK_KEYS, "the fallback")
    series, fitted = reader.series(content["series"]), _read_series_index(reader, content["fitted"])
    parts = tuple(_read_part(reader, part) for part in check_list(content["parts"]))
    failed, reasons = reader.array(content["failed"]), decode_texts(reader.array_dict(content["reasons"]))
    numbers = np.concatenate([fitted, *(part.numbers for part in parts)])
    is_valid = len(np.unique(numbers)) == len(numbers) and failed.dtype == np.int64
    for indices in (numbers, failed):
        is_valid = is_valid and indices.ndim == 1 and not ((indices < 0) | (indices >= len(series))).any()
    if not is_valid or len(failed) != len(reasons) or len(set(failed.tolist())) != len(reasons):
        raise InvalidManifest("the fallback must have one forecast at most for each series, and one reason for each failure")
    return Fallback(series, fitted, parts, dict(zip(failed.tolist(), reasons, strict=True)))


def _read_part(reader: Any, content: Any) -> FallbackPart:
    """A naive method with its state."""
    check_keys(content, PART_KEYS, "a naive method")
    model = reader.forecaster({"model": content["model"], "parameters": content["parameters"]})
    if type(model).__name__ not in FALLBACK_MODELS:
        raise InvalidManifest(f"a naive method must be one of {format_list(FALLBACK_MODELS)}, got {model.name}")
    series, numbers = reader.series(content["series"]), _read_series_index(reader, content["numbers"])
    learned = model._deserialize(replace(reader.learned(content["learned"], len(series)), series=series), reader.serializer)
    value_range = None if content["value_range"] is None else reader.value_range(content["value_range"], len(series))
    if len(numbers) != len(series):
        raise InvalidManifest("the numbers and the series of a naive method do not match")
    state = State(series, replace(learned, series=None), value_range=value_range)
    model.state_ = state
    return FallbackPart(model, numbers, state)


def _read_series_index(reader: Any, reference: Any) -> np.ndarray:
    """Increasing int64 numbers."""
    numbers: np.ndarray = reader.array(reference)
    if numbers.dtype != np.int64 or numbers.ndim != 1 or (numbers[1:] <= numbers[:-1]).any():
        raise InvalidManifest("the numbers of series must be increasing int64")
    return numbers
