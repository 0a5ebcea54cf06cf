"""Whether shared libraries were loaded since the last look: to know it is far cheaper than to look at all of them again."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any


def loaded() -> tuple[int, int] | None:
    """How many libraries this process has loaded and let go so far, where the linker counts them (Linux); else None.

    >>> loaded() == loaded()
    True
    """
    return _counter()() if sys.platform == "linux" else None


@cache
def _counter() -> Any:
    """Asks the linker for its counts: it tells them with every library it lists, so that the first one is enough."""
    import ctypes

    class Info(ctypes.Structure):  # `struct dl_phdr_info` of link.h
        _fields_ = (
            *(("address", ctypes.c_size_t), ("name", ctypes.c_char_p), ("headers", ctypes.c_void_p)),
            *(("count", ctypes.c_uint16), ("adds", ctypes.c_ulonglong), ("subs", ctypes.c_ulonglong)),
        )

    look = getattr(ctypes.CDLL(None), "dl_iterate_phdr", None)
    found: list[tuple[int, int] | None] = [None]

    def first(info: Any, size: int, _data: Any) -> int:
        found[0] = (info.contents.adds, info.contents.subs) if size >= ctypes.sizeof(Info) else None
        return 1  # no further one

    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Info), ctypes.c_size_t, ctypes.c_void_p)(first)

    def counted() -> tuple[int, int] | None:
        if look is not None:
            look(call, None)
        return found[0]

    return counted
