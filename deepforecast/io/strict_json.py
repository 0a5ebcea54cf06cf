"""Strict JSON: values are equal after encoding and decoding, and ambiguous input is refused.

Both functions raise ValueError with the reason.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

from deepforecast.errors import format_value

MAX_DEPTH = 100
MAX_DIGITS = 100

# An unclosed string matches to the end, so matching takes linear time on any input.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_DEPTH_CHANGES = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as int8: 1 down, -1 up
_OTHER_BYTES = bytes(set(range(256)) - set(b"[{]}"))


def encode_json(value: object, max_length: int) -> bytes:
    """`value` as canonical JSON of at most `max_length` bytes: sorted keys, no spaces, ASCII.

    >>> encode_json({"b": [1, None], "a": 0.5}, max_length=100)
    b'{"a":0.5,"b":[1,null]}'
    """
    try:
        encoded = json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"a value cannot be written as JSON ({format_value(str(error))})") from error
    if len(encoded) > max_length:
        raise ValueError(f"the JSON must have at most {max_length:,} bytes, got {len(encoded):,}; store large data in arrays")
    if decode_json(encoded) != value:
        raise ValueError("a value changes when it is written as JSON and read; use string keys, and lists instead of tuples")
    return encoded


def decode_json(encoded: bytes) -> Any:
    """Decode UTF-8 JSON that is nested at most `MAX_DEPTH` deep, without duplicate keys, NaN and infinity.

    >>> decode_json(b'{"a": [1, 2.5, "x"]}')
    {'a': [1, 2.5, 'x']}
    """
    _check_depth(encoded)
    return json.loads(
        encoded.decode("utf-8"),
        object_pairs_hook=_unique_keys,
        parse_float=_parse_float,
        parse_int=_parse_integer,
        parse_constant=_refuse_constant,
    )


def _check_depth(encoded: bytes) -> None:
    """Raise if objects and lists are nested too deep for the recursive parser, which could exhaust the stack."""
    steps = np.frombuffer(_STRING.sub(b"", encoded).translate(_DEPTH_CHANGES, _OTHER_BYTES), dtype=np.int8)
    depth = int(steps.cumsum(dtype=np.int64).max(initial=0))
    if depth > MAX_DEPTH:
        raise ValueError(f"the JSON must be nested at most {MAX_DEPTH} levels deep, got {depth:,}")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A dict of the pairs of a JSON object; raises ValueError if a key is repeated."""
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise ValueError(f"the keys of a JSON object must be unique, but {format_value(key)} is repeated")
        mapping[key] = value
    return mapping


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"a number must be finite in float64, got {format_value(text)}")
    return number


def _parse_integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"an integer must have at most {MAX_DIGITS} digits, got {len(text):,}")
    return int(text)


def _refuse_constant(text: str) -> float:
    raise ValueError(f"a JSON number must be finite, got {text}")
