"""A study in a file that every operation is appended to, which any number of processes share."""

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

LINE_START = b'{"op_code":'  # of each line
LOCK_TIMEOUT = 30  # seconds after which a lock of another machine is taken over
STATE_OPERATION = 6  # the operation of a journal that begins or ends a trial, as Optuna numbers them


def open_journal(path: str) -> JournalStorage:
    """A file that every operation is appended to: any number of processes may share it, also on a network's file system."""
    path = os.path.abspath(path)
    if os.path.isdir(path):
        raise ParameterError(f"storage is a file; {format_value(path)} is a folder. Say {format_value(os.path.join(path, 'study.log'))}.")
    try:
        return JournalStorage(Journal(path))
    except (OSError, LostStorageError) as error:
        cause = error.__cause__ or error
        if isinstance(cause, ValueError):
            raise _foreign_file_error(path) from error
        words = getattr(cause, "strerror", None) or cause
        raise ParameterError(f"storage is a file that can be written; {format_value(path)}: {words}.") from error
    except (KeyError, TypeError, AttributeError, AssertionError) as error:
        raise _foreign_file_error(path) from error


def _foreign_file_error(path: str) -> ParameterError:
    return ParameterError(f"storage is a journal of a study; {format_value(path)} holds something else. Say another.")


class LostStorageError(StorageInternalError):
    """A journal can no longer be read or written; its message says why."""


class Journal(JournalFileBackend):
    """Optuna's, but: a write reaches the disk where a trial begins or ends, not for each parameter; a line that a crash or a
    full disk cut off is taken away; and a file that has gone, or another one in its place, is an error."""

    def __init__(self, path: str) -> None:
        super().__init__(path, FileLock(path, LOCK_TIMEOUT))
        with _storage_errors(), open(path, "r+b") as file:  # read-only: said now
            self._inode = os.fstat(file.fileno()).st_ino
            _end_of_last_line(file)

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:  # type: ignore[override]
        """What was added since."""
        with _storage_errors():
            yield from super().read_logs(log_number_from)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Add to the end of the file: all of it, or nothing."""
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs).encode()
        with _storage_errors(), _locked(self._lock), open(self._file_path, "r+b", buffering=0) as file:
            end = _end_of_last_line(file)
            if os.fstat(file.fileno()).st_ino != self._inode or end < next(reversed(self._log_number_offset.values())):
                raise OSError("it was emptied, or another file has taken its place")
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
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _storage_errors() -> Iterator[None]:
    """What goes wrong with a file is the storage's fault, never that of the trial that it happens to."""
    try:
        yield
    except OSError as error:
        raise LostStorageError(f"{type(error).__name__}: {error}") from error
    except ValueError as error:
        raise LostStorageError("it was cut off, or something else was written into it") from error


def _end_of_last_line(file: Any) -> int:
    """Where the last whole line ends: who began another one did not live to end it. Refused where it is none of a journal."""
    size = int(file.seek(0, os.SEEK_END))
    if not size or (file.seek(-1, os.SEEK_END), file.read(1))[1] == b"\n":
        return size
    file.seek(0)
    text: bytes = file.read()
    end = text.rfind(b"\n") + 1
    if not text[end:].startswith(LINE_START[: size - end]):
        raise ValueError("its last line is not one of a journal")
    return end
