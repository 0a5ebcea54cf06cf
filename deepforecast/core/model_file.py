"""Saves and loads fitted models, without pickle and without running code from the file."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core import encoding
from deepforecast.core.encoding import InvalidManifest, SkopsSerializer, UntrustedTypeError, stored_objects
from deepforecast.core.manifest import from_manifest, to_manifest
from deepforecast.core.state import State
from deepforecast.core.threads import one_thread_if_forked
from deepforecast.data.covariates import Covariate
from deepforecast.data.panel import Panel
from deepforecast.errors import (
    CapabilityError,
    DeepForecastError,
    DependencyError,
    ModelFileError,
    ParameterTypeError,
    SaveError,
    format_list,
    format_value,
)

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

N_TRIAL_SERIES, N_TRIAL_STEPS = 16, 3  # size of the forecast that checks a file on loading
N_EXAMPLE_ROWS = 3  # of the series that this forecast continues if the file has no histories


@one_thread_if_forked()
def save(model: Forecaster, path: Any, histories: bool = True, allow_skops: bool = False) -> None:
    """Save a fitted model; see `Forecaster.save`."""
    state, serializer = model.fitted_state(), SkopsSerializer(allow_any=allow_skops)
    if not isinstance(histories, bool):
        raise ParameterTypeError(
            f"`histories` must be True or False, got {format_value(histories)} ({type(histories).__name__}).",
            parameter="histories",
            value=histories,
        )
    if not histories:
        state = _drop_histories(model, state)
    try:
        manifest, arrays = to_manifest(model, state, serializer)
        if types := serializer.untrusted_types(stored_objects(arrays)):
            raise UntrustedTypeError(
                f"the model contains types of other libraries, {format_list(types)}, which must be trusted on loading.",
                hint=f"Pass save(path, allow_skops=True), and load(path, trusted={types!r})",
            )
        _trial_forecast(from_manifest(manifest, arrays, serializer))  # never save a file that cannot be loaded
    except (InvalidManifest, DeepForecastError) as error:
        if isinstance(error.__cause__, ImportError):  # the error names the missing package
            raise
        raise SaveError(f"{model.name} cannot be saved to {format_value(str(path), 200)}: {error}.") from error
    encoding.write_archive(path, manifest, arrays)


@one_thread_if_forked()
def load(path: Any, *, trusted: Any = ()) -> Any:
    """Load a fitted model, which can forecast without the training data.

    No code of the file is run, and none is imported but what you name in `trusted`: the class is
    looked up by name in the registry (models of the library, of installed packages, and those
    registered with `register`), the parameters are validated by its constructor, and everything else
    is numbers and text.

    Parameters
    ----------
    path : str or path-like
        Path of a file written by `Forecaster.save`.
    trusted : sequence of str, default ()
        Types that may be created, and functions that may be imported, as "module.name"; needed only
        for files saved with `allow_skops=True`.

    Returns
    -------
    Forecaster
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file does not exist, is damaged or inconsistent, or contains types that are not
        trusted.
    DependencyError
        If the model requires a package that is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from deepforecast import Naive, datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Naive(horizon=2).fit(datasets.load("air_passengers")).save(folder + "/model.dfc")
    ...     load(folder + "/model.dfc")
    Naive(horizon=2)
    """
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise ParameterTypeError(
            f"`trusted` must be a tuple of names 'module.Class', got {format_value(trusted)}.",
            parameter="trusted",
            value=trusted,
        )
    manifest, arrays = encoding.read_archive(path)
    try:
        serializer = SkopsSerializer(trusted=tuple(trusted))
        if types := serializer.untrusted_types(stored_objects(arrays)):
            names = repr(sorted({*trusted, *types}))
            raise UntrustedTypeError(
                f"the file contains the types {format_list(types)}, which must be trusted. "
                f"If you trust the origin of the file, pass load(path, trusted={names})"
            )
        model = from_manifest(manifest, arrays, serializer)
        _trial_forecast(model)
    except DependencyError:
        raise
    except UntrustedTypeError as error:
        raise ModelFileError(f"{format_value(str(path), 200)} cannot be loaded: {error}.") from error
    except (Exception, MemoryError) as error:  # a malicious file may cause any error in a model
        text = str(error) if isinstance(error, (DeepForecastError, InvalidManifest)) else f"{type(error).__name__}: {error}"
        name, reason = format_value(str(path), 200), format_value(text, 400).rstrip(".")
        raise ModelFileError(
            f"{name} cannot be loaded, as the file is damaged or not a model of this library: {reason}.",
            hint="Save the model again.",
        ) from error
    return model


def histories_required_error(model: Forecaster, reason: str | None = None) -> CapabilityError:
    """The error for `save(histories=False)` of a model for this reason, a clause; None: that of most models."""
    if reason is None and model.capabilities.by_series:
        reason = "its parameters are those of each series seen in fit"
    return CapabilityError(
        f"{model.name} cannot be saved with histories=False, as {reason or 'its forecasts use values of the training data'}.",
        hint="Use save(path), or a neural network, which forecasts new histories with its weights alone.",
        parameter="histories",
        value=False,
    )


def _drop_histories(model: Forecaster, state: State) -> State:
    """The state without series: no id, timestamp, observation or checksum of the training data."""
    if state.fallback is not None and not len(state.series):
        raise histories_required_error(model, "it could be fitted to none of the series, which naive methods forecast")
    learned = model._drop_histories(state.learned)
    if state.calibration is not None and not state.calibration.shared:
        raise CapabilityError(
            f"{model.name} cannot be saved with histories=False, as its intervals are calibrated on the errors of each series.",
            hint="Pool the errors of all series, Conformal(model, pool=True), or set intervals=None.",
            parameter="histories",
            value=False,
        )
    state = replace(state, fallback=None).take(np.empty(0, dtype=np.int64))  # predict(frame=) chooses fallbacks of its own
    return replace(state, learned=learned, series=replace(state.series, native_ids=None), fingerprint="", undeclared=())


def _example_state(model: Forecaster, state: State) -> State:
    """The state at the end of one short series of made-up values, for a model saved without histories."""
    def values(names: Iterable[str], n_values: int) -> dict[str, Covariate]:
        """Zeros, or unknown categories (-1)."""
        categories = {name: state.categories[name] for name in names}
        return {
            name: Covariate(np.full(n_values, 0.0 if labels is None else -1.0), labels) for name, labels in categories.items()
        }

    columns = state.series.columns
    series = replace(state.series, last=np.zeros(1, dtype=np.int64))
    y, indptr = np.arange(1.0, N_EXAMPLE_ROWS + 1), np.array([0, N_EXAMPLE_ROWS])
    panel = Panel(series, indptr, y, values((*columns.future, *columns.past), len(y)), values(columns.static, 1))
    learned = model._advance(state.learned_with_series, panel, True)
    return replace(state, series=series, learned=learned, static=panel.static, value_range=None)


def _trial_forecast(model: Forecaster) -> None:
    """Forecast a few steps of a few series, to check that state, model and timestamps are consistent; raises otherwise."""
    state = model.fitted_state()
    if state.fallback is not None:
        for part in state.fallback.parts:
            _trial_forecast(part.model)
        state = replace(state, fallback=None)
        if not len(state.series):
            return
    if model.calibrates and state.calibration is None:
        raise InvalidManifest("there is no calibration of the intervals, e.g. as they were set after the fit; fit the model again")
    trial_state = state.take(np.arange(min(N_TRIAL_SERIES, len(state.series))))
    if not state.has_histories:
        trial_state = _example_state(model, state)
    trial_state.series.key_columns(trial_state.series.calendar.next_positions(trial_state.series.last, 1))
    shape = (len(trial_state.series), min(N_TRIAL_STEPS, model.default_horizon or N_TRIAL_STEPS))
    future = {}
    for name in state.series.columns.future:
        categories = state.categories[name]
        future[name] = Covariate(np.full(shape, 0.0 if categories is None else -1.0), categories)  # -1: an unknown category
    forecast = model.forecast_from(replace(trial_state, calibration=None), shape[1], future)
    interval = np.stack([forecast.mean, forecast.mean], axis=-1)
    with suppress(CapabilityError):  # the model has no distribution
        interval = forecast.quantiles([0.1, 0.9])
    if forecast.mean.shape != shape or interval.shape != (*shape, 2):
        raise InvalidManifest(
            f"a forecast of {shape[1]} steps for {shape[0]} series must have the shape {shape}, got {forecast.mean.shape} with "
            f"intervals of shape {interval.shape}"
        )
    if (interval[..., 0] > interval[..., 1]).any():
        raise InvalidManifest("the lower bound of an interval is above its upper bound")
