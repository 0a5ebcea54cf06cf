"""Functions and files of the package that one call enters, counted with `sys.setprofile`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import deepforecast

ROOT = os.path.dirname(os.path.realpath(deepforecast.__file__)) + os.sep
NOT_NAMED = (
    "<listcomp>",
    "<dictcomp>",
    "<genexpr>",
    "<setcomp>",
    "<lambda>",
    "<module>",
    "__create_fn__",
)


class Function(NamedTuple):
    """A named function: the file below the package, its qualified name and its first line."""

    file: str
    name: str
    line: int


def functions_entered(call: Callable[[], object]) -> list[Function]:
    """The package's named functions that run, in order of first entry; lambdas do not count."""
    functions: dict[Function, None] = {}

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT):
            return
        if not any(name in code.co_qualname for name in NOT_NAMED):
            functions.setdefault(
                Function(code.co_filename[len(ROOT) :], code.co_qualname, code.co_firstlineno)
            )

    previous = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(previous)
    return list(functions)
