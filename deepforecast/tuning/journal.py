"""Journal file storage of a study, shared by several processes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from optuna.exceptions import StorageInternalError
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from deepforecast.errors import ParameterError, format_value
from deepforecast.tuning.file_lock import FileLock

LINE_START = b'{"op_code":'  # the start of each line
LOCK_TIMEOUT = 30  # seconds after which the lock of another machine is taken over
STATE_OPERATION = 6  # op code of Optuna for the start or end of a trial


def open_journal(path: str) -> JournalStorage:
    """Open a journal file, which several processes can share, also on network file systems."""
    path = os.path.abspath(path)
    if os.path.isdir(path):
        raise ParameterError(
            f"`storage` must be a file, got the folder {format_value(path)}.",
            hint=f"Use {format_value(os.path.join(path, 'study.log'))}.",
            parameter="storage",
        )
    try:
        return JournalStorage(Journal(path))
    except (OSError, LostStorageError) as error:
        cause = error.__cause__ or error
        if isinstance(cause, ValueError):
            raise _foreign_file_error(path) from error
        reason = getattr(cause, "strerror", None) or cause
        raise ParameterError(
            f"`storage` must be a writable file, got {format_value(path)}: {reason}.",
            parameter="storage",
            value=path,
        ) from error
    except (KeyError, TypeError, AttributeError, AssertionError) as error:
        raise _foreign_file_error(path) from error


def _foreign_file_error(path: str) -> ParameterError:
    return ParameterError(
        f"`storage` must be the journal of a study, but {format_value(path)} is a file of another kind.",
        hint="Pass another path.",
        parameter="storage",
    )


class LostStorageError(StorageInternalError):
    """A journal can no longer be read or written."""


class Journal(JournalFileBackend):
    """Journal file of Optuna with fewer syncs and more checks.

    Writes are synced to disk only when a trial starts or ends. A line truncated by a crash or a
    full disk is removed. A deleted or replaced file is an error.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, FileLock(path, LOCK_TIMEOUT))
        with _storage_errors(), open(path, "r+b") as file:  # fails now if read-only
            self._inode = os.fstat(file.fileno()).st_ino
            _end_of_last_line(file)

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:  # type: ignore[override]
        """Read the operations from `log_number_from` on."""
        with _storage_errors():
            yield from super().read_logs(log_number_from)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append all operations or none."""
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
        with _storage_errors(), _locked(self._lock), open(self._file_path, "r+b", buffering=0) as file:
            end = _end_of_last_line(file)
            if os.fstat(file.fileno()).st_ino != self._inode or end < next(reversed(self._log_number_offset.values())):
                raise OSError(f"the journal file {self._file_path} was truncated or replaced during the search")
            try:
                file.truncate(end)
                file.seek(end)
                remaining = memoryview(lines)
                while remaining:
                    remaining = remaining[file.write(remaining) :]
            finally:
                if file.seek(0, os.SEEK_END) != end + len(lines):
                    file.truncate(end)
            if any(log.get("op_code") == STATE_OPERATION for log in logs):
                os.fsync(file.fileno())


@contextmanager
def _locked(lock: Any) -> Iterator[None]:
    """Hold the lock during the block."""
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _storage_errors() -> Iterator[None]:
    """Turn file errors into storage errors, which do not count as failures of the trial."""
    try:
        yield
    except OSError as error:
        raise LostStorageError(f"{type(error).__name__}: {error}") from error
    except ValueError as error:
        raise LostStorageError("the journal file was truncated or overwritten during the search") from error


def _end_of_last_line(file: Any) -> int:
    """The position after the last complete line; `ValueError` if an incomplete line follows that is not
    the beginning of a line of a journal."""
    n_bytes = int(file.seek(0, os.SEEK_END))
    if not n_bytes:
        return 0
    file.seek(-1, os.SEEK_END)
    if file.read(1) == b"\n":
        return n_bytes
    file.seek(0)
    contents: bytes = file.read()
    end = contents.rfind(b"\n") + 1
    if not contents[end:].startswith(LINE_START[: n_bytes - end]):
        raise ValueError("the last line of the file is not a line of a journal")
    return end
