"""JSON that means one thing only: what is written comes back equal, and whatever else a file may hold is refused.

Both functions raise ValueError with the reason; neither knows files or paths.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

from deepforecast.errors import shown

DEEPEST = 100
LONGEST_INTEGER = 100

# An unclosed string swallows the rest, so the pattern never starts twice at one place: linear time on any input.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as int8: 1 down, -1 up
_NO_STEPS = bytes(set(range(256)) - set(b"[{]}"))


def encode(value: object, longest: int) -> bytes:
    """`value` as canonical JSON of at most `longest` bytes: sorted keys, no spaces, ASCII.

    >>> encode({"b": [1, None], "a": 0.5}, longest=100)
    b'{"a":0.5,"b":[1,null]}'
    """
    try:
        data = json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"it cannot be written as JSON ({shown(str(error))})") from error
    if len(data) > longest:
        raise ValueError(f"it takes {len(data):,} bytes as JSON, at most {longest:,} are allowed; put bulk into arrays")
    if decode(data) != value:
        raise ValueError("it would come back changed from JSON; use text as keys, and lists instead of tuples")
    return data


def decode(data: bytes) -> Any:
    """What the JSON in `data` says, if it is UTF-8, nested at most `DEEPEST` deep, and free of double keys, NaN and infinity.

    >>> decode(b'{"a": [1, 2.5, "x"]}')
    {'a': [1, 2.5, 'x']}
    """
    _refuse_deep(data)
    return json.loads(
        data.decode("utf-8"),
        object_pairs_hook=_unique,
        parse_float=_finite,
        parse_int=_integer,
        parse_constant=_refuse_constant,
    )


def _refuse_deep(data: bytes) -> None:
    # Counted before parsing: the parser of the standard library recurses, and would end in RecursionError or worse.
    steps = np.frombuffer(_STRING.sub(b"", data).translate(_STEPS, _NO_STEPS), dtype=np.int8)
    depth = int(steps.cumsum(dtype=np.int64).max(initial=0))
    if depth > DEEPEST:
        raise ValueError(f"its JSON is nested {depth:,} deep, at most {DEEPEST} levels are allowed")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {shown(key)} stands twice in one JSON object")
        result[key] = value
    return result


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {shown(text)} is too large for a float")
    return number


def _integer(text: str) -> int:
    if len(text) > LONGEST_INTEGER:
        raise ValueError(f"an integer has {len(text):,} digits, at most {LONGEST_INTEGER} are allowed")
    return int(text)


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number of JSON")
