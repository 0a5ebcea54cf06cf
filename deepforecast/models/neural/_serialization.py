"""Conversion of trained networks to and from model files, with validation of untrusted files.

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

from deepforecast.core import object_serialization, params
from deepforecast.core.encoding import InvalidManifest
from deepforecast.core.state import LearnedState
from deepforecast.data.features import NAMES
from deepforecast.data.windows import WindowColumns
from deepforecast.errors import format_list, format_value
from deepforecast.models.neural import _fit
from deepforecast.training.process import quiet_import, torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.nn.network import ForecastNetwork

FREE_SIZE = 10_000  # sizes up to this one need little memory and are always allowed
FREE_CONSTANTS = 10_000_000  # the same for the number of values in buffers
NAME_LISTS = ("numeric", "categorical", "static", "static_codes", "calendar")
# "window_columns": WindowColumns; "training_record": see `_training`; optional are "panel_scale"
# (of the panel), "correlation_factor" (Cholesky factor of the residual correlation), "calibration" (see `_calibration`) and
# "not_calibrated" (the reason why there is no calibration) and "pretraining" (see `_pretraining`).
SHARED_KEYS = ("window_columns", "season_length", "training_record", "weights")
OPTIONAL_KEYS = ("panel_scale", "correlation_factor", "calibration", "not_calibrated", "pretraining")
CALIBRATION_ARRAYS = ("probabilities", "factors", "levels", "uncalibrated", "calibrated")
RECORD_ARRAYS = ("loss", "learning_rate", "gradient_norm", "seconds", "validation_steps", "validation_loss")


def serialize(learned: LearnedState) -> LearnedState:
    """The state with weights as arrays in place of the network; durations become NaN, so that files
    are reproducible.
    """
    weights = {name: value.cpu().contiguous().numpy() for name, value in learned["network"].state_dict().items()}
    sizes = learned["network"].sizes
    shared = {name: value for name, value in learned.shared.items() if name != "network"}
    shared |= {"window_columns": sizes.window_columns.to_dict(), "season_length": sizes.season}
    record = {**shared["training_record"], "seconds": np.full(len(shared["training_record"]["seconds"]), np.nan)}
    return replace(learned, shared={**shared, "training_record": record, "weights": weights})


def check_restorable(model: NeuralForecaster) -> None:
    """Raise `InvalidManifest` unless a loss and a head passed as objects compute the same when they are loaded."""
    modules = [value for value in (model.head, model.loss) if hasattr(value, "state_dict")]
    if not modules:
        return
    from deepforecast.nn.heads.registry import equal_outputs  # imports torch

    with torch_defaults():
        for module in modules:
            settings, weights = object_serialization.split_module(module)
            if not equal_outputs(object_serialization.build_module(type(module), settings, weights), module):
                raise object_serialization.restore_error(module, ", which has other outputs")


def deserialize(model: NeuralForecaster, learned: LearnedState) -> LearnedState:
    """The state with the network rebuilt on the CPU; raise `InvalidManifest` for inconsistent files."""
    shared = dict(learned.shared)
    missing = [name for name in SHARED_KEYS if name not in shared]
    unknown = [name for name in shared if name not in (*SHARED_KEYS, *OPTIONAL_KEYS)]
    if missing or unknown:
        problem = f"{missing[0]!r} is missing" if missing else f"'{format_value(unknown[0])}' is unknown"
        raise InvalidManifest(f"the network must have the entries {format_list(SHARED_KEYS)}; {problem}")
    weights = shared.pop("weights")
    _check_weight_values(weights)
    n_weights = sum(map(_n_values, weights.values()))
    columns = _read_columns(shared.pop("window_columns"), learned, n_weights, model._check_time_features)
    season = shared.pop("season_length")
    _check_integer(season, "season_length", 1, max(FREE_SIZE, columns.input_size))
    _check_series_arrays(learned, columns)
    _check_record(shared["training_record"])
    _check_scale(shared.get("panel_scale"), model.scaler_scope)
    _check_correlation_factor(shared.get("correlation_factor"), columns.horizon)
    _check_calibration(shared.get("calibration"))
    if not isinstance(shared.get("not_calibrated", ""), str):
        raise InvalidManifest(f"'not_calibrated' of the network must be a string, got {format_value(shared['not_calibrated'])}")
    _check_pretraining(shared.get("pretraining"))
    network = _rebuild_network(model, columns, season, weights)
    return replace(learned, shared={**shared, "network": network})


def _rebuild_network(
    model: NeuralForecaster, columns: WindowColumns, season: int, weights: Mapping[str, Any]
) -> ForecastNetwork:
    """Build the network and load its weights; all sizes are checked before memory is allocated."""
    with quiet_import():
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

    with torch.device("meta"):  # shapes without memory
        network = _fit.build_network(model, columns, season)
    expected = {
        name: (tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        for name, tensor in network.state_dict().items()
    }
    missing, unknown = sorted(set(expected) - set(weights)), sorted(set(weights) - set(expected))
    if missing or unknown:
        problem = f"missing: {format_list(missing)}" if missing else f"unknown: {format_list(unknown)}"
        raise InvalidManifest(f"the weights must be those of the network; {problem}")
    for name, (shape, dtype) in expected.items():
        if weights[name].shape != shape or str(weights[name].dtype) != dtype:
            actual = f"{weights[name].shape} of {weights[name].dtype}"
            raise InvalidManifest(f"the weights '{format_value(name)}' must be {shape} of {dtype}, got {actual}")
    n_constants = sum(tensor.numel() for tensor in network.buffers())
    max_constants = max(FREE_CONSTANTS, 100 * sum(map(_n_values, weights.values())))
    if n_constants > max_constants:
        raise InvalidManifest(
            f"the network must have at most {max_constants:,} constants (100 per weight), got {n_constants:,}"
        )


def _check_sizes(model: NeuralForecaster, n_weights: int) -> None:
    """Raise `InvalidManifest` if an integer parameter of the model exceeds the number of weights.

    Parameters that all networks share (`NeuralForecaster`) are no sizes of layers.
    """
    from deepforecast.models.neural._base import NeuralForecaster  # imports this module

    for name in params.declared_params(type(model)):
        if name in params.declared_params(NeuralForecaster):
            continue
        value = getattr(model, name)
        sizes = list(value) if isinstance(value, (list, tuple)) else [value]
        numbers = [size for size in sizes if isinstance(size, int)]
        if len(sizes) > FREE_SIZE or any(size > max(FREE_SIZE, n_weights) for size in numbers):
            raise InvalidManifest(
                f"{name} must be at most the number of weights ({n_weights}), got {format_value(value)}"
            )


def _check_weight_values(weights: Any) -> None:
    """Raise `InvalidManifest` unless the weights are a mapping from names to finite arrays."""
    if not isinstance(weights, dict) or not all(isinstance(array, np.ndarray) for array in weights.values()):
        raise InvalidManifest("the weights must be a mapping from names to arrays")
    for name, array in weights.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InvalidManifest(f"the weights '{format_value(name)}' must be finite, got NaN or infinity")


def _read_columns(
    columns: Any, learned: LearnedState, n_weights: int,
    check_time_features: Callable[[Any, list[str]], None],
) -> WindowColumns:
    """The columns of the network from "window_columns" of a file; raise `InvalidManifest` if inconsistent."""
    names = [entry.name for entry in fields(WindowColumns)]
    if not isinstance(columns, dict) or set(columns) != set(names):
        raise InvalidManifest(
            f"the network's window_columns must have the keys {format_list(names, max_shown=20)}, "
            f"got {format_value(columns, 200)}"
        )
    for name in NAME_LISTS:
        texts = columns[name]
        if not isinstance(texts, list) or not all(isinstance(entry, str) for entry in texts) or len(set(texts)) < len(texts):
            raise InvalidManifest(f"window_columns[{name!r}] must be a list of unique names, got {format_value(texts)}")
    tail = learned.by_series.get("recent_values")
    if tail is None or tail.ndim != 2:
        raise InvalidManifest("the last observations of the series ('recent_values') must be a two-dimensional array")
    _check_integer(columns["input_size"], "input_size", tail.shape[1], tail.shape[1])
    if not len(tail):  # saved without histories, whose number of values would bound the window
        _check_integer(columns["input_size"], "input_size", 0, max(FREE_SIZE, n_weights))
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
            f"window_columns['calendar'] must contain only {format_list(NAMES, max_shown=20)}, "
            f"got {format_value(columns['calendar'])}"
        )
    check_time_features(columns["time_features"], columns["numeric"][: columns["n_future"]])
    return WindowColumns.from_dict(columns)


def _check_series_arrays(learned: LearnedState, columns: WindowColumns) -> None:
    """Raise `InvalidManifest` unless `by_series` has the arrays of these columns, see `_series_state`."""
    window_shape = learned.by_series["recent_values"].shape
    series_shape = window_shape[:1]
    shapes = {"recent_values": window_shape, "loc": series_shape, "scale": series_shape}
    shapes |= {f"recent_values:{name}": window_shape for name in (*columns.numeric, *columns.categorical)}
    shapes |= {f"static:{name}": series_shape for name in (*columns.static, *columns.static_codes)}
    if set(shapes) != set(learned.by_series):
        raise InvalidManifest(
            f"the state of the series must have the arrays {format_list(list(shapes), max_shown=20)}, "
            f"got {format_list(list(learned.by_series), max_shown=20)}"
        )
    for name, shape in shapes.items():
        array = learned.by_series[name]
        if array.shape != shape or array.dtype != np.float64 or np.isinf(array).any():
            raise InvalidManifest(
                f"the array '{format_value(name)}' must be {shape} of float64 without infinite values, "
                f"got {array.shape} of {array.dtype}"
            )
        n_categories = columns.counts.get(name.partition(":")[2])
        if n_categories is not None and not ((array >= -1) & (array < n_categories) & (array % 1 == 0)).all():
            raise InvalidManifest(
                f"the array '{format_value(name)}' must contain integer codes from -1 to {n_categories - 1}"
            )
    if not (learned.by_series["scale"] >= 0).all() or np.isnan(learned.by_series["loc"]).any():
        raise InvalidManifest(
            "the locations ('loc') of the series must not be NaN, and their scales ('scale') must be at least 0"
        )


def _check_record(record: Any) -> None:
    """Raise `InvalidManifest` unless `record` is a training record, see `_training._record_arrays`."""
    if (
        not isinstance(record, dict)
        or set(record) != {*RECORD_ARRAYS, "best_step", "stop_reason"}
        or not isinstance(record["stop_reason"], str)
    ):
        names = format_list([*RECORD_ARRAYS, "best_step", "stop_reason"], max_shown=20)
        raise InvalidManifest(
            f"the training record must have the keys {names}, got {format_value(record, 200)}"
        )
    arrays = [record[name] for name in RECORD_ARRAYS]
    if not all(isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "fi" for array in arrays):
        raise InvalidManifest(f"{', '.join(RECORD_ARRAYS)} of the training record must be one-dimensional numeric arrays")
    n_steps = len(record["loss"])
    validated_steps = record["validation_steps"]
    expected_lengths = [n_steps] * 4 + [len(record["validation_loss"])] * 2  # in the order of RECORD_ARRAYS
    if [len(array) for array in arrays] != expected_lengths:
        raise InvalidManifest(
            "the arrays loss, learning_rate, gradient_norm and seconds of the training record must have equal lengths, "
            "and so must validation_steps and validation_loss"
        )
    if validated_steps.dtype.kind != "i" or ((validated_steps < 1) | (validated_steps > n_steps)).any():
        raise InvalidManifest(f"'validation_steps' of the training record must contain integers from 1 to {n_steps}")
    _check_integer(record["best_step"], "best_step", 0, n_steps)


def _check_scale(scale: Any, scaler_scope: str) -> None:
    """Raise `InvalidManifest` unless the scale of the panel is present exactly with scope 'panel'."""
    is_pair = (
        isinstance(scale, list)
        and len(scale) == 2
        and all(isinstance(number, float) and math.isfinite(number) for number in scale)
    )
    if (scaler_scope == "panel") != is_pair or (scale is not None and (not is_pair or scale[1] < 0)):
        raise InvalidManifest(
            "the scale of the network must be a pair of a location and a nonnegative scale if "
            f"scaler_scope='panel', else absent, got {format_value(scale)} with scaler_scope={scaler_scope!r}"
        )


def _check_correlation_factor(factor: Any, horizon: int) -> None:
    """Raise `InvalidManifest` unless the factor is None or has shape (horizon, horizon) and rows of norm 1."""
    if factor is None:
        return
    has_shape = isinstance(factor, np.ndarray) and factor.dtype == np.float64 and factor.shape == (horizon, horizon)
    if not has_shape or not np.allclose((factor**2).sum(axis=1), 1, atol=1e-6):
        raise InvalidManifest(
            f"'correlation_factor' must be the Cholesky factor of a correlation matrix, float64 of shape ({horizon}, {horizon})"
        )


def _check_calibration(calibration: Any) -> None:
    """Raise `InvalidManifest` unless `calibration` is None or an entry of `_calibration.calibrate`."""
    if calibration is None:
        return
    if not isinstance(calibration, dict) or set(calibration) != {*CALIBRATION_ARRAYS, "windows", "end"}:
        names = format_list([*CALIBRATION_ARRAYS, "windows", "end"], max_shown=20)
        raise InvalidManifest(f"the calibration of the network must have the keys {names}, got {format_value(calibration, 200)}")
    arrays = [calibration[name] for name in CALIBRATION_ARRAYS]
    if not all(isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype == np.float64 for array in arrays):
        raise InvalidManifest(f"{', '.join(CALIBRATION_ARRAYS)} of the calibration must be one-dimensional float64 arrays")
    probabilities, factors, *columns = arrays
    below = int(np.searchsorted(probabilities, 0.5))
    is_valid = (
        len(probabilities) == len(factors)
        and 0 < below < len(probabilities)
        and bool((np.diff(probabilities) > 0).all() and probabilities[0] > 0 and probabilities[-1] < 1)
        and bool(np.isfinite(factors).all() and (factors > 0).all())
        and bool((np.diff(factors[:below]) <= 0).all() and (np.diff(factors[below:]) >= 0).all())
    )
    if not is_valid or len({len(column) for column in columns}) != 1:
        raise InvalidManifest(
            "the calibration must have increasing probabilities on both sides of 0.5, a positive factor for each, "
            "which must not decrease with the distance from 0.5, and one coverage per level"
        )
    if not isinstance(calibration["windows"], float) or not 0 < calibration["windows"] < math.inf:
        raise InvalidManifest(f"'windows' of the calibration must be a positive float, got {format_value(calibration['windows'])}")
    _check_integer(calibration["end"], "end", -(2**63), 2**63 - 1)


def _check_pretraining(entry: Any) -> None:
    """Raise `InvalidManifest` unless `entry` is None or an entry of `_pretraining.pretrain`."""
    if entry is None:
        return
    is_valid = (
        isinstance(entry, dict)
        and set(entry) == {"objectives", "trains_forecast"}
        and isinstance(entry["trains_forecast"], bool)
        and isinstance(entry["objectives"], list)
        and all(isinstance(name, str) for name in entry["objectives"])
    )
    if not is_valid:
        raise InvalidManifest(
            "'pretraining' of the network must have a list of names 'objectives' and a bool 'trains_forecast', got "
            f"{format_value(entry, 200)}"
        )


def _check_numbers(numbers: Any, label: str, names: list[str], minimum: float, maximum: float) -> None:
    """Raise `InvalidManifest` unless window_columns[label] has a number in the range for each of `names`."""
    if not isinstance(numbers, dict) or set(numbers) != set(names):
        raise InvalidManifest(
            f"window_columns[{label!r}] must have the keys {format_list(names, max_shown=20)}, "
            f"got {format_value(numbers, 200)}"
        )
    for name, value in numbers.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not minimum <= value <= maximum:
            raise InvalidManifest(
                f"window_columns[{label!r}] of column '{format_value(name)}' must be a number from {minimum:g} to "
                f"{maximum:g}, got {format_value(value)}"
            )


def _check_integer(value: Any, label: str, minimum: int, maximum: int) -> None:
    """Raise `InvalidManifest` unless the value is an integer in the range (not a bool)."""
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise InvalidManifest(
            f"{label!r} of the network must be an integer from {minimum} to {maximum}, "
            f"got {format_value(value)}"
        )


def _n_values(array: np.ndarray) -> int:
    return int(array.size)
