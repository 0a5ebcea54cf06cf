"""A search as one process of several makes it: `python -m tests.tuning.calls storage n_trials [fault] [n_jobs]`."""

from __future__ import annotations

import json
import signal
import sys
import warnings

import numpy as np
import pandas as pd

from deepforecast import TuningOptions, tune
from tests.tuning.bent import Bent


def walk() -> pd.DataFrame:
    """A random walk."""
    draw = np.random.default_rng(0)
    return pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=60), "y": 50 + draw.normal(size=60).cumsum()})


def call(storage: str | None, n_trials: int, fault: str = "", n_jobs: int = 1, metric=None, **said):
    """The call that all make."""
    options = TuningOptions(n_windows=2, pruner=None, n_jobs=n_jobs, space={"away": (-4.0, 4.0)}, **said)
    kept = {"storage": storage, "study_name": "raced"}
    return tune(Bent(fault=fault), walk(), horizon=3, n_trials=n_trials, metric=metric, options=options, **kept)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
    found = call(sys.argv[1], int(sys.argv[2]), *sys.argv[3:4], *map(int, sys.argv[4:5]))
    print(json.dumps({"trials": len(found.trials), "best": found.best_value}))
