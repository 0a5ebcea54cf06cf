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
SAMPLE_INTERVAL = 0.005  # seconds between two looks


@dataclass
class ResourceUsage:
    """Filled in when the work is over; `peak_mb` is what the process held beyond its start, None where it cannot be known."""

    seconds: float = 0.0
    peak_mb: float | None = None


@contextmanager
def measure_resources() -> Iterator[ResourceUsage]:
    """Measure the block, whether it ends well or not.

    Memory is sampled: a thread looks every few milliseconds at what the process holds. A peak that is over before the next
    look, or inside a call that lets no other thread run, is seen only if it is the highest the process ever had (the system
    keeps that). Nothing of the process is set back or changed.
    Blocks that run side by side in threads of one process would count each other's memory and know none. Memory that is not
    the process' own (on a GPU, in worker processes of the block) is not seen.

    >>> with measure_resources() as cost:
    ...     held = bytearray(50_000_000)
    >>> cost.peak_mb is None or 40 < cost.peak_mb < 60
    True
    """
    usage = ResourceUsage()
    is_alone = _enter_block()
    start_mb, start_peak_mb = (memory_mb(), peak_memory_mb()) if is_alone else (None, None)
    sampler = None if start_mb is None else _MemorySampler()
    start_time = time.perf_counter()
    try:
        yield usage
    finally:
        usage.seconds = time.perf_counter() - start_time
        max_mb = None if sampler is None else sampler.stop()
        end_peak_mb = peak_memory_mb()
        if max_mb is not None and start_peak_mb is not None and end_peak_mb is not None and end_peak_mb > start_peak_mb:
            max_mb = max(max_mb, end_peak_mb)  # a new record of the process: exact, and seen where no thread could look
        if _leave_block() and start_mb is not None and max_mb is not None:
            usage.peak_mb = max(0.0, max_mb - start_mb)


def memory_mb() -> float | None:
    """What this process holds in memory, None where the system does not tell."""
    try:
        pages = STATM.read_bytes().split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGESIZE") / 2**20


def peak_memory_mb() -> float | None:
    """The most this process has held since it began, None where the system does not tell."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return None
    peaks = [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")]
    return peaks[0] if peaks else None


class _MemorySampler:
    """A thread that looks at the memory until it is ended."""

    def __init__(self) -> None:
        self.max_mb = 0.0
        self.stop_event = threading.Event()
        self.thread = threading.Thread(target=self._sample, name="deepforecast-memory", daemon=True)
        self.thread.start()

    def stop(self) -> float:
        """The most that was seen, now included."""
        self.stop_event.set()
        self.thread.join()
        return max(self.max_mb, memory_mb() or 0.0)

    def _sample(self) -> None:
        while not self.stop_event.wait(SAMPLE_INTERVAL):
            self.max_mb = max(self.max_mb, memory_mb() or 0.0)


@dataclass
class _ActiveBlocks:
    """How many blocks are running, and whether any two of them met since the last time there was none."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    running: int = 0
    overlapped: bool = False


_active_blocks = _ActiveBlocks()


def _enter_block() -> bool:
    with _active_blocks.lock:
        _active_blocks.running += 1
        _active_blocks.overlapped |= _active_blocks.running > 1
        return not _active_blocks.overlapped


def _leave_block() -> bool:
    """Whether the block was alone from its start to its end."""
    with _active_blocks.lock:
        is_alone = not _active_blocks.overlapped
        _active_blocks.running -= 1
        _active_blocks.overlapped &= _active_blocks.running > 0
        return is_alone
