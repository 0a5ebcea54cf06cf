"""Counts of loaded shared libraries: a cheap way to notice that a library was loaded."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any


def load_counts() -> tuple[int, int] | None:
    """Numbers of shared libraries loaded and unloaded so far, as counted by the linker (Linux only), else None.

    >>> load_counts() == load_counts()
    True
    """
    return _make_counter()() if sys.platform == "linux" else None


@cache
def _make_counter() -> Any:
    """A function that reads the linker's counts, which dl_iterate_phdr reports with every library."""
    import ctypes

    class Info(ctypes.Structure):  # `struct dl_phdr_info` of link.h
        _fields_ = (
            *(("address", ctypes.c_size_t), ("name", ctypes.c_char_p), ("headers", ctypes.c_void_p)),
            *(("count", ctypes.c_uint16), ("adds", ctypes.c_ulonglong), ("subs", ctypes.c_ulonglong)),
        )

    iterate = getattr(ctypes.CDLL(None), "dl_iterate_phdr", None)
    counts: list[tuple[int, int] | None] = [None]

    def read_first(library_info: Any, info_size: int, _data: Any) -> int:
        has_counts = info_size >= ctypes.sizeof(Info)  # older C libraries do not report counts
        counts[0] = (library_info.contents.adds, library_info.contents.subs) if has_counts else None
        return 1  # stop after the first library

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Info), ctypes.c_size_t, ctypes.c_void_p)(read_first)

    def read_counts() -> tuple[int, int] | None:
        if iterate is not None:
            iterate(callback, None)
        return counts[0]

    return read_counts
