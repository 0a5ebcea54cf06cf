"""LightGBM's limit of threads, which holds whatever the parameters of a booster say."""

from __future__ import annotations

from typing import Any


def max_threads(library: Any) -> int:
    """The most threads that LightGBM uses, -1 for no limit; `library` is its C library."""
    import ctypes

    limit = ctypes.c_int(0)
    library.LGBM_GetMaxThreads(ctypes.byref(limit))
    return limit.value
