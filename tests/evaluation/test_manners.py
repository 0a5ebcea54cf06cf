"""Comparing, reporting and plotting leave what belongs to the caller as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from deepforecast import datasets, plot
from deepforecast.plotting import plotly_backend

ACTS = """
import os, random, sys, threading, warnings
import numpy as np, pandas  # both add filters of their own when they are imported


def caller():
    state = np.random.get_state()
    return {
        "environment": dict(os.environ), "filters": list(warnings.filters), "folder": os.getcwd(), "files": os.listdir(),
        "generators": (state[1].tolist(), random.getstate()), "threads": threading.active_count(), "errors": np.geterr(),
    }


from deepforecast import BacktestOptions, Mean, Naive, compare, cross_validate, datasets, plot

frame = datasets.load("air_passengers")
for act in sys.argv[1:]:
    before = caller()
    if act == "workers":
        cross_validate([Naive(), Mean()], frame, horizon=3, n_jobs=2)
    elif act == "report":
        board = compare([Naive(), Mean()], frame, horizon=3, level=80)
        board.report(os.environ["REPORT"])
    else:
        for backend in ("plotly", "matplotlib"):
            plot(frame, Naive(horizon=3).fit(frame).predict(level=80), backend=backend)
            board.plot(backend=backend)
    after = caller()
    print(act, [name for name in before if before[name] != after[name]])
"""


def test_global_state_of_the_caller_is_unchanged(tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("KMP", "PYTHON"))}
    env = {**clean, "PYTHONPATH": os.pathsep.join(sys.path), "REPORT": str(tmp_path / "report.html"), "MPLBACKEND": "Agg"}
    folder = tmp_path / "empty"
    folder.mkdir()
    command = [sys.executable, "-c", ACTS, "workers", "report", "pictures"]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert done.stderr == ""
    said = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert said.pop("workers") in ("[]", "['threads']")  # those that joblib keeps for the next call
    assert said == {"report": "[]", "pictures": "[]"}


def test_warning_filters_added_by_another_thread_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    paint = plotly_backend.paint

    def painted(chart: object) -> object:
        warnings.filterwarnings("ignore", "meanwhile")
        warnings.filterwarnings("default", "plotly is old")
        return paint(chart)

    with warnings.catch_warnings():
        before = list(warnings.filters)
        monkeypatch.setattr(plotly_backend, "paint", painted)
        plot(datasets.load("air_passengers"), backend="plotly")
        added = [one[1].pattern for one in warnings.filters if one not in before]
    assert added == ["meanwhile"]
