"""Download of a file, verified by its hash; an interrupted download is resumed.

A file placed by hand is accepted if its hash is correct. Partial downloads are stored as
`<name>.part`.
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

MAX_TRIES = 4
RETRY_PAUSE = 1.0  # seconds before the second attempt, doubled for each further one
TIMEOUT = 30.0  # seconds without data after which a connection has failed
SPEED_WINDOW, MIN_SPEED = 30.0, 1024  # a connection also fails below 1024 bytes/s over 30 s
MAX_BYTES = 2**31  # more than four times the largest file of the catalogue
BLOCK_SIZE = 2**16
FINAL_STATUSES = (400, 401, 403, 404, 410, 451)  # HTTP statuses that are not retried


@dataclass(frozen=True)
class Remote:
    """A file and its public address; without SHA-256 only the resulting rows are verified."""

    name: str
    address: str
    sha256: str | None = None


class _RetryableError(Exception):
    """A transfer that may succeed if tried again."""


class _FinalError(Exception):
    """A transfer that cannot succeed if tried again."""


def fetch(remote: Remote, path: Path, label: str = "") -> Path:
    """Download a file to `path` unless it exists, and verify it.

    `label` is shown by the progress bar.
    """
    with _exclusive_lock(path):
        if path.is_file():
            return _verify(remote, path, "placed by hand or left by an earlier download")
        partial_path = path.with_name(path.name + ".part")
        _receive(remote, partial_path, path, label or remote.name)
        if remote.sha256 is not None and (actual := sha256(partial_path)) != remote.sha256:
            _call_on_disk(partial_path.unlink, partial_path)
            raise DataError(
                f"The file at {remote.address} must have the SHA-256 {remote.sha256}, but the download has "
                f"{actual} and was deleted. The address may serve another version now. "
                f"{_manual_download_hint(path)}"
            )
        _call_on_disk(lambda: os.replace(partial_path, path), path)
    return path


def sha256(path: Path) -> str:
    """The SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verify(remote: Remote, path: Path, origin: str) -> Path:
    """Return the path if the file has the pinned SHA-256, or none is pinned; raise `DataError` otherwise."""
    if remote.sha256 is not None and (actual := sha256(path)) != remote.sha256:
        raise DataError(
            f"The file {path} ({origin}) must have the SHA-256 {remote.sha256}, got {actual}.",
            hint=f"Delete it, or replace it by the file at {remote.address}.",
        )
    return path


def _receive(remote: Remote, partial_path: Path, path: Path, label: str) -> None:
    """Download the file to `partial_path` with retries."""
    reason = ""
    for attempt in range(MAX_TRIES):
        if attempt:
            time.sleep(RETRY_PAUSE * 2 ** (attempt - 1))
        try:
            _transfer(remote.address, partial_path, label)
            return
        except _FinalError as error:
            reason, n_attempts = str(error), attempt + 1
            break
        except _RetryableError as error:
            reason, n_attempts = str(error), attempt + 1
    raise DataError(
        f"The file {remote.name} cannot be downloaded from {remote.address}: {reason} (attempts: {n_attempts}). "
        f"{_manual_download_hint(path)}"
    )


def _manual_download_hint(path: Path) -> str:
    return f"Alternatively, save the file as {path} by hand and load again."


def _transfer(address: str, partial_path: Path, label: str) -> None:
    """Append the rest of the file to `partial_path`, or write all of it if the server does not support ranges.

    Failures raise `_RetryableError` or `_FinalError`.
    """
    received = partial_path.stat().st_size if partial_path.is_file() else 0
    headers = {"User-Agent": "deepforecast", "Accept-Encoding": "identity"} | (
        {"Range": f"bytes={received}-"} if received else {}
    )
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=TIMEOUT) as answer:  # noqa: S310
            if address.startswith("https:") and not answer.geturl().startswith("https:"):
                raise _FinalError(f"the address redirects to {format_value(answer.geturl())}, which is not https")
            resumes = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {received}-")
            length = answer.headers.get("Content-Length", "")
            begin = received if resumes else 0
            n_expected = begin + int(length) if length.isdigit() else None
            _copy(answer, partial_path, begin, n_expected=n_expected, label=label)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # range not satisfiable: the file on the server has changed
            _call_on_disk(partial_path.unlink, partial_path)
            raise _RetryableError("the partly downloaded file does not match the file on the server") from None
        error_class = _FinalError if error.code in FINAL_STATUSES else _RetryableError
        raise error_class(f"the server answered {error.code} {format_value(str(error.reason))}") from None
    except urllib.error.URLError as error:
        error_class = _RetryableError if isinstance(error.reason, TimeoutError) else _FinalError
        raise error_class(
            f"no connection ({format_value(str(error.reason))}); is this machine offline, or behind a proxy?"
        ) from None
    except TimeoutError:
        raise _RetryableError(f"no data for {TIMEOUT:g} seconds") from None
    except (ConnectionError, http.client.HTTPException) as error:
        raise _RetryableError(
            f"the connection failed ({format_value(type(error).__name__)}: {format_value(str(error))})"
        ) from None


def _copy(answer: Any, partial_path: Path, begin: int, n_expected: int | None, label: str) -> None:
    """Write the server's answer to the file from byte `begin` on; a slow or incomplete transfer raises `_RetryableError`.

    `n_expected` is the size of the complete file in bytes, None if unknown.
    """
    n_received = n_received_at_start = begin  # bytes, in total and at the start of the speed window
    window_start = time.monotonic()
    with _open(partial_path, "ab" if begin else "wb") as file, _progress_bar(label, begin, n_expected) as advance_bar:
        while block := answer.read(BLOCK_SIZE):
            _call_on_disk(lambda block=block: file.write(block), partial_path)
            n_received += len(block)
            advance_bar(len(block))
            if n_received > MAX_BYTES:
                raise _FinalError(f"the file exceeds {MAX_BYTES:,} bytes")
            if (now := time.monotonic()) - window_start > SPEED_WINDOW:
                if (n_received - n_received_at_start) / (now - window_start) < MIN_SPEED:
                    raise _RetryableError(f"the transfer is slower than {MIN_SPEED} bytes per second")
                window_start, n_received_at_start = now, n_received
        _call_on_disk(file.flush, partial_path)
        _call_on_disk(lambda: os.fsync(file.fileno()), partial_path)
    if n_expected is not None and n_received != n_expected:
        raise _RetryableError(f"the transfer ended after {n_received:,} of {n_expected:,} bytes")


@contextlib.contextmanager
def _progress_bar(label: str, begin: int, n_expected: int | None) -> Iterator[Any]:
    """A function that takes the number of bytes received, shown as a bar in terminals and notebooks."""
    if not shows_live_output(sys.stderr):
        yield lambda n_bytes: None
        return
    from tqdm import tqdm

    with tqdm(total=n_expected, initial=begin, desc=label, unit="B", unit_scale=True, leave=False, file=sys.stderr) as bar:
        yield bar.update


@contextlib.contextmanager
def _exclusive_lock(path: Path) -> Iterator[None]:
    """Lock the download of a file, where the system has file locks."""
    _call_on_disk(lambda: path.parent.mkdir(parents=True, exist_ok=True), path.parent)
    try:
        import fcntl
    except ImportError:
        yield
        return
    with _open(path.with_name(path.name + ".lock"), "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _open(path: Path, mode: str) -> IO[bytes]:
    file: IO[bytes] = _call_on_disk(lambda: path.open(mode), path)
    return file


def _call_on_disk(operation: Any, path: Path) -> Any:
    """Run a file operation; an `OSError` becomes a `SaveError` with the path."""
    try:
        return operation()
    except OSError as error:
        raise SaveError(
            f"The file {path} cannot be written ({format_value(str(error))}).",
            hint="Free disk space, or set the environment variable DEEPFORECAST_CACHE to another folder.",
        ) from error
