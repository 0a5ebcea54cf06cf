"""Placement of tensors on devices, of which some have no float64 (MPS).

Windows are scaled and quantiles computed in float64. On a device without float64, these tensors stay on
the CPU; the network itself is in float32 and runs on the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_without_float64: ContextVar[frozenset[str]] = ContextVar("without_float64", default=frozenset({"mps"}))


def has_float64(device: torch.device) -> bool:
    """Return whether the device can hold float64 tensors."""
    return device.type not in _without_float64.get()


def place(values: Tensor | NDArray[Any], device: torch.device, non_blocking: bool = False) -> Tensor:
    """Move a tensor or array to the device, or to the CPU if it is float64 and the device has none.

    Examples
    --------
    >>> with without_float64("meta"):
    ...     [place(torch.ones(1, dtype=dtype), torch.device("meta")).device.type for dtype in (torch.float32, torch.float64)]
    ['meta', 'cpu']
    """
    if not isinstance(values, Tensor):
        values = torch.from_numpy(np.require(values, requirements=["C", "W"]))
    if values.device == device:
        return values
    if values.dtype is torch.float64 and not has_float64(device):
        return values.cpu()
    return values.to(device, non_blocking=non_blocking)


def as_float64(values: Tensor) -> Tensor:
    """Convert to float64, on the CPU if the device has no float64."""
    return values.double() if has_float64(values.device) else values.cpu().double()


@contextmanager
def without_float64(*device_types: str) -> Iterator[None]:
    """Treat devices of these types as devices without float64 inside the block, for checks."""
    token = _without_float64.set(_without_float64.get() | set(device_types))
    try:
        yield
    finally:
        _without_float64.reset(token)
