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


def encode_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Encode arrays as a safetensors block, independently of their order in the dict.

    >>> header_length = int.from_bytes(encode_arrays({"level": np.zeros(3)})[:8], "little")
    >>> encode_arrays({"level": np.zeros(3)})[8 : 8 + header_length].strip()
    b'{"level":{"dtype":"F64","shape":[3],"data_offsets":[0,24]}}'
    """
    block = safetensors.numpy.save({name: _check_array(name, array) for name, array in arrays.items()})
    start = 8 + int.from_bytes(block[:8], "little")
    read_layout(block[8:start], len(block) - start)  # never write what the reader refuses
    return bytes(block)


def read_layout(header: bytes, n_bytes: int) -> list[Entry]:
    """The arrays declared in `header`, in the order of their bytes, which must be exactly `n_bytes` bytes."""
    if len(header) > MAX_HEADER:
        raise ValueError(f"the header of the arrays must have at most {MAX_HEADER:,} bytes, got {len(header):,}")
    declared = strict_json.decode_json(header)
    if not isinstance(declared, dict):
        raise ValueError("the header of the arrays is not a JSON object; the file is damaged")
    if len(declared) > MAX_ARRAYS:
        raise ValueError(f"a file must have at most {MAX_ARRAYS:,} arrays, got {len(declared):,}")
    entries = sorted(
        (_read_entry(name, entry) for name, entry in declared.items()), key=lambda offsets_and_entry: offsets_and_entry[:2]
    )
    previous_end = 0
    for start, end, entry in entries:
        if start != previous_end:
            raise ValueError(
                f"the array {format_value(entry.name)} must start at byte {previous_end}, after the previous ones, got {start}"
            )
        previous_end = end
    if previous_end != n_bytes:
        raise ValueError(f"the arrays require {previous_end:,} bytes, but the file has {n_bytes:,} for them")
    return [entry for _, _, entry in entries]


def _check_array(name: object, array: object) -> np.ndarray:
    """The array as contiguous little-endian numbers; raises ValueError for other types and names that cannot be stored."""
    if not isinstance(name, str) or name == "__metadata__":
        raise ValueError(f"an array cannot be named {format_value(name)}")
    # A subclass (masked array, matrix) has more than its numbers, which would be lost.
    if type(array) not in (np.ndarray, np.memmap):
        raise ValueError(f"the array {format_value(name)} must be a numpy array, got {type(array).__name__}")
    dtype = np.asarray(array).dtype.newbyteorder("<")
    if dtype not in _DTYPES.values():
        raise ValueError(
            f"the dtype of array {format_value(name)} must be one of "
            f"{format_list(_dtype_names(), max_shown=len(_DTYPES))}, got {dtype}"
        )
    return np.asarray(array, dtype=dtype, order="C")


def _dtype_names() -> list[str]:
    return [dtype.name for dtype in _DTYPES.values()]


def _read_entry(name: str, entry: object) -> tuple[int, int, Entry]:
    """First byte, end and description of an array from its header entry; raises ValueError if they are inconsistent."""
    if name == "__metadata__" or not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the header entry {format_value(name)} of the arrays must have exactly dtype, shape and data_offsets")
    array_text = f"the array {format_value(name)}"
    dtype = _DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise ValueError(f"{array_text} cannot have dtype {format_value(entry['dtype'])}")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _is_sizes(shape) or len(shape) > _MAX_DIMENSIONS:
        raise ValueError(
            f"the shape of {array_text} must be a list of at most {_MAX_DIMENSIONS} sizes, got {format_value(shape)}"
        )
    # Python's integers do not overflow; numpy refuses shapes whose sizes other than 0 overflow.
    if math.prod(max(length, 1) for length in shape) * dtype.itemsize > _MAX_BYTES:
        raise ValueError(f"{array_text} has shape {format_value(shape)}, which is too large for any machine")
    if not _is_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"data_offsets of {array_text} must be a start and an end, got {format_value(offsets)}")
    start, end = offsets
    n_bytes = math.prod(shape) * dtype.itemsize
    if end - start != n_bytes:
        raise ValueError(
            f"{array_text} of shape {format_value(shape)} requires {n_bytes} bytes, but {end - start} are declared"
        )
    return start, end, Entry(name, dtype, tuple(shape))


def _is_sizes(value: object) -> bool:
    """Whether a value is a list of integers of at least 0."""
    return isinstance(value, list) and all(type(element) is int and element >= 0 for element in value)
