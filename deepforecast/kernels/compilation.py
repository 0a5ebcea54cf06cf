"""How kernels are compiled: by numba on the first call, kept on disk, without the GIL, and never stale.

Numba takes a kept kernel for current while its own source file is as it was; what it calls in other files may have changed.
Here a kernel is current while all sources of this room are. Where no folder can be written, kernels live in memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event

from deepforecast.data.terminal import shows_live_output
from deepforecast.kernels.numba_pipeline import HotCompiler, InnerCompiler, KernelCompiler

Function = TypeVar("Function", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "no_rewrites": True}
"""No fast math: with fused multiply-add the last bits would depend on memory alignment."""


def compiled(function: Function) -> Function:
    """Compile a function on its first call: with float64, int64 and bool arrays only, so that it happens once."""
    return _compiled(function)


def inner(function: Function) -> Function:
    """For what kernels alone call: part of them when they are compiled and kept, never called from Python."""
    return cast(Function, numba.njit(pipeline_class=InnerCompiler, no_cpython_wrapper=True, **OPTIONS)(function))


def inlined(function: Function) -> Function:
    """For a piece of one kernel: put where it is called before anything is compiled. A few lines, or what mostly calls others:
    arguments of calls take long to compile, above all tuples of arrays."""
    return cast(Function, numba.njit(inline="always", **OPTIONS)(function))


def compiled_no_alloc(function: Function) -> Function:
    """`compiled` for what makes no arrays: they are then handed on uncounted. Counting is an atomic operation for each array
    and call, and can take half the time of small functions."""
    return _compiled(function, _nrt=False)


def inner_no_alloc(function: Function) -> Function:
    """`inner` for what makes no arrays."""
    return cast(Function, numba.njit(pipeline_class=InnerCompiler, _nrt=False, no_cpython_wrapper=True, **OPTIONS)(function))


def hot(function: Function) -> Function:
    """`inner_no_alloc` for what runs most: its loops are optimised before anything is around them."""
    return cast(Function, numba.njit(pipeline_class=HotCompiler, _nrt=False, no_cpython_wrapper=True, **OPTIONS)(function))


_notified = set[str]()


@contextmanager
def compile_notice(family: str) -> Iterator[None]:
    """Write to a terminal or a notebook, once in a process, that these kernels are compiled, if that happens in the block."""
    if family in _notified or not shows_live_output(sys.stderr):
        yield
        return
    with event.install_listener("numba:compile", _CompileListener(family)):
        yield


class _CompileListener(event.Listener):  # type: ignore[misc]  # numba is not typed
    """Print a notice at the first compilation of a kernel family."""

    def __init__(self, family: str) -> None:
        self._family = family

    def on_start(self, event: Any) -> None:
        """A kernel is being compiled."""
        if self._family not in _notified:
            _notified.add(self._family)
            sys.stderr.write(f"deepforecast: compiling {self._family}, once on this machine ...\n")

    def on_end(self, event: Any) -> None:
        """It was."""


def _compiled(function: Function, **overrides: bool) -> Function:
    options = {"pipeline_class": KernelCompiler, **OPTIONS, **overrides}
    if numba.config.DISABLE_JIT:  # NUMBA_DISABLE_JIT=1, to step through kernels: plain Python, with nothing to keep
        return function
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
        dispatcher._cache._cache_file._source_stamp = _source_digest()
        dispatcher._cache.save_overload = _ignore_write_errors(dispatcher._cache.save_overload)
    except RuntimeError:  # no folder for kept kernels: not beside the sources, not in the user's cache
        dispatcher = numba.njit(**options)(function)
    return cast(Function, dispatcher)


def _ignore_write_errors(save: Callable[..., None]) -> Callable[..., None]:
    """`save`, and where the disk is full or no longer takes anything the kernel lives in memory."""

    def try_save(*arguments: Any) -> None:
        with suppress(OSError):
            save(*arguments)

    return try_save


@cache
def _source_digest() -> str:
    """Tells the sources of this room from any others."""
    digest = sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
