"""Numba compiler pipelines that shorten the compilation of kernels.

They use numba's extension points, a compiler class and a code library; if a later numba lacks
these, its own pipeline is used, which takes longer.

- Functions called by kernels only are linked into them and optimized once, there. (Numba's own
  library translates every level of calls again.)
- The cyclic garbage collector is paused: a compilation creates millions of objects that live until
  its end.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class KernelCompiler(Compiler):  # type: ignore[misc]  # numba is not typed
    """Compiler of kernels called from Python."""

    def compile_extra(self, function: Any) -> Any:
        """Run all passes with the garbage collector paused."""
        with _pause_garbage_collection():
            return super().compile_extra(function)


class _LinkOnlyLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code library that is only linked into others."""

    def _finalize_final_module(self) -> None:
        """Generate no machine code."""
        self._finalized = True

    @property
    def codegen(self) -> Any:
        """Return this library, as numba passes the environment of a function to `codegen.set_env`."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Ignore the environment, which only errors with Python objects need, as numba does for cached functions."""


class _UnoptimizedLibrary(_LinkOnlyLibrary):
    """Link-only library that is not optimized on its own."""

    def _optimize_final_module(self) -> None:
        """Leave optimization to the library it is linked into."""


class InnerCompiler(KernelCompiler):
    """Compiler of functions called by kernels only."""

    library_class: type[_LinkOnlyLibrary] = _UnoptimizedLibrary

    def compile_extra(self, function: Any) -> Any:
        """Run all passes, into a library of `library_class`."""
        if self.state.library is None:
            self.state.library = self.library_class(self.state.targetctx.codegen(), function.__qualname__)
        return super().compile_extra(function)


class HotCompiler(InnerCompiler):
    """Compiler of innermost loops, which are also optimized on their own."""

    library_class = _LinkOnlyLibrary


@contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Disable the cyclic garbage collector in the block, and restore it after it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
