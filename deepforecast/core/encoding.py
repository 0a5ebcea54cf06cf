"""Encodings inside a model file: the file itself, strict JSON, arrays as safetensors, objects of scikit-learn with skops.

Layout of a file, little-endian:

    magic              8 bytes
    format version     uint32
    SHA-256           32 bytes, of everything before and after them
    manifest length    uint64
    manifest           canonical JSON
    arrays             a safetensors block to the end of the file

The digest detects damage, not attacks, as an attacker can recompute it. Files are safe to load
because they contain only numbers and text. JSON values are equal after encoding and decoding, and
ambiguous input is refused. Skops creates only trusted types.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import file_digest, sha256
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from deepforecast.core.atomic import replace_file
from deepforecast.errors import (
    DeepForecastError,
    ModelFileError,
    ParameterTypeError,
    SaveError,
    format_list,
    format_value,
    missing_extra_error,
)

FORMAT_VERSION = 3
MAGIC = b"\x89DFC\r\n\x1a\n"  # not valid text; transfers in text mode change it, as for PNG
MAX_MANIFEST = 1_000_000  # bytes
MAX_HEADER = 1_000_000  # bytes
MAX_ARRAYS = 10_000
MAX_DEPTH = 100  # of nested JSON

Arrays = dict[str, np.ndarray]

_START = struct.Struct("<8sI")  # magic and format version
_LENGTH = struct.Struct("<Q")
_MANIFEST_OFFSET = _START.size + sha256().digest_size + _LENGTH.size
_MAX_PATH = 1_000  # characters of a path shown in messages

def write_archive(path: str | os.PathLike[str], manifest: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a manifest and arrays to a file atomically; the same content gives the same bytes.

    Parameters
    ----------
    path : str or path-like
        Path of the file.
    manifest : dict
        JSON data that is equal after decoding: string keys, lists but no tuples, no NaN.
    arrays : dict of ndarray
        Arrays of real numbers or bool, of any shape.

    Raises
    ------
    SaveError
        If the content is invalid or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_archive(folder + "/model.dfc", {"model": "Naive"}, {"last": np.array([3.0, 4.0])})
    ...     read_archive(folder + "/model.dfc")
    ({'model': 'Naive'}, {'last': array([3., 4.])})
    """
    path = _as_path(path, SaveError)
    try:
        text, block = encode_json(dict(manifest)), encode_arrays(arrays)
        start, length = _START.pack(MAGIC, FORMAT_VERSION), _LENGTH.pack(len(text))
        digest = sha256(start + length + text)
        digest.update(block)
        replace_file(path, [start, digest.digest(), length, text, block])
    except (OSError, ValueError) as error:
        suggestion = " Free disk space or save to another path." if isinstance(error, OSError) else ""
        save_error = SaveError(
            f"The model cannot be saved to {format_value(path, _MAX_PATH)}: {_reason(error)}; an existing file there is "
            f"unchanged.{suggestion}"
        )
        save_error.errno = getattr(error, "errno", None)
        raise save_error from error


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Read the manifest and the arrays (writable) of a file.

    Raises `ModelFileError` unless the file is complete and unaltered. No code is run, and no other
    file is opened.
    """
    path = _as_path(path, ModelFileError)
    try:
        # Checked before opening, as opening a device can have side effects, and after, as the path may have changed.
        _regular_size(os.stat(path))
        with open(path, "rb", opener=_open_nonblocking) as file:
            return _read_contents(file, _regular_size(os.fstat(file.fileno())))
    except FileNotFoundError as error:
        name = format_value(path, _MAX_PATH)
        raise ModelFileError(f"There is no file at {name}.", hint="Save one first: model.save(path).") from error
    except (OSError, ValueError) as error:
        raise ModelFileError(f"The model file {format_value(path, _MAX_PATH)} cannot be read: {_reason(error)}") from error


def _as_path(path: object, error_class: type[SaveError | ModelFileError]) -> str:
    """The path as text; raises `ParameterTypeError` if it is not a path, and `error_class` if it is empty."""
    try:
        name = os.fsdecode(path)  # type: ignore[arg-type]
    except TypeError as error:
        raise ParameterTypeError(
            f"`path` must be a string or a pathlib.Path, got {type(path).__name__}.", parameter="path"
        ) from error
    if not name:
        raise error_class("`path` must be the name of a file, got ''.", hint="Pass a name such as 'model.dfc'.")
    return name


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a FIFO would block until another process writes to it


def _regular_size(status: os.stat_result) -> int:
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("the path is a folder, not a file" if stat.S_ISDIR(status.st_mode) else "it is not a regular file")
    return status.st_size


def _read_contents(file: io.BufferedReader, n_bytes: int) -> tuple[dict[str, Any], Arrays]:
    """The manifest and the arrays of an open file of `n_bytes` bytes; raises ValueError if it is damaged."""
    start, stored_digest, length_bytes = file.read(_START.size), file.read(sha256().digest_size), file.read(_LENGTH.size)
    if not start.startswith(MAGIC):
        raise ValueError("it is not a model file of deepforecast; files of other libraries cannot be loaded")
    if len(length_bytes) < _LENGTH.size:
        raise ValueError(f"the file is truncated after {n_bytes} bytes; save the model or copy the file again")
    _, version = _START.unpack(start)
    if version != FORMAT_VERSION:
        rule, fix = ("latest", "update deepforecast") if version > FORMAT_VERSION else ("only one", "fit and save the model again")
        raise ValueError(
            f"the format of the file must be {FORMAT_VERSION}, the {rule} that this version of deepforecast reads, got "
            f"{version}; {fix}"
        )
    (length,) = _LENGTH.unpack(length_bytes)
    if length > MAX_MANIFEST:
        raise ValueError(f"the manifest must have at most {MAX_MANIFEST:,} bytes, got {length:,}; the file may be damaged")
    file.seek(_MANIFEST_OFFSET + length)
    _check_header_length(file.read(8))  # hashing a large file takes seconds
    file.seek(_MANIFEST_OFFSET)
    # Verified twice: before allocating memory, and for the bytes decoded, as the file may change in between.
    digest, position = sha256(start + length_bytes), file.tell()
    _check_digest(file_digest(file, digest.copy).digest(), stored_digest)
    file.seek(position)
    text, block = file.read(length), file.read(n_bytes)
    digest.update(text)
    digest.update(block)
    _check_digest(digest.digest(), stored_digest)
    manifest = decode_json(text)
    if not isinstance(manifest, dict):
        raise ValueError("the manifest is not a JSON object; the file is damaged")
    return manifest, decode_arrays(block)


def _check_digest(digest: bytes, stored_digest: bytes) -> None:
    if digest != stored_digest:
        raise ValueError(
            "the checksum does not match: the file was truncated, altered or damaged; save the model or copy the file again"
        )


# An unclosed string matches to the end, so matching takes linear time on any input.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_DEPTH_CHANGES = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as int8: 1 down, -1 up
_OTHER_BYTES = bytes(set(range(256)) - set(b"[{]}"))


def encode_json(value: object) -> bytes:
    """`value` as canonical JSON of at most `MAX_MANIFEST` bytes: sorted keys, no spaces, ASCII.

    >>> encode_json({"b": [1, None], "a": 0.5})
    b'{"a":0.5,"b":[1,null]}'
    """
    try:
        encoded = json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"a value of the manifest cannot be written as JSON ({format_value(str(error))})") from error
    if len(encoded) > MAX_MANIFEST:
        raise ValueError(f"the manifest must have at most {MAX_MANIFEST:,} bytes, got {len(encoded):,}; store large data in arrays")
    if decode_json(encoded) != value:
        raise ValueError("a value of the manifest changes when it is written as JSON; use string keys, and lists, not tuples")
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
        parse_constant=_parse_float,  # NaN, Infinity, -Infinity
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


def encode_arrays(arrays: Arrays) -> bytes:
    """Encode arrays as a safetensors block, independently of their order in the dict.

    >>> header_length = int.from_bytes(encode_arrays({"level": np.zeros(3)})[:8], "little")
    >>> encode_arrays({"level": np.zeros(3)})[8 : 8 + header_length].strip()
    b'{"level":{"dtype":"F64","shape":[3],"data_offsets":[0,24]}}'
    """
    for name, array in arrays.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise ValueError(f"an array cannot be named {format_value(name)}")
        # A subclass (masked array, matrix) has more than its numbers, which would be lost.
        if type(array) not in (np.ndarray, np.memmap):
            raise ValueError(f"the array {format_value(name)} must be a numpy array, got {type(array).__name__}")
        _check_dtype(name, array)
    block = safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    _check_header(block)  # never write what the reader refuses
    return bytes(block)


def decode_arrays(block: bytes) -> Arrays:
    """The arrays of a safetensors block, in memory of their own; raises ValueError if it is invalid."""
    _check_header(block)
    try:
        arrays: Arrays = safetensors.numpy.load(block)
    except (SafetensorError, ValueError, OverflowError, KeyError) as error:  # KeyError: a dtype that numpy does not have
        raise ValueError(f"the arrays are invalid ({format_value(str(error), 200)}); the file is damaged") from error
    for name, array in arrays.items():
        _check_dtype(name, array)
        if array.dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
            raise ValueError(f"the bool array {format_value(name)} must contain only the bytes 0 and 1; the file is damaged")
    return arrays


def _check_dtype(name: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise ValueError(f"the dtype of array {format_value(name)} must be bool, or numbers of at most 64 bits, got {array.dtype}")


def _check_header_length(block: bytes) -> int:
    """The length of the header, with which a block of arrays starts; raises ValueError if it is too large."""
    length = int.from_bytes(block[:8], "little")
    if length > MAX_HEADER:
        raise ValueError(f"the header of the arrays must have at most {MAX_HEADER:,} bytes, got {length:,}; the file is damaged")
    return length


def _check_header(block: bytes) -> None:
    """Raise ValueError for what safetensors accepts: large or deep headers, repeated names, other entries than arrays."""
    length = _check_header_length(block)
    entries = decode_json(block[8 : 8 + length])
    if not isinstance(entries, dict):
        raise ValueError("the header of the arrays is not a JSON object; the file is damaged")
    if len(entries) > MAX_ARRAYS:
        raise ValueError(f"a file must have at most {MAX_ARRAYS:,} arrays, got {len(entries):,}")
    for name, entry in entries.items():
        if name == "__metadata__" or not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            raise ValueError(f"the header entry {format_value(name)} of the arrays must have exactly dtype, shape and data_offsets")


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

    def untrusted_types(self, arrays: Iterable[np.ndarray], description: str = "an object of another library") -> list[str]:
        """The sorted names of the types in these objects that are not trusted; none with `allow_any`."""
        unknown: set[str] = set()
        for array in arrays:
            raw = array.astype(np.uint8).tobytes()
            _refuse_compressed(raw, description)
            unknown.update(_import_skops().get_untrusted_types(data=raw))
        return [] if self.allow_any else sorted(unknown.difference(self.trusted))

    def refuse_untrusted(self, name: str) -> None:
        """Raise unless this function or type of a file is trusted."""
        if not self.allow_any and name not in self.trusted:
            names = repr(sorted({*self.trusted, name}))
            raise UntrustedTypeError(
                f"the file refers to {format_value(name)}, which must be trusted. "
                f"If you trust the origin of the file, pass load(path, trusted={names})"
            )

    def deserialize(self, array: np.ndarray, description: str) -> Any:
        """Deserialize an object from bytes."""
        if untrusted := self.untrusted_types([array], description):
            raise UntrustedTypeError(f"{description} contains {format_list(untrusted)}, which must be trusted")
        skops, raw = _import_skops(), array.astype(np.uint8).tobytes()
        return skops.loads(raw, trusted=skops.get_untrusted_types(data=raw) if self.allow_any else self.trusted)


def stored_objects(arrays: Arrays) -> list[np.ndarray]:
    """The arrays that contain an object of another library; skops writes zip archives."""
    return [array for array in arrays.values() if array.dtype == np.uint8 and zipfile.is_zipfile(io.BytesIO(array.tobytes()))]


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
    """A scalar as None, bool, int, float or str; raises `InvalidManifest` for other types and integers beyond int64."""
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        value = value.item()
    is_plain = value is None or isinstance(value, (bool, int, float, str))
    if not is_plain or (isinstance(value, int) and abs(value) > MAX_INTEGER):
        raise InvalidManifest(
            f"a stored value must be a number of at most 64 bits or a string, got {format_value(value)} ({type(value).__name__})"
        )
    return value


def check_floats(values: np.ndarray, shape: tuple[int | None, ...], subject: str) -> np.ndarray:
    """An array, which must be float64 of this shape, in which None allows any length; `subject` names it."""
    fits = values.ndim == len(shape) and all(length in (None, n) for length, n in zip(shape, values.shape, strict=True))
    if values.dtype != np.float64 or not fits:
        expected = format_value(shape).replace("None", "any")
        raise InvalidManifest(f"{subject} must be float64 of shape {expected}, got {values.dtype} of shape {values.shape}")
    return values


def is_integer_from(value: Any, minimum: int) -> bool:
    """Whether the value is an integer, not a bool, of at least `minimum` that fits into int64."""
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= MAX_INTEGER


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
