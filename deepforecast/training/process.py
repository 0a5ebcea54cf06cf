"""State of the process that imports, trainings and forecasts leave as they found it: torch's defaults, warnings, signals ...

The module is imported without torch.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deepforecast.core.threads import is_forked, limit_threads, passive_waiting
from deepforecast.training.options import TrainingOptions

if TYPE_CHECKING:
    from deepforecast.training.callbacks import TrainingMonitor

TRAINING_LOCK = threading.RLock()
"""Lock held while training.

torch's generator, warning filters and log levels belong to the process, so that only one thread
trains at a time. Loading and forecasting do not need it.
"""

AUTOCAST_DEVICES = ("cpu", "cuda", "mps", "xpu")

DDP_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE")
"""Environment variables of distributed training, which the next fit of the same processes needs."""

LIGHTNING_VARIABLES = (
    *DDP_VARIABLES, "RANK", "OMP_NUM_THREADS", "PL_GLOBAL_SEED", "PL_SEED_WORKERS", "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_ORDER", "PT_XLA_DEBUG", "XLA_USE_BF16", "XLA_USE_F16",
)
"""Environment variables that Lightning sets in a fit."""

_LOGGERS = (
    "pytorch_lightning",
    "lightning_fabric",
    "pytorch_lightning.utilities.rank_zero",
    "lightning_fabric.utilities.seed",
)


@contextmanager
def quiet_import() -> Iterator[None]:
    """Restore warning filters, environment and `random` after imports inside the block; torch's threads wait passively.

    If torch and Lightning are imported already, nothing is restored, as other threads may have
    changed these in the meantime.
    """
    if all(name in sys.modules for name in ("torch", "pytorch_lightning")):
        yield
        return
    with passive_waiting("torch"), warnings.catch_warnings():
        environment_names, random_state = set(os.environ), random.getstate()
        try:
            yield
        finally:
            for name in set(os.environ) - environment_names:
                del os.environ[name]
            random.setstate(random_state)


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
        if is_forked():
            stack.enter_context(limit_threads(1))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        for device in () if autocast else AUTOCAST_DEVICES:
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
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


@dataclass
class _DefaultDtype:
    """The number of blocks that need float32 now, and the dtype to restore after the last of them."""

    lock: Any = field(default_factory=threading.Lock)
    n_blocks: int = 0
    previous: Any = None


def device_type(accelerator: str) -> str:
    """Return torch's device type for an accelerator name of Lightning.

    'gpu' is CUDA or MPS, 'auto' is CUDA or the CPU: small networks are slower on MPS.
    """
    if accelerator not in ("auto", "gpu"):
        return accelerator
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if accelerator == "gpu" and torch.backends.mps.is_available() else "cpu"


class Interrupted(BaseException):
    """A Ctrl-C that ends the run at once; it takes the place of KeyboardInterrupt, for which
    Lightning would end the process.
    """


@contextmanager
def preserve_process_state(options: TrainingOptions) -> Iterator[None]:
    """Restore generators, log levels, warning filters, environment and torch's settings of determinism after the block.

    Inside it Lightning is silent, gradients are enabled, and no other thread can train.
    """
    import torch

    device = device_type(options.accelerator)
    cuda = device == "cuda" or torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    devices = list(range(torch.cuda.device_count())) if cuda else []
    uses_mps = device == "mps" and torch.backends.mps.is_available()
    mps_generator = torch.mps.get_rng_state() if uses_mps else None  # `fork_rng` does not support MPS
    with TRAINING_LOCK, torch.random.fork_rng(devices), warnings.catch_warnings():
        loggers = [logging.getLogger(name) for name in _LOGGERS]
        levels = [logger.level for logger in loggers]
        environment = dict(os.environ)
        deterministic = (
            torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        )
        cudnn = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
        warnings.filterwarnings("ignore", module=r"pytorch_lightning|lightning_fabric")
        if options.compile:
            warnings.filterwarnings("ignore", module="torch")
        if not options.enable_progress_bar:
            for logger in loggers:
                logger.setLevel(logging.ERROR)
        try:
            with torch.inference_mode(False), torch.enable_grad():
                yield
        finally:
            if mps_generator is not None:
                torch.mps.set_rng_state(mps_generator)
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
            preserved = DDP_VARIABLES if "LOCAL_RANK" in os.environ else ()
            for name in set(LIGHTNING_VARIABLES) - {*environment, *preserved}:
                os.environ.pop(name, None)
            torch.use_deterministic_algorithms(deterministic[0], warn_only=deterministic[1])
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = cudnn


@contextmanager
def stop_on_interrupt(training_monitor: TrainingMonitor) -> Iterator[None]:
    """Make Ctrl-C end the run after the current step, with the weights learned so far.

    A second Ctrl-C ends it at once, and so does the first in a run that is one of several (e.g. of
    a backtest). Outside the main thread, or if Ctrl-C is ignored, nothing is changed.
    """
    previous_handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or previous_handler in (
        None,
        signal.SIG_IGN,
    ):
        yield
        return

    def stop(_: int, __: Any) -> None:
        if training_monitor.interrupted or not training_monitor.monitor.is_outermost:
            raise Interrupted
        training_monitor.interrupted = True

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    except Interrupted:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, previous_handler)


_dtype = _DefaultDtype()
