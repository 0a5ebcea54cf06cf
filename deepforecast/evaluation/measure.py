"""What a piece of work costs: wall seconds, and the memory it took at its highest where the system can tell."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
SLACK = 16.0  # MB by which the counter may stand above what is held once it has been set back


@dataclass
class Cost:
    """Filled in when the work is over; `peak_mb` is what the process held beyond its start, None where it cannot be known."""

    seconds: float = 0.0
    peak_mb: float | None = None


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure the block, whether it ends well or not.

    The counter of the highest memory is the whole process'. It is set back at the start, so what happened before does not
    count; blocks that run side by side in threads of one process would count each other's memory and know none. Memory that
    is not the process' own (on a GPU, in worker processes of the block) is not seen.

    >>> with measured() as cost:
    ...     held = bytearray(50_000_000)
    >>> cost.peak_mb is None or 40 < cost.peak_mb < 60
    True
    """
    cost = Cost()
    alone = _enter()
    before = _reset() if alone else None
    started = time.perf_counter()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - started
        highest = _read("VmHWM:")
        if _leave() and before is not None and highest is not None:
            cost.peak_mb = max(0.0, highest - before)


@dataclass
class _Blocks:
    """How many blocks are running, and whether any two of them met since the last time there was none."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    running: int = 0
    met: bool = False


_blocks = _Blocks()


def _enter() -> bool:
    with _blocks.lock:
        _blocks.running += 1
        _blocks.met |= _blocks.running > 1
        return not _blocks.met


def _leave() -> bool:
    """Whether the block was alone from its start to its end."""
    with _blocks.lock:
        alone = not _blocks.met
        _blocks.running -= 1
        _blocks.met &= _blocks.running > 0
        return alone


def _reset() -> float | None:
    """Set the counter of the highest memory back to what is held now, which is returned; None where that cannot be done."""
    try:
        RESET.write_text("5")
    except OSError:
        return None
    held, highest = _read("VmRSS:"), _read("VmHWM:")
    return held if held is not None and highest is not None and highest <= held + SLACK else None


def _read(name: str) -> float | None:
    """A line of the process' status, in MB."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith(name)]
    return int(found[0]) / 1024 if found else None
