"""Fitted models to files and back: no pickle, nothing from the file is run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core.foreign import Foreign, NotTrusted, objects
from deepforecast.core.manifest import Unfit, rebuilt, written
from deepforecast.core.threads import one_thread_if_forked
from deepforecast.data.covariates import Covariate
from deepforecast.errors import (
    CapabilityError,
    DeepForecastError,
    DependencyError,
    ModelFileError,
    ParameterTypeError,
    SaveError,
    shown,
    some,
)
from deepforecast.io import bundle

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

TRIED, STEPS = 16, 3  # series, and steps of each, that are forecast on loading


@one_thread_if_forked()
def save(model: Forecaster, path: Any, allow_skops: bool = False) -> None:
    """Write a fitted model; at every instant `path` holds the file that was there or the new one."""
    state, foreign = model.fitted(), Foreign(allow=allow_skops)
    if model.calibrates and state.calibration is None:
        raise _not_saved(model, path, "it was told to calibrate bands after it was fitted. Fit it again")
    try:
        manifest, arrays = written(model, state, foreign)
        if types := foreign.untrusted(objects(manifest, arrays)):
            raise NotTrusted(
                f"it holds types of other libraries, {some(types)}, which whoever loads it must trust. "
                f"Pass save(path, allow_skops=True), and load(path, trusted={types!r})"
            )
        _try_out(rebuilt(manifest, arrays, foreign))  # what could not be loaded is not saved
    except (Unfit, DeepForecastError) as reason:
        if isinstance(reason.__cause__, ImportError):  # the error names the package that is missing
            raise
        raise _not_saved(model, path, str(reason)) from reason
    bundle.write(path, manifest, arrays)


@one_thread_if_forked()
def load(path: Any, *, trusted: Any = ()) -> Any:
    """A fitted model from its file, ready to forecast: the data it was fitted on are not needed.

    Nothing from the file is run or imported: a model is found by its name in the registry (the library's own, those of
    installed packages, those registered in this process), its parameters pass its constructor, all else is numbers and text.
    `trusted` names further types, of your own, that may be built while loading, as "module.Class": those of a regressor that
    was saved with allow_skops=True; no model of the library needs any. A file that is not whole, was altered, or does not fit
    together raises `ModelFileError`, which names it.

    >>> import tempfile
    >>> from deepforecast import Naive, datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Naive(horizon=2).fit(datasets.load("air_passengers")).save(folder + "/model.dfc")
    ...     load(folder + "/model.dfc")
    Naive(horizon=2)
    """
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise ParameterTypeError(f"trusted is a tuple of names, each 'module.Class'; got {shown(trusted)}.")
    try:
        manifest, arrays = bundle.read(path)
    except ModelFileError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise ModelFileError(f"There is no file at {shown(str(path), 200)}. Save one first: model.save(path).") from error
        raise
    try:
        foreign = Foreign(trusted=tuple(trusted))
        if types := foreign.untrusted(objects(manifest, arrays)):
            names = repr(sorted({*trusted, *types}))
            raise NotTrusted(
                f"it holds {some(types)}, which must be trusted. If you trust its origin, pass load(path, trusted={names})"
            )
        model = rebuilt(manifest, arrays, foreign)
        _try_out(model)
    except DependencyError:
        raise
    except NotTrusted as error:
        raise ModelFileError(f"{shown(str(path), 200)} cannot be loaded: {error}.") from error
    except (Exception, MemoryError) as error:  # whatever a file made to do harm may provoke in a model
        text = str(error) if isinstance(error, (DeepForecastError, Unfit)) else f"{type(error).__name__}: {error}"
        name, why = shown(str(path), 200), shown(text, 400).rstrip(".")
        raise ModelFileError(f"{name} is not a whole model of this library: {why}. Save it again.") from error
    return model


def _try_out(model: Forecaster) -> None:
    """A few steps of a few series: what was learned has to fit the model, and the time stamps the frame."""
    state = model.fitted()
    if model.calibrates and state.calibration is None:
        raise Unfit("its bands are to be calibrated, and no calibration is there")
    first = state.take(np.arange(min(TRIED, len(state.series))))
    first.series.rows(first.series.calendar.following(first.series.last, 1))
    shape = (len(first.series), min(STEPS, model.own_horizon or STEPS))
    future = {name: _unknown(state.categories[name], shape) for name in state.series.columns.future}
    forecast = model.forecast_from(replace(first, calibration=None), shape[1], future)
    bands = np.stack([forecast.mean, forecast.mean], axis=-1)
    with suppress(CapabilityError):  # of a model that has points alone
        bands = forecast.quantiles([0.1, 0.9])
    if forecast.mean.shape != shape or bands.shape != (*shape, 2):
        raise Unfit(
            f"a forecast of {shape[1]} steps for {shape[0]} series has the shape {forecast.mean.shape}, its bands {bands.shape}"
        )
    if (bands[..., 0] > bands[..., 1]).any():
        raise Unfit("the lower end of a band lies above its upper end")


def _unknown(categories: tuple[str, ...] | None, shape: tuple[int, int]) -> Covariate:
    return Covariate(np.full(shape, 0.0 if categories is None else -1.0), categories)


def _not_saved(model: Forecaster, path: Any, why: str) -> SaveError:
    return SaveError(f"{model.name} cannot be saved to {shown(str(path), 200)}: {why}.")
