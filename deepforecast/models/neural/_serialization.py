"""A trained network to a file and back: weights as arrays, all else numbers and text, and nothing of a file is believed.

A file may say anything. Its sizes are held against the arrays that really are in it before memory is taken for them: the
network it describes is built on the device "meta" first, which has shapes and no memory, and every weight has to be there with
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

FREE_SIZE = 10_000  # a size that any file may ask for: what is smaller does no harm
NAME_LISTS = ("numbers", "codes", "static", "static_codes", "clock")
SHARED_KEYS = ("channels", "season", "record", "weights")  # of every network; "scale" and "ties" of some
RECORD_ARRAYS = ("loss", "rate", "norm", "seconds", "validated", "validation")  # arrays of a record


def serialize(learned: LearnedState) -> LearnedState:
    """What a file can hold of a trained network: the same fit gives the same bytes, so not how long its steps took."""
    weights = {name: value.cpu().contiguous().numpy() for name, value in learned["network"].state_dict().items()}
    shared = {name: value for name, value in learned.shared.items() if name != "network"}
    record = {**shared["record"], "seconds": np.full(len(shared["record"]["seconds"]), np.nan)}
    return replace(learned, shared={**shared, "record": record, "weights": weights})


def deserialize(model: NeuralForecaster, learned: LearnedState) -> LearnedState:
    """The trained network of a file, on the CPU; `InvalidManifest` where its parts do not fit each other."""
    shared = dict(learned.shared)
    missing = [name for name in SHARED_KEYS if name not in shared]
    unknown = [name for name in shared if name not in (*SHARED_KEYS, "scale", "ties")]
    if missing or unknown:
        key, problem = (missing or unknown)[0], "not there" if missing else "none of them"
        raise InvalidManifest(f"a network keeps {format_list(SHARED_KEYS)}; {format_value(key)} is {problem}")
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
    """`InvalidManifest` unless the weights have names, shapes and dtypes of the network that is described."""
    import torch

    with torch.device("meta"):
        shapes = _fit.build_network(model, columns, season)
    expected = {name: (tuple(tensor.shape), str(tensor.dtype)[6:]) for name, tensor in shapes.state_dict().items()}
    if set(expected) != set(weights):
        unmatched = sorted(set(expected) ^ set(weights))
        raise InvalidManifest(f"its weights are not those of the network; on one side only: {format_list(unmatched)}")
    for name, (shape, dtype) in expected.items():
        if weights[name].shape != shape or str(weights[name].dtype) != dtype:
            actual = f"{weights[name].shape} of {weights[name].dtype}"
            raise InvalidManifest(f"its weights {format_value(name)} are {actual}, where the network has {shape} of {dtype}")
    n_constants = sum(tensor.numel() for tensor in shapes.buffers())
    if n_constants > max(1e7, 100 * sum(map(_n_values, weights.values()))):
        raise InvalidManifest(f"its network would hold {n_constants:,} constants, too many beside its weights")


def _check_sizes(model: NeuralForecaster, n_weights: int) -> None:
    """Layers, widths and counts of a network are not larger than all its weights."""
    from deepforecast.models.neural._base import NeuralForecaster

    for name in params.declared_params(type(model)):
        if name in params.declared_params(NeuralForecaster):
            continue
        value = getattr(model, name)
        sizes = list(value) if isinstance(value, (list, tuple)) else [value]
        numbers = [size for size in sizes if isinstance(size, int)]
        if len(sizes) > FREE_SIZE or any(size > max(FREE_SIZE, n_weights) for size in numbers):
            raise InvalidManifest(f"{name} is {format_value(value)}, and all weights together are {n_weights}")


def _check_weight_values(weights: Any) -> dict[str, np.ndarray]:
    if not isinstance(weights, dict) or not all(isinstance(array, np.ndarray) for array in weights.values()):
        raise InvalidManifest("its weights are not names and arrays")
    for name, array in weights.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InvalidManifest(f"its weights {format_value(name)} hold a value that is no number")
    return weights


def _read_columns(columns: Any, learned: LearnedState, n_weights: int, check_moments: Callable[[Any, list[str]], None]) -> WindowColumns:
    names = [entry.name for entry in fields(WindowColumns)]
    if not isinstance(columns, dict) or set(columns) != set(names):
        raise InvalidManifest(f"its channels have the fields {format_list(names, max_shown=20)}; found {format_value(columns, 200)}")
    for name in NAME_LISTS:
        texts = columns[name]
        if not isinstance(texts, list) or not all(isinstance(entry, str) for entry in texts) or len(set(texts)) < len(texts):
            raise InvalidManifest(f"{name} of its channels are names, each once; found {format_value(texts)}")
    tail = learned.by_series.get("tail")
    if tail is None or tail.ndim != 2:
        raise InvalidManifest("the last rows of its series are not there")
    _check_integer(columns["input_size"], "input_size", tail.shape[1], tail.shape[1])
    _check_integer(columns["horizon"], "horizon", 1, max(FREE_SIZE, n_weights))
    _check_integer(columns["ahead"], "ahead", 0, len(columns["numbers"]))
    _check_integer(columns["ahead_codes"], "ahead_codes", 0, len(columns["codes"]))
    _check_numbers(columns["counts"], "counts", [*columns["codes"], *columns["static_codes"]], 0, n_weights)
    for name in columns["counts"]:
        _check_integer(columns["counts"][name], f"counts of {name}", 0, n_weights)
    _check_numbers(columns["centre"], "centre", [*columns["numbers"], *columns["static"]], -math.inf, math.inf)
    _check_numbers(columns["spread"], "spread", [*columns["numbers"], *columns["static"]], 0.0, math.inf)
    if not set(columns["clock"]) <= set(NAMES):
        raise InvalidManifest(f"the calendar has {format_list(NAMES, max_shown=20)}; found {format_value(columns['clock'])}")
    check_moments(columns["moments"], columns["numbers"][: columns["ahead"]])
    return WindowColumns.from_dict(columns)


def _check_series_arrays(learned: LearnedState, columns: WindowColumns) -> None:
    """Every column's last rows, and codes that point to a category there is."""
    rows = learned.by_series["tail"].shape
    shapes = {"tail": rows, "place": rows[:1], "spread": rows[:1]}
    shapes |= {f"tail:{name}": rows for name in (*columns.numeric, *columns.categorical)}
    shapes |= {f"static:{name}": rows[:1] for name in (*columns.static, *columns.static_codes)}
    if set(shapes) != set(learned.by_series):
        raise InvalidManifest(f"of each series it keeps {format_list(list(shapes), max_shown=20)}; found {format_list(list(learned.by_series), max_shown=20)}")
    for name, shape in shapes.items():
        array = learned.by_series[name]
        if array.shape != shape or array.dtype != np.float64 or np.isinf(array).any():
            raise InvalidManifest(f"{format_value(name)} is {array.shape} of {array.dtype}, where {shape} of finite float64 is due")
        count = columns.counts.get(name.partition(":")[2])
        if count is not None and not ((array >= -1) & (array < count) & (array % 1 == 0)).all():
            raise InvalidManifest(f"{format_value(name)} points to a category that is not there")
    if not (learned.by_series["spread"] >= 0).all() or np.isnan(learned.by_series["place"]).any():
        raise InvalidManifest("the scales of its series are no numbers")


def _check_record(record: Any) -> None:
    if not isinstance(record, dict) or set(record) != {*RECORD_ARRAYS, "kept", "why", "passes"} or not isinstance(record["why"], str):
        raise InvalidManifest(f"its record has the fields {format_list([*RECORD_ARRAYS, 'kept', 'why', 'passes'], max_shown=20)}; found {format_value(record, 200)}")
    arrays = [record[name] for name in RECORD_ARRAYS]
    if not all(isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "fi" for array in arrays):
        raise InvalidManifest("its record is not of columns of numbers")
    n_steps, n_validations, validated = len(record["loss"]), len(record["validation"]), record["validated"]
    fits = [len(array) for array in arrays] == [n_steps] * 4 + [n_validations] * 2
    if not fits or validated.dtype.kind != "i" or ((validated < 1) | (validated > n_steps)).any():
        raise InvalidManifest("the columns of its record do not fit each other")
    _check_integer(record["kept"], "the step kept", 0, n_steps)
    if not isinstance(record["passes"], float) or not 0 <= record["passes"] < math.inf:
        raise InvalidManifest(f"its record says how many passes were made; found {format_value(record['passes'])}")


def _check_scale(scale: Any, scale_by: str) -> None:
    pair = isinstance(scale, list) and len(scale) == 2 and all(isinstance(number, float) and math.isfinite(number) for number in scale)
    if (scale_by == "panel") != pair or (scale is not None and (not pair or scale[1] < 0)):
        raise InvalidManifest(f"with scale_by={scale_by!r} its scale is {format_value(scale)}")


def _check_correlation_factor(factor: Any, horizon: int) -> None:
    if factor is None:
        return
    has_shape = isinstance(factor, np.ndarray) and factor.dtype == np.float64 and factor.shape == (horizon, horizon)
    if not has_shape or not np.allclose((factor**2).sum(axis=1), 1, atol=1e-6):
        raise InvalidManifest("the ties between its steps are no factor of a correlation")


def _check_numbers(numbers: Any, label: str, names: list[str], minimum: float, maximum: float) -> None:
    if not isinstance(numbers, dict) or set(numbers) != set(names):
        raise InvalidManifest(f"{label} of its channels are of {format_list(names, max_shown=20)}; found {format_value(numbers, 200)}")
    for name, value in numbers.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not minimum <= value <= maximum:
            raise InvalidManifest(f"{label} of {format_value(name)} is {format_value(value)}")


def _check_integer(value: Any, label: str, minimum: int, maximum: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise InvalidManifest(f"{label} of its network is a whole number from {minimum} to {maximum}; found {format_value(value)}")


def _n_values(array: np.ndarray) -> int:
    return int(array.size)
