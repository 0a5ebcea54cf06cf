"""Functions shared by the comparisons with statsforecast: its interpreter, timed runs, errors."""

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
    """The interpreter of the peer; creates its environment if necessary."""
    environments = os.environ.get("DEEPFORECAST_PEERS")
    folder = Path(environments, PEER) if environments else HERE.parent / "build" / "peers" / PEER
    subprocess.run(["sh", str(HERE / "peers" / "make-env"), PEER, str(folder)], check=True)
    return folder / "bin" / "python"


def run_peer(python: Path, frame: pd.DataFrame, freq: str, horizon: int, name: str, rounds: int = 1) -> dict[str, Any]:
    """Run a model of the peer in a separate process on one thread: CPU seconds, versions and forecasts."""
    with tempfile.TemporaryDirectory() as folder:
        panel, out = Path(folder, "panel.parquet"), Path(folder, "out.parquet")
        frame.to_parquet(panel)
        arguments = [str(panel), freq, str(horizon), name, str(rounds), str(out)]
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        process = subprocess.run(
            [str(python), str(HERE / "peers" / f"panel_{PEER}.py"), *arguments], check=True, stdout=subprocess.PIPE, text=True,
            env={**env, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        measurement = dict(json.loads(process.stdout.splitlines()[-1]))
        forecasts = pd.read_parquet(out).sort_values(["unique_id", "ds"])
        return {**measurement, "forecast": forecasts["forecast"].to_numpy()}


def run_model(model: Any, frame: pd.DataFrame, freq: Any, rounds: int = 1) -> dict[str, Any]:
    """Run fit and predict of a model of this library, after compilation: median CPU seconds and forecasts."""
    few = frame[frame["unique_id"].isin(frame["unique_id"].unique()[:2])]
    model.clone().fit(few, freq=freq).predict()
    seconds, forecasts = [], None
    for _ in range(rounds):
        start = time.process_time()
        forecasts = model.clone().fit(frame, freq=freq).predict()
        seconds.append(time.process_time() - start)
    assert forecasts is not None
    forecast = forecasts.sort_values(["unique_id", "ds"]).iloc[:, -1].to_numpy()
    return {"seconds": sorted(seconds)[len(seconds) // 2], "forecast": forecast}


def max_relative_difference(actual: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference relative to the expected value, or to their median size if that is larger."""
    size = np.maximum(np.abs(expected), np.median(np.abs(expected)))
    return float(np.max(np.abs(actual - expected) / size))


def mean_scaled_error(forecast: np.ndarray, test: pd.DataFrame, scale: pd.Series, error: Callable[[Any], Any]) -> float:
    """The mean over series of the mean error divided by the scale of the series."""
    ordered = test.sort_values(["unique_id", "ds"])
    errors = error(ordered["y"].to_numpy() - forecast)
    by_series = pd.Series(errors).groupby(ordered["unique_id"].to_numpy()).mean()
    return float((by_series / scale.reindex(by_series.index)).mean())


def describe_machine(versions: str) -> str:
    """Versions, date, cores and load average: other processes slow down all measurements."""
    import deepforecast

    python, date = platform.python_version(), time.strftime("%Y-%m-%d %H:%M")
    load = f"{os.cpu_count()} cores, load average {os.getloadavg()[1]:.0f}"
    return f"deepforecast {deepforecast.__version__}; {versions}; Python {python}; {date}; {load}."
