"""Reads and writes model files, which contain a manifest and named arrays.

Layout, little-endian:

    magic              8 bytes
    format version     uint32
    SHA-256           32 bytes, of everything before and after them
    manifest length    uint64
    manifest           canonical JSON, see encoding.py
    arrays             a safetensors block to the end of the file, see encoding.py

The digest detects damage, not attacks, as an attacker can recompute it. Files are safe to load
because they contain only numbers and text, and every length is checked against the size of the file
before memory is allocated.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from deepforecast.core import encoding
from deepforecast.core.atomic import replace_file
from deepforecast.errors import ModelFileError, ParameterTypeError, SaveError, format_value

if TYPE_CHECKING:
    from hashlib import _Hash


FORMAT_VERSION = 3
MAGIC = b"\x89DFC\r\n\x1a\n"  # not valid text; transfers in text mode change it, as for PNG
MAX_MANIFEST = 1_000_000

_START = struct.Struct("<8sI")  # magic and format version
_DIGEST_SIZE = 32
_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 20  # bytes read at once
_MAX_PATH = 1_000  # characters of a path shown in messages
_TRUNCATED = (
    "the file is truncated: expected at least {expected:,} more bytes, found {found:,}; save the model or copy the file again"
)


def write(path: str | os.PathLike[str], manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
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
    ...     write(folder + "/model.dfc", {"model": "Naive"}, {"last": np.array([3.0, 4.0])})
    ...     read(folder + "/model.dfc")
    ({'model': 'Naive'}, {'last': array([3., 4.])})
    """
    path = _as_path(path, SaveError)
    try:
        text, block = _encode(manifest, arrays)
        start = _START.pack(MAGIC, FORMAT_VERSION)
        length = _LENGTH.pack(len(text))
        digest = sha256(start + length + text)
        digest.update(block)
        replace_file(path, [start, digest.digest(), length, text, block])
    except (OSError, ValueError) as error:
        raise _save_error(path, error) from error


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
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
    except (OSError, ValueError) as error:
        name = format_value(path, _MAX_PATH)
        raise ModelFileError(f"The model file {name} cannot be read: {_reason(error)}") from error


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


def _encode(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> tuple[bytes, bytes]:
    """The bytes of the manifest and of the block of arrays; raises ValueError if one is invalid."""
    try:
        text = encoding.encode_json(dict(manifest), MAX_MANIFEST)
    except ValueError as error:
        raise ValueError(f"the manifest is invalid: {error}") from error
    return text, encoding.encode_arrays(arrays)


def _save_error(path: str, error: OSError | ValueError) -> SaveError:
    """The error for a file that cannot be written, with the `errno` of an OSError."""
    suggestion = " Free disk space or save to another path." if isinstance(error, OSError) else ""
    name = format_value(path, _MAX_PATH)
    save_error = SaveError(
        f"The model cannot be saved to {name}: {_reason(error)}; an existing file there is unchanged.{suggestion}"
    )
    save_error.errno = getattr(error, "errno", None)
    return save_error


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a FIFO would block until another process writes to it


def _regular_size(status: os.stat_result) -> int:
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("the path is a folder, not a file" if stat.S_ISDIR(status.st_mode) else "it is not a regular file")
    return status.st_size


def _read_contents(file: BinaryIO, n_bytes: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The manifest and the arrays of an open file of `n_bytes` bytes; raises ValueError if it is damaged."""
    start = file.read(_START.size)
    _check_start(start)
    stored_digest = file.read(_DIGEST_SIZE)
    digest = sha256(start)
    remaining = n_bytes - _START.size - _DIGEST_SIZE
    text = _read_block(file, remaining, MAX_MANIFEST, digest)
    remaining -= _LENGTH.size + len(text)
    header = _read_block(file, remaining, encoding.MAX_HEADER, digest)
    remaining -= _LENGTH.size + len(header)
    manifest = encoding.decode_json(text)
    if not isinstance(manifest, dict):
        raise ValueError("the manifest is not a JSON object; the file is damaged")
    entries = encoding.read_layout(header, remaining)
    # Verified twice: before allocating memory, and for the bytes returned, as the file may change in between.
    _verify_digest(file, digest.copy(), stored_digest)
    arrays = {entry.name: _read_array(file, entry, digest) for entry in entries}
    _check_digest(digest, stored_digest)
    return manifest, arrays


def _check_start(start: bytes) -> None:
    """Raise ValueError unless the first bytes are those of a model file in the format that is read here."""
    if not start.startswith(MAGIC):
        raise ValueError("it is not a model file of deepforecast; files of other libraries cannot be loaded")
    if len(start) < _START.size:
        raise ValueError(_TRUNCATED.format(expected=_START.size - len(start), found=0))
    version = _START.unpack(start)[1]
    if version > FORMAT_VERSION:
        raise ValueError(
            f"the format of the file must be {FORMAT_VERSION}, the latest that this version of deepforecast reads, got "
            f"{version}; update deepforecast"
        )
    if version < FORMAT_VERSION:
        raise ValueError(
            f"the format of the file must be {FORMAT_VERSION}, the only one that this version of deepforecast reads, got "
            f"{version}; fit the model and save it again"
        )


def _read_block(file: BinaryIO, remaining: int, max_length: int, digest: _Hash) -> bytes:
    """Read a block that is preceded by its length, and add both to the digest.

    Raises ValueError if the block is longer than `max_length` or the `remaining` bytes of the file.
    """
    if remaining < _LENGTH.size:
        raise ValueError(_TRUNCATED.format(expected=_LENGTH.size, found=max(remaining, 0)))
    length_bytes = file.read(_LENGTH.size)
    (length,) = _LENGTH.unpack(length_bytes)
    if length > remaining - _LENGTH.size:
        raise ValueError(_TRUNCATED.format(expected=length, found=remaining - _LENGTH.size))
    if length > max_length:
        raise ValueError(f"a block must have at most {max_length:,} bytes, got {length:,}; the file may be damaged")
    block = file.read(length)
    digest.update(length_bytes + block)
    return block


def _verify_digest(file: BinaryIO, digest: _Hash, stored_digest: bytes) -> None:
    """Check the digest over the rest of the file, and return to the current position in it."""
    position = file.tell()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    _check_digest(digest, stored_digest)
    file.seek(position)


def _read_array(file: BinaryIO, entry: encoding.Entry, digest: _Hash) -> np.ndarray:
    """Read an array in the byte order of this machine, and add its bytes to the digest."""
    array = np.empty(entry.shape, entry.dtype)
    raw = array.reshape(-1).view(np.uint8)
    if file.readinto(raw.data) != raw.size:  # type: ignore[attr-defined]
        raise ValueError("the file became shorter while it was read; load it again")
    digest.update(raw.data)
    if entry.dtype == np.bool_ and raw.max(initial=0) > 1:
        raise ValueError(f"the bool array {format_value(entry.name)} must contain only the bytes 0 and 1; the file is damaged")
    return array.astype(entry.dtype.newbyteorder("="), copy=False)


def _check_digest(digest: _Hash, stored_digest: bytes) -> None:
    if digest.digest() != stored_digest:
        raise ValueError("the checksum does not match: the file was altered or damaged; save the model or copy the file again")
