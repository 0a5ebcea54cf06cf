"""Standard streams as they may come: closed, a broken pipe, a full disk, an encoding that cannot show a letter.

What people read is escaped: no text from a file or a command line moves a terminal's cursor.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from deepforecast.errors import SaveError, format_value

STYLES = {"bold": "1", "dim": "2", "red": "1;31", "yellow": "33", "green": "32"}


def reserve_descriptors() -> None:
    """Take the numbers of closed streams, so that no file opened later is written to by mistake."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one


def print_text(text: str = "") -> None:
    """Lines for people on standard output, escaped already; nothing where that is closed."""
    stream = standard_output()
    if stream is not None:
        _write(stream, f"{text}\n")


def write_result(content: bytes) -> None:
    """The result itself on standard output, byte for byte; refused where that is closed, as it would be lost."""
    stream = standard_output()
    if stream is None:
        raise SaveError("Standard output is closed, so the result has no place to go. Say --output FILE.")
    _write(stream, content)


def print_note(text: str, severity: str = "") -> None:
    """One line on standard error: `warning: ...`. Never a reason to fail."""
    style = {"error": "red", "warning": "yellow"}.get(severity, "")
    print_notes([(paint(f"{severity}: ", style, sys.stderr) if severity else "") + one_line(text)])


def print_notes(lines: list[str]) -> None:
    """Several lines on standard error, escaped already."""
    if sys.stderr is not None and not sys.stderr.closed:
        with suppress(OSError, ValueError):
            _write(sys.stderr, "".join(f"{line}\n" for line in lines))


def one_line(text: str) -> str:
    """`text` without line ends and control characters.

    >>> one_line("a\\nb\\x1b[31mc")
    'a b\\\\x1b[31mc'
    """
    return format_value(" ".join(text.split()), max_length=100_000)


def paint(text: str, style: str, stream: Any = None) -> str:
    """`text` in a style where the stream is a terminal that can show it and NO_COLOR is not set."""
    stream = standard_output() if stream is None else stream
    is_unstyled = not style or os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return text if is_unstyled or not is_terminal(stream) else f"\x1b[{STYLES[style]}m{text}\x1b[0m"


def is_terminal(stream: Any) -> bool:
    """Whether a person reads it."""
    return stream is not None and not stream.closed and bool(stream.isatty())


def standard_output() -> TextIO | None:
    """Standard output, or None where it is closed."""
    return None if sys.stdout is None or sys.stdout.closed else sys.stdout


def flush() -> None:
    """Hand over what is still held back, so that a failure to do so is noticed while it can be said."""
    stream = standard_output()
    if stream is not None:
        stream.flush()


def discard_unwritten() -> None:
    """Let what cannot be written go nowhere: Python would try again while it ends, and complain in its own words."""
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
    """All of it: without a buffer (PYTHONUNBUFFERED) the system may take a part at a time, and Python would not say so."""
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
