"""Values of the library as plain ones, for JSON: times as ISO-8601 text, missing and infinite numbers as null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def json_text(facts: Any) -> str:
    """One JSON object, in ASCII.

    >>> print(json_text({"level": (80, float("nan"))}))
    {
      "level": [
        80,
        null
      ]
    }
    """
    return json.dumps(plain(facts), indent=2, allow_nan=False)


def plain(value: Any) -> Any:
    """`value` of lists, dicts, text, numbers, true, false and null."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(held) for held in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return plain(value.tolist())
    return str(value)


def records(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame, each a dict."""
    from deepforecast.cli.writing import as_pandas

    pandas = as_pandas(frame)
    columns = {str(name): _column(pandas[name]) for name in pandas.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _column(values: Any) -> list[Any]:
    held = values.astype(str) if values.dtype.kind in "Mm" else values
    return [None if missing else plain(value) for value, missing in zip(held.tolist(), values.isna(), strict=True)]
