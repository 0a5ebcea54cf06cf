"""Functions shared by the benchmarks of neural networks: data, separate processes, medians, results file."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
PEERS = ("neuralforecast", "darts", "gluonts")
Measurement = dict[str, Any]


def walks(series: int, length: int, season: int = 24) -> pd.DataFrame:
    """Hourly random walks with a seasonal component."""
    random = np.random.default_rng(0)
    wave = np.sin(np.arange(length) * 2 * np.pi / season)
    y = 10 + wave + 0.1 * random.normal(size=(series, length)).cumsum(axis=1)
    times = np.tile(pd.date_range("2020-01-01", periods=length, freq="h").to_numpy(), series)
    return pd.DataFrame({"unique_id": np.repeat(np.arange(series), length), "ds": times, "y": y.reshape(-1)})


def child(script: str, name: str, settings: dict[str, Any]) -> Measurement:
    """Run a function of a benchmark in a separate process: `script --child NAME SETTINGS`."""
    return _run([sys.executable, "-W", "ignore", script, "--child", name, json.dumps(settings)], dict(os.environ))


def peer(script: str, name: str, settings: dict[str, Any]) -> Measurement:
    """Run a script of a peer with its own Python: `script SETTINGS`; creates the environment if necessary."""
    environments = os.environ.get("DEEPFORECAST_PEERS")
    folder = Path(environments, name) if environments else HERE.parent / "build" / "peers" / name
    subprocess.run(["sh", str(HERE / "peers" / "make-env"), name, str(folder)], check=True)
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return _run([str(folder / "bin" / "python"), "-W", "ignore", str(HERE / "peers" / script), json.dumps(settings)], env)


def _run(command: list[str], env: dict[str, str]) -> Measurement:
    with tempfile.TemporaryDirectory() as folder:  # some peers write logs to the working directory
        script = str(Path(command[3]).resolve())
        process = subprocess.run(
            [*command[:3], script, *command[4:]], capture_output=True, text=True, env=env, cwd=folder, check=False
        )
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[:4])}: {process.stderr[-2000:]}")
    measurement: Measurement = json.loads(process.stdout.splitlines()[-1])
    return measurement


def medians(runs: Iterable[Measurement]) -> Measurement:
    """The median of every number over several runs."""
    measurements = list(runs)
    return {
        key: statistics.median(measurement[key] for measurement in measurements)
        for key, value in measurements[0].items()
        if isinstance(value, (int, float))
    }


def current_memory() -> float:
    """Memory of this process in MB; resets the peak returned by `peak_memory` (on Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def peak_memory() -> float:
    """Peak memory of this process since the last `current_memory`, in MB."""
    return _status("VmHWM")


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def mean_and_spread(values: list[float], digits: int) -> str:
    """ "0.750 ± 0.010": mean and standard deviation of the runs, the value alone for a single one."""
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{spread}"


def table_rows(path: Path) -> list[list[str]]:
    """The cells of the rows of the table in a results file; none if there is no file."""
    if not path.exists():
        return []
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def write(name: str, lines: list[str], quick: bool) -> None:
    """Print the lines with a description of the machine; write the results file unless the run was `quick`."""
    load = os.getloadavg()[2]
    machine = f"{os.cpu_count()} cores, load average {load:.0f} over 15 minutes"
    lines = [*lines, "", f"Python {platform.python_version()}, {machine}, {time.strftime('%Y-%m-%d')}."]
    print("\n".join(lines))
    if not quick:
        Path(HERE, "results", f"{name}.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
