"""Output to the standard streams, which may be closed, broken, full or of a limited encoding.

Text for people is escaped: control characters from files and command lines cannot move the cursor of a terminal.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from deepforecast.errors import SaveError, format_value

STYLES = {"bold": "1", "dim": "2", "red": "1;31", "yellow": "33", "green": "32"}


def reserve_descriptors() -> None:
    """Open /dev/null for closed standard streams, so that no file opened later gets their descriptors."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor, i.e. `number`


def print_text(text: str = "") -> None:
    """Print escaped text to standard output; nothing if it is closed."""
    stream = standard_output()
    if stream is not None:
        _write(stream, f"{text}\n")


def write_result(content: bytes) -> None:
    """Write the bytes of a result to standard output; raises if it is closed."""
    stream = standard_output()
    if stream is None:
        raise SaveError("The result cannot be written because standard output is closed.", hint="Pass --output FILE.")
    _write(stream, content)


def print_note(text: str, severity: str = "") -> None:
    """Print one line to standard error, e.g. `warning: ...`; write errors are ignored."""
    style = {"error": "red", "warning": "yellow"}.get(severity, "")
    print_notes([(paint(f"{severity}: ", style, sys.stderr) if severity else "") + one_line(text)])


def print_notes(lines: list[str]) -> None:
    """Print escaped lines to standard error; write errors are ignored."""
    if sys.stderr is not None and not sys.stderr.closed:
        with suppress(OSError, ValueError):
            _write(sys.stderr, "".join(f"{line}\n" for line in lines))


def one_line(text: str) -> str:
    """Return `text` without line ends and control characters.

    Examples
    --------
    >>> one_line("a\\nb\\x1b[31mc")
    'a b\\\\x1b[31mc'
    """
    return format_value(" ".join(text.split()), max_length=100_000)


def paint(text: str, style: str, stream: Any = None) -> str:
    """Return `text` with ANSI codes if the stream is a terminal with colors and NO_COLOR is not set."""
    stream = standard_output() if stream is None else stream
    is_unstyled = not style or os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return text if is_unstyled or not is_terminal(stream) else f"\x1b[{STYLES[style]}m{text}\x1b[0m"


def is_terminal(stream: Any) -> bool:
    """Whether the stream is a terminal."""
    return stream is not None and not stream.closed and bool(stream.isatty())


def standard_output() -> TextIO | None:
    """Return standard output, or None if it is closed."""
    return None if sys.stdout is None or sys.stdout.closed else sys.stdout


def flush() -> None:
    """Flush standard output, so that write errors are raised while they can be reported."""
    stream = standard_output()
    if stream is not None:
        stream.flush()


def discard_unwritten() -> None:
    """Discard unwritable output; Python would retry at exit and print its own error."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None or stream.closed:
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                null_device = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null_device, stream.fileno())
                os.close(null_device)


def _write(stream: TextIO, content: str | bytes) -> None:
    """Write everything; with PYTHONUNBUFFERED a single write may be partial without an error."""
    encoded = content if isinstance(content, bytes) else content.encode(stream.encoding or "utf-8", "backslashreplace")
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(encoded.decode("utf-8") if isinstance(content, bytes) else content)
        return
    stream.flush()
    remaining = memoryview(encoded)
    while remaining:
        remaining = remaining[buffer.write(remaining) :]
    buffer.flush()
