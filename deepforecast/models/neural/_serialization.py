"""Serialization of trained networks, with validation of untrusted files.

Sizes in a file are checked against its arrays before memory is allocated: the network is first
built on the device "meta", which has shapes but no memory, and every weight must be present with
its shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepforecast.core import params
from deepforecast.core.manifest import InvalidManifest
from deepforecast.core.state import LearnedState
from deepforecast.core.threads import passive_waiting
from deepforecast.data.calendar_features import NAMES
from deepforecast.data.windows import WindowColumns
from deepforecast.errors import format_list, format_value
from deepforecast.models.neural import _fit
from deepforecast.training.defaults import torch_defaults
from deepforecast.training.imports import quiet_import

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.nn.network import ForecastNetwork

FREE_SIZE = 10_000  # sizes up to this one are harmless and always allowed
NAME_LISTS = ("numeric", "categorical", "static", "static_codes", "calendar")
SHARED_KEYS = ("channels", "season", "record", "weights")  # and optionally "scale" and "ties"
RECORD_ARRAYS = ("loss", "rate", "norm", "seconds", "validated", "validation")


def serialize(learned: LearnedState) -> LearnedState:
    """The state with weights as arrays, and durations as NaN for reproducible files."""
    weights = {name: value.cpu().contiguous().numpy() for name, value in learned["network"].state_dict().items()}
    shared = {name: value for name, value in learned.shared.items() if name != "network"}
    record = {**shared["record"], "seconds": np.full(len(shared["record"]["seconds"]), np.nan)}
    return replace(learned, shared={**shared, "record": record, "weights": weights})


def deserialize(model: NeuralForecaster, learned: LearnedState) -> LearnedState:
    """Rebuild the network of a file on the CPU; `InvalidManifest` if the file is inconsistent."""
    shared = dict(learned.shared)
    missing = [name for name in SHARED_KEYS if name not in shared]
    unknown = [name for name in shared if name not in (*SHARED_KEYS, "scale", "ties")]
    if missing or unknown:
        key, problem = (missing or unknown)[0], "missing" if missing else "unknown"
        raise InvalidManifest(
            f"a network must have the entries {format_list(SHARED_KEYS)}; {format_value(key)} is "
            f"{problem}"
        )
    weights = _check_weight_values(shared.pop("weights"))
    columns = _read_columns(shared["channels"], learned, sum(map(_n_values, weights.values())), model._check_time_features)
    _check_integer(shared["season"], "season", 1, max(FREE_SIZE, columns.input_size))
    _check_series_arrays(learned, columns)
    _check_record(shared["record"])
    _check_scale(shared.get("scale"), model.scaler_scope)
    _check_correlation_factor(shared.get("ties"), columns.horizon)
    network = _rebuild_network(model, columns, shared["season"], weights)
    return replace(learned, shared={**shared, "network": network})


def _rebuild_network(model: NeuralForecaster, columns: WindowColumns, season: int, weights: Mapping[str, Any]) -> ForecastNetwork:
    with passive_waiting("torch"), quiet_import():
        import torch
    _check_sizes(model, sum(map(_n_values, weights.values())))
    with torch_defaults():
        _check_weight_shapes(model, columns, season, weights)
        network = _fit.build_network(model, columns, season)
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
        network.load_state_dict(tensors)
        return network.eval()


def _check_weight_shapes(
    model: NeuralForecaster, columns: WindowColumns, season: int, weights: Mapping[str, Any]
) -> None:
    """Raise `InvalidManifest` unless the weights match the network in name, shape and dtype."""
    import torch

    with torch.device("meta"):
        shapes = _fit.build_network(model, columns, season)
    expected = {name: (tuple(tensor.shape), str(tensor.dtype)[6:]) for name, tensor in shapes.state_dict().items()}
    if set(expected) != set(weights):
        unmatched = sorted(set(expected) ^ set(weights))
        raise InvalidManifest(
            f"its weights must match the network; on one side only: {format_list(unmatched)}"
        )
    for name, (shape, dtype) in expected.items():
        if weights[name].shape != shape or str(weights[name].dtype) != dtype:
            actual = f"{weights[name].shape} of {weights[name].dtype}"
            raise InvalidManifest(
                f"its weights {format_value(name)} must be {shape} of {dtype}, got {actual}"
            )
    n_constants = sum(tensor.numel() for tensor in shapes.buffers())
    if n_constants > max(1e7, 100 * sum(map(_n_values, weights.values()))):
        raise InvalidManifest(
            f"its network must not have many more constants than weights, got {n_constants:,}"
        )


def _check_sizes(model: NeuralForecaster, n_weights: int) -> None:
    """Raise `InvalidManifest` if a size parameter exceeds the total number of weights."""
    from deepforecast.models.neural._base import NeuralForecaster

    for name in params.declared_params(type(model)):
        if name in params.declared_params(NeuralForecaster):
            continue
        value = getattr(model, name)
        sizes = list(value) if isinstance(value, (list, tuple)) else [value]
        numbers = [size for size in sizes if isinstance(size, int)]
        if len(sizes) > FREE_SIZE or any(size > max(FREE_SIZE, n_weights) for size in numbers):
            raise InvalidManifest(
                f"{name} must not exceed the number of weights, {n_weights}, got "
                f"{format_value(value)}"
            )


def _check_weight_values(weights: Any) -> dict[str, np.ndarray]:
    if not isinstance(weights, dict) or not all(isinstance(array, np.ndarray) for array in weights.values()):
        raise InvalidManifest("its weights must be a mapping from names to arrays")
    for name, array in weights.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InvalidManifest(
                f"its weights {format_value(name)} must be finite, but have NaN or infinity"
            )
    return weights


def _read_columns(columns: Any, learned: LearnedState, n_weights: int, check_moments: Callable[[Any, list[str]], None]) -> WindowColumns:
    names = [entry.name for entry in fields(WindowColumns)]
    if not isinstance(columns, dict) or set(columns) != set(names):
        raise InvalidManifest(
            f"its channels must have the fields {format_list(names, max_shown=20)}, "
            f"got {format_value(columns, 200)}"
        )
    for name in NAME_LISTS:
        texts = columns[name]
        if not isinstance(texts, list) or not all(isinstance(entry, str) for entry in texts) or len(set(texts)) < len(texts):
            raise InvalidManifest(
                f"{name!r} of its channels must be unique names, got {format_value(texts)}"
            )
    tail = learned.by_series.get("tail")
    if tail is None or tail.ndim != 2:
        raise InvalidManifest("the last observations of its series ('tail') are missing")
    _check_integer(columns["input_size"], "input_size", tail.shape[1], tail.shape[1])
    _check_integer(columns["horizon"], "horizon", 1, max(FREE_SIZE, n_weights))
    _check_integer(columns["n_future"], "n_future", 0, len(columns["numeric"]))
    _check_integer(columns["n_future_codes"], "n_future_codes", 0, len(columns["categorical"]))
    categorical = [*columns["categorical"], *columns["static_codes"]]
    numeric = [*columns["numeric"], *columns["static"]]
    _check_numbers(columns["counts"], "counts", categorical, 0, n_weights)
    for name in columns["counts"]:
        _check_integer(columns["counts"][name], f"counts of {name}", 0, n_weights)
    _check_numbers(columns["loc"], "loc", numeric, -math.inf, math.inf)
    _check_numbers(columns["scale"], "scale", numeric, 0.0, math.inf)
    if not set(columns["calendar"]) <= set(NAMES):
        raise InvalidManifest(
            f"'calendar' of its channels must be among {format_list(NAMES, max_shown=20)}, "
            f"got {format_value(columns['calendar'])}"
        )
    check_moments(columns["time_features"], columns["numeric"][: columns["n_future"]])
    return WindowColumns.from_dict(columns)


def _check_series_arrays(learned: LearnedState, columns: WindowColumns) -> None:
    """Check the arrays of last observations, static covariates and scales, and their codes."""
    rows = learned.by_series["tail"].shape
    shapes = {"tail": rows, "place": rows[:1], "spread": rows[:1]}
    shapes |= {f"tail:{name}": rows for name in (*columns.numeric, *columns.categorical)}
    shapes |= {f"static:{name}": rows[:1] for name in (*columns.static, *columns.static_codes)}
    if set(shapes) != set(learned.by_series):
        raise InvalidManifest(
            f"its series must have the arrays {format_list(list(shapes), max_shown=20)}, "
            f"got {format_list(list(learned.by_series), max_shown=20)}"
        )
    for name, shape in shapes.items():
        array = learned.by_series[name]
        if array.shape != shape or array.dtype != np.float64 or np.isinf(array).any():
            raise InvalidManifest(
                f"{format_value(name)} must be {shape} of finite float64, "
                f"got {array.shape} of {array.dtype}"
            )
        count = columns.counts.get(name.partition(":")[2])
        if count is not None and not ((array >= -1) & (array < count) & (array % 1 == 0)).all():
            raise InvalidManifest(
                f"{format_value(name)} must have codes of its {count} categories, or -1"
            )
    if not (learned.by_series["spread"] >= 0).all() or np.isnan(learned.by_series["place"]).any():
        raise InvalidManifest("the scales of its series must be numbers, not negative")


def _check_record(record: Any) -> None:
    if not isinstance(record, dict) or set(record) != {*RECORD_ARRAYS, "kept", "why", "passes"} or not isinstance(record["why"], str):
        names = format_list([*RECORD_ARRAYS, "kept", "why", "passes"], max_shown=20)
        raise InvalidManifest(
            f"its record must have the fields {names}, got {format_value(record, 200)}"
        )
    arrays = [record[name] for name in RECORD_ARRAYS]
    if not all(isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "fi" for array in arrays):
        raise InvalidManifest("its record must consist of one-dimensional numeric arrays")
    n_steps, n_validations, validated = len(record["loss"]), len(record["validation"]), record["validated"]
    fits = [len(array) for array in arrays] == [n_steps] * 4 + [n_validations] * 2
    if not fits or validated.dtype.kind != "i" or ((validated < 1) | (validated > n_steps)).any():
        raise InvalidManifest("the arrays of its record must have matching lengths and steps")
    _check_integer(record["kept"], "kept", 0, n_steps)
    if not isinstance(record["passes"], float) or not 0 <= record["passes"] < math.inf:
        raise InvalidManifest(
            "'passes' of its record must be a number of epochs, got "
            f"{format_value(record['passes'])}"
        )


def _check_scale(scale: Any, scaler_scope: str) -> None:
    pair = isinstance(scale, list) and len(scale) == 2 and all(isinstance(number, float) and math.isfinite(number) for number in scale)
    if (scaler_scope == "panel") != pair or (scale is not None and (not pair or scale[1] < 0)):
        raise InvalidManifest(
            "its scale must be a location and a scale with scaler_scope='panel', else absent, "
            f"got {format_value(scale)} with {scaler_scope!r}"
        )


def _check_correlation_factor(factor: Any, horizon: int) -> None:
    if factor is None:
        return
    has_shape = isinstance(factor, np.ndarray) and factor.dtype == np.float64 and factor.shape == (horizon, horizon)
    if not has_shape or not np.allclose((factor**2).sum(axis=1), 1, atol=1e-6):
        raise InvalidManifest(
            "'ties' must be a Cholesky factor of a correlation matrix of the horizon"
        )


def _check_numbers(numbers: Any, label: str, names: list[str], minimum: float, maximum: float) -> None:
    if not isinstance(numbers, dict) or set(numbers) != set(names):
        raise InvalidManifest(
            f"{label!r} of its channels must have the keys {format_list(names, max_shown=20)}, "
            f"got {format_value(numbers, 200)}"
        )
    for name, value in numbers.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not minimum <= value <= maximum:
            raise InvalidManifest(
                f"{label!r} of {format_value(name)} must be a number from {minimum:g} to "
                f"{maximum:g}, got {format_value(value)}"
            )


def _check_integer(value: Any, label: str, minimum: int, maximum: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise InvalidManifest(
            f"{label!r} of its network must be an integer from {minimum} to {maximum}, "
            f"got {format_value(value)}"
        )


def _n_values(array: np.ndarray) -> int:
    return int(array.size)
