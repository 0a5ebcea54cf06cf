"""The page of messages: each code block is run, and the error or warning it causes is inserted below."""

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

CODE_BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?P<mark>\n<!-- message -->\n.*?<!-- end -->\n)?", flags=re.DOTALL)
MESSAGE_CLASSES = (
    DeepForecastError,
    DataWarning,
    TrainingWarning,
    AttributeError,
)  # AttributeError: a name that the package does not have
WIDTH = 110  # characters of a line of a message on the written page


def page() -> Page:
    """Return the page with the current messages."""
    return Page("errors.md", "Messages", placed(_run_code_blocks("``` {{ .text .wrapped }}\n{message}\n```\n", 10**6)))


def updated() -> str:
    """Return the source of the page with the current messages between their marks."""
    return _run_code_blocks("<!-- message -->\n```text\n{message}\n```\n<!-- end -->\n", WIDTH)


def _run_code_blocks(template: str, width: int) -> str:
    """Run the code blocks one after the other, and insert the message of each below it."""
    namespace: dict[str, Any] = {}

    def fill(code_block: re.Match[str]) -> str:
        if not code_block["mark"]:  # setup for the following blocks
            exec(compile(code_block["code"], "errors.md", "exec"), namespace)  # noqa: S102
            return code_block[0]
        text = message_of(code_block["code"], namespace)
        message = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
        return f"```python\n{code_block['code']}```\n\n{template.format(message=message)}"

    text = (WRITTEN / "errors.md").read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return CODE_BLOCK.sub(fill, text)


def message_of(code: str, namespace: dict[str, Any]) -> str:
    """Return the error or warning raised by a code block, with its class; raises `BuildError` if there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", DataWarning)
        warnings.simplefilter("error", TrainingWarning)
        try:
            exec(compile(code, "errors.md", "exec"), dict(namespace))  # noqa: S102
        except MESSAGE_CLASSES as error:
            message = f"{type(error).__name__}: {error}"
        else:
            raise BuildError(f"Code on errors.md must raise or warn, but this does not:\n{code}")
    return " ".join(message.split())
