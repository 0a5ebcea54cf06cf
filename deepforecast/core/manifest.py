"""Converts fitted models to a manifest of plain values and arrays, and back.

A manifest contains the name of the model, its parameters (validated by the constructor on loading),
versions, a fingerprint of the data, the columns of the frame, and a tree of numbers, strings and
references to arrays. Unknown keys and arrays without a reference are refused.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core import object_serialization, registry
from deepforecast.core.conformal import METHODS, Calibration, PooledErrors, SeriesErrors
from deepforecast.core.declarations import ParameterizedClass
from deepforecast.core.encoding import (
    Arrays,
    InvalidManifest,
    SkopsSerializer,
    UntrustedTypeError,
    check_floats,
    check_keys,
    check_list,
    check_mapping,
    check_text,
    is_integer_from,
    to_plain,
)
from deepforecast.core.fallback import Fallback, read_fallback, write_fallback
from deepforecast.core.state import LearnedState, State
from deepforecast.data import calendar as calendars
from deepforecast.data.calendar import Calendar
from deepforecast.data.columns import Columns
from deepforecast.data.covariates import Covariate
from deepforecast.data.frames import LIBRARIES
from deepforecast.data.frequency import Frequency, parse_frequency
from deepforecast.data.id_serialization import decode_texts, encode_texts, from_arrays, to_arrays
from deepforecast.data.key_columns import TimeType
from deepforecast.data.panel import Series
from deepforecast.errors import format_list, format_value

if TYPE_CHECKING:
    from deepforecast.core.forecaster import Forecaster

KEYS = (
    "model",
    "parameters",
    "seed",
    "versions",
    "data",
    "series",
    "learned",
    "categories",
    "static",
    "calibration",
    "value_range",
    "fallback",
)
SERIES_KEYS = ("library", "columns", "freq", "custom", "step", "time_of_day", "time", "ids", "last")
INTEGER_TIME = re.compile(r"u?int(8|16|32|64)(\[pyarrow\])?", re.IGNORECASE)
ZONE = re.compile(r"(?!dateutil)[A-Za-z0-9_+:-]+(/[A-Za-z0-9_+-]+){0,2}")  # no path or URL scheme, which tz lookups might open
DEFAULT_SERIALIZER = SkopsSerializer()


def to_manifest(
    model: Forecaster, state: State, serializer: SkopsSerializer = DEFAULT_SERIALIZER
) -> tuple[dict[str, Any], Arrays]:
    """The manifest of a fitted model, and its arrays; raises `InvalidManifest` if a value cannot be stored."""
    arrays: Arrays = {}
    writer = _Writer(arrays, serializer)
    is_fitted = len(state.series) > 0 or state.fallback is None  # else naive methods forecast all series
    learned = model._serialize(state.learned, serializer) if is_fitted else state.learned
    manifest = {
        **writer.model(model),
        "seed": getattr(model, "seed", None),
        "versions": _versions(),
        "data": state.fingerprint,
        "series": writer.series(state.series) if is_fitted else None,
        "learned": writer.learned(learned),
        "categories": {
            name: None if labels is None else writer.array_dict(encode_texts(labels)) for name, labels in state.categories.items()
        },
        "static": {name: writer.array(covariate.values) for name, covariate in state.static.items()},
        "calibration": None if state.calibration is None else writer.calibration(state.calibration),
        "value_range": None if state.value_range is None else writer.array(state.value_range),
        "fallback": None if state.fallback is None else write_fallback(writer, state.fallback),
    }
    return manifest, arrays


def from_manifest(
    manifest: Mapping[str, Any], arrays: Arrays, serializer: SkopsSerializer = DEFAULT_SERIALIZER
) -> Forecaster:
    """The model of a manifest; raises if it is inconsistent, usually `InvalidManifest` or an error of the library."""
    reader = _Reader(dict(arrays), serializer)
    model = reader.model(manifest)
    if reader.arrays:
        raise InvalidManifest(f"the file has arrays to which the manifest does not refer: {format_list(sorted(reader.arrays))}")
    return model


@dataclass(frozen=True)
class _Writer:
    """Converts values to plain ones, and arrays to references `{"array": name}`; collects the arrays in `arrays`."""

    arrays: Arrays
    serializer: SkopsSerializer

    def array(self, values: np.ndarray) -> dict[str, str]:
        """Add an array and return the reference to it."""
        name = f"a{len(self.arrays)}"
        self.arrays[name] = values
        return {"array": name}

    def array_dict(self, arrays: Arrays) -> dict[str, dict[str, str]]:
        return {name: self.array(values) for name, values in arrays.items()}

    def encode(self, value: Any) -> Any:
        """A learned value as plain ones: dicts as {"tree": ...}, lists and tuples as {"list": ...}, arrays as references."""
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, Mapping):
            return _tree({check_text(key): self.encode(inner) for key, inner in value.items()})
        if isinstance(value, (list, tuple)):
            return {"list": [self.encode(inner) for inner in value]}
        return to_plain(value)

    def model(self, model: Any) -> dict[str, Any]:
        """Name and parameters of a model, wrapped models included."""
        name = type(model).__name__
        if name not in registry.names() or registry.get(name) is not type(model):
            raise InvalidManifest(f"the class {name} must be registered; decorate it with @deepforecast.register")
        values = object_serialization.saved_values(model)
        parameters = {key: self.parameter(value, key) for key, value in values.items()}
        return {"model": name, "parameters": parameters}

    def parameter(self, value: Any, name: str) -> Any:
        """A parameter as plain values; models are nested, objects of other libraries are {"object": ...} or {"import": ...}."""
        if isinstance(value, ParameterizedClass):
            return self.model(value)
        if isinstance(value, (list, tuple)):
            return {"list": [self.parameter(inner, name) for inner in value], "tuple": isinstance(value, tuple)}
        if isinstance(value, Mapping):
            return _tree({check_text(key): self.parameter(inner, name) for key, inner in value.items()})
        if object_serialization.is_storable(value):
            return self.imported(value, name)
        try:
            return to_plain(value)
        except InvalidManifest:
            if not hasattr(value, "get_params"):
                raise InvalidManifest(
                    f"parameter `{name}` must be a number, a string or a model, got {format_value(value)}"
                ) from None
        return {"object": self.array(self.serializer.serialize(value, f"parameter `{name}`"))}

    def imported(self, value: Any, name: str) -> dict[str, Any]:
        """A function as {"import": name}; a torch module with its settings and weights, too."""
        path = object_serialization.import_name(value)
        if not self.serializer.allow_any:
            raise UntrustedTypeError(
                f"parameter `{name}` is {path}, which must be trusted on loading.",
                hint=f"Pass save(path, allow_skops=True), and load(path, trusted={[path]!r})",
            )
        if not hasattr(value, "state_dict"):
            return {"import": path}
        settings, weights = object_serialization.split_module(value)
        return {"import": path, "settings": self.parameter(settings, name), "weights": self.array_dict(weights)}

    def learned(self, learned: LearnedState) -> dict[str, Any]:
        """The learned arrays and values."""
        return {"by_series": self.encode(dict(learned.by_series)), "shared": self.encode(dict(learned.shared))}

    def calibration(self, calibration: Calibration) -> dict[str, Any]:
        """The errors of a calibration, and how they are used."""
        if isinstance(calibration, SeriesErrors):
            return {"method": calibration.method, "rate": float(calibration.rate), "errors": self.array(calibration.errors)}
        if isinstance(calibration, PooledErrors):
            return {"method": "pooled", "scores": self.array(calibration.scores), "scale": self.array(calibration.scale)}
        raise InvalidManifest(f"the calibration cannot be stored, as its type is {type(calibration).__name__}")

    def series(self, series: Series) -> dict[str, Any]:
        """Ids, columns, calendar and last timestamps."""
        calendar, ids = series.calendar, None
        if series.ids is not None:
            id_fields, arrays = to_arrays(series.ids)
            ids = {**id_fields, "arrays": self.array_dict(arrays)}
        return {
            "library": series.library,
            "columns": {key: list(name) if isinstance(name, tuple) else name for key, name in asdict(series.columns).items()},
            "freq": calendar.freq,
            "custom": _custom_calendar(calendar.frequency),
            "step": calendar.step,
            "time_of_day": calendar.time_of_day,
            "time": asdict(calendar.time),
            "ids": ids,
            "last": self.array(series.last),
        }


@dataclass(frozen=True)
class _Reader:
    """Converts plain values back, the inverse of `_Writer`; raises `InvalidManifest` for any other content.

    Each array may be referenced once and is removed from `arrays` when it is read.
    """

    arrays: Arrays
    serializer: SkopsSerializer

    def model(self, manifest: Any) -> Forecaster:
        """The fitted model."""
        check_keys(manifest, KEYS, "the manifest")
        check_keys(manifest["versions"], tuple(_versions()), "'versions'")
        for version in manifest["versions"].values():
            check_text(version)
        model = self.forecaster({"model": manifest["model"], "parameters": manifest["parameters"]})
        seed, parameter_seed = manifest["seed"], manifest["parameters"].get("seed")
        if seed != parameter_seed or type(seed) is not type(parameter_seed):
            raise InvalidManifest(
                f"the seed must equal that of the parameters, {format_value(parameter_seed)}, got {format_value(seed)}"
            )
        fallback = None if manifest["fallback"] is None else read_fallback(self, manifest["fallback"])
        series = self.fitted_series(manifest["series"], fallback)
        roles = series.columns
        check_keys(manifest["categories"], roles.covariates, "the categories of the covariates")
        check_keys(manifest["static"], roles.static, "the static covariates")
        # in the order of the columns, as models learn from them in this order; JSON objects are sorted by name
        categories = {name: self.categories(manifest["categories"][name]) for name in roles.covariates}
        static = {name: self.static(manifest["static"][name], categories[name], len(series)) for name in roles.static}
        calibration = None if manifest["calibration"] is None else self.calibration(manifest["calibration"], len(series))
        learned = self.learned(manifest["learned"], len(series))
        if fallback is None and not len(series):
            learned = model._drop_histories(learned)  # raises unless such a file can be of this model
        if fallback is None or len(series):
            learned = model._deserialize(replace(learned, series=series), self.serializer)
        value_range = None if manifest["value_range"] is None else self.value_range(manifest["value_range"], len(series))
        state = State(series, replace(learned, series=None), categories, static, calibration, check_text(manifest["data"]))
        model.state_ = replace(state, value_range=value_range, fallback=fallback)
        return model

    def fitted_series(self, content: Any, fallback: Fallback | None) -> Series:
        """The series that the model fitted; none (null) if naive methods forecast all of them."""
        if content is None and fallback is not None:
            series = fallback.series.take(np.empty(0, dtype=np.int64))
        else:
            series = self.series(content, may_be_empty=fallback is None)
        if fallback is not None and len(fallback.fitted) != len(series):
            raise InvalidManifest("the fallback does not match the series that the model fitted")
        return series

    def forecaster(self, content: Any) -> Forecaster:
        check_keys(content, ("model", "parameters"), "a model")
        cls = registry.get(check_text(content["model"]))
        return cls(**{name: self.parameter(value) for name, value in check_mapping(content["parameters"])})

    def parameter(self, value: Any) -> Any:
        """A parameter of the constructor, which validates it."""
        if not isinstance(value, dict):
            return to_plain(value)
        if "model" in value:
            return self.forecaster(value)
        if "object" in value:
            check_keys(value, ("object",), "an object")
            return self.serializer.deserialize(self.array(value["object"]), "a parameter of the model")
        if "import" in value:
            return self.imported(value)
        if "list" in value:
            check_keys(value, ("list", "tuple"), "a list")
            elements = [self.parameter(inner) for inner in check_list(value["list"])]
            return tuple(elements) if value["tuple"] is True else elements
        return {name: self.parameter(inner) for name, inner in _tree_items(value, "a parameter")}

    def imported(self, value: dict[str, Any]) -> Any:
        """A function or a torch module, which is imported only if it is trusted."""
        is_module = "settings" in value
        check_keys(value, ("import", "settings", "weights") if is_module else ("import",), "an imported object")
        self.serializer.refuse_untrusted(path := check_text(value["import"]))
        imported = object_serialization.import_object(path)
        if not is_module:
            return imported
        return object_serialization.build_module(imported, self.parameter(value["settings"]), self.array_dict(value["weights"]))

    def array(self, reference: Any) -> np.ndarray:
        check_keys(reference, ("array",), "an array")
        if reference["array"] not in self.arrays:
            raise InvalidManifest(
                f"the array {format_value(reference['array'])} is missing from the file, or the manifest refers to it twice"
            )
        return self.arrays.pop(reference["array"])

    def array_dict(self, references: Any) -> Arrays:
        return {name: self.array(reference) for name, reference in check_mapping(references)}

    def categories(self, references: Any) -> tuple[str, ...] | None:
        """The categories of a covariate, None if it is numeric."""
        return None if references is None else tuple(decode_texts(self.array_dict(references)))

    def decode(self, value: Any) -> Any:
        """A learned value, the inverse of `_Writer.encode`; tuples become lists."""
        if not isinstance(value, dict):
            return to_plain(value)
        if "array" in value:
            return self.array(value)
        if "list" in value:
            check_keys(value, ("list",), "a list")
            return [self.decode(inner) for inner in check_list(value["list"])]
        return {name: self.decode(inner) for name, inner in _tree_items(value, "a node")}

    def learned(self, content: Any, n_series: int) -> LearnedState:
        """The learned state, whose arrays by series must have `n_series` rows of float64, int64 or bool."""
        check_keys(content, ("by_series", "shared"), "the learned state")
        learned = LearnedState(self.decode(content["by_series"]), self.decode(content["shared"]))
        if not isinstance(learned.by_series, dict) or not isinstance(learned.shared, dict):
            raise InvalidManifest("the parts 'by_series' and 'shared' of the learned state must be mappings of names to values")
        for name, values in learned.by_series.items():
            if not isinstance(values, np.ndarray) or values.ndim < 1 or len(values) != n_series:
                raise InvalidManifest(f"the learned '{format_value(name)}' must be an array with one row per series")
            if values.dtype not in (np.float64, np.int64, np.bool_):
                raise InvalidManifest(f"the learned '{format_value(name)}' must be float64, int64 or bool, got {values.dtype}")
        return learned

    def static(self, reference: Any, categories: tuple[str, ...] | None, n_series: int) -> Covariate:
        """A static covariate; codes must be -1 (unknown) or indices of the categories."""
        values = check_floats(self.array(reference), (n_series,), "a static covariate")
        if categories is not None and not ((values >= -1) & (values < len(categories)) & (values % 1 == 0)).all():
            raise InvalidManifest("a static covariate has a code without a category")
        return Covariate(values, categories)

    def value_range(self, reference: Any, n_series: int) -> np.ndarray:
        """Minimum and maximum of each series, shape (series, 2)."""
        value_range = check_floats(self.array(reference), (n_series, 2), "value_range")
        if not (np.isfinite(value_range) & (value_range[:, :1] <= value_range)).all():
            raise InvalidManifest("the value ranges must be a finite minimum and maximum of each series")
        return value_range

    def calibration(self, content: Any, n_series: int) -> Calibration:
        """The calibration: pooled scores must be sorted and not negative, errors per series must not be infinite."""
        if isinstance(content, Mapping) and content.get("method") == "pooled":
            check_keys(content, ("method", "scores", "scale"), "the calibration")
            scores = check_floats(self.array(content["scores"]), (None, None), "the scores of the calibration")
            scale = check_floats(self.array(content["scale"]), (n_series,), "the scale of the calibration")
            if not scores.shape[1] or (scores < 0).any() or (scale < 0).any() or (scores[1:] < scores[:-1]).any():
                raise InvalidManifest("the calibration must have sorted scores and scales of at least 0")
            return PooledErrors(scores, scale)
        check_keys(content, ("method", "rate", "errors"), "the calibration")
        errors = check_floats(self.array(content["errors"]), (n_series, None, None), "the errors of the calibration")
        rate = content["rate"]
        if not errors.size or content["method"] not in METHODS or np.isinf(errors).any():
            raise InvalidManifest("the calibration must have a known method and errors that are not infinite")
        if not isinstance(rate, float) or not 0 < rate <= 1:
            raise InvalidManifest(f"the rate of the calibration must be above 0 and at most 1, got {format_value(rate)}")
        return SeriesErrors(errors, content["method"], rate)

    def series(self, content: Any, may_be_empty: bool = False) -> Series:
        """Ids, columns, calendar and last timestamps, after checks that they match.

        If the series `may_be_empty`, there may be neither ids nor timestamps: `save(histories=False)`.
        """
        check_keys(content, SERIES_KEYS, "the series")
        if content["library"] not in LIBRARIES:
            raise InvalidManifest(
                f"the library must be one of {format_list(LIBRARIES)}, got {format_value(content['library'])}"
            )
        names = content["columns"]
        names = {"weight": None, **names} if isinstance(names, Mapping) else names  # files of version 0.1.0 have no weight
        check_keys(names, tuple(field.name for field in fields(Columns)), "the columns")
        columns, last, ids = Columns(**names), self.array(content["last"]), None
        if content["ids"] is not None:
            description = dict(check_mapping(content["ids"]))
            arrays = self.array_dict(description.pop("arrays", None))
            ids = from_arrays(description, arrays, content["library"])
        n_series, has_ids = 1 if ids is None else len(ids), columns.id is not None
        if may_be_empty and last.shape == (0,):
            n_series, has_ids = 0, False
        is_valid = last.shape == (n_series,) and last.dtype == np.int64 and (ids is not None) == has_ids
        if not is_valid or not (n_series or may_be_empty):
            raise InvalidManifest("the ids and the last timestamps do not match")
        if ids is not None and len(set(ids.to_list())) < n_series:  # pandas 2 considers ids equal up to a NUL character
            raise InvalidManifest("the ids must be unique")
        return Series(content["library"], columns, _calendar(content, columns, last), ids, last)


def _tree(values: dict[str, Any]) -> dict[str, Any]:
    """A node of a tree, with the order of its keys if JSON, which sorts them, would change it."""
    return {"tree": values} if list(values) == sorted(values) else {"tree": values, "keys": list(values)}


def _tree_items(content: dict[str, Any], subject: str) -> list[tuple[str, Any]]:
    """The keys and values of a node in their original order, the inverse of `_tree`."""
    check_keys(content, ("tree", "keys") if "keys" in content else ("tree",), subject)
    values = dict(check_mapping(content["tree"]))
    keys = [check_text(key) for key in check_list(content.get("keys", list(values)))]
    if sorted(keys) != sorted(values):
        raise InvalidManifest(f"{subject} must have each of its keys once, got {format_list(keys)}")
    return [(key, values[key]) for key in keys]


def _calendar(content: Mapping[str, Any], columns: Columns, last: np.ndarray) -> Calendar:
    """The calendar, which must equal that inferred from the last timestamps."""
    check_keys(content["time"], ("unit", "tz", "dtype"), "the time type")
    time = TimeType(check_text(content["time"]["unit"]), content["time"]["tz"], check_text(content["time"]["dtype"]))
    is_known_zone = time.tz is None or ZONE.fullmatch(check_text(time.tz))
    if not is_known_zone or not (_dtype_fits(time) if time.unit else INTEGER_TIME.fullmatch(time.dtype)):
        raise InvalidManifest(f"the time has an unknown type: {format_value(content['time'])}")
    step, time_of_day = content["step"], content["time_of_day"]
    are_integers = is_integer_from(step, 1) and is_integer_from(time_of_day, 0)
    if not are_integers or time_of_day >= calendars.PER_DAY.get(time.unit, 1):
        raise InvalidManifest(
            "step must be a positive integer and time_of_day an integer within a day, got "
            f"{format_value(step)} and {format_value(time_of_day)}"
        )
    calendar = Calendar(_frequency(content), time, step, time_of_day)
    examples = last[:2] if len(last) else np.zeros(1, dtype=np.int64)  # any position of the calendar
    recomputed = calendars.make_calendar(calendar.frequency, time, calendar.timestamps(examples), columns.time)
    if recomputed.step != step or recomputed.frequency != calendar.frequency:
        raise InvalidManifest(f"the step {step} does not match freq='{format_value(calendar.freq)}'")
    return calendar


def _dtype_fits(time: TimeType) -> bool:
    """Whether the dtype is one of a library for this unit and time zone; only such names are passed to a library."""
    dtypes = {"date32[day]", "date32[day][pyarrow]", "Date", "object"}  # object: datetime.date
    if time.unit != "D":
        arrow = f"timestamp[{time.unit}{'' if time.tz is None else f', tz={time.tz}'}]"
        pandas = f"datetime64[{time.unit}{'' if time.tz is None else f', {time.tz}'}]"
        dtypes = {pandas, arrow, f"{arrow}[pyarrow]", f"Datetime(time_unit={time.unit!r}, time_zone={time.tz!r})"}
    return time.unit in calendars.PER_DAY and time.dtype in dtypes


def _custom_calendar(frequency: Frequency) -> dict[str, Any] | None:
    """Holidays and weekmask of a custom business frequency, which its alias does not include."""
    offset = frequency.offset
    if offset is None:
        return None
    return {"holidays": [str(day)[:10] for day in offset.holidays], "weekmask": str(offset.weekmask)}


def _frequency(content: Mapping[str, Any]) -> Frequency:
    """The frequency of an alias or an integer as text, with the holidays and the weekmask of a custom calendar."""
    freq, custom = check_text(content["freq"]), content["custom"]
    if custom is None:
        is_integer = freq.isdecimal() and len(freq) < 20  # the digits of int64
        return parse_frequency(int(freq) if is_integer else freq)
    from pandas.tseries.frequencies import to_offset

    check_keys(custom, ("holidays", "weekmask"), "the custom calendar")
    frequency = parse_frequency(freq)
    if frequency.base not in ("C", "CBMS", "CBME"):
        raise InvalidManifest(f"freq='{format_value(freq)}' cannot have custom holidays")
    holidays = [check_text(day) for day in check_list(custom["holidays"])]
    offset_class: Any = type(to_offset(frequency.base))
    return frequency._replace(offset=offset_class(holidays=holidays, weekmask=check_text(custom["weekmask"])))


def _versions() -> dict[str, str]:
    from deepforecast import __version__

    return {"deepforecast": __version__, "python": sys.version.split()[0], "numpy": np.__version__}
