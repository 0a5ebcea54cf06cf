"""The network as an ONNX file: arrays in the units of the data go in, forecasts in these units come out.

Inputs, each with a first axis of any number of windows; those a network has no columns for are not there:

- `y` (windows, input_size) float64: the last values, NaN where missing; `place`, `spread` (windows, 1) float64: shift and scale
  of the whole series, where scale_by is not "window" (and nowhere else).
- `past` (windows, input_size, columns) float32: the columns of numbers as they are, those known ahead first, NaN where missing,
  then the calendar's (sine and cosine of 2 pi value / period for each that comes round, flags as 0 and 1).
- `future` (windows, horizon, columns) float32: the columns known ahead and the calendar's over the steps ahead.
- `past_codes`, `future_codes`, `static_codes` int64: categories, counted from 1 in the order told, 0 for an unknown one.
- `static` (windows, columns) float32.

Output: `points` (windows, horizon) float64 and, of learned quantiles, `quantiles` (windows, horizon, quantiles). The file's
metadata hold as JSON, under "deepforecast": input_size, horizon, the names of columns, the categories of each that has some,
the calendar's features with their periods, and the probabilities.
"""

from __future__ import annotations

import json
import logging
import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from deepforecast.data.windows import Channels
from deepforecast.errors import CapabilityError, DependencyError, ParameterTypeError, SaveError, shown
from deepforecast.io.atomic import replace_file
from deepforecast.models.neural import _forecast
from deepforecast.models.neural._standing import channels_of
from deepforecast.nn.batch import Batch
from deepforecast.nn.body import Stepwise
from deepforecast.nn.distributions import Stretched
from deepforecast.nn.head import Head
from deepforecast.nn.network import ForecastNetwork
from deepforecast.nn.quantiles import Quantiles
from deepforecast.training.defaults import torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

GRID = (0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975)  # of a distribution that has any


@torch_defaults()
def write(model: NeuralForecaster, path: Any) -> None:
    """Write a fitted model's network; what stood at the path before is replaced whole or not at all."""
    if not isinstance(path, (str, os.PathLike)):
        raise ParameterTypeError(f"path is the name of a file; got {shown(path)}.")
    learned = model.fitted().learned
    network, channels = learned.shared["network"], channels_of(learned)
    if isinstance(network.body, Stepwise):
        raise CapabilityError(
            f"{model.name} takes its steps in turn, by draws that no ONNX file makes. Fit one that takes them at once: "
            "output='direct'."
        )
    head = network.head
    if head.distribution and not isinstance(head, (Quantiles, Stretched)):
        raise CapabilityError(
            f"An ONNX file gives quantiles that its operators can compute; those of head={model.head!r} they cannot. Fit with "
            "head='quantiles', 'normal', 'laplace', 'lognormal' or 'point'."
        )
    onnx = _library()
    inputs = _inputs(channels, model.scaler_scope != "window")
    whole = _Whole(deepcopy(network), channels, _forecast.limits(model), model.point_kind, tuple(inputs)).eval()
    outputs = ["points", "quantiles"] if network.head.distribution else ["points"]
    program = _exported(whole, inputs, outputs)
    entry = program.metadata_props.add()
    entry.key, entry.value = "deepforecast", json.dumps(_said(model, channels, whole.probabilities))
    _fit_for_runtimes(onnx, program)
    _checked(program, whole, inputs)
    try:
        replace_file(path, [program.SerializeToString()])
    except OSError as error:
        raise SaveError(f"The network cannot be written to {shown(str(path), 200)}: {error}.") from error


class _Whole(nn.Module):
    """A network between raw columns and forecasts in the units of the data."""

    away: Tensor
    centre: Tensor
    wide: Tensor
    fixed_centre: Tensor
    fixed_wide: Tensor

    def __init__(
        self, network: ForecastNetwork, channels: Channels, limits: tuple[float, float], point: str, names: tuple[str, ...]
    ) -> None:
        super().__init__()
        self.network, self.channels, self.limits, self.point, self.names = network, channels, limits, point, names
        head = network.head
        self.probabilities = _probabilities(head)
        if isinstance(head, Stretched):
            self.register_buffer("away", head.away(torch.tensor(self.probabilities, dtype=torch.float64)))
        for name, columns in (("", channels.numbers), ("fixed_", channels.static)):
            self.register_buffer(f"{name}centre", torch.tensor([channels.centre[one] for one in columns], dtype=torch.float64))
            wide = [channels.spread[one] or math.inf for one in columns]
            self.register_buffer(f"{name}wide", torch.tensor(wide, dtype=torch.float64))

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        """Points, and quantiles where there are any."""
        given, channels = dict(zip(self.names, values, strict=True)), self.channels
        y, count = values[0], values[0].shape[0]

        def of(name: str, *shape: int, whole: bool = False) -> Tensor:
            empty = torch.zeros((count, *shape), dtype=torch.int64 if whole else torch.float32)
            return given.get(name, empty)

        past = self._plain(of("past", channels.input_size, 0), self.centre, self.wide, len(channels.numbers))
        future = self._plain(of("future", channels.horizon, 0), self.centre, self.wide, channels.ahead)
        batch = Batch(
            y, past, future, self._plain(of("static", 0), self.fixed_centre, self.fixed_wide, len(channels.static)),
            of("past_codes", channels.input_size, 0, whole=True), of("future_codes", channels.horizon, 0, whole=True),
            of("static_codes", 0, whole=True), given.get("place", y[:, :1] * 0), given.get("spread", y[:, :1] * 0 + 1),
        )  # fmt: skip
        raw, scale = self.network(batch)
        return tuple(scale.back(one).clamp(*self.limits) for one in self._read(raw, scale.spread.expand(raw.shape[:2])))

    def _read(self, raw: Tensor, spread: Tensor) -> tuple[Tensor, ...]:
        head = self.network.head
        if not head.distribution:
            return (head.mean(raw),)
        found = head.at(raw.double(), self.away) if isinstance(head, Stretched) else cast(Quantiles, head).values(raw)
        middle = found[..., self.probabilities.index(0.5)] if self.point == "median" else head.mean(raw, spread)
        return middle, found

    def _plain(self, values: Tensor, centre: Tensor, wide: Tensor, columns: int) -> Tensor:
        """The first columns standardised, 0 where they are missing."""
        if not columns:
            return values
        found = (values[..., :columns].double() - centre[:columns]) / wide[:columns]
        return torch.cat([torch.nan_to_num(found, 0.0).float(), values[..., columns:]], dim=-1)


def _probabilities(head: Head) -> tuple[float, ...]:
    if isinstance(head, Quantiles):
        return head.probabilities
    return GRID if head.distribution else ()


def _inputs(channels: Channels, scaled: bool) -> dict[str, Tensor]:
    """An example of every input the network has."""
    length, horizon, clock = channels.input_size, channels.horizon, channels.clock_width
    wide = {
        "past": (length, len(channels.numbers) + clock), "future": (horizon, channels.ahead + clock),
        "static": (len(channels.static),), "past_codes": (length, len(channels.codes)),
        "future_codes": (horizon, channels.ahead_codes), "static_codes": (len(channels.static_codes),),
    }  # fmt: skip
    found = {"y": torch.arange(2.0 * length, dtype=torch.float64).view(2, length)}
    for name, shape in wide.items():
        if shape[-1]:
            found[name] = torch.zeros((2, *shape), dtype=torch.int64 if name.endswith("codes") else torch.float32)
    if scaled:
        found |= {"place": torch.zeros((2, 1), dtype=torch.float64), "spread": torch.ones((2, 1), dtype=torch.float64)}
    return found


def _exported(whole: _Whole, inputs: dict[str, Tensor], outputs: list[str]) -> Any:
    axis = torch.export.Dim("windows")
    shapes = {"values": tuple({0: axis} for _ in inputs)}
    with warnings.catch_warnings(), torch.no_grad(), _quiet():
        warnings.simplefilter("ignore")  # of torch and onnxscript on each other
        try:
            found = torch.onnx.export(
                whole, tuple(inputs.values()), dynamo=True, dynamic_shapes=shapes, input_names=list(inputs),
                output_names=outputs, verbose=False,
            )  # fmt: skip
        except Exception as error:
            raise _impossible(whole, error.__cause__ or error) from error
    return found.model_proto  # type: ignore[union-attr]


@contextmanager
def _quiet() -> Iterator[None]:
    """Torch says of each library that is not there that it is not there."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _fit_for_runtimes(onnx: Any, program: Any) -> None:
    """Softplus in float32: onnxruntime has it in no other."""
    kinds = {one.name: one.type.tensor_type.elem_type for one in program.graph.value_info}
    double, single = onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT
    nodes = []
    for node in program.graph.node:
        if node.op_type != "Softplus" or kinds.get(node.output[0]) != double:
            nodes.append(node)
            continue
        before, after = f"{node.output[0]}_single", f"{node.output[0]}_softplus"
        nodes += [
            onnx.helper.make_node("Cast", [node.input[0]], [before], to=single),
            onnx.helper.make_node("Softplus", [before], [after]),
            onnx.helper.make_node("Cast", [after], [node.output[0]], to=double),
        ]
    del program.graph.node[:]
    program.graph.node.extend(nodes)


def _checked(program: Any, whole: _Whole, inputs: dict[str, Tensor]) -> None:
    """That onnxruntime says of the file what torch says of the network."""
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(program.SerializeToString(), providers=["CPUExecutionProvider"])
        found = session.run(None, {name: one.numpy() for name, one in inputs.items()})
    except Exception as error:
        raise _impossible(whole, error) from error
    with torch.inference_mode():
        true = whole(*inputs.values())
    for one, other in zip(found, true, strict=True):
        if not torch.allclose(torch.from_numpy(one).double(), other.double(), rtol=1e-4, atol=1e-4):
            raise _impossible(whole, "onnxruntime finds other numbers")


def _impossible(whole: _Whole, why: object) -> CapabilityError:
    head = type(whole.network.head).__name__
    return CapabilityError(
        f"The network cannot be written as ONNX (head {head}): {shown(str(why), 200)}. What cannot is the body: take another "
        "model, or leave its special options out."
    )


def _library() -> Any:
    try:
        import onnx
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise DependencyError(
            "An ONNX file is written by the packages onnx and onnxscript and checked by onnxruntime. Install them: "
            "pip install onnx onnxscript onnxruntime."
        ) from None
    return onnx


def _said(model: NeuralForecaster, channels: Channels, probabilities: tuple[float, ...]) -> dict[str, Any]:
    from deepforecast.data.calendar_features import PERIODS

    return {
        "model": type(model).__name__, "input_size": channels.input_size, "horizon": channels.horizon,
        "past": list(channels.numbers), "future": list(channels.numbers[: channels.ahead]), "past_codes": list(channels.codes),
        "future_codes": list(channels.codes[: channels.ahead_codes]), "static": list(channels.static),
        "static_codes": list(channels.static_codes), "calendar": {name: PERIODS.get(name) for name in channels.clock},
        "categories": {name: list(known) for name, known in model.fitted().categories.items() if known is not None},
        "quantiles": list(probabilities),
    }  # fmt: skip
