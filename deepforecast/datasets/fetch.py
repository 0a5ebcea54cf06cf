"""One file from a public address to a path: whole and checked, or not at all; a broken transfer goes on where it stopped.

A file that was put there by hand is taken as it is, if its hash is right. What was received of an unfinished transfer stays
beside it as `<name>.part`, for the next try.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from deepforecast.data.terminal import shows_live_output
from deepforecast.errors import DataError, SaveError, format_value

TRIES = 4
PAUSE = 1.0  # seconds before the second try, doubled for each that follows
TIMEOUT = 30.0  # seconds without a byte after which a connection counts as broken
PATIENCE, LEAST = 30.0, 1024  # so many seconds below so many bytes a second count as broken, too
LARGEST = 2**31  # bytes; no file of the catalogue is a quarter of it
BLOCK = 2**16
FINAL = (400, 401, 403, 404, 410, 451)  # answers that another try does not change


@dataclass(frozen=True)
class Remote:
    """A file and its public address; without a SHA-256 it is the rows made of it that are checked, not the file."""

    name: str
    address: str
    sha256: str | None = None


class _Broken(Exception):
    """A transfer that may succeed if tried again."""


class _Refused(Exception):
    """A transfer that no further try can mend."""


def fetch(remote: Remote, path: Path, label: str = "") -> Path:
    """The file at `path`, downloaded unless it is there already; `label` names the bar, shown in terminals and notebooks."""
    with _alone(path):
        if path.is_file():
            return _checked(remote, path, "put there by hand or left by an earlier download")
        part = path.with_name(path.name + ".part")
        _received(remote, part, path, label or remote.name)
        if remote.sha256 is not None and (found := sha256(part)) != remote.sha256:
            _written(part.unlink, part)
            raise DataError(
                f"{remote.address} has to have the SHA-256 {remote.sha256}; what came has {found} and was thrown away. "
                f"The address may serve another version now. {_by_hand(path)}"
            )
        _written(lambda: os.replace(part, path), path)
    return path


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checked(remote: Remote, path: Path, origin: str) -> Path:
    if remote.sha256 is not None and (found := sha256(path)) != remote.sha256:
        raise DataError(
            f"{path} ({origin}) has to have the SHA-256 {remote.sha256}; it has {found}. "
            f"Delete it, or replace it by the file at {remote.address}."
        )
    return path


def _received(remote: Remote, part: Path, path: Path, label: str) -> None:
    """Transfer the file to `part`, in as many tries as it takes and is worth."""
    said = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE * 2 ** (attempt - 1))
        try:
            _transfer(remote.address, part, label)
            return
        except _Refused as error:
            said, tries = str(error), attempt + 1
            break
        except _Broken as error:
            said, tries = str(error), attempt + 1
    raise DataError(
        f"{remote.name} is downloaded from {remote.address}, and that failed: {said} (tries: {tries}). {_by_hand(path)}"
    )


def _by_hand(path: Path) -> str:
    return f"To do without: get the file in another way and put it at {path}, then load again."


def _transfer(address: str, part: Path, label: str) -> None:
    """Receive what `part` lacks, or all of it where the server does not go on in the middle."""
    have = part.stat().st_size if part.is_file() else 0
    headers = {"User-Agent": "deepforecast", "Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=TIMEOUT) as answer:  # noqa: S310
            if address.startswith("https:") and not answer.geturl().startswith("https:"):
                raise _Refused(f"it leads to {format_value(answer.geturl())}, which is not https")
            goes_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            length = answer.headers.get("Content-Length", "")
            begin = have if goes_on else 0
            total = begin + int(length) if length.isdigit() else None
            _copy(answer, part, begin, total, label)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # there is nothing beyond what we have: it is of another file
            _written(part.unlink, part)
            raise _Broken("what was received of it before did not belong to it") from None
        kind = _Refused if error.code in FINAL else _Broken
        raise kind(f"the server answered {error.code} {format_value(str(error.reason))}") from None
    except urllib.error.URLError as error:
        kind = _Broken if isinstance(error.reason, TimeoutError) else _Refused
        raise kind(f"no connection ({format_value(str(error.reason))}); is this machine offline, or behind a proxy?") from None
    except TimeoutError:
        raise _Broken(f"nothing came for {TIMEOUT:g} seconds") from None
    except (ConnectionError, http.client.HTTPException) as error:
        raise _Broken(f"the connection broke ({format_value(type(error).__name__)}: {format_value(str(error))})") from None


def _copy(answer: Any, part: Path, begin: int, total: int | None, label: str) -> None:
    size, since, mark = begin, time.monotonic(), begin
    with _opened(part, "ab" if begin else "wb") as file, _bar(label, begin, total) as bar:
        while block := answer.read(BLOCK):
            _written(lambda block=block: file.write(block), part)
            size += len(block)
            bar(len(block))
            if size > LARGEST:
                raise _Refused(f"it sends more than {LARGEST:,} bytes")
            if (now := time.monotonic()) - since > PATIENCE:
                if (size - mark) / (now - since) < LEAST:
                    raise _Broken(f"fewer than {LEAST} bytes a second came")
                since, mark = now, size
        _written(file.flush, part)
        _written(lambda: os.fsync(file.fileno()), part)
    if total is not None and size != total:
        raise _Broken(f"it ended after {size:,} of {total:,} bytes")


@contextlib.contextmanager
def _bar(label: str, begin: int, total: int | None) -> Iterator[Any]:
    """What counts bytes: a bar in a terminal or a notebook, nothing elsewhere."""
    if not shows_live_output(sys.stderr):
        yield lambda count: None
        return
    from tqdm import tqdm

    with tqdm(total=total, initial=begin, desc=label, unit="B", unit_scale=True, leave=False, file=sys.stderr) as bar:
        yield bar.update


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time downloads a file: others wait and then find it. (Where the system has no locks, none waits.)"""
    _written(lambda: path.parent.mkdir(parents=True, exist_ok=True), path.parent)
    try:
        import fcntl
    except ImportError:
        yield
        return
    with _opened(path.with_name(path.name + ".lock"), "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _opened(path: Path, mode: str) -> IO[bytes]:
    file: IO[bytes] = _written(lambda: path.open(mode), path)
    return file


def _written(act: Any, path: Path) -> Any:
    """Do what writes to the disk; what the system refuses names the path."""
    try:
        return act()
    except OSError as error:
        raise SaveError(
            f"Downloads are kept in a folder that can be written to; {path} cannot be written ({format_value(str(error))}). "
            "Make room, or name another folder by the environment variable DEEPFORECAST_CACHE."
        ) from error
