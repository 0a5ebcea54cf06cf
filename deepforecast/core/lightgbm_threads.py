"""LightGBM's global limit of threads."""

from __future__ import annotations

from typing import Any


def max_threads(library: Any) -> int:
    """The global limit of threads, -1: no limit; `library` is LightGBM's C library."""
    import ctypes

    limit = ctypes.c_int(0)
    library.LGBM_GetMaxThreads(ctypes.byref(limit))
    return limit.value
