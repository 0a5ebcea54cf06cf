"""Kernels that Ctrl-C can interrupt."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray


def run_interruptible(kernel: Callable[..., None], stop: NDArray[np.int64], *arguments: Any) -> None:
    """Call `kernel(stop, *arguments)`, which reads `stop` about every second and returns if it is
    not 0.

    Python handles signals in the main thread only, so that there the kernel runs in another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        kernel(stop, *arguments)
        return
    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(kernel, stop, *arguments).result()
        except BaseException:
            stop[0] = 1
            raise
