"""A clock for tests: time passes in `sleep` alone, whatever the machine is doing."""

from __future__ import annotations

import time

import pytest
import tqdm  # noqa: F401  # before any clock is replaced: it keeps the clock that is there when it is imported


class Clock:
    """Seconds that pass in `sleep` alone."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def now(self) -> float:
        self.seconds += 1e-6  # no two readings are the same
        return self.seconds


def stopped(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Replace the clocks of the process, those of the progress bar too, by one that tests move on."""
    clock = Clock()
    monkeypatch.setattr(time, "sleep", clock.sleep)
    for name in ("perf_counter", "monotonic", "process_time"):
        monkeypatch.setattr(time, name, clock.now)
    monkeypatch.setattr("tqdm.std.time", clock.now)
    return clock
