"""A clock for tests: time passes in `sleep` alone, whatever the machine is doing."""

from __future__ import annotations

import time

import pytest
import tqdm  # noqa: F401  # before any clock is replaced: it keeps the clock that is there when it is imported


class Clock:
    """Seconds that pass in `sleep`, and by `step` at each reading, so that no two are the same."""

    def __init__(self, step: float) -> None:
        self.seconds, self.step = 0.0, step

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def now(self) -> float:
        self.seconds += self.step
        return self.seconds


def stopped(monkeypatch: pytest.MonkeyPatch, step: float = 1e-6) -> Clock:
    """Replace the clocks of the process, those of the progress bar too, by one that tests move on."""
    clock = Clock(step)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    for name in ("perf_counter", "monotonic", "process_time"):
        monkeypatch.setattr(time, name, clock.now)
    monkeypatch.setattr("tqdm.std.time", clock.now)
    return clock
