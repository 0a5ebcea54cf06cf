"""torch's defaults inside the library's own calls: float32, CPU, no autocast."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from deepforecast.core.threads import one_thread_if_forked

AUTOCAST_DEVICES = ("cpu", "cuda", "mps", "xpu")


@contextmanager
def torch_defaults(*, autocast: bool = False) -> Iterator[None]:
    """Use float32, the CPU and no autocast as torch's defaults inside the block.

    The caller's defaults are restored after it. The default device and autocast belong to the
    calling thread. The default dtype belongs to the process: the first block to start sets it, and
    the last one to end restores it, so that a network in one thread does not get the caller's dtype
    when a block in another thread ends. In a forked process torch uses one thread.

    Parameters
    ----------
    autocast : bool, default False
        Whether autocast stays as it is, for a step of a Trainer that has set it up.

    Examples
    --------
    >>> import torch
    >>> with torch.device("meta"), torch_defaults():
    ...     torch.zeros(1).device
    device(type='cpu')
    """
    import torch

    with ExitStack() as stack:
        stack.enter_context(one_thread_if_forked())
        stack.enter_context(_float32(torch))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        for device in () if autocast else AUTOCAST_DEVICES:
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


@dataclass
class _DefaultDtype:
    """The number of blocks that need float32 now, and the dtype to restore after the last of them."""

    lock: Any = field(default_factory=threading.Lock)
    n_blocks: int = 0
    previous: Any = None


@contextmanager
def _float32(torch: Any) -> Iterator[None]:
    """Set torch's default dtype to float32 inside the block, see `torch_defaults`."""
    with _dtype.lock:
        current = torch.get_default_dtype()
        if not _dtype.n_blocks or current is not torch.float32:
            _dtype.previous = current
            torch.set_default_dtype(torch.float32)
        _dtype.n_blocks += 1
    try:
        yield
    finally:
        with _dtype.lock:
            _dtype.n_blocks -= 1
            if not _dtype.n_blocks:
                torch.set_default_dtype(_dtype.previous)


_dtype = _DefaultDtype()
