"""Detection of output streams that are shown live: terminals and notebooks."""

from __future__ import annotations

from typing import Any

NOTEBOOK_KERNELS = ("ipykernel", "pyodide_kernel")
"""Packages that run notebooks; their output streams are shown live, but are not terminals."""


def shows_live_output(stream: Any) -> bool:
    """Whether a stream such as `sys.stderr` is a terminal or the output of a notebook cell."""
    if stream is None or stream.closed:
        return False
    return bool(stream.isatty()) or is_notebook(stream)


def is_notebook(stream: Any) -> bool:
    """Whether a stream is the output of a notebook cell, judged by the package that defines its class or a base class."""
    return any(cls.__module__.partition(".")[0] in NOTEBOOK_KERNELS for cls in type(stream).__mro__)
