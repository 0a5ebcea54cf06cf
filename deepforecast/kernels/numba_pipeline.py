"""How numba turns a kernel into code, without what it does for functions that may be anything.

It is taken through its own doors, a compiler class and a code library; where a later numba has others, all is as it would have
been, and takes longer.

- What kernels alone call is only a part of them: it is optimised and made into machine code once, where it is called. (With
  numba's own library each level of calls is translated, and all below it once more.)
- A compilation makes millions of objects that live until its end: the collector of cycles, which would look at them again and
  again, waits.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class KernelCompiler(Compiler):  # type: ignore[misc]  # numba is not typed
    """For what is called from Python."""

    def compile_extra(self, function: Any) -> Any:
        """Through all passes."""
        with _pause_garbage_collection():
            return super().compile_extra(function)


class _LinkOnlyLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into that of others, and nothing else."""

    def _finalize_final_module(self) -> None:
        """No machine code is made of it here."""
        self._finalized = True

    @property
    def codegen(self) -> Any:
        """Where a function's environment is handed in, which is for errors with objects of Python in them."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """It has none, as if it came from the disk."""


class _UnoptimizedLibrary(_LinkOnlyLibrary):
    """The same, as it is."""

    def _optimize_final_module(self) -> None:
        """It will be where it is linked into."""


class InnerCompiler(KernelCompiler):
    """For what kernels alone call."""

    library_class: type[_LinkOnlyLibrary] = _UnoptimizedLibrary

    def compile_extra(self, function: Any) -> Any:
        """Through all passes, into a library of its own kind."""
        if self.state.library is None:
            self.state.library = self.library_class(self.state.targetctx.codegen(), function.__qualname__)
        return super().compile_extra(function)


class HotCompiler(InnerCompiler):
    """For what runs most of them: optimised by itself, too, where nothing else is around its loops."""

    library_class = _LinkOnlyLibrary


@contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Without the collector of cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
