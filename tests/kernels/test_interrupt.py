"""Kernels let Python handle Ctrl-C about every second."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

from deepforecast import ETS, MSTL, AutoCES, AutoETS, AutoTheta
from deepforecast.kernels.interrupt import run_interruptible
from deepforecast.kernels.stl import decompose

LONGEST = 2.0  # CPU seconds within one call
PERIOD = np.array([[12, 11, 23, 13, 0, 1, 1, 1, 1, 1]])


def test_ctrl_c_stops_a_kernel() -> None:
    stopped = threading.Event()

    def kernel(stop: np.ndarray) -> None:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        for _ in range(5_000):
            if stop[0] != 0:
                stopped.set()
                return
            time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        run_interruptible(kernel, np.zeros(1, np.int64))
    assert stopped.wait(10)


def test_errors_of_a_kernel_are_raised() -> None:
    def kernel(stop: np.ndarray) -> None:
        raise ValueError("singular")

    with pytest.raises(ValueError, match="singular"):
        run_interruptible(kernel, np.zeros(1, np.int64))


def test_decomposition_ends_when_it_is_told_to() -> None:
    y, indptr = np.arange(50.0) ** 2, np.array([0, 50])
    _, seasons = decompose(y, indptr, PERIOD, (5, 0, 2))
    assert seasons.any()
    _, seasons = decompose(y, indptr, PERIOD, (5, 0, 2), np.ones(1, np.int64))
    assert not seasons.any()


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


@pytest.mark.slow
def test_ctrl_c_ends_the_decomposition_of_a_long_series() -> None:
    """With a signal to the process, as a terminal sends it: that of a timer goes to the thread that computes."""
    y = np.random.default_rng(0).normal(size=400_000)
    frame = pd.DataFrame({"unique_id": "a", "ds": np.arange(len(y)), "y": y})
    model = MSTL(season_length=8_000, horizon=3)
    model.clone().fit(frame.iloc[:20_000], freq=1)  # compiles
    pressed = []

    def press() -> None:
        pressed.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(1.0, press)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(frame, freq=1)
    finally:
        timer.cancel()
    assert time.process_time() - pressed[0] < LONGEST
