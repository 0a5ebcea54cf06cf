"""What benchmarks beside statsforecast share: its interpreter, one run of one of its models, the table."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
PEER = "statsforecast"


def peer_python() -> Path:
    """The peer's interpreter; its environment is made if it is not there."""
    named = os.environ.get("DEEPFORECAST_PEERS")
    folder = Path(named, PEER) if named else HERE.parent / "build" / "peers" / PEER
    subprocess.run(["sh", str(HERE / "peers" / "make-env"), PEER, str(folder)], check=True)
    return folder / "bin" / "python"


def theirs(python: Path, frame: pd.DataFrame, freq: str, horizon: int, name: str, rounds: int = 1) -> dict[str, Any]:
    """One of the peer's models on a frame, in a process of its own and on one thread: CPU seconds and forecasts."""
    with tempfile.TemporaryDirectory() as folder:
        panel, out = Path(folder, "panel.parquet"), Path(folder, "out.parquet")
        frame.to_parquet(panel)
        given = [str(panel), freq, str(horizon), name, str(rounds), str(out)]
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run(
            [str(python), str(HERE / "peers" / f"panel_{PEER}.py"), *given], check=True, stdout=subprocess.PIPE, text=True,
            env={**env, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        found = dict(json.loads(done.stdout.splitlines()[-1]))
        return {**found, "forecast": pd.read_parquet(out).sort_values(["unique_id", "ds"])["forecast"].to_numpy()}


def ours(model: Any, frame: pd.DataFrame, freq: Any, rounds: int = 1) -> dict[str, Any]:
    """fit and predict of a model with a horizon, compiled before: CPU seconds and forecasts."""
    few = frame[frame["unique_id"].isin(frame["unique_id"].unique()[:2])]
    model.clone().fit(few, freq=freq).predict()
    seconds, found = [], None
    for _ in range(rounds):
        start = time.process_time()
        found = model.clone().fit(frame, freq=freq).predict()
        seconds.append(time.process_time() - start)
    assert found is not None
    forecast = found.sort_values(["unique_id", "ds"]).iloc[:, -1].to_numpy()
    return {"seconds": sorted(seconds)[len(seconds) // 2], "forecast": forecast}


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference over the size of the number, or of the usual one where that is smaller."""
    return float(np.max(np.abs(one - other) / np.maximum(np.abs(other), np.median(np.abs(other)))))


def scores(forecast: np.ndarray, test: pd.DataFrame, scale: pd.Series, error: Callable[[Any], Any]) -> float:
    """The mean over series of the mean error over the scale."""
    ordered = test.sort_values(["unique_id", "ds"])
    size = error(ordered["y"].to_numpy() - forecast)
    each = pd.Series(size).groupby(ordered["unique_id"].to_numpy()).mean()
    return float((each / scale.reindex(each.index)).mean())


def machine(versions: str) -> str:
    """What it ran on, when, and how many processes wanted to run at the end: beside others everything takes more."""
    import deepforecast

    python, when = platform.python_version(), time.strftime("%Y-%m-%d %H:%M")
    busy = f"{os.cpu_count()} cores, {os.getloadavg()[1]:.0f} processes wanting them"
    return f"deepforecast {deepforecast.__version__}; {versions}; Python {python}; {when}; {busy}."
