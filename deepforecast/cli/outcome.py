"""What a command gives back to the program that prints it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """`facts` are printed by `--json`, else `text` (escaped already) or `data` (byte for byte); `status` is the exit code."""

    facts: Mapping[str, Any]
    text: str = ""
    data: bytes = b""
    status: int = 0
