"""Export of a network to ONNX, with inputs and outputs in the units of the data.

Inputs, each with a dynamic first axis of windows; inputs without columns are absent:

- `y` (windows, input_size) float64: the last values, NaN where missing.
- `loc`, `scale` (windows, 1) float64: location and scale of the series; only if `scaler_scope` is
  not "window".
- `past` (windows, input_size, columns) float32: unscaled numeric covariates, future covariates
  first, NaN where missing; then calendar features (sine and cosine of 2 pi value / period for
  cyclic ones, flags as 0 and 1).
- `future` (windows, horizon, columns) float32: future covariates and calendar features of the
  horizon.
- `past_codes`, `future_codes`, `static_codes` int64: categories, counted from 1 in the order of the
  metadata; 0 if unknown.
- `static` (windows, columns) float32: unscaled numeric static covariates.

Outputs: `points` (windows, horizon) float64 and, if the head has a distribution, `quantiles`
(windows, horizon, probabilities), calibrated by the factors of the fit; `predict(frame=...)` also
uses recent values. The metadata entry "deepforecast" is JSON with input_size,
horizon, the names of the columns, their categories, the calendar features with their periods, and
the probabilities.
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

from deepforecast.core.atomic import replace_file
from deepforecast.core.forecast import resolve_bounds
from deepforecast.data.features import PERIODS
from deepforecast.data.windows import WindowColumns
from deepforecast.errors import CapabilityError, DependencyError, ParameterTypeError, SaveError, format_value
from deepforecast.models.neural._forecast import QuantileFactors, quantile_factors
from deepforecast.models.neural._series_state import window_columns
from deepforecast.nn.batch import Batch
from deepforecast.nn.heads.base import Head
from deepforecast.nn.heads.distributions import LocationScaleHead
from deepforecast.nn.heads.quantiles import QuantileHead
from deepforecast.nn.network import AutoregressiveBody, ForecastNetwork
from deepforecast.training.process import torch_defaults

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster

# Probabilities of the exported quantiles of parametric heads.
EXPORTED_QUANTILES = (0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975)


@torch_defaults()
def export_network(model: NeuralForecaster, path: Any) -> None:
    """Write the network of a fitted model to an ONNX file, atomically, see `NeuralForecaster.export_onnx`.

    The file is written only if onnxruntime computes the same values as torch for example inputs.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ParameterTypeError(f"`path` must be a str or path-like, got {format_value(path)}.", parameter="path", value=path)
    learned = model.fitted_state().learned
    network, columns = learned.shared["network"], window_columns(learned)
    if isinstance(network.body, AutoregressiveBody):
        raise CapabilityError(
            f"{model.name} cannot be exported to ONNX, as it is autoregressive and draws sample "
            "paths.",
            hint="Use a model with output='direct'."
        )
    head = network.head
    if head.has_distribution and not isinstance(head, (QuantileHead, LocationScaleHead)):
        raise CapabilityError(
            f"head={model.head!r} cannot be exported to ONNX, whose operators cannot compute its "
            "quantiles.",
            hint="Set head='quantiles', 'normal', 'laplace', 'lognormal' or 'point', and fit again."
        )
    onnx = _import_onnx()
    inputs = _example_inputs(columns, has_series_scale=model.scaler_scope != "window")
    exported = _ExportedNetwork(
        deepcopy(network).cpu(), columns, resolve_bounds(model.bounds), model.point_kind, tuple(inputs),
        quantile_factors(learned),
    ).eval()
    output_names = ["points", "quantiles"] if network.head.has_distribution else ["points"]
    program = _to_onnx(exported, inputs, output_names)
    entry = program.metadata_props.add()
    entry.key, entry.value = "deepforecast", json.dumps(_metadata(model, columns, exported.probabilities))
    _cast_softplus(onnx, program)
    _verify(program, exported, inputs)
    try:
        replace_file(path, [program.SerializeToString()])
    except OSError as error:
        raise SaveError(
            f"Cannot write the network to {format_value(str(path), 200)}: {error}."
        ) from error


class _ExportedNetwork(nn.Module):
    """A network including the scaling of its inputs and outputs.

    `forward` takes the inputs named `input_names`, in this order; `y` is the first.
    """

    standard_quantiles: Tensor
    centre: Tensor
    scale: Tensor
    static_centre: Tensor
    static_scale: Tensor

    def __init__(
        self,
        network: ForecastNetwork,
        window_columns: WindowColumns,
        bounds: tuple[float, float],
        point_kind: str,
        input_names: tuple[str, ...],
        factors: QuantileFactors | None = None,
    ) -> None:
        """Store what `forward` needs, with the numbers that standardize covariates as buffers.

        Infinite `bounds` do not limit the forecasts. Without `factors` the quantiles are not calibrated.
        """
        super().__init__()
        self.network = network
        self.window_columns = window_columns
        self.bounds = bounds
        self.point_kind = point_kind
        self.input_names = input_names
        head = network.head
        self.probabilities = _probabilities(head)
        self.calibration = None if factors is None else torch.from_numpy(factors.at(self.probabilities))
        if isinstance(head, LocationScaleHead):
            self.register_buffer(
                "standard_quantiles",
                head.standard_quantile(torch.tensor(self.probabilities, dtype=torch.float64)),
            )
        for prefix, names in (("", window_columns.numeric), ("static_", window_columns.static)):
            centres = [window_columns.loc[column] for column in names]
            # A column that was constant in fit has scale 0: with an infinite one it becomes 0.
            scales = [window_columns.scale[column] or math.inf for column in names]
            self.register_buffer(f"{prefix}centre", torch.tensor(centres, dtype=torch.float64))
            self.register_buffer(f"{prefix}scale", torch.tensor(scales, dtype=torch.float64))

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        """Point forecasts (windows, horizon) and, if the head has a distribution, quantiles (windows,
        horizon, probabilities), in the units of the data.
        """
        arrays = dict(zip(self.input_names, values, strict=True))
        window_columns = self.window_columns
        y = values[0]
        n_windows = y.shape[0]

        def read_input(name: str, *shape: int, is_integer: bool = False) -> Tensor:
            empty = torch.zeros((n_windows, *shape), dtype=torch.int64 if is_integer else torch.float32)
            return arrays.get(name, empty)

        past = self._standardize(
            read_input("past", window_columns.input_size, 0),
            self.centre,
            self.scale,
            len(window_columns.numeric),
        )
        future = self._standardize(
            read_input("future", window_columns.horizon, 0),
            self.centre,
            self.scale,
            window_columns.n_future,
        )
        static = self._standardize(
            read_input("static", 0), self.static_centre, self.static_scale, len(window_columns.static)
        )
        batch = Batch(
            y=y,
            past=past,
            future=future,
            static=static,
            past_codes=read_input("past_codes", window_columns.input_size, 0, is_integer=True),
            future_codes=read_input("future_codes", window_columns.horizon, 0, is_integer=True),
            static_codes=read_input("static_codes", 0, is_integer=True),
            loc=arrays.get("loc", y[:, :1] * 0),
            scale=arrays.get("scale", y[:, :1] * 0 + 1),
        )
        raw, scaling = self.network(batch)
        return tuple(
            scaling.unstandardize(tensor).clamp(*self.bounds)
            for tensor in self._forecast_values(raw, scaling.scale.expand(raw.shape[:2]))
        )

    def _forecast_values(self, raw: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
        """Point forecasts and, if the head has a distribution, quantiles, both in units of z."""
        head = self.network.head
        if not head.has_distribution:
            return (head.mean(raw),)
        if isinstance(head, LocationScaleHead):
            quantiles = head.from_standard_quantile(raw.double(), self.standard_quantiles)
        else:
            quantiles = cast(QuantileHead, head).values(raw)
        median = quantiles[..., self.probabilities.index(0.5)]
        points = median if self.point_kind == "median" else head.mean(raw, scale)
        if self.calibration is not None:
            quantiles = move_tensor(median.unsqueeze(-1), quantiles, self.calibration, head.support)
        return points, quantiles

    def _standardize(self, values: Tensor, centre: Tensor, scale: Tensor, n_columns: int) -> Tensor:
        """Standardize the first `n_columns` and set their missing values to 0; the others (calendar
        features) are unchanged.
        """
        if not n_columns:
            return values
        standardized = (values[..., :n_columns].double() - centre[:n_columns]) / scale[:n_columns]
        return torch.cat([torch.nan_to_num(standardized, 0.0).float(), values[..., n_columns:]], dim=-1)


def move_tensor(median: Tensor, quantiles: Tensor, factors: Tensor, support: str) -> Tensor:
    """`_calibration.move` as ONNX operators, for quantiles in units of z."""
    if support == "positive":
        return torch.where(median > 0, median * torch.exp(factors * torch.log(quantiles / median)), quantiles)
    return median + factors * (quantiles - median)


def _probabilities(head: Head) -> tuple[float, ...]:
    if isinstance(head, QuantileHead):
        return head.probabilities
    return EXPORTED_QUANTILES if head.has_distribution else ()


def _example_inputs(columns: WindowColumns, has_series_scale: bool) -> dict[str, Tensor]:
    """Two example windows, by name of the input; inputs without columns are left out."""
    length = columns.input_size
    horizon = columns.horizon
    n_calendar = columns.calendar_width
    shapes = {
        "past": (length, len(columns.numeric) + n_calendar), "future": (horizon, columns.n_future + n_calendar),
        "static": (len(columns.static),), "past_codes": (length, len(columns.categorical)),
        "future_codes": (horizon, columns.n_future_codes), "static_codes": (len(columns.static_codes),),
    }  # fmt: skip
    inputs = {"y": torch.arange(2.0 * length, dtype=torch.float64).view(2, length)}
    for name, shape in shapes.items():
        if shape[-1]:
            inputs[name] = torch.zeros((2, *shape), dtype=torch.int64 if name.endswith("codes") else torch.float32)
    if has_series_scale:
        inputs |= {"loc": torch.zeros((2, 1), dtype=torch.float64), "scale": torch.ones((2, 1), dtype=torch.float64)}
    return inputs


def _to_onnx(network: _ExportedNetwork, inputs: dict[str, Tensor], output_names: list[str]) -> Any:
    """The network as an ONNX ModelProto with a dynamic number of windows."""
    axis = torch.export.Dim("windows")
    shapes = {"values": tuple({0: axis} for _ in inputs)}
    with warnings.catch_warnings(), torch.no_grad(), _silence_export_log():
        warnings.simplefilter("ignore")  # deprecations between torch and onnxscript
        try:
            program = torch.onnx.export(
                network, tuple(inputs.values()), dynamo=True, dynamic_shapes=shapes, input_names=list(inputs),
                output_names=output_names, verbose=False,
            )  # fmt: skip
        except Exception as error:
            raise _export_error(network, error.__cause__ or error) from error
    return program.model_proto  # type: ignore[union-attr]


@contextmanager
def _silence_export_log() -> Iterator[None]:
    """Silence the log messages of torch's exporter about optional libraries."""
    logger = logging.getLogger("torch.onnx")
    previous_level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(previous_level)


def _cast_softplus(onnx: Any, program: Any) -> None:
    """Compute each float64 Softplus of `program` in float32, in place.

    onnxruntime implements Softplus for float32 only.
    """
    element_types = {value.name: value.type.tensor_type.elem_type for value in program.graph.value_info}
    double, single = onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT
    nodes = []
    for node in program.graph.node:
        if node.op_type != "Softplus" or element_types.get(node.output[0]) != double:
            nodes.append(node)
            continue
        single_input, single_value = f"{node.output[0]}_single", f"{node.output[0]}_softplus"
        nodes += [
            onnx.helper.make_node("Cast", [node.input[0]], [single_input], to=single),
            onnx.helper.make_node("Softplus", [single_input], [single_value]),
            onnx.helper.make_node("Cast", [single_value], [node.output[0]], to=double),
        ]
    del program.graph.node[:]
    program.graph.node.extend(nodes)


def _verify(program: Any, network: _ExportedNetwork, inputs: dict[str, Tensor]) -> None:
    """Raise `CapabilityError` unless onnxruntime and torch compute the same values."""
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(program.SerializeToString(), providers=["CPUExecutionProvider"])
        onnx_values = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
    except Exception as error:
        raise _export_error(network, error) from error
    with torch.inference_mode():
        torch_values = network(*inputs.values())
    for tensor, expected in zip(onnx_values, torch_values, strict=True):
        if not torch.allclose(torch.from_numpy(tensor).double(), expected.double(), rtol=1e-4, atol=1e-4):
            raise _export_error(network, "onnxruntime and torch compute different values")


def _export_error(network: _ExportedNetwork, reason: object) -> CapabilityError:
    """The error for a network that ONNX operators cannot represent."""
    head = type(network.network.head).__name__
    return CapabilityError(
        f"The network with {head} cannot be exported to ONNX: "
        f"{format_value(str(reason), 200)}.",
        hint="Use another model or its default options."
    )


def _import_onnx() -> Any:
    """The module onnx; raise `DependencyError` unless it and the packages it needs are installed."""
    try:
        import onnx
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise DependencyError(
            "`export_onnx` requires the packages onnx, onnxscript and onnxruntime.",
            hint="Use `pip install onnx onnxscript onnxruntime`."
        ) from None
    return onnx


def _metadata(model: NeuralForecaster, columns: WindowColumns, probabilities: tuple[float, ...]) -> dict[str, Any]:
    """The metadata of the file as JSON types, described in the docstring of the module."""
    return {
        "model": type(model).__name__,
        "input_size": columns.input_size,
        "horizon": columns.horizon,
        "past": list(columns.numeric),
        "future": list(columns.numeric[: columns.n_future]),
        "past_codes": list(columns.categorical),
        "future_codes": list(columns.categorical[: columns.n_future_codes]),
        "static": list(columns.static),
        "static_codes": list(columns.static_codes),
        "calendar": {name: PERIODS.get(name) for name in columns.calendar},
        "categories": {
            name: list(categories)
            for name, categories in model.fitted_state().categories.items()
            if categories is not None
        },
        "quantiles": list(probabilities),
    }
