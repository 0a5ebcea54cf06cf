"""Replace a file so that at every instant its path holds the whole old file or the whole new one."""

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
    """Make `chunks` the content of the file at `path`, or raise OSError and leave everything as it was.

    A missing folder is made. A symbolic link stays and the file it points at is replaced. Permissions are those of the file
    replaced, else those any new file would get; a file its owner has write-protected, a folder or a device is refused.
    Temporary files of the same target whose process was killed are removed.
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
    """A new empty file next to the target, and a descriptor that holds its lock until it is closed or the process ends.

    The same folder, as a rename is atomic only within one file system. A name of its own, as another process may save too.
    """
    prefix = f".deepforecast-{sha256(os.fsencode(name)).hexdigest()[:16]}-"
    _remove_abandoned(folder, prefix)
    while True:
        path = os.path.join(folder, f"{prefix}{os.urandom(8).hex()}.tmp")
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        if fcntl is None:
            os.close(descriptor)
            return path, None
        with suppress(OSError):  # a file system without locks, where nothing is removed either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.exists(path):
            return path, descriptor
        os.close(descriptor)  # another process removed it before it was locked


def _remove_abandoned(folder: str, prefix: str) -> None:
    """Remove the temporary files of a target that no living process holds the lock of."""
    for name in os.listdir(folder) if fcntl is not None else ():
        if name.startswith(prefix) and name.endswith(".tmp"):
            path = os.path.join(folder, name)
            with suppress(OSError), open(path, "rb") as file:  # it is being written, or was renamed meanwhile
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)


def _permissions(target: str) -> int | None:
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    if not stat.S_ISREG(mode):  # renaming over /dev/null would put a file in its place
        raise OSError(errno.EINVAL, "Not a regular file", target)
    # A rename asks for no right to write the file itself. Opening it does, and the error says which right is missing.
    os.close(os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)))
    return stat.S_IMODE(mode) & 0o777


def _sync_folder(folder: str) -> None:
    # The file is safe and in place; this makes its name survive a power cut as well. Some systems cannot sync a folder or
    # do not let it be opened, which is no reason to call the save failed.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
