"""Whether a stream is shown to somebody while a call runs: in a terminal or in a notebook."""

from __future__ import annotations

from typing import Any

KERNELS = ("ipykernel", "pyodide_kernel")
"""Packages that run notebooks: their output streams show what is written at once, but are no terminals."""


def shows_live_output(stream: Any) -> bool:
    """Whether a stream such as `sys.stderr` is a terminal or the output of a notebook's cell."""
    if stream is None or stream.closed:
        return False
    return bool(stream.isatty()) or is_notebook(stream)


def is_notebook(stream: Any) -> bool:
    """Whether a stream is the output of a notebook's cell. Imports nothing."""
    return any(cls.__module__.partition(".")[0] in KERNELS for cls in type(stream).__mro__)
