"""What the scripts of peers share: the panel, a clock that Lightning calls after each step, and what it tells.

They import it by name, as it lies in their folder; nothing of the project itself.
"""

import statistics
import time
from typing import ClassVar

import numpy as np
import pandas as pd

WARM = 10  # steps not counted


def walks(series, length, season=24):
    """The same panel as the benchmark's own."""
    random = np.random.default_rng(0)
    wave = np.sin(np.arange(length) * 2 * np.pi / season)
    y = 10 + wave + 0.1 * random.normal(size=(series, length)).cumsum(axis=1)
    stamps = np.tile(pd.date_range("2020-01-01", periods=length, freq="h").to_numpy(), series)
    return pd.DataFrame({"unique_id": np.repeat(np.arange(series), length), "ds": stamps, "y": y.reshape(-1)})


def clock_of(callback):
    """A callback of this Lightning, with `begin` and `told`."""

    class Clock(callback):
        seen: ClassVar[list] = []  # of the class: some peers copy what they are given

        def begin(self):
            self.seen.clear()
            self.began = (time.perf_counter(), time.process_time())

        def on_train_batch_end(self, *_, **__):
            self.seen.append((time.perf_counter(), time.process_time()))

        def told(self):
            seen = self.seen
            wall = [1e3 * (after[0] - before[0]) for before, after in zip(seen[WARM:-1], seen[WARM + 1 :], strict=True)]
            cpu = [1e3 * (after[1] - before[1]) for before, after in zip(seen[WARM:-1], seen[WARM + 1 :], strict=True)]
            start = (seen[0][0] - self.began[0], seen[0][1] - self.began[1])
            cpu_p10 = sorted(cpu)[len(cpu) // 10]
            said = {"wall": statistics.median(wall), "cpu": statistics.mean(cpu), "cpu_p10": cpu_p10}
            return {**said, "start": start[0], "start_cpu": start[1]}

    return Clock()


def mase(frame, forecast, horizon=24, season=24):
    """Of the last `horizon` rows of each series, `forecast` (series, horizon)."""
    y = frame["y"].to_numpy().reshape(frame["unique_id"].nunique(), -1)
    naive = abs(y[:, season:-horizon] - y[:, : -season - horizon]).mean(1)
    return float((abs(y[:, -horizon:] - forecast).mean(1) / naive).mean())


def before(frame, horizon=24):
    """The rows but for the last of each series."""
    return frame[frame.groupby("unique_id").cumcount(ascending=False) >= horizon]
