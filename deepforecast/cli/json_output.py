"""Conversion to JSON: timestamps as ISO-8601 text, missing and infinite numbers as null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def json_text(facts: Any) -> str:
    """Return JSON in ASCII.

    Examples
    --------
    >>> print(json_text({"level": (80, float("nan"))}))
    {
      "level": [
        80,
        null
      ]
    }
    """
    return json.dumps(to_plain(facts), indent=2, allow_nan=False)


def to_plain(value: Any) -> Any:
    """Convert to lists, dicts, strings, numbers, booleans and None."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_plain(element) for key, element in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(element) for element in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return to_plain(value.tolist())
    return str(value)


def to_records(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a frame as dicts."""
    from deepforecast.cli.output_files import to_pandas

    pandas = to_pandas(frame)
    columns = {str(name): _plain_column(pandas[name]) for name in pandas.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain_column(values: Any) -> list[Any]:
    converted = values.astype(str) if values.dtype.kind in "Mm" else values
    return [None if missing else to_plain(value) for value, missing in zip(converted.tolist(), values.isna(), strict=True)]
