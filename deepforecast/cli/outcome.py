"""The result of a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """Result of a command.

    `facts` is printed with `--json`, otherwise `text` (already escaped) or `data` (bytes); `status`
    is the exit code.
    """

    facts: Mapping[str, Any]
    text: str = ""
    data: bytes = b""
    status: int = 0
