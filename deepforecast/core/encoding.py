"""Encodings inside a model file: strict JSON, arrays as safetensors, objects of scikit-learn with skops.

JSON values are equal after encoding and decoding, and ambiguous input is refused. Arrays are a
safetensors block: header length (uint64, little-endian), header (JSON), bytes of the arrays. Skops
creates only trusted types on loading. The functions raise ValueError with the reason.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy

from deepforecast.errors import DeepForecastError, format_list, format_value, missing_extra_error

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
    declared = decode_json(header)
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


TRUSTED_TYPES: tuple[str, ...] = ()
"""Types in regressors of this library that skops does not trust by default."""


class UntrustedTypeError(DeepForecastError):
    """An object contains a type that is not trusted, or cannot be stored."""


@dataclass(frozen=True)
class SkopsSerializer:
    """Serializes objects with skops; `allow_any` permits all types on saving, `trusted` names those permitted on loading."""

    allow_any: bool = False
    trusted: tuple[str, ...] = ()

    def serialize(self, value: Any, description: str) -> np.ndarray:
        """Serialize an object to bytes."""
        skops = _import_skops()
        try:
            content = skops.dumps(value)
        except Exception as error:  # __getstate__ may raise anything
            raise UntrustedTypeError(
                f"{description} cannot be saved with skops ({type(error).__name__}: {error}).",
                hint="Use a regressor that skops supports, such as one of scikit-learn",
            ) from error
        return np.frombuffer(content, dtype=np.uint8)

    def untrusted_types(self, arrays: Iterable[np.ndarray]) -> list[str]:
        """The sorted names of the types in these objects that are not trusted; none with `allow_any`."""
        unknown: set[str] = set()
        for array in arrays:
            raw = np.ascontiguousarray(array, dtype=np.uint8).tobytes()
            _refuse_compressed(raw, "an object of another library")
            unknown.update(self._unknown_types(raw))
        return [] if self.allow_any else sorted(unknown - set(self.trusted))

    def deserialize(self, array: np.ndarray, description: str) -> Any:
        """Deserialize an object from bytes."""
        raw = np.ascontiguousarray(array, dtype=np.uint8).tobytes()
        _refuse_compressed(raw, description)
        unknown = [] if self.allow_any else [name for name in self._unknown_types(raw) if name not in self.trusted]
        if unknown:
            raise UntrustedTypeError(f"{description} contains {format_list(unknown)}, which must be trusted")
        return _import_skops().loads(
            raw, trusted=[*TRUSTED_TYPES, *(self._unknown_types(raw) if self.allow_any else self.trusted)]
        )

    @staticmethod
    def _unknown_types(content: bytes) -> list[str]:
        return sorted(set(_import_skops().get_untrusted_types(data=content)) - set(TRUSTED_TYPES))


def stored_objects(node: Any, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The bytes of all objects of other libraries to which a manifest, or a part of it, refers."""
    if isinstance(node, list):
        return [stored_bytes for inner in node for stored_bytes in stored_objects(inner, arrays)]
    if not isinstance(node, Mapping):
        return []
    reference = node.get("object")
    name = reference.get("array") if isinstance(reference, Mapping) else None
    own_bytes = [arrays[name]] if isinstance(name, str) and name in arrays else []
    return own_bytes + [stored_bytes for inner in node.values() for stored_bytes in stored_objects(inner, arrays)]


def _import_skops() -> Any:
    """The module skops.io; raises `DependencyError` if it is not installed."""
    try:
        from skops import io
    except ImportError as error:
        raise missing_extra_error("A file with a regressor of another library", "skops") from error
    return io


def _refuse_compressed(raw: bytes, description: str) -> None:
    """Raise if a member of the archive is compressed, as it could expand to any size."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = archive.infolist()
        is_compressed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
        if is_compressed or sum(member.file_size for member in members) > len(raw):
            raise UntrustedTypeError(f"{description} must not be compressed, as files of this library are not")


class InvalidManifest(Exception):
    """A value cannot be stored in a file, or a value in a file is invalid."""


MAX_INTEGER = 2**63 - 1


def to_plain(value: Any) -> Any:
    """A scalar as None, bool, int, float or str; raises `InvalidManifest` for other types."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    raise InvalidManifest(
        f"a value to store must be an array, a number or a string, got {format_value(value)} ({type(value).__name__})"
    )


def check_scalar(value: Any) -> Any:
    """A scalar of a manifest, as it is."""
    if value is None or isinstance(value, (bool, float, str)) or (isinstance(value, int) and abs(value) <= MAX_INTEGER):
        return value
    raise InvalidManifest(f"a stored value must be a number, string, list or tree, got {format_value(value)}")


def check_floats(values: np.ndarray, n_dimensions: int) -> np.ndarray:
    """An array, which must be float64 with this number of dimensions."""
    if values.dtype != np.float64 or values.ndim != n_dimensions:
        raise InvalidManifest(
            f"an array must be float64 with {n_dimensions} dimensions, got {values.dtype} with {values.ndim} dimensions"
        )
    return values


def is_integer_from(value: Any, minimum: int) -> bool:
    """Whether the value is an integer, not a bool, of at least `minimum` that fits into int64."""
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= MAX_INTEGER


def check_key(key: Any) -> str:
    """A key, which must be a string."""
    if not isinstance(key, str):
        raise InvalidManifest(f"a key must be a string, got {format_value(key)}")
    return key


def check_text(value: Any) -> str:
    """A value, which must be a string."""
    if not isinstance(value, str):
        raise InvalidManifest(f"the manifest must have a string where it has {format_value(value)}")
    return value


def check_mapping(value: Any) -> Any:
    """The items of a mapping; raises `InvalidManifest` for another type."""
    if not isinstance(value, Mapping):
        raise InvalidManifest(f"the manifest must have an object (a mapping) where it has {format_value(value)}")
    return value.items()


def check_list(value: Any) -> list[Any]:
    """A value, which must be a list."""
    if not isinstance(value, list):
        raise InvalidManifest(f"the manifest must have a list where it has {format_value(value)}")
    return value


def check_keys(content: Any, keys: tuple[str, ...], subject: str) -> None:
    """Raise `InvalidManifest` unless the content is a mapping with exactly these keys; `subject` names it."""
    if not isinstance(content, Mapping) or set(content) != set(keys):
        names = format_list(keys, max_shown=12)
        description = format_value(list(content) if isinstance(content, Mapping) else content, 200)
        raise InvalidManifest(f"{subject} must have the keys {names}, got {description}")
