"""The page of error messages: each piece of code on it is run, and what it raises or warns is put below it."""

from __future__ import annotations

import contextlib
import re
import tempfile
import textwrap
import warnings
from typing import Any

from builder.home import placed
from builder.page import WRITTEN, BuildError, Page
from deepforecast.errors import DataWarning, DeepForecastError, TrainingWarning

CODE_BLOCK = re.compile(
    r"```python\n(?P<code>.*?)```\n(?P<mark>\n<!-- message -->\n.*?<!-- end -->\n)?", flags=re.DOTALL
)
MESSAGE_CLASSES = (
    DeepForecastError,
    DataWarning,
    TrainingWarning,
    AttributeError,
)  # the last: a name the package does not have
WIDTH = 110  # characters of a line of a message on the written page


def page() -> Page:
    """The written page with every message as it is now."""
    return Page("errors.md", "Messages", placed(_run_code_blocks("``` {{ .text .said }}\n{message}\n```\n", 10**6)))


def updated() -> str:
    """The text of the written page with every message as it is now, between its marks."""
    return _run_code_blocks("<!-- message -->\n```text\n{message}\n```\n<!-- end -->\n", WIDTH)


def _run_code_blocks(template: str, width: int) -> str:
    """Run the pieces of code in turn, and put below each what it raises or warns."""
    namespace: dict[str, Any] = {}

    def fill(code_block: re.Match[str]) -> str:
        if not code_block["mark"]:  # what all others need
            exec(compile(code_block["code"], "errors.md", "exec"), namespace)  # noqa: S102
            return code_block[0]
        message = textwrap.fill(said(code_block["code"], namespace), width, break_long_words=False, break_on_hyphens=False)
        return f"```python\n{code_block['code']}```\n\n{template.format(message=message)}"

    text = (WRITTEN / "errors.md").read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return CODE_BLOCK.sub(fill, text)


def said(code: str, namespace: dict[str, Any]) -> str:
    """The error or the warning that a piece of code ends with, kind first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", DataWarning)
        warnings.simplefilter("error", TrainingWarning)
        try:
            exec(compile(code, "errors.md", "exec"), dict(namespace))  # noqa: S102
        except MESSAGE_CLASSES as error:
            message = f"{type(error).__name__}: {error}"
        else:
            raise BuildError(f"errors.md says that this raises or warns, and it does not:\n{code}")
    return " ".join(message.split())
