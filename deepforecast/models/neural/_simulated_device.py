"""A simulated accelerator: tensors that compute on the CPU but report another device.

They find what fails on a real accelerator, without one: operations on tensors of two devices, tensors
that reach NumPy without `.cpu()`, and float64 where the device has none. Unlike torch's fake tensors they
have values, which heads that compute quantiles with scipy need, and which can be compared with the CPU's.

The device is "meta", as its device guard, which autograd and recurrent layers need, is part of every
build of torch; that of "cuda" is part of CUDA builds only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from deepforecast.nn.batch import has_float64, without_float64

DEVICE = torch.device("meta")
MOVES = ("to", "_to_copy", "copy_")  # operations between devices


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
    """Simulate an accelerator inside the block, and return its device.

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
