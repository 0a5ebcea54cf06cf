"""The lock of a journal: a file beside it that says whose it is, so that one of a dead process is not waited for."""

from __future__ import annotations

import logging
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path

from optuna.storages.journal import JournalFileOpenLock

from deepforecast.tuning.survival import lives, process

LONGEST = 0.5  # seconds between two looks
_logger = logging.getLogger("optuna.storages.journal")


class Lock(JournalFileOpenLock):
    """Made by creating a file that must not be there yet, which all file systems do for one process alone, NFS from 3 on too.

    A lock of this machine whose process is dead is taken over at once, any other after `grace` seconds in which it stays the
    same; both are logged.
    """

    def __init__(self, path: str, grace: int) -> None:
        super().__init__(path, grace)
        self.file, self.grace = f"{path}.lock", grace

    def acquire(self) -> bool:
        """Wait for it."""
        pause, seen, since = 0.001, "", time.monotonic()
        while True:
            try:
                self._make()
                return True
            except FileExistsError:
                now = self._said()
            if now is None:
                continue  # it was released meanwhile
            if now != seen:
                seen, since = now, time.monotonic()
            if _dead(now) or time.monotonic() - since > self.grace:
                self._take(now)
                continue
            time.sleep(pause)
            pause = min(2 * pause, LONGEST)

    def release(self) -> None:
        """Give it back, if it is still there."""
        with suppress(FileNotFoundError):
            os.unlink(self.file)

    def _make(self) -> None:
        file = os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        try:
            os.write(file, f"{process()}|{uuid.uuid4().hex}".encode())
        finally:
            os.close(file)

    def _said(self) -> str | None:
        """What the lock says of its owner; None where there is none."""
        try:
            return Path(self.file).read_text(errors="replace") or "nobody yet"
        except FileNotFoundError:
            return None
        except OSError:
            return "cannot be read"

    def _take(self, said: str) -> None:
        """Take away a lock that says this, and no other: another process may have been faster."""
        aside = f"{self.file}.{uuid.uuid4().hex}"
        try:
            os.rename(self.file, aside)
        except FileNotFoundError:
            return
        if (Path(aside).read_text(errors="replace") or "nobody yet") == said:
            _logger.warning(f"The lock {self.file} of a process that has gone or hangs is taken over.")
        else:
            with suppress(FileExistsError):
                os.link(aside, self.file)
        os.unlink(aside)


def _dead(said: str) -> bool:
    """Whether the owner is known to be dead: one of this machine whose process is over."""
    parts = said.split("|")
    return len(parts) == 4 and lives(*parts[:3]) is False
