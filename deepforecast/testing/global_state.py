"""Global state of the process, which models must not change."""

from __future__ import annotations

import logging
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from typing import Any

import numpy as np

from deepforecast.core import threads

N_DRAWS = 101
PRESERVED_VARIABLES = (  # needed to locate programs, files and devices
    "PATH", "HOME", "PYTHONPATH", "LD_", "DYLD_", "XDG_", "CUDA", "TMP", "TEMP", "SYSTEM", "USER", "APPDATA", "LOCALAPPDATA",
    "NUMBA_NUM_THREADS",  # numba raises if this changes after its threads have started
)  # fmt: skip


def read_global_state() -> dict[str, Any]:
    """Return a snapshot of the global state that a caller may have set up, by description."""
    state: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    key = state["state"]["key"].tobytes()
    position = state["state"]["pos"]
    snapshot: dict[str, Any] = {
        "the random state of Python": random.getstate(),
        "the random state of numpy": (state["bit_generator"], key, position, state["has_gauss"], state["gauss"]),
        "numpy's error handling (np.seterr)": np.geterr(),
        "the environment variables": dict(os.environ),
        "the working directory": os.getcwd(),
        "the warning filters": list(warnings.filters),
        "the log handlers": list(logging.getLogger().handlers),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        snapshot["the random state of torch"] = bytes(torch.get_rng_state().numpy())
        snapshot["torch's thread counts"] = (torch.get_num_threads(), torch.get_num_interop_threads())
        snapshot["torch's defaults (dtype, device, autocast, gradients, determinism)"] = (
            torch.get_default_dtype(),
            str(torch.get_default_device()),
            torch.is_autocast_enabled("cpu"),
            torch.is_grad_enabled(),
            torch.are_deterministic_algorithms_enabled(),
        )
    if "threadpoolctl" in sys.modules:
        snapshot["the thread counts of native libraries"] = threads.thread_counts()
    return snapshot


@contextmanager
def unusual_global_state() -> Iterator[None]:
    """Run the block in an unusual global state, so that changes which always set the same values are detected."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        for context in (_unusual_environment(), _no_log_handlers(), _unusual_torch(), chdir(folder)):
            stack.enter_context(context)
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(np.errstate(call=_ignore_error, all="call"))
        _advance_generators()
        yield


def _ignore_error(error_name: str, flag: int) -> None:
    """Ignore a floating-point error; only the setting itself is checked."""


def _advance_generators() -> None:
    """Draw from the global generators, so that setting the same seed again changes their state."""
    for _ in range(N_DRAWS):
        random.getrandbits(8)
    np.random.random(N_DRAWS)  # noqa: NPY002
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.rand(N_DRAWS, device="cpu")


@contextmanager
def _unusual_environment() -> Iterator[None]:
    """Remove environment variables except the necessary ones during the block, and add one; all are restored."""
    original = dict(os.environ)
    for name in original:
        if not name.upper().startswith(PRESERVED_VARIABLES):
            del os.environ[name]
    os.environ["DEEPFORECAST_CONTRACT"] = "as it was"
    try:
        yield
    finally:
        for name in set(os.environ) - set(original):
            del os.environ[name]
        os.environ.update(original)


@contextmanager
def _no_log_handlers() -> Iterator[None]:
    """Remove the handlers of the root logger during the block."""
    root = logging.getLogger()
    original_handlers = list(root.handlers)
    root.handlers[:] = []  # a model may set up logging only if there are no handlers
    try:
        yield
    finally:
        root.handlers[:] = original_handlers


@contextmanager
def _unusual_torch() -> Iterator[None]:
    """Set the threads, data type, device, autocast and gradient mode of torch to unusual values during
    the block, if torch is imported."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    n_threads = torch.get_num_threads()
    dtype = torch.get_default_dtype()
    grad_enabled = torch.is_grad_enabled()
    deterministic = torch.are_deterministic_algorithms_enabled()
    only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_num_threads(3 if n_threads != 3 else 2)
    torch.set_default_dtype(torch.float64 if dtype != torch.float64 else torch.float32)
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    try:
        with torch.device("meta"), torch.autocast("cpu", torch.bfloat16):
            yield
    finally:
        torch.set_num_threads(n_threads)
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad_enabled)
        torch.use_deterministic_algorithms(deterministic, warn_only=only_warns)
