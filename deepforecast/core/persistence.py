"""Fitted models to files and back: a manifest of plain values and named arrays, no objects.

What a manifest may say is fixed here: the model's name (looked up in the registry), its parameters (validated by its
constructor), how the caller's frame looked, and a tree whose leaves are numbers, text or references to arrays. Unknown keys are
refused, nothing is imported by a name from the file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from deepforecast.core import registry
from deepforecast.core.conformal import METHODS, Calibration
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.state import Learned, State
from deepforecast.data.calendar import Calendar
from deepforecast.data.columns import Columns
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import TimeType
from deepforecast.data.frequency import Frequency, parse
from deepforecast.data.panel import Series
from deepforecast.data.storing import stored, unstored
from deepforecast.errors import DeepForecastError, ModelFileError, SaveError, shown, some
from deepforecast.io import bundle

KEYS = ("model", "parameters", "versions", "series", "learned", "categories", "static", "calibration")
LIBRARIES = ("pandas", "polars", "pyarrow")


def save(model: Forecaster, path: Any) -> None:
    """Write a fitted model; at every instant `path` holds the file that was there or the new one."""
    state = model.fitted()
    arrays: dict[str, np.ndarray] = {}
    tree = _Writer(arrays)
    try:
        manifest = {
            "model": type(model).__name__,
            "parameters": {name: tree.parameter(value, name) for name, value in model.get_params(deep=False).items()},
            "versions": _versions(),
            "series": tree.series(state.series),
            "learned": {"by_series": tree.node(dict(state.learned.by_series)), "shared": tree.node(dict(state.learned.shared))},
            "categories": {name: None if held is None else list(held) for name, held in state.categories.items()},
            "static": {name: tree.covariate(one) for name, one in state.static.items()},
            "calibration": None if state.calibration is None else tree.calibration(state.calibration),
        }
    except _CannotSave as reason:
        raise SaveError(f"{model.name} cannot be saved to {shown(str(path))}: {reason}") from None
    bundle.write(path, manifest, arrays)


def load(path: Any, *, trusted: tuple[str, ...] = ()) -> Any:
    """A fitted model from its file. Runs no code from it; `trusted` names the types of your own that may be built (none are needed
    for the library's models).

    >>> load("no-such-model.bin")
    Traceback (most recent call last):
    deepforecast.errors.ModelFileError: ...
    """
    manifest, arrays = bundle.read(path)
    try:
        return _Reader(arrays, str(path)).model(manifest)
    except ModelFileError:
        raise
    except (DeepForecastError, KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        text = str(error) if isinstance(error, DeepForecastError) else f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{shown(str(path))} is not a whole model of this library: {shown(text, 400)}. Save the model again.") from error


class _CannotSave(Exception):
    """Why a value has no place in a file."""


class _Writer:
    """Values to plain ones; arrays go to the side under a number."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays

    def array(self, values: np.ndarray) -> dict[str, str]:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = values
        return {"array": name}

    def node(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, Mapping):
            return {"tree": {_key(key): self.node(held) for key, held in value.items()}}
        if isinstance(value, (list, tuple)):
            return {"list": [self.node(held) for held in value]}
        return _plain(value)

    def parameter(self, value: Any, name: str) -> Any:
        if isinstance(value, Forecaster):
            own = {inner: self.parameter(held, inner) for inner, held in value.get_params(deep=False).items()}
            return {"model": type(value).__name__, "parameters": own}
        if isinstance(value, (list, tuple)):
            return {"list": [self.parameter(held, name) for held in value], "tuple": isinstance(value, tuple)}
        if isinstance(value, Mapping):
            return {"tree": {_key(key): self.parameter(held, name) for key, held in value.items()}}
        try:
            return _plain(value)
        except _CannotSave:
            raise _CannotSave(f"parameter {name} holds {shown(value)}, which is not a plain value. Give it by name or number.") from None

    def covariate(self, one: Covariate) -> dict[str, Any]:
        return {"values": self.array(one.values), "categories": None if one.categories is None else list(one.categories)}

    def calibration(self, one: Calibration) -> dict[str, Any]:
        return {"errors": self.array(one.errors), "method": one.method, "rate": float(one.rate)}

    def series(self, series: Series) -> dict[str, Any]:
        calendar = series.calendar
        ids = None
        if series.ids is not None:
            dtype, arrays = stored(series.ids)
            ids = {"dtype": dtype, "arrays": {name: self.array(values) for name, values in arrays.items()}}
        return {
            "library": series.library,
            "columns": {f.name: _listed(getattr(series.columns, f.name)) for f in fields(Columns)},
            "freq": calendar.freq,
            "custom": _custom(calendar.frequency),
            "step": calendar.step,
            "time_of_day": calendar.time_of_day,
            "time": {f.name: getattr(calendar.time, f.name) for f in fields(TimeType)},
            "ids": ids,
            "last": self.array(series.last),
        }


class _Reader:
    """Plain values back to what they were; whatever does not fit raises."""

    def __init__(self, arrays: Mapping[str, np.ndarray], path: str) -> None:
        self.arrays, self.path = arrays, path

    def model(self, manifest: Mapping[str, Any]) -> Forecaster:
        _exactly(manifest, KEYS, "the manifest")
        model = self.forecaster(manifest)
        _exactly(manifest["learned"], ("by_series", "shared"), "learned")
        series = self.series(manifest["series"])
        learned = Learned(self.node(manifest["learned"]["by_series"]), self.node(manifest["learned"]["shared"]))
        for name, values in learned.by_series.items():
            if not isinstance(values, np.ndarray) or len(values) != len(series):
                raise ModelFileError(f"{shown(self.path)}: the state {shown(name)} does not have one row for each series.")
        categories = {name: None if held is None else tuple(map(_text, held)) for name, held in manifest["categories"].items()}
        static = {name: self.covariate(held) for name, held in manifest["static"].items()}
        held = manifest["calibration"]
        calibration = None if held is None else self.calibration(held, len(series))
        model.state_ = State(series, learned, categories, static, calibration)
        return model

    def forecaster(self, said: Mapping[str, Any]) -> Forecaster:
        cls = registry.get(_text(said["model"]))
        return cls(**{_text(name): self.parameter(value) for name, value in said["parameters"].items()})

    def parameter(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return _scalar(value)
        if "model" in value:
            _exactly(value, ("model", "parameters"), "a wrapped model")
            return self.forecaster(value)
        if "list" in value:
            _exactly(value, ("list", "tuple"), "a list")
            items = [self.parameter(held) for held in value["list"]]
            return tuple(items) if value["tuple"] else items
        _exactly(value, ("tree",), "a parameter")
        return {name: self.parameter(held) for name, held in value["tree"].items()}

    def array(self, said: Mapping[str, Any]) -> np.ndarray:
        _exactly(said, ("array",), "an array")
        return self.arrays[_text(said["array"])]

    def node(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return _scalar(value)
        if "array" in value:
            return self.array(value)
        if "list" in value:
            _exactly(value, ("list",), "a list")
            return [self.node(held) for held in value["list"]]
        _exactly(value, ("tree",), "a node")
        return {name: self.node(held) for name, held in value["tree"].items()}

    def covariate(self, said: Mapping[str, Any]) -> Covariate:
        _exactly(said, ("values", "categories"), "a covariate")
        names = said["categories"]
        return Covariate(self.array(said["values"]), None if names is None else tuple(map(_text, names)))

    def calibration(self, said: Mapping[str, Any], count: int) -> Calibration:
        _exactly(said, ("errors", "method", "rate"), "the calibration")
        errors = self.array(said["errors"])
        if errors.ndim != 3 or len(errors) != count or said["method"] not in METHODS:
            raise ModelFileError(f"{shown(self.path)}: the calibration does not fit the series.")
        return Calibration(errors, said["method"], float(said["rate"]))

    def series(self, said: Mapping[str, Any]) -> Series:
        _exactly(said, ("library", "columns", "freq", "custom", "step", "time_of_day", "time", "ids", "last"), "the series")
        if said["library"] not in LIBRARIES:
            raise ModelFileError(f"{shown(self.path)}: frames are of {some(LIBRARIES)}; the file says {shown(said['library'])}.")
        _exactly(said["columns"], tuple(f.name for f in fields(Columns)), "columns")
        _exactly(said["time"], tuple(f.name for f in fields(TimeType)), "time")
        time = TimeType(**said["time"])
        last = self.array(said["last"])
        calendar = Calendar(_frequency(said), time, int(said["step"]), int(said["time_of_day"]))
        ids = said["ids"]
        held = None if ids is None else unstored(ids["dtype"], {n: self.array(a) for n, a in ids["arrays"].items()}, said["library"])
        if last.ndim != 1 or last.dtype != np.int64 or (held is not None and len(held) != len(last)) or calendar.step < 1:
            raise ModelFileError(f"{shown(self.path)}: ids, times and steps do not fit each other.")
        return Series(said["library"], Columns(**said["columns"]), calendar, held, last)


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {"deepforecast": version("deepforecast"), "python": sys.version.split()[0], "numpy": np.__version__}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    raise _CannotSave(f"{shown(value)} ({type(value).__name__}) is no array, number or text.")


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ModelFileError(f"A value of the file is a number, text, list or tree; found {shown(value)}.")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise _CannotSave(f"the key {shown(key)} is not text.")
    return key


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ModelFileError(f"Text was expected in the file; found {shown(value)}.")
    return value


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _exactly(said: Any, keys: tuple[str, ...], what: str) -> None:
    if not isinstance(said, Mapping) or set(said) != set(keys):
        found = list(said) if isinstance(said, Mapping) else said
        raise ModelFileError(f"{what} of the file has the keys {some(keys, most=12)}; found {shown(found, 200)}.")


def _custom(frequency: Frequency) -> dict[str, Any] | None:
    """What an alias does not say of a custom business day: its holidays and working week."""
    offset = frequency.offset
    if offset is None:
        return None
    return {"holidays": [str(day)[:10] for day in offset.holidays], "weekmask": str(offset.weekmask)}


def _frequency(said: Mapping[str, Any]) -> Frequency:
    custom = said["custom"]
    if custom is None:
        freq = _text(said["freq"])
        return parse(int(freq) if freq.isdigit() else freq)
    import pandas as pd

    _exactly(custom, ("holidays", "weekmask"), "the custom calendar")
    builders: dict[str, Callable[..., Any]] = {
        "C": pd.offsets.CustomBusinessDay, "CBMS": pd.offsets.CustomBusinessMonthBegin, "CBME": pd.offsets.CustomBusinessMonthEnd
    }  # fmt: skip
    base = parse(_text(said["freq"]))
    offset = builders[base.base](holidays=[_text(day) for day in custom["holidays"]], weekmask=_text(custom["weekmask"]))
    return Frequency(base.n, base.base, base.anchor, offset)
