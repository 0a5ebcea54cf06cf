"""Training step and forecasts of a network on a device, real or simulated, compared with the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from deepforecast.data.frames import Frame
from deepforecast.data.panel import Panel
from deepforecast.errors import DeepForecastError, ParameterError, format_value, suppress_warnings
from deepforecast.models.neural import _fit, _residual_correlation
from deepforecast.nn.batch import has_float64, without_float64
from deepforecast.training.module import clip_gradients
from deepforecast.training.process import torch_defaults
from deepforecast.training.sampler import to_device

if TYPE_CHECKING:
    from deepforecast.models.neural._base import NeuralForecaster
    from deepforecast.nn.batch import Batch

N_SERIES = 3
DEFAULT_HORIZON = 5  # for models without a horizon
TOLERANCE = 1e-4  # of the largest forecast: kernels of other devices sum in another order
FUTURE, PAST, STATIC = ("future", "future_kind"), ("past", "past_kind"), ("static", "static_kind")
# The simulated device: the device guard of "meta", which autograd and recurrent layers need, is part of every build of
# torch; that of "cuda" is part of CUDA builds only.
DEVICE = torch.device("meta")
MOVES = ("to", "_to_copy", "copy_")  # operations between devices


@torch_defaults()
def check_device(model: NeuralForecaster, device: str) -> None:
    """Train and forecast on a device, which is simulated if the machine does not have it.

    The data have a numeric and a categorical covariate of each role that the model can use, and
    observation weights. Raises if tensors of different devices meet, and if forecasts differ from those on the CPU.
    """
    horizon = model.default_horizon or DEFAULT_HORIZON
    example = model.clone(horizon=horizon, intervals=None, on_failure="raise", input_size=_input_size(model, horizon))
    length = 4 * horizon + example.input_size + (example.validation_size or 0)  # type: ignore[operator]
    frame, future, columns = _example_data(example, length, horizon)
    panel = example._fit_untrained(Panel.from_frame(frame, columns=columns))
    batch = next(iter(example.datamodule(frame).train))
    with suppress_warnings():  # of untrained networks, whose forecasts may be far off
        expected = _forecasts(example, future, panel)
    with suppress_warnings(), _open_device(device) as target:
        example.network_.to(target)
        _train_step(example, batch)
        forecasts = _forecasts(example, future, panel)
    for name, values in expected.items():
        largest = np.nanmax(np.abs(values), initial=0.0)
        difference = np.nanmax(np.abs(forecasts[name] - values), initial=0.0)
        if difference > TOLERANCE * largest:
            raise DeepForecastError(
                f"{name} on device {device!r} must equal that on the CPU, got a difference of {difference:.3g}, where the "
                f"largest value is {largest:.3g}."
            )


@contextmanager
def _open_device(device: str) -> Iterator[torch.device]:
    """The device, or a simulated one with float64 if it has it."""
    try:
        target = torch.device(str(device))
    except RuntimeError:
        raise ParameterError(
            f"`device` must be a device of torch, got {format_value(device)}.",
            hint="Pass e.g. 'cuda', 'mps' or 'cpu'.",
            parameter="device",
            value=device,
        ) from None
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if target.type == "cpu" or (accelerator is not None and accelerator.type == target.type):
        yield target
        return
    with simulated_device(float64=has_float64(target)) as simulated:
        yield simulated


def _input_size(model: NeuralForecaster, horizon: int) -> int:
    return model.input_size if isinstance(model.input_size, int) else 3 * horizon


def _example_data(model: NeuralForecaster, length: int, horizon: int) -> tuple[Frame, Frame | None, dict[str, Any]]:
    """Daily counts with covariates and weights as frame, the future covariates of the next `horizon` steps, and the roles."""
    import pandas as pd

    capabilities = model.capabilities
    n_kinds = 2 if capabilities.categorical else 1
    roles = {"future": FUTURE[: n_kinds * capabilities.future], "past": PAST[: n_kinds * capabilities.past],
             "static": STATIC[: n_kinds * capabilities.static]}  # fmt: skip
    random = np.random.default_rng(0)
    n_steps = length + horizon
    series, step = np.repeat(np.arange(N_SERIES), n_steps), np.tile(np.arange(n_steps), N_SERIES)
    data: dict[str, Any] = {
        "unique_id": np.array(["a", "b", "c"])[series],
        "ds": (np.datetime64("2024-01-01", "D") + step).astype("datetime64[s]"),
        "y": 1.0 + random.poisson(20 + 10 * np.sin(step)),
    }
    for name in (*roles["future"], *roles["past"], *roles["static"]):
        values = series if name in STATIC else random.integers(3, size=len(step))
        data[name] = pd.Categorical.from_codes(values, ["x", "y", "z"]) if name.endswith("kind") else values * 1.0
    frame, is_known = pd.DataFrame(data).assign(weight=1.0 + random.integers(3, size=len(step))), step < length
    future = frame.loc[~is_known, ["unique_id", "ds", *roles["future"]]] if roles["future"] else None
    return frame[is_known], future, {**roles, "weight": "weight"}


def _train_step(model: NeuralForecaster, batch: Batch) -> None:
    """Loss, gradient and clipping on the device of the network; raise if a gradient is on another one."""
    network = model.network_.train()
    statistics = [buffer.clone() for buffer in network.buffers()]  # of batch normalization, which training changes
    batch = to_device(batch, next(network.parameters()).device)
    for teacher_forcing_ratio in (1.0, 0.5):  # parallel and step-by-step decoding
        network.loss(batch, teacher_forcing_ratio).backward()  # type: ignore[no-untyped-call]
    clip_gradients(list(network.parameters()), _fit.training_options(model, len(batch)))
    for name, parameter in network.named_parameters():
        if parameter.grad is not None and parameter.grad.device != parameter.device:
            raise RuntimeError(f"The gradient of weight {name} must be on the device of the weight.")
    for buffer, values in zip(network.buffers(), statistics, strict=True):
        buffer.copy_(values)
    network.eval().zero_grad()


def _forecasts(model: NeuralForecaster, future: Frame | None, panel: Panel) -> dict[str, Any]:
    """Numbers from each method that forecasts, by its name."""
    level = 80 if model.capabilities.distribution else None
    outputs = {"predict": model.predict(future=future, level=level), "fitted_values": model.fitted_values()}
    if future is None:  # beyond the trained horizon
        outputs["predict(2 * horizon)"] = model.predict(2 * (model.horizon or 1), level=level)
    if model.capabilities.simulates:
        outputs["simulate"] = model.simulate(2, future=future)
    if model.capabilities.explains:
        outputs["explain"] = model.explain(future=future)
    if model.head == "bins":
        outputs["beam_search"] = model.beam_search(2, future=future)
    numbers = {name: np.asarray(frame.select_dtypes("number"), dtype=np.float64) for name, frame in outputs.items()}
    learned = model.fitted_state().learned_with_series
    correlation = _residual_correlation.fit_residual_correlation(model, learned, panel).shared.get("correlation_factor")
    return numbers if correlation is None else {**numbers, "residual correlation": correlation}


class DeviceMismatchError(RuntimeError):
    """An operation that a real device would refuse."""


class SimulatedTensor(Tensor):
    """A tensor with the values of `elem`, on the simulated device."""

    elem: Tensor

    @staticmethod
    def __new__(cls, elem: Tensor) -> SimulatedTensor:
        """Wrap a tensor of the CPU."""
        if elem.dtype is torch.float64 and not has_float64(DEVICE):
            raise DeviceMismatchError("The device has no float64. Keep float64 tensors on the CPU, see `nn.batch`.")
        wrapper: SimulatedTensor = Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype, device=DEVICE
        )
        wrapper.elem = elem
        return wrapper

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]  # results have no subclass above autograd

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operation outside of `simulated_device`, e.g. in a thread of autograd."""
        return _run(func, args, kwargs or {})


class _SimulatedDevice(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs all operations of the thread, so that new tensors and copies reach the device."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return _run(func, args, kwargs or {})


class _DataTransfer(TorchFunctionMode):
    """Copies data through the CPU where torch would create tensors without data on "meta"."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        options = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor):
            device = options.pop("device", None)
            values = func(*args, **options)
            return values if device is None else values.to(device)
        if func is Tensor.new_tensor:
            return torch.tensor(args[1], dtype=options.get("dtype", args[0].dtype)).to(args[0].device)
        if func is Tensor.tolist:  # refused for subclasses of tensors only
            return args[0].cpu().tolist()
        return func(*args, **options)


@contextmanager
def simulated_device(float64: bool = True) -> Iterator[torch.device]:
    """Simulate an accelerator inside the block, and return its device: tensors compute on the CPU but report another device.

    They find what fails on a real accelerator, without one: operations on tensors of two devices,
    tensors that reach NumPy without `.cpu()`, and float64 where the device has none. Unlike torch's
    fake tensors they have values, which heads that compute quantiles with scipy need, and which can
    be compared with the CPU's.

    Parameters
    ----------
    float64 : bool, default True
        Whether the device has float64; False simulates MPS.
    """
    with without_float64(*(() if float64 else (DEVICE.type,))), _SimulatedDevice(), _DataTransfer():  # type: ignore[no-untyped-call]
        yield DEVICE


def _run(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run an operation on the CPU; raise `DeviceMismatchError` if its tensors are on two devices."""
    operation = func._schema.name.partition("::")[2]
    leaves = tree_leaves((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    devices = [leaf for leaf in leaves if isinstance(leaf, torch.device)]
    if devices:
        on_device = devices[0].type == DEVICE.type
    elif operation in MOVES and len(tensors) == 2:  # to(other), copy_(source)
        on_device = isinstance(tensors[operation == "to"], SimulatedTensor)
    else:
        on_device = any(isinstance(tensor, SimulatedTensor) for tensor in tensors)
    if on_device and operation not in MOVES:
        _check_devices(operation, tensors)
    arguments = tree_map_only(SimulatedTensor, lambda tensor: tensor.elem, (tuple(args), dict(kwargs)))
    inputs, named_inputs = tree_map_only(torch.device, lambda _: torch.device("cpu"), arguments)
    outputs = func(*inputs, **named_inputs)
    if func._schema.is_mutable and isinstance(outputs, Tensor):
        if torch.Tag.inplace_view in func.tags:  # e.g. transpose_, which changes the shape of the wrapper, too
            with no_dispatch():
                func(*args, **kwargs)
        return kwargs.get("out", args[0])
    if not on_device:
        return outputs
    # A view of a tensor from outside of inference mode is none of inference mode either.
    is_inference = tensors[0].is_inference() if func.is_view else torch.is_inference_mode_enabled()
    with torch.inference_mode(is_inference):
        return tree_map_only(Tensor, SimulatedTensor, outputs)


def _check_devices(operation: str, tensors: Sequence[Tensor]) -> None:
    """Raise unless the tensors are on the device, or scalars or indices of the CPU, which CUDA accepts."""
    for tensor in tensors:
        is_index = operation in ("index", "index_put_", "index_put") and tensor.dtype is torch.int64
        if not isinstance(tensor, SimulatedTensor) and tensor.ndim and not is_index:
            raise DeviceMismatchError(
                f"The tensors of {operation!r} must be on one device, got a tensor of shape {tuple(tensor.shape)} on the CPU "
                "and one on the accelerator."
            )
