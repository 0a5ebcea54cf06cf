"""Kernels return to Python about every second, so that Ctrl-C is handled in time."""

from __future__ import annotations

import signal
import time

import numpy as np
import pandas as pd
import pytest

from deepforecast import ETS, AutoCES, AutoETS, AutoTheta

LONGEST = 2.0  # CPU seconds within one call


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "length"),
    [
        (AutoETS(season_length=4, error="additive", horizon=3), 300_000),
        (ETS(season_length=4, trend=None, seasonal="additive", horizon=3), 300_000),
        (AutoCES(season_length=24, horizon=3), 2_000_000),
        (AutoTheta(season_length=24, horizon=3), 2_000_000),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_long_series_are_interruptible(model, length):
    """The handler of a timer that counts CPU time runs as soon as a kernel returns, as that of Ctrl-C does."""
    rng = np.random.default_rng(0)
    y = 100 + 10 * np.sin(np.arange(length) * np.pi / 12) + np.cumsum(rng.normal(0, 0.1, length)) + rng.normal(0, 1, length)
    frame = pd.DataFrame({"unique_id": "a", "ds": np.arange(length), "y": y - y.min() + 50})
    model.clone().fit(frame.iloc[:500], freq=1)  # compiles
    marks = [time.process_time()]
    before = signal.signal(signal.SIGPROF, lambda *_: marks.append(time.process_time()))
    signal.setitimer(signal.ITIMER_PROF, 0.02, 0.02)
    try:
        model.fit(frame, freq=1)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    marks.append(time.process_time())
    assert np.diff(marks).max() < LONGEST, f"{model.name} did not return to Python for {np.diff(marks).max():.1f} CPU s"
