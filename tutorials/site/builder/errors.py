"""The page of error messages: each piece of code on it is run, and what it raises or warns is put below it."""

from __future__ import annotations

import contextlib
import re
import tempfile
import warnings
from typing import Any

from builder.page import WRITTEN, BuildError, Page
from deepforecast.errors import DataWarning, DeepForecastError, TrainingWarning

PIECE = re.compile(r"```python\n(?P<code>.*?)```\n(?P<mark><!-- said -->)?", flags=re.DOTALL)
SAID = (DeepForecastError, DataWarning, TrainingWarning, AttributeError)  # the last: a name the package does not have


def page() -> Page:
    """The written page with every message filled in."""
    text = (WRITTEN / "errors.md").read_text("utf-8")
    setting: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        filled = PIECE.sub(lambda piece: _filled(piece, setting), text)
    return Page("errors.md", "Messages", filled)


def _filled(piece: re.Match[str], setting: dict[str, Any]) -> str:
    if not piece["mark"]:  # what all others need
        exec(compile(piece["code"], "errors.md", "exec"), setting)  # noqa: S102
        return piece[0]
    return f"```python\n{piece['code']}```\n\n``` {{ .text .said }}\n{said(piece['code'], setting)}\n```\n"


def said(code: str, setting: dict[str, Any]) -> str:
    """The error or the warning that a piece of code ends with, kind first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", DataWarning)
        warnings.simplefilter("error", TrainingWarning)
        try:
            exec(compile(code, "errors.md", "exec"), dict(setting))  # noqa: S102
        except SAID as error:
            told = f"{type(error).__name__}: {error}"
        else:
            raise BuildError(f"errors.md says that this raises or warns, and it does not:\n{code}")
    return " ".join(told.split())
