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
from deepforecast.core.manifest import Unfit
from deepforecast.core.state import Learned
from deepforecast.core.threads import waiting_passively
from deepforecast.data.calendar_features import NAMES
from deepforecast.data.windows import Channels
from deepforecast.errors import shown, some
from deepforecast.models.neural import _making
from deepforecast.training.defaults import torch_defaults
from deepforecast.training.importing import unnoticed

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.nn.network import ForecastNetwork

ROOM = 10_000  # a size that any file may ask for: what is smaller does no harm
TEXTS = ("numbers", "codes", "static", "static_codes", "clock")
SHARED = ("channels", "season", "record", "weights")  # of every network; "scale" and "ties" of some
SEEN = ("loss", "rate", "norm", "seconds", "validated", "validation")  # arrays of a record


def kept(learned: Learned) -> Learned:
    """What a file can hold of a trained network: the same fit gives the same bytes, so not how long its steps took."""
    weights = {name: value.cpu().contiguous().numpy() for name, value in learned["network"].state_dict().items()}
    shared = {name: value for name, value in learned.shared.items() if name != "network"}
    record = {**shared["record"], "seconds": np.full(len(shared["record"]["seconds"]), np.nan)}
    return replace(learned, shared={**shared, "record": record, "weights": weights})


def revived(model: NeuralForecaster, learned: Learned) -> Learned:
    """The trained network of a file, on the CPU; `Unfit` where its parts do not fit each other."""
    shared = dict(learned.shared)
    missing = [name for name in SHARED if name not in shared]
    unknown = [name for name in shared if name not in (*SHARED, "scale", "ties")]
    if missing or unknown:
        odd, how = (missing or unknown)[0], "not there" if missing else "none of them"
        raise Unfit(f"a network keeps {some(SHARED)}; {shown(odd)} is {how}")
    weights = _weights(shared.pop("weights"))
    channels = _channels(shared["channels"], learned, sum(map(_size, weights.values())), model._checked_moments)
    _whole(shared["season"], "season", 1, max(ROOM, channels.input_size))
    _tails(learned, channels)
    _record(shared["record"])
    _scale(shared.get("scale"), model.scaler_scope)
    _ties(shared.get("ties"), channels.horizon)
    network = _network(model, channels, shared["season"], weights)
    return replace(learned, shared={**shared, "network": network})


def _network(model: NeuralForecaster, channels: Channels, season: int, weights: Mapping[str, Any]) -> ForecastNetwork:
    with waiting_passively("torch"), unnoticed():
        import torch
    _modest(model, sum(map(_size, weights.values())))
    with torch_defaults():
        _check_weights(model, channels, season, weights)
        network = _making.fresh(model, channels, season)
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
        network.load_state_dict(tensors)
        return network.eval()


def _check_weights(
    model: NeuralForecaster, channels: Channels, season: int, weights: Mapping[str, Any]
) -> None:
    """`Unfit` unless the weights have names, shapes and dtypes of the network that is described."""
    import torch

    with torch.device("meta"):
        shapes = _making.fresh(model, channels, season)
    asked = {name: (tuple(one.shape), str(one.dtype)[6:]) for name, one in shapes.state_dict().items()}
    if set(asked) != set(weights):
        odd = sorted(set(asked) ^ set(weights))
        raise Unfit(f"its weights are not those of the network; on one side only: {some(odd)}")
    for name, (shape, dtype) in asked.items():
        if weights[name].shape != shape or str(weights[name].dtype) != dtype:
            held = f"{weights[name].shape} of {weights[name].dtype}"
            raise Unfit(f"its weights {shown(name)} are {held}, where the network has {shape} of {dtype}")
    room = sum(one.numel() for one in shapes.buffers())
    if room > max(1e7, 100 * sum(map(_size, weights.values()))):
        raise Unfit(f"its network would hold {room:,} constants, too many beside its weights")


def _modest(model: NeuralForecaster, weights: int) -> None:
    """Layers, widths and counts of a network are not larger than all its weights."""
    from deepforecast.models.neural._base import NeuralForecaster

    for name in params.declared(type(model)):
        if name in params.declared(NeuralForecaster):
            continue
        value = getattr(model, name)
        held = list(value) if isinstance(value, (list, tuple)) else [value]
        numbers = [one for one in held if isinstance(one, int)]
        if len(held) > ROOM or any(one > max(ROOM, weights) for one in numbers):
            raise Unfit(f"{name} is {shown(value)}, and all weights together are {weights}")


def _weights(said: Any) -> dict[str, np.ndarray]:
    if not isinstance(said, dict) or not all(isinstance(one, np.ndarray) for one in said.values()):
        raise Unfit("its weights are not names and arrays")
    for name, one in said.items():
        if one.dtype.kind == "f" and not np.isfinite(one).all():
            raise Unfit(f"its weights {shown(name)} hold a value that is no number")
    return said


def _channels(said: Any, learned: Learned, weights: int, moments: Callable[[Any, list[str]], None]) -> Channels:
    names = [one.name for one in fields(Channels)]
    if not isinstance(said, dict) or set(said) != set(names):
        raise Unfit(f"its channels have the fields {some(names, most=20)}; found {shown(said, 200)}")
    for name in TEXTS:
        held = said[name]
        if not isinstance(held, list) or not all(isinstance(one, str) for one in held) or len(set(held)) < len(held):
            raise Unfit(f"{name} of its channels are names, each once; found {shown(held)}")
    tail = learned.by_series.get("tail")
    if tail is None or tail.ndim != 2:
        raise Unfit("the last rows of its series are not there")
    _whole(said["input_size"], "input_size", tail.shape[1], tail.shape[1])
    _whole(said["horizon"], "horizon", 1, max(ROOM, weights))
    _whole(said["ahead"], "ahead", 0, len(said["numbers"]))
    _whole(said["ahead_codes"], "ahead_codes", 0, len(said["codes"]))
    _numbers_of(said["counts"], "counts", [*said["codes"], *said["static_codes"]], 0, weights)
    for name in said["counts"]:
        _whole(said["counts"][name], f"counts of {name}", 0, weights)
    _numbers_of(said["centre"], "centre", [*said["numbers"], *said["static"]], -math.inf, math.inf)
    _numbers_of(said["spread"], "spread", [*said["numbers"], *said["static"]], 0.0, math.inf)
    if not set(said["clock"]) <= set(NAMES):
        raise Unfit(f"the calendar has {some(NAMES, most=20)}; found {shown(said['clock'])}")
    moments(said["moments"], said["numbers"][: said["ahead"]])
    return Channels.read(said)


def _tails(learned: Learned, channels: Channels) -> None:
    """Every column's last rows, and codes that point to a category there is."""
    rows = learned.by_series["tail"].shape
    wide = {"tail": rows, "place": rows[:1], "spread": rows[:1]}
    wide |= {f"tail:{name}": rows for name in (*channels.numbers, *channels.codes)}
    wide |= {f"static:{name}": rows[:1] for name in (*channels.static, *channels.static_codes)}
    if set(wide) != set(learned.by_series):
        raise Unfit(f"of each series it keeps {some(list(wide), most=20)}; found {some(list(learned.by_series), most=20)}")
    for name, shape in wide.items():
        held = learned.by_series[name]
        if held.shape != shape or held.dtype != np.float64 or np.isinf(held).any():
            raise Unfit(f"{shown(name)} is {held.shape} of {held.dtype}, where {shape} of finite float64 is due")
        count = channels.counts.get(name.partition(":")[2])
        if count is not None and not ((held >= -1) & (held < count) & (held % 1 == 0)).all():
            raise Unfit(f"{shown(name)} points to a category that is not there")
    if not (learned.by_series["spread"] >= 0).all() or np.isnan(learned.by_series["place"]).any():
        raise Unfit("the scales of its series are no numbers")


def _record(said: Any) -> None:
    if not isinstance(said, dict) or set(said) != {*SEEN, "kept", "why", "passes"} or not isinstance(said["why"], str):
        raise Unfit(f"its record has the fields {some([*SEEN, 'kept', 'why', 'passes'], most=20)}; found {shown(said, 200)}")
    arrays = [said[name] for name in SEEN]
    if not all(isinstance(one, np.ndarray) and one.ndim == 1 and one.dtype.kind in "fi" for one in arrays):
        raise Unfit("its record is not of columns of numbers")
    steps, looks, validated = len(said["loss"]), len(said["validation"]), said["validated"]
    fits = [len(one) for one in arrays] == [steps] * 4 + [looks] * 2
    if not fits or validated.dtype.kind != "i" or ((validated < 1) | (validated > steps)).any():
        raise Unfit("the columns of its record do not fit each other")
    _whole(said["kept"], "the step kept", 0, steps)
    if not isinstance(said["passes"], float) or not 0 <= said["passes"] < math.inf:
        raise Unfit(f"its record says how many passes were made; found {shown(said['passes'])}")


def _scale(said: Any, scale_by: str) -> None:
    pair = isinstance(said, list) and len(said) == 2 and all(isinstance(one, float) and math.isfinite(one) for one in said)
    if (scale_by == "panel") != pair or (said is not None and (not pair or said[1] < 0)):
        raise Unfit(f"with scale_by={scale_by!r} its scale is {shown(said)}")


def _ties(said: Any, horizon: int) -> None:
    if said is None:
        return
    shape = isinstance(said, np.ndarray) and said.dtype == np.float64 and said.shape == (horizon, horizon)
    if not shape or not np.allclose((said**2).sum(axis=1), 1, atol=1e-6):
        raise Unfit("the ties between its steps are no factor of a correlation")


def _numbers_of(said: Any, what: str, names: list[str], least: float, most: float) -> None:
    if not isinstance(said, dict) or set(said) != set(names):
        raise Unfit(f"{what} of its channels are of {some(names, most=20)}; found {shown(said, 200)}")
    for name, value in said.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not least <= value <= most:
            raise Unfit(f"{what} of {shown(name)} is {shown(value)}")


def _whole(value: Any, what: str, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Unfit(f"{what} of its network is a whole number from {least} to {most}; found {shown(value)}")


def _size(one: np.ndarray) -> int:
    return int(one.size)
