"""Writes named arrays as a safetensors block, and strictly parses the header of such a block.

Block: header length (uint64, little-endian), header (JSON), bytes of the arrays. Both functions
raise ValueError with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy

from deepforecast.errors import format_list, format_value
from deepforecast.io import strict_json

MAX_HEADER = 1_000_000
MAX_ARRAYS = 10_000

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
_MAX_DIMENSIONS = 32  # the limit of numpy before 2.0
_MAX_BYTES = 2**63 - 1


class Entry(NamedTuple):
    """Name, dtype and shape of an array. The arrays of a block are contiguous, in the order of `read_layout`."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def encode(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Encode arrays as a safetensors block, independently of their order in the dict.

    >>> header_length = int.from_bytes(encode({"level": np.zeros(3)})[:8], "little")
    >>> encode({"level": np.zeros(3)})[8 : 8 + header_length].strip()
    b'{"level":{"dtype":"F64","shape":[3],"data_offsets":[0,24]}}'
    """
    block = safetensors.numpy.save({name: _check_array(name, array) for name, array in arrays.items()})
    start = 8 + int.from_bytes(block[:8], "little")
    read_layout(block[8:start], len(block) - start)  # never write what the reader refuses
    return bytes(block)


def read_layout(header: bytes, size: int) -> list[Entry]:
    """The arrays declared in `header`, in the order of their bytes, which must be exactly `size` bytes."""
    if len(header) > MAX_HEADER:
        raise ValueError(f"the header of its arrays has {len(header):,} bytes, at most {MAX_HEADER:,} are allowed")
    declared = strict_json.decode(header)
    if not isinstance(declared, dict):
        raise ValueError("the header of its arrays is not a JSON object")
    if len(declared) > MAX_ARRAYS:
        raise ValueError(f"it has {len(declared):,} arrays, at most {MAX_ARRAYS:,} are allowed")
    entries = sorted(
        (_read_entry(name, entry) for name, entry in declared.items()), key=lambda offsets_and_entry: offsets_and_entry[:2]
    )
    previous_end = 0
    for start, end, entry in entries:
        if start != previous_end:
            raise ValueError(
                f"the array {format_value(entry.name)} starts at byte {start}, the one before ends at {previous_end}"
            )
        previous_end = end
    if previous_end != size:
        raise ValueError(f"its arrays require {previous_end:,} bytes, but the file has {size:,} for them")
    return [entry for _, _, entry in entries]


def _check_array(name: object, array: object) -> np.ndarray:
    if not isinstance(name, str) or name == "__metadata__":
        raise ValueError(f"an array cannot be named {format_value(name)}")
    # A subclass (masked array, matrix) has more than its numbers, which would be lost.
    if type(array) not in (np.ndarray, np.memmap):
        raise ValueError(f"{format_value(name)} is a {type(array).__name__}, not a numpy array")
    dtype = np.asarray(array).dtype.newbyteorder("<")
    if dtype not in _DTYPES.values():
        raise ValueError(
            f"the array {format_value(name)} has dtype {dtype}; "
            f"allowed are {format_list(_dtype_names(), max_shown=len(_DTYPES))}"
        )
    return np.asarray(array, dtype=dtype, order="C")


def _dtype_names() -> list[str]:
    return [dtype.name for dtype in _DTYPES.values()]


def _read_entry(name: str, entry: object) -> tuple[int, int, Entry]:
    if name == "__metadata__" or not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{format_value(name)} in the header of its arrays must have exactly dtype, shape and data_offsets")
    dtype = _DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise ValueError(f"the array {format_value(name)} has dtype {format_value(entry['dtype'])}, which is not allowed")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _is_sizes(shape) or len(shape) > _MAX_DIMENSIONS:
        raise ValueError(
            f"the array {format_value(name)} has shape {format_value(shape)}, not a list of at most {_MAX_DIMENSIONS} sizes"
        )
    # Python's integers do not overflow; numpy refuses shapes whose sizes other than 0 overflow.
    if math.prod(max(length, 1) for length in shape) * dtype.itemsize > _MAX_BYTES:
        raise ValueError(f"the array {format_value(name)} has shape {format_value(shape)}, too large for any machine")
    if not _is_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"the array {format_value(name)} has data_offsets {format_value(offsets)}, not a begin and an end")
    start, end = offsets
    if end - start != math.prod(shape) * dtype.itemsize:
        raise ValueError(
            f"the array {format_value(name)} of shape {format_value(shape)} does not take the {end - start} bytes declared"
        )
    return start, end, Entry(name, dtype, tuple(shape))


def _is_sizes(value: object) -> bool:
    return isinstance(value, list) and all(type(element) is int and element >= 0 for element in value)
