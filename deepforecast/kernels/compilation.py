"""Compilation of kernels: numba on the first call, cached on disk, without the GIL.

Numba considers a cached kernel current as long as its own file is unchanged, although functions it
calls from other files may have changed. Here the cache depends on all sources of this package. If
no folder is writable, kernels are compiled in memory. The decorators:

compiled, compiled_no_alloc    functions called from Python
inner, inner_no_alloc, hot     functions called from other kernels only
inlined                        functions copied into the calling kernel
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
"""Options of all kernels. No fast math: with fused multiply-add the last bits would depend on memory alignment."""


def compiled(function: Function) -> Function:
    """Compile on the first call, for float64, int64 and bool arrays."""
    return _compiled(function)


def inner(function: Function) -> Function:
    """Compile for calls from kernels only; never called from Python."""
    return cast(Function, numba.njit(pipeline_class=InnerCompiler, no_cpython_wrapper=True, **OPTIONS)(function))


def inlined(function: Function) -> Function:
    """Inline into the calling kernel before compilation.

    For short functions or those that mostly call others: arguments, above all tuples of arrays, are
    expensive to compile.
    """
    return cast(Function, numba.njit(inline="always", **OPTIONS)(function))


def compiled_no_alloc(function: Function) -> Function:
    """`compiled` for functions that allocate no arrays, without reference counting.

    Counting is an atomic operation per array and call, up to half the time of small functions.
    """
    return _compiled(function, _nrt=False)


def inner_no_alloc(function: Function) -> Function:
    """`inner` for functions that allocate no arrays."""
    return cast(Function, numba.njit(pipeline_class=InnerCompiler, _nrt=False, no_cpython_wrapper=True, **OPTIONS)(function))


def hot(function: Function) -> Function:
    """`inner_no_alloc` for the innermost loops, optimized on their own before they are linked."""
    return cast(Function, numba.njit(pipeline_class=HotCompiler, _nrt=False, no_cpython_wrapper=True, **OPTIONS)(function))


_notified = set[str]()  # families for which the notice has been printed


@contextmanager
def compile_notice(family: str) -> Iterator[None]:
    """Print a notice if kernels are compiled in the block, once per family and process.

    Only in a terminal or notebook. `family` names the kernels, as in "compiling ARIMA, once on this machine ...".
    """
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
        """Print the notice when a compilation starts."""
        if self._family not in _notified:
            _notified.add(self._family)
            sys.stderr.write(f"deepforecast: compiling {self._family}, once on this machine ...\n")

    def on_end(self, event: Any) -> None:
        """Do nothing when it ends."""


def _compiled(function: Function, **overrides: bool) -> Function:
    """Compile with `OPTIONS` and `overrides`, cached on disk if a folder is writable."""
    options = {"pipeline_class": KernelCompiler, **OPTIONS, **overrides}
    if numba.config.DISABLE_JIT:  # NUMBA_DISABLE_JIT=1, for debugging: plain Python
        return function
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
        files = dispatcher._cache._cache_file
        files._source_stamp = _source_digest()
        files._load_index = _skip_stale_index(files._load_index, Path(files._index_path))
        dispatcher._cache.save_overload = _ignore_write_errors(dispatcher._cache.save_overload)
    except RuntimeError:  # no writable cache folder
        dispatcher = numba.njit(**options)(function)
    return cast(Function, dispatcher)


def _ignore_write_errors(save: Callable[..., None]) -> Callable[..., None]:
    """Wrap `save` so that a kernel stays in memory if it cannot be written."""

    def try_save(*arguments: Any) -> None:
        with suppress(OSError):
            save(*arguments)

    return try_save


def _skip_stale_index(load_index: Callable[[], dict[Any, str]], path: Path) -> Callable[[], dict[Any, str]]:
    """Wrap `load_index` so that an index written for other sources counts as empty.

    It may refer to classes that no longer exist, which raises an error when it is read.
    """

    def load_current() -> dict[Any, str]:
        is_current = path.is_file() and _source_digest().encode() in path.read_bytes()
        return load_index() if is_current else {}

    return load_current


@cache
def _source_digest() -> str:
    """SHA-256 digest of all sources of this package."""
    digest = sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
