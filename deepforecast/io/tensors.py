"""Named arrays as a safetensors block, and a strict reading of such a block's header.

The block is what the safetensors package writes: header length (uint64, little-endian), header (JSON), the arrays' bytes.
Both functions raise ValueError with the reason; neither knows files or paths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy

from deepforecast.errors import shown, some
from deepforecast.io import strict_json

LONGEST_HEADER = 1_000_000
MOST_ARRAYS = 10_000

_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_MOST_DIMENSIONS = 32  # numpy's own limit before 2.0
_LARGEST = 2**63 - 1


class Entry(NamedTuple):
    """One array of a block; they follow one another without holes, in the order of `layout`."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def encode(arrays: Mapping[str, np.ndarray]) -> bytes:
    """`arrays` as a safetensors block; the same arrays in any order give the same bytes.

    >>> header_length = int.from_bytes(encode({"level": np.zeros(3)})[:8], "little")
    >>> encode({"level": np.zeros(3)})[8 : 8 + header_length].strip()
    b'{"level":{"dtype":"F64","shape":[3],"data_offsets":[0,24]}}'
    """
    block = safetensors.numpy.save({name: _plain(name, array) for name, array in arrays.items()})
    start = 8 + int.from_bytes(block[:8], "little")
    layout(block[8:start], len(block) - start)  # what the reader would refuse is not written
    return bytes(block)


def layout(header: bytes, size: int) -> list[Entry]:
    """The arrays that `header` declares, in the order of their bytes, which have to fill `size` bytes exactly."""
    if len(header) > LONGEST_HEADER:
        raise ValueError(f"the header of its arrays has {len(header):,} bytes, at most {LONGEST_HEADER:,} are allowed")
    declared = strict_json.decode(header)
    if not isinstance(declared, dict):
        raise ValueError("the header of its arrays is not a JSON object")
    if len(declared) > MOST_ARRAYS:
        raise ValueError(f"it holds {len(declared):,} arrays, at most {MOST_ARRAYS:,} are allowed")
    placed = sorted((_placed(name, entry) for name, entry in declared.items()), key=lambda item: item[:2])
    reached = 0
    for begin, end, entry in placed:
        if begin != reached:
            raise ValueError(f"the array {shown(entry.name)} starts at byte {begin}, the one before ends at {reached}")
        reached = end
    if reached != size:
        raise ValueError(f"its arrays take {reached:,} bytes, the file has {size:,} for them")
    return [entry for _, _, entry in placed]


def _plain(name: object, array: object) -> np.ndarray:
    if not isinstance(name, str) or name == "__metadata__":
        raise ValueError(f"an array cannot be named {shown(name)}")
    # A subclass (masked array, matrix) says more than its numbers; that would be lost.
    if type(array) not in (np.ndarray, np.memmap):
        raise ValueError(f"{shown(name)} is a {type(array).__name__}, not a numpy array")
    dtype = np.asarray(array).dtype.newbyteorder("<")
    if dtype not in _DTYPES.values():
        raise ValueError(f"the array {shown(name)} has dtype {dtype}; allowed are {some(_names(), most=len(_DTYPES))}")
    return np.asarray(array, dtype=dtype, order="C")


def _names() -> list[str]:
    return [dtype.name for dtype in _DTYPES.values()]


def _placed(name: str, entry: object) -> tuple[int, int, Entry]:
    if name == "__metadata__" or not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{shown(name)} in the header of its arrays is not exactly dtype, shape and data_offsets")
    dtype = _DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise ValueError(f"the array {shown(name)} has dtype {shown(entry['dtype'])}, which is not allowed")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _counts(shape) or len(shape) > _MOST_DIMENSIONS:
        raise ValueError(f"the array {shown(name)} has shape {shown(shape)}, not a list of at most {_MOST_DIMENSIONS} sizes")
    # Python's integers do not overflow; numpy refuses shapes whose sizes other than 0 overflow.
    if math.prod(max(length, 1) for length in shape) * dtype.itemsize > _LARGEST:
        raise ValueError(f"the array {shown(name)} has shape {shown(shape)}, too large for any machine")
    if not _counts(offsets) or len(offsets) != 2:
        raise ValueError(f"the array {shown(name)} has data_offsets {shown(offsets)}, not a begin and an end")
    begin, end = offsets
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"the array {shown(name)} of shape {shown(shape)} does not take the {end - begin} bytes declared")
    return begin, end, Entry(name, dtype, tuple(shape))


def _counts(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)
