"""What the benchmarks of networks share: the panel, processes of their own for ours and for peers, medians, the report."""

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
Said = dict[str, Any]


def walks(series: int, length: int, season: int = 24) -> pd.DataFrame:
    """Random walks with a season in them, by the hour."""
    random = np.random.default_rng(0)
    wave = np.sin(np.arange(length) * 2 * np.pi / season)
    y = 10 + wave + 0.1 * random.normal(size=(series, length)).cumsum(axis=1)
    stamps = np.tile(pd.date_range("2020-01-01", periods=length, freq="h").to_numpy(), series)
    return pd.DataFrame({"unique_id": np.repeat(np.arange(series), length), "ds": stamps, "y": y.reshape(-1)})


def child(script: str, name: str, told: Said) -> Said:
    """A function of a benchmark in a process of its own: `script --child NAME SETTINGS`."""
    return _run([sys.executable, "-W", "ignore", script, "--child", name, json.dumps(told)], dict(os.environ))


def peer(script: str, name: str, told: Said) -> Said:
    """A script of a peer by its own Python: `script SETTINGS`; the environment is made if it is not there."""
    named = os.environ.get("DEEPFORECAST_PEERS")
    folder = Path(named, name) if named else HERE.parent / "build" / "peers" / name
    subprocess.run(["sh", str(HERE / "peers" / "make-env"), name, str(folder)], check=True)
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return _run([str(folder / "bin" / "python"), "-W", "ignore", str(HERE / "peers" / script), json.dumps(told)], env)


def _run(command: list[str], env: dict[str, str]) -> Said:
    with tempfile.TemporaryDirectory() as folder:  # some peers write logs where they run
        script = str(Path(command[3]).resolve())
        done = subprocess.run(
            [*command[:3], script, *command[4:]], capture_output=True, text=True, env=env, cwd=folder, check=False
        )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])}: {done.stderr[-2000:]}")
    said: Said = json.loads(done.stdout.splitlines()[-1])
    return said


def middle(runs: Iterable[Said]) -> Said:
    """The median of every number over several runs."""
    found = list(runs)
    return {key: statistics.median(one[key] for one in found) for key in found[0] if isinstance(found[0][key], (int, float))}


def memory_now() -> float:
    """Memory of this process in MB, from which `peak` counts anew (on Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def peak() -> float:
    """The most memory of this process since, in MB."""
    return _status("VmHWM")


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def write(name: str, lines: list[str], quick: bool) -> None:
    """Print, and keep as a results file if the run was whole."""
    load = os.getloadavg()[2]
    machine = f"{os.cpu_count()} cores, load {load:.0f} in the last quarter of an hour"
    lines = [*lines, "", f"Python {platform.python_version()}, {machine}, {time.strftime('%Y-%m-%d')}."]
    print("\n".join(lines))
    if not quick:
        Path(HERE, "results", f"{name}.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
