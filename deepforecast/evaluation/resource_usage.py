"""Wall-clock time and peak memory of a block of code."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

STATUS = Path("/proc/self/status")  # VmHWM: peak resident memory of the process
STATM = Path("/proc/self/statm")  # sizes in pages; the second one is the resident set
SAMPLE_INTERVAL = 0.005  # seconds between two samples


@dataclass
class ResourceUsage:
    """Set at the end of the block; `peak_mb` is the peak memory above that at the start, None if
    unknown."""

    seconds: float = 0.0
    peak_mb: float | None = None


@contextmanager
def measure_resources() -> Iterator[ResourceUsage]:
    """Measure time and peak memory of the block, also if it raises.

    A thread samples the resident memory every few milliseconds. A peak between two samples, or
    within a call that holds the GIL, is seen only if it is the highest of the process so far, which
    the operating system records. Memory is unknown for blocks that overlap in threads of one
    process. GPU memory and that of worker processes are not included.

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
            max_mb = max(max_mb, end_peak_mb)  # a new peak of the process: exact, also where the thread could not run
        if _leave_block() and start_mb is not None and max_mb is not None:
            usage.peak_mb = max(0.0, max_mb - start_mb)


def memory_mb() -> float | None:
    """Resident memory of this process in MB, None if unknown."""
    try:
        pages = STATM.read_bytes().split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGESIZE") / 2**20


def peak_memory_mb() -> float | None:
    """Peak resident memory of this process in MB, None if unknown."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return None
    peaks = [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")]
    return peaks[0] if peaks else None


class _MemorySampler:
    """A thread that samples the memory until it is stopped."""

    def __init__(self) -> None:
        self.max_mb = 0.0
        self.stop_event = threading.Event()
        self.thread = threading.Thread(target=self._sample, name="deepforecast-memory", daemon=True)
        self.thread.start()

    def stop(self) -> float:
        """The largest sample, including one taken now."""
        self.stop_event.set()
        self.thread.join()
        return max(self.max_mb, memory_mb() or 0.0)

    def _sample(self) -> None:
        while not self.stop_event.wait(SAMPLE_INTERVAL):
            self.max_mb = max(self.max_mb, memory_mb() or 0.0)


@dataclass
class _ActiveBlocks:
    """Number of running blocks, and whether two have overlapped since there was none."""

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
    """Whether the block overlapped with no other one."""
    with _active_blocks.lock:
        is_alone = not _active_blocks.overlapped
        _active_blocks.running -= 1
        _active_blocks.overlapped &= _active_blocks.running > 0
        return is_alone
