"""A fitted model as plain values and arrays, and back.

A manifest holds the model's name and parameters (validated by its constructor), versions, a fingerprint of the data, the layout
of the frame, and a tree of numbers, text and references to arrays. Unknown keys and arrays without a reference are refused.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from deepforecast.core import registry
from deepforecast.core.conformal import METHODS, Calibration, OwnErrors, PooledErrors
from deepforecast.core.forecaster import Forecaster
from deepforecast.core.foreign import Foreign
from deepforecast.core.state import Learned, State
from deepforecast.data import calendar as calendars
from deepforecast.data.calendar import Calendar
from deepforecast.data.columns import Columns
from deepforecast.data.covariates import Covariate
from deepforecast.data.frequency import Frequency, parse
from deepforecast.data.panel import Series
from deepforecast.data.storing import stored, text_arrays, texts, unstored
from deepforecast.data.times import TimeType
from deepforecast.errors import shown, some

KEYS = ("model", "parameters", "seed", "versions", "data", "series", "learned", "categories", "static", "calibration")
ADDED = {"seed": None, "value_range": None}  # keys that files of version 0.1.0 may lack
LIBRARIES = ("pandas", "polars", "pyarrow")
INTEGER_TIME = re.compile(r"u?int(8|16|32|64)(\[pyarrow\])?", re.IGNORECASE)
ZONE = re.compile(r"(?!dateutil)[A-Za-z0-9_+:-]+(/[A-Za-z0-9_+-]+){0,2}")  # no path, and no scheme that would open one
LARGEST = 2**63 - 1
OURS = Foreign()


class Unfit(Exception):
    """Why a value has no place in a file, or a file's value none in a model."""


def written(
    model: Forecaster, state: State, foreign: Foreign = OURS
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The manifest of a fitted model, and its arrays; `Unfit` for what cannot be said in one."""
    arrays: dict[str, np.ndarray] = {}
    tree = _Writer(arrays, foreign)
    learned = model._kept(state.learned, foreign)
    named = tree.model(model)
    manifest = {
        **named,
        "seed": named["parameters"].get("seed"),  # where a model draws; those of models in it stand in its parameters
        "versions": _versions(),
        "data": state.data,
        "series": tree.series(state.series),
        "learned": {"by_series": tree.node(dict(learned.by_series)), "shared": tree.node(dict(learned.shared))},
        "categories": {name: tree.texts(held) for name, held in state.categories.items()},
        "static": {name: tree.array(one.values) for name, one in state.static.items()},
        "calibration": None if state.calibration is None else tree.calibration(state.calibration),
        "value_range": None if state.value_range is None else tree.array(state.value_range),
    }
    return manifest, arrays


def rebuilt(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray], foreign: Foreign = OURS) -> Forecaster:
    """The model of a manifest; whatever does not fit raises, most of it `Unfit` or an error of the library."""
    reader = _Reader(dict(arrays), foreign)
    model = reader.model(manifest)
    if reader.arrays:
        raise Unfit(f"nothing refers to its arrays {some(sorted(reader.arrays))}")
    return model


class _Writer:
    """Values to plain ones; arrays go to the side under a number."""

    def __init__(self, arrays: dict[str, np.ndarray], foreign: Foreign) -> None:
        self.arrays, self.foreign = arrays, foreign

    def array(self, values: np.ndarray) -> dict[str, str]:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = values
        return {"array": name}

    def several(self, arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, str]]:
        return {name: self.array(values) for name, values in arrays.items()}

    def texts(self, held: tuple[str, ...] | None) -> Any:
        return None if held is None else self.several(text_arrays(held))

    def node(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, Mapping):
            return {"tree": {_key(key): self.node(held) for key, held in value.items()}}
        if isinstance(value, (list, tuple)):
            return {"list": [self.node(held) for held in value]}
        return _plain(value)

    def model(self, model: Forecaster) -> dict[str, Any]:
        name = type(model).__name__
        if name not in registry.names() or registry.get(name) is not type(model):
            raise Unfit(f"{name} could not be found again; decorate the class with @deepforecast.register")
        own = {inner: self.parameter(held, inner) for inner, held in model.get_params(deep=False).items()}
        return {"model": name, "parameters": own}

    def parameter(self, value: Any, name: str) -> Any:
        if isinstance(value, Forecaster):
            return self.model(value)
        if isinstance(value, (list, tuple)):
            return {"list": [self.parameter(held, name) for held in value], "tuple": isinstance(value, tuple)}
        if isinstance(value, Mapping):
            return {"tree": {_key(key): self.parameter(held, name) for key, held in value.items()}}
        try:
            return _plain(value)
        except Unfit:
            if not hasattr(value, "get_params"):
                why = f"its parameter {name} holds {shown(value)}, which is no plain value. Give a name or number"
                raise Unfit(why) from None
        return {"object": self.array(self.foreign.written(value, f"its parameter {name}"))}

    def calibration(self, one: Calibration) -> dict[str, Any]:
        if isinstance(one, OwnErrors):
            return {"method": one.method, "rate": float(one.rate), "errors": self.array(one.errors)}
        if isinstance(one, PooledErrors):
            return {"method": "pooled", "scores": self.array(one.scores), "scale": self.array(one.scale)}
        raise Unfit(f"its calibration is a {type(one).__name__}")

    def series(self, series: Series) -> dict[str, Any]:
        calendar, ids = series.calendar, None
        if series.ids is not None:
            said, arrays = stored(series.ids)
            ids = {**said, "arrays": self.several(arrays)}
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
    """Plain values back to what they were. Each array is taken once."""

    def __init__(self, arrays: dict[str, np.ndarray], foreign: Foreign) -> None:
        self.arrays, self.foreign = arrays, foreign

    def model(self, said: Any) -> Forecaster:
        _exactly({**ADDED, **said} if isinstance(said, Mapping) else said, (*KEYS, "value_range"), "the manifest")
        if not {name for name, version in _items(said["versions"]) if _text(version)} <= {*_versions(), "torch"}:
            raise Unfit(f"it names versions of {some(said['versions'])}")
        model = self.forecaster({"model": said["model"], "parameters": said["parameters"]})
        seed, own = said.get("seed"), said["parameters"].get("seed")
        if seed != own or type(seed) is not type(own):
            raise Unfit(f"its seed is said to be {shown(seed)}, and {shown(own)} among its parameters")
        series = self.series(said["series"])
        categories = {name: self.texts(held) for name, held in _items(said["categories"])}
        static = {name: self.static(held, categories.get(name), len(series)) for name, held in _items(said["static"])}
        roles = series.columns
        if set(categories) != set(roles.covariates) or set(static) != set(roles.static):
            raise Unfit("its covariates are not those of its columns")
        calibration = None if said["calibration"] is None else self.calibration(said["calibration"], len(series))
        learned = model._revive(replace(self.learned(said["learned"], len(series)), series=series), self.foreign)
        ends = None if said.get("value_range") is None else self.value_range(said["value_range"], len(series))
        state = State(series, replace(learned, series=None), categories, static, calibration, _text(said["data"]))
        model.state_ = replace(state, value_range=ends)
        return model

    def forecaster(self, said: Any) -> Forecaster:
        _exactly(said, ("model", "parameters"), "a model")
        cls = registry.get(_text(said["model"]))
        return cls(**{name: self.parameter(value) for name, value in _items(said["parameters"])})

    def parameter(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return _scalar(value)
        if "model" in value:
            return self.forecaster(value)
        if "object" in value:
            _exactly(value, ("object",), "an object")
            return self.foreign.revived(self.array(value["object"]), "a parameter of the model")
        if "list" in value:
            _exactly(value, ("list", "tuple"), "a list")
            items = [self.parameter(held) for held in _sequence(value["list"])]
            return tuple(items) if value["tuple"] is True else items
        _exactly(value, ("tree",), "a parameter")
        return {name: self.parameter(held) for name, held in _items(value["tree"])}

    def array(self, said: Any) -> np.ndarray:
        _exactly(said, ("array",), "an array")
        if said["array"] not in self.arrays:
            raise Unfit(f"it has no array {shown(said['array'])}, or refers to it twice")
        return self.arrays.pop(said["array"])

    def several(self, said: Any) -> dict[str, np.ndarray]:
        return {name: self.array(held) for name, held in _items(said)}

    def texts(self, said: Any) -> tuple[str, ...] | None:
        return None if said is None else tuple(texts(self.several(said)))

    def node(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return _scalar(value)
        if "array" in value:
            return self.array(value)
        if "list" in value:
            _exactly(value, ("list",), "a list")
            return [self.node(held) for held in _sequence(value["list"])]
        _exactly(value, ("tree",), "a node")
        return {name: self.node(held) for name, held in _items(value["tree"])}

    def learned(self, said: Any, count: int) -> Learned:
        _exactly(said, ("by_series", "shared"), "learned")
        learned = Learned(self.node(said["by_series"]), self.node(said["shared"]))
        if not isinstance(learned.by_series, dict) or not isinstance(learned.shared, dict):
            raise Unfit("what it learned is not a tree")
        for name, values in learned.by_series.items():
            if not isinstance(values, np.ndarray) or values.ndim < 1 or len(values) != count:
                raise Unfit(f"what it learned as {shown(name)} does not have one row for each series")
            if values.dtype not in (np.float64, np.int64, np.bool_):
                raise Unfit(f"what it learned as {shown(name)} has the dtype {values.dtype}")
        return learned

    def static(self, said: Any, categories: tuple[str, ...] | None, count: int) -> Covariate:
        values = self.array(said)
        if values.dtype != np.float64 or values.shape != (count,):
            raise Unfit("a static column does not have one number for each series")
        if categories is not None and not ((values >= -1) & (values < len(categories)) & (values % 1 == 0)).all():
            raise Unfit("a static column points to a category that is not there")
        return Covariate(values, categories)

    def value_range(self, said: Any, count: int) -> np.ndarray:
        ends = _floats(self.array(said), 2)
        if ends.shape != (count, 2) or not (np.isfinite(ends) & (ends[:, :1] <= ends)).all():
            raise Unfit("its smallest and largest values do not fit the series")
        return ends

    def calibration(self, said: Any, count: int) -> Calibration:
        if isinstance(said, Mapping) and said.get("method") == "pooled":
            _exactly(said, ("method", "scores", "scale"), "the calibration")
            scores, scale = _floats(self.array(said["scores"]), 2), _floats(self.array(said["scale"]), 1)
            sound = len(scale) == count and scores.shape[1] and not ((scores < 0).any() or (scale < 0).any())
            if not sound or (scores[1:] < scores[:-1]).any():
                raise Unfit("its calibration does not fit the series")
            return PooledErrors(scores, scale)
        _exactly(said, ("method", "rate", "errors"), "the calibration")
        errors, rate = _floats(self.array(said["errors"]), 3), said["rate"]
        if len(errors) != count or not errors.size or said["method"] not in METHODS or np.isinf(errors).any():
            raise Unfit("its calibration does not fit the series")
        if not isinstance(rate, float) or not 0 < rate <= 1:
            raise Unfit(f"the rate of its calibration is {shown(rate)}")
        return OwnErrors(errors, said["method"], rate)

    def series(self, said: Any) -> Series:
        _exactly(said, ("library", "columns", "freq", "custom", "step", "time_of_day", "time", "ids", "last"), "the series")
        if said["library"] not in LIBRARIES:
            raise Unfit(f"frames are of {some(LIBRARIES)}; it says {shown(said['library'])}")
        _exactly(said["columns"], tuple(f.name for f in fields(Columns)), "columns")
        roles: dict[str, Any] = {n: tuple(map(_text, v)) if isinstance(v, list) else v for n, v in said["columns"].items()}
        columns = Columns(**roles)
        last, ids = self.array(said["last"]), None
        if said["ids"] is not None:
            held = dict(_items(said["ids"]))
            ids = unstored({n: v for n, v in held.items() if n != "arrays"}, self.several(held.get("arrays")), said["library"])
        count = 1 if ids is None else len(ids)
        if last.shape != (count,) or not count or last.dtype != np.int64 or (ids is None) != (columns.id is None):
            raise Unfit("its ids and times do not fit each other")
        if ids is not None and len(set(ids.to_list())) < count:  # pandas 2 takes ids for equal that differ after a NUL
            raise Unfit("an id is there twice")
        return Series(said["library"], columns, _calendar(said, columns, last), ids, last)


def _calendar(said: Mapping[str, Any], columns: Columns, last: np.ndarray) -> Calendar:
    """The calendar, which has to be the one that its own stamps amount to."""
    _exactly(said["time"], tuple(f.name for f in fields(TimeType)), "time")
    time = TimeType(_text(said["time"]["unit"]), said["time"]["tz"], _text(said["time"]["dtype"]))
    known = time.tz is None or ZONE.fullmatch(_text(time.tz))
    if not known or not (_dtype_fits(time) if time.unit else INTEGER_TIME.fullmatch(time.dtype)):
        raise Unfit(f"its time has an unknown type: {shown(said['time'])}")
    step, time_of_day = said["step"], said["time_of_day"]
    if not (_is_count(step, 1) and _is_count(time_of_day, 0)) or time_of_day >= calendars.PER_DAY.get(time.unit, 1):
        raise Unfit("its steps of time and the time of day they begin at are not whole numbers of a day's")
    calendar = Calendar(_frequency(said), time, step, time_of_day)
    again = calendars.make(calendar.frequency, time, calendar.stamps(last[:2]), columns.time)
    if again.step != step or again.frequency != calendar.frequency:
        raise Unfit(f"its steps of time are not those of freq {shown(calendar.freq)}")
    return calendar


def _dtype_fits(time: TimeType) -> bool:
    """Whether a library has that dtype for stamps of that unit and zone; only such a name is ever given to one."""
    dtypes = {"date32[day]", "date32[day][pyarrow]", "Date"}
    if time.unit != "D":
        arrow = f"timestamp[{time.unit}{'' if time.tz is None else f', tz={time.tz}'}]"
        pandas = f"datetime64[{time.unit}{'' if time.tz is None else f', {time.tz}'}]"
        dtypes = {pandas, arrow, f"{arrow}[pyarrow]", f"Datetime(time_unit={time.unit!r}, time_zone={time.tz!r})"}
    return time.unit in calendars.PER_DAY and time.dtype in dtypes


def _custom(frequency: Frequency) -> dict[str, Any] | None:
    """What an alias does not say of a custom business day: its holidays and working week."""
    offset = frequency.offset
    if offset is None:
        return None
    return {"holidays": [str(day)[:10] for day in offset.holidays], "weekmask": str(offset.weekmask)}


def _frequency(said: Mapping[str, Any]) -> Frequency:
    freq, custom = _text(said["freq"]), said["custom"]
    if custom is None:
        return parse(int(freq) if freq.isdecimal() and len(freq) < 20 else freq)
    import pandas as pd

    _exactly(custom, ("holidays", "weekmask"), "the custom calendar")
    builders: dict[str, Callable[..., Any]] = {
        "C": pd.offsets.CustomBusinessDay,
        "CBMS": pd.offsets.CustomBusinessMonthBegin,
        "CBME": pd.offsets.CustomBusinessMonthEnd,
    }
    base = parse(freq)
    if base.base not in builders:
        raise Unfit(f"freq {shown(freq)} has no holidays of its own")
    holidays = [_text(day) for day in _sequence(custom["holidays"])]
    return Frequency(base.n, base.base, base.anchor, builders[base.base](holidays=holidays, weekmask=_text(custom["weekmask"])))


def _versions() -> dict[str, str]:
    from deepforecast import __version__

    return {"deepforecast": __version__, "python": sys.version.split()[0], "numpy": np.__version__}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    raise Unfit(f"{shown(value)} ({type(value).__name__}) is no array, number or text")


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, (bool, float, str)) or (isinstance(value, int) and abs(value) <= LARGEST):
        return value
    raise Unfit(f"a value is a number, text, list or tree; found {shown(value)}")


def _floats(values: np.ndarray, dimensions: int) -> np.ndarray:
    if values.dtype != np.float64 or values.ndim != dimensions:
        raise Unfit(f"an array of {dimensions} dimensions of float64 was expected; found {values.ndim} of {values.dtype}")
    return values


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise Unfit(f"the key {shown(key)} is not text")
    return key


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unfit(f"text was expected; found {shown(value)}")
    return value


def _items(said: Any) -> Any:
    if not isinstance(said, Mapping):
        raise Unfit(f"names and values were expected; found {shown(said)}")
    return said.items()


def _sequence(said: Any) -> list[Any]:
    if not isinstance(said, list):
        raise Unfit(f"a list was expected; found {shown(said)}")
    return said


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _exactly(said: Any, keys: tuple[str, ...], what: str) -> None:
    if not isinstance(said, Mapping) or set(said) != set(keys):
        found = list(said) if isinstance(said, Mapping) else said
        raise Unfit(f"{what} has the keys {some(keys, most=12)}; found {shown(found, 200)}")
