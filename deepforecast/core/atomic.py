"""Atomic replacement of files: at any time, the path is either the complete old file or the complete new one."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


def replace_file(path: str | os.PathLike[str], chunks: Iterable[bytes]) -> None:
    """Write `chunks` to the file at `path` atomically; on failure raise OSError and leave the file unchanged.

    Creates missing folders. The target of a symbolic link is replaced, the link stays. Permissions
    of an existing file are kept; a write-protected file, a folder or a device is refused. Removes
    temporary files that killed processes left for this path.
    """
    target = os.path.realpath(path)
    permissions = _permissions(target)
    folder = os.path.dirname(target)
    os.makedirs(folder, exist_ok=True)
    temporary, lock = _temporary_file(folder, os.path.basename(target))
    try:
        with open(temporary, "wb") as file:
            if permissions is not None:
                os.chmod(temporary, permissions)
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:  # KeyboardInterrupt too
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        if lock is not None:
            os.close(lock)
    _sync_folder(folder)


def _temporary_file(folder: str, name: str) -> tuple[str, int | None]:
    """A new empty file in the folder of the target, and a descriptor that holds its lock.

    In the same folder, as renaming is atomic only within a file system; with a unique name, as
    other processes may save, too.
    """
    prefix = f".deepforecast-{sha256(os.fsencode(name)).hexdigest()[:16]}-"
    _remove_abandoned(folder, prefix)
    while True:
        path = os.path.join(folder, f"{prefix}{os.urandom(8).hex()}.tmp")
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        if fcntl is None:
            os.close(descriptor)
            return path, None
        with suppress(OSError):  # a file system without locks; there `_remove_abandoned` removes nothing
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.exists(path):
            return path, descriptor
        os.close(descriptor)  # another process removed it before it was locked


def _remove_abandoned(folder: str, prefix: str) -> None:
    """Remove the temporary files of a target that no running process has locked."""
    for name in os.listdir(folder) if fcntl is not None else ():
        if name.startswith(prefix) and name.endswith(".tmp"):
            path = os.path.join(folder, name)
            with suppress(OSError), open(path, "rb") as file:  # being written, or renamed meanwhile
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)


def _permissions(target: str) -> int | None:
    """The permission bits of an existing file, None if there is none; raises OSError for what cannot be replaced."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    if not stat.S_ISREG(mode):  # renaming would replace a device such as /dev/null by a file
        raise OSError(errno.EINVAL, "Not a regular file", target)
    # Renaming does not require write permission for the file itself, opening it does.
    os.close(os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)))
    return stat.S_IMODE(mode) & 0o777


def _sync_folder(folder: str) -> None:
    """Sync a folder to disk, so that a rename survives a power failure; does nothing where the system cannot do this."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
