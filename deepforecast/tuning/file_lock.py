"""The lock file of a journal, with its owner so that locks of dead processes are released."""

from __future__ import annotations

import logging
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path

from optuna.storages.journal import JournalFileOpenLock

from deepforecast.tuning.trial_recovery import is_process_alive, process_key

FIRST_PAUSE = 0.001  # seconds between the first two attempts
MAX_PAUSE = 0.5  # largest number of seconds between two attempts
_logger = logging.getLogger("optuna.storages.journal")


class FileLock(JournalFileOpenLock):
    """A lock by exclusive creation of a file, which is atomic on all file systems including NFS 3
    and later.

    A lock of a dead process on this machine is taken over immediately, any other one after
    `timeout` seconds without a change; both are logged.
    """

    def __init__(self, path: str, timeout: int) -> None:
        super().__init__(path, timeout)
        self.lock_path = f"{path}.lock"
        self.timeout = timeout

    def acquire(self) -> bool:
        """Wait for the lock, with pauses that double up to `MAX_PAUSE`; always returns True."""
        pause = FIRST_PAUSE
        last_owner = ""
        first_seen = time.monotonic()  # when this process first saw the current owner
        while True:
            try:
                self._create()
                return True
            except FileExistsError:
                owner = self._read_owner()
            if owner is None:
                continue  # released in the meantime
            if owner != last_owner:
                last_owner = owner
                first_seen = time.monotonic()
            if _is_owner_dead(owner) or time.monotonic() - first_seen > self.timeout:
                self._take_over(owner)
                continue
            time.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE)

    def release(self) -> None:
        """Release the lock if it still exists."""
        with suppress(FileNotFoundError):
            os.unlink(self.lock_path)

    def _create(self) -> None:
        """Create the lock file with the owner; `FileExistsError` if another process has the lock."""
        file = os.open(self.lock_path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        try:
            os.write(file, f"{process_key()}|{uuid.uuid4().hex}".encode())
        finally:
            os.close(file)

    def _read_owner(self) -> str | None:
        """The owner of the lock, None if it is free."""
        try:
            return Path(self.lock_path).read_text(errors="replace") or "nobody yet"
        except FileNotFoundError:
            return None
        except OSError:
            return "cannot be read"

    def _take_over(self, owner: str) -> None:
        """Remove the lock of this owner, unless another process was faster."""
        moved_path = f"{self.lock_path}.{uuid.uuid4().hex}"
        try:
            os.rename(self.lock_path, moved_path)
        except FileNotFoundError:
            return
        if (Path(moved_path).read_text(errors="replace") or "nobody yet") == owner:
            _logger.warning(f"Taking over the lock {self.lock_path} of a process that is dead or stuck.")
        else:
            with suppress(FileExistsError):
                os.link(moved_path, self.lock_path)
        os.unlink(moved_path)


def _is_owner_dead(owner: str) -> bool:
    """Whether the owner is a dead process of this machine."""
    fields = owner.split("|")
    return len(fields) == 4 and is_process_alive(*fields[:3]) is False
