"""The model file: bytes on one side, a manifest and named arrays on the other. Knows no model.

Layout, numbers little-endian:

    magic              8 bytes
    format version     uint32
    SHA-256           32 bytes, of all that stands before and after them
    manifest length    uint64
    manifest           canonical JSON, see strict_json.py
    arrays             a safetensors block to the end of the file, see tensors.py

The digest finds damage. It is no defence, as an attacker can compute it anew: that nothing in the file can do harm rests on
its being plain numbers and text, each length checked against the real size of the file before memory is taken for it.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from deepforecast.errors import ModelFileError, ParameterTypeError, SaveError, format_value
from deepforecast.io import strict_json, tensors
from deepforecast.io.atomic import replace_file

if TYPE_CHECKING:
    from hashlib import _Hash

FORMAT_VERSION = 1
MAGIC = b"\x89DFC\r\n\x1a\n"  # not text, and altered by any transfer that takes it for text
MAX_MANIFEST = 1_000_000

_START = struct.Struct("<8sI")
_DIGEST_SIZE = 32
_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 20
_MAX_PATH = 1_000


def write(path: str | os.PathLike[str], manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Save `manifest` and `arrays` as one file, which stands at `path` whole or not at all.

    The same content gives the same bytes. The manifest has to come back equal from JSON: text as keys, lists but no tuples, no
    NaN. Arrays are of real numbers or bool, of any shape. Whatever fails, SaveError names the path.

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
    """The manifest and the arrays of the file at `path`, after every check that its bytes allow; the arrays are yours to alter.

    Anything but a whole, unaltered file raises ModelFileError, which names the path. No code runs, nothing is imported, opened
    for writing or followed out of the file.
    """
    path = _as_path(path, ModelFileError)
    try:
        # Looked at before opening, as opening a device can have an effect, and after, as the path may have changed meanwhile.
        _regular_size(os.stat(path))
        with open(path, "rb", opener=_open_nonblocking) as file:
            return _read_contents(file, _regular_size(os.fstat(file.fileno())))
    except (OSError, ValueError) as error:
        name = format_value(path, _MAX_PATH)
        raise ModelFileError(f"a model file has to be whole and unaltered; {name} is not usable: {_reason(error)}") from error


def _as_path(path: object, error_class: type[SaveError | ModelFileError]) -> str:
    try:
        name = os.fsdecode(path)  # type: ignore[arg-type]
    except TypeError as error:
        raise ParameterTypeError(f"path has to be text or a pathlib.Path, not {type(path).__name__}") from error
    if not name:
        raise error_class("`path` must be the name of a file, got ''. Pass a name such as 'model.dfc'.")
    return name


def _encode(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> tuple[bytes, bytes]:
    try:
        text = strict_json.encode(dict(manifest), MAX_MANIFEST)
    except ValueError as error:
        raise ValueError(f"the manifest does not fit: {error}") from error
    return text, tensors.encode(arrays)


def _save_error(path: str, error: OSError | ValueError) -> SaveError:
    suggestion = "; make room or save to another path" if isinstance(error, OSError) else ""
    name = format_value(path, _MAX_PATH)
    save_error = SaveError(f"the model could not be saved at {name}: {_reason(error)}; what stood there is unchanged{suggestion}")
    save_error.errno = getattr(error, "errno", None)
    return save_error


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # or a FIFO would block until somebody writes to it


def _regular_size(status: os.stat_result) -> int:
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is a folder, not a file" if stat.S_ISDIR(status.st_mode) else "it is not a regular file")
    return status.st_size


def _read_contents(file: BinaryIO, size: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    start = file.read(_START.size)
    _check_start(start)
    stored_digest = file.read(_DIGEST_SIZE)
    digest = sha256(start)
    remaining = size - _START.size - _DIGEST_SIZE
    text = _read_block(file, remaining, MAX_MANIFEST, digest)
    remaining -= _LENGTH.size + len(text)
    header = _read_block(file, remaining, tensors.MAX_HEADER, digest)
    remaining -= _LENGTH.size + len(header)
    manifest = strict_json.decode(text)
    if not isinstance(manifest, dict):
        raise ValueError("its manifest is not a JSON object")
    entries = tensors.read_layout(header, remaining)
    # Twice: first without taking memory, then over the very bytes that are returned, should the file change in between.
    _verify_digest(file, digest.copy(), stored_digest)
    arrays = {entry.name: _read_array(file, entry, digest) for entry in entries}
    _check_digest(digest, stored_digest)
    return manifest, arrays


def _check_start(start: bytes) -> None:
    if not start.startswith(MAGIC):
        raise ValueError("it does not begin as a model file of deepforecast does; a file of another library cannot be loaded")
    if len(start) < _START.size:
        raise ValueError("it is cut short; save the model or copy the file again")
    version = _START.unpack(start)[1]
    if version > FORMAT_VERSION:
        raise ValueError(
            f"its format is newer: it needs a deepforecast that reads format {version}, this one reads up to {FORMAT_VERSION}; "
            "update deepforecast"
        )
    if version < 1:
        raise ValueError(f"there is no format {version}; save the model or copy the file again")


def _read_block(file: BinaryIO, remaining: int, max_length: int, digest: _Hash) -> bytes:
    """The next part of `file` that is preceded by its length."""
    if remaining < _LENGTH.size:
        raise ValueError("it is cut short; save the model or copy the file again")
    field = file.read(_LENGTH.size)
    (length,) = _LENGTH.unpack(field)
    if length > remaining - _LENGTH.size:
        raise ValueError(f"it is cut short: it declares a part of {length:,} bytes where {remaining - _LENGTH.size:,} are left")
    if length > max_length:
        raise ValueError(f"it declares a part of {length:,} bytes, at most {max_length:,} are allowed")
    block = file.read(length)
    digest.update(field + block)
    return block


def _verify_digest(file: BinaryIO, digest: _Hash, stored_digest: bytes) -> None:
    position = file.tell()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    _check_digest(digest, stored_digest)
    file.seek(position)


def _read_array(file: BinaryIO, entry: tensors.Entry, digest: _Hash) -> np.ndarray:
    array = np.empty(entry.shape, entry.dtype)
    raw = array.reshape(-1).view(np.uint8)
    if file.readinto(raw.data) != raw.size:  # type: ignore[attr-defined]
        raise ValueError("it became shorter while it was read")
    digest.update(raw.data)
    if entry.dtype == np.bool_ and raw.max(initial=0) > 1:
        raise ValueError(f"the array {format_value(entry.name)} is declared bool and holds other bytes than 0 and 1")
    return array.astype(entry.dtype.newbyteorder("="), copy=False)


def _check_digest(digest: _Hash, stored_digest: bytes) -> None:
    if digest.digest() != stored_digest:
        raise ValueError("its checksum does not match: it was altered or damaged; save the model or copy the file again")
