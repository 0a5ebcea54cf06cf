"""Standard error as a terminal, for tests of what is shown in one."""

from __future__ import annotations

import io
import sys

import pytest

from deepforecast.core import monitor


class Screen(io.StringIO):
    """A terminal that keeps what is written to it."""

    def isatty(self) -> bool:
        return True


def opened(monkeypatch: pytest.MonkeyPatch, later: float = 0.0) -> Screen:
    """Make standard error a terminal, with bars after `later` seconds; in the test itself, because pytest sets it again before."""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(monitor, "BAR_DELAY", later)
    monkeypatch.setattr(monitor, "REDRAW_SECONDS", 0.05)
    return screen
