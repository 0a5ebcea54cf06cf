"""What a piece of work costs: wall seconds, and the memory it took at its highest where the system can tell."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

STATUS = Path("/proc/self/status")  # VmHWM: the most held since the process began
STATM = Path("/proc/self/statm")  # sizes in pages; the second is what is held in memory
INTERVAL = 0.005  # seconds between two looks


@dataclass
class Cost:
    """Filled in when the work is over; `peak_mb` is what the process held beyond its start, None where it cannot be known."""

    seconds: float = 0.0
    peak_mb: float | None = None


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure the block, whether it ends well or not.

    Memory is sampled: a thread looks every few milliseconds at what the process holds. A peak that is over before the next
    look, or inside a call that lets no other thread run, is seen only if it is the highest the process ever had (the system
    keeps that). Nothing of the process is set back or changed.
    Blocks that run side by side in threads of one process would count each other's memory and know none. Memory that is not
    the process' own (on a GPU, in worker processes of the block) is not seen.

    >>> with measured() as cost:
    ...     held = bytearray(50_000_000)
    >>> cost.peak_mb is None or 40 < cost.peak_mb < 60
    True
    """
    cost = Cost()
    alone = _enter()
    before, peak = (held_mb(), peak_held_mb()) if alone else (None, None)
    watch = None if before is None else _Watch()
    started = time.perf_counter()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - started
        highest = None if watch is None else watch.ended()
        later = peak_held_mb()
        if highest is not None and peak is not None and later is not None and later > peak:
            highest = max(highest, later)  # a new record of the process: exact, and seen where no thread could look
        if _leave() and before is not None and highest is not None:
            cost.peak_mb = max(0.0, highest - before)


def held_mb() -> float | None:
    """What this process holds in memory, None where the system does not tell."""
    try:
        pages = STATM.read_bytes().split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGESIZE") / 2**20


def peak_held_mb() -> float | None:
    """The most this process has held since it began, None where the system does not tell."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return None
    found = [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")]
    return found[0] if found else None


class _Watch:
    """A thread that looks at the memory until it is ended."""

    def __init__(self) -> None:
        self.highest = 0.0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look, name="deepforecast-memory", daemon=True)
        self.thread.start()

    def ended(self) -> float:
        """The most that was seen, now included."""
        self.over.set()
        self.thread.join()
        return max(self.highest, held_mb() or 0.0)

    def _look(self) -> None:
        while not self.over.wait(INTERVAL):
            self.highest = max(self.highest, held_mb() or 0.0)


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
