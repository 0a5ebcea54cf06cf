"""Kernels that Ctrl-C can interrupt."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray


def run_interruptible(kernel: Callable[..., None], stop: NDArray[np.int64], *arguments: Any) -> None:
    """Call `kernel(stop, *arguments)`, which reads `stop` about every second and returns early if it is not 0.

    Python handles signals in the main thread only, so in the main thread the kernel runs in another
    thread; an exception such as KeyboardInterrupt sets `stop` and is raised again.
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
