"""What a piece of work costs: wall seconds, and the memory it took at its highest where the system can tell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass
class Cost:
    """Filled in when the work is over; `peak_mb` is what the process held beyond its start, None where it cannot be known."""

    seconds: float = 0.0
    peak_mb: float | None = None


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure the block. The counter of the highest memory is the whole process': threads at work beside it count too."""
    cost = Cost()
    before = _reset()
    started = time.perf_counter()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - started
        highest = None if before is None else _read("VmHWM:")
        if before is not None and highest is not None:
            cost.peak_mb = max(0.0, highest - before)


def _reset() -> float | None:
    """Set the counter of the highest memory back to what is held now, which is returned; None where that cannot be done."""
    try:
        RESET.write_text("5")
    except OSError:
        return None
    return _read("VmRSS:")


def _read(field: str) -> float | None:
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith(field)]
    return int(found[0]) / 1024 if found else None
