"""SeasonalNaive, fit and predict with two levels, beside statsforecast's on the same 10,000,000 rows of 100,000 series.

    python benchmarks/bench_seasonal_naive.py [--series 100000] [--rows 100] [--rounds 3]

Every run is a process of its own that reads the panel from one parquet file; what is timed begins with the frame in memory and
ends with the frame of forecasts. Ours and theirs take turns; medians. The forecasts and bands of both have to be equal.
The peer's environment is made if it is not there (benchmarks/peers).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
PEER = "statsforecast"
SEASON, HORIZON, LEVELS = 7, 14, [80, 95]
WAYS = {
    "forecast": "`forecast`, its way for many series",
    "fit_predict": "`fit`, then `predict`",
    "forecast_all_cores": "`forecast` with n_jobs=-1",
}
COLUMNS = ("seconds", "peak", "one")
NEEDED = 10  # times faster than the peer's fastest way on one core
SAME = 1e-12  # relative to the largest number of the column


def main() -> int:
    options = arguments()
    if options.worker:
        print(json.dumps(ours(*options.worker)))
        return 0
    python = peer_python()
    with tempfile.TemporaryDirectory() as folder:
        panel = make_panel(Path(folder, "panel.parquet"), options.series, options.rows)
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in ("ours", *WAYS)}
        for turn in range(options.rounds):
            for name, runs in found.items():
                out = str(Path(folder, f"{name}.parquet")) if turn == 0 and name in ("ours", "forecast") else "-"
                runs.append(measured(python, name, str(panel), out))
                print(f"round {turn + 1}: {name} {runs[-1]['seconds']:.2f} s", file=sys.stderr, flush=True)
        unequal = differences(*(pd.read_parquet(Path(folder, f"{name}.parquet")) for name in ("ours", "forecast")))
    lines, ratio = report(options, found)
    print("\n".join([*lines, *unequal]))
    if unequal or ratio < NEEDED:
        return 1
    if options.series * options.rows == 10_000_000:
        (HERE / "results" / "seasonal_naive.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="SeasonalNaive beside statsforecast's.")
    parser.add_argument("--series", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=100, help="rows of a series")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", nargs=2, metavar=("PANEL", "OUT"), help=argparse.SUPPRESS)
    return parser.parse_args()


def make_panel(path: Path, series: int, rows: int) -> Path:
    """Daily series with a week, a level of their own and noise, sorted, with text ids."""
    random = np.random.default_rng(20240101)
    number, day = np.repeat(np.arange(series), rows), np.tile(np.arange(rows), series)
    y = 50 + number % 97 + 5 * np.sin(2 * np.pi * day / SEASON) + random.normal(size=series * rows)
    ids = np.array([f"s{one:06d}" for one in range(series)], dtype=object)[number]
    stamps = (np.datetime64("2023-01-01", "ns") + day * np.timedelta64(1, "D")).astype("datetime64[ns]")
    pd.DataFrame({"unique_id": ids, "ds": stamps, "y": y}).to_parquet(path)
    return path


def ours(path: str, out: str) -> dict[str, Any]:
    """One run of this library, in a process of its own."""
    from deepforecast import SeasonalNaive, __version__

    def run(frame: pd.DataFrame) -> pd.DataFrame:
        return SeasonalNaive(season_length=SEASON).fit(frame, freq="D").predict(HORIZON, level=LEVELS)

    frame = pd.read_parquet(path)
    few = frame.head(int((frame["unique_id"] == frame["unique_id"].iloc[0]).sum()))
    run(few)
    one = []
    for _ in range(20):
        start = time.perf_counter()
        run(few)
        one.append(time.perf_counter() - start)
    start = time.perf_counter()
    forecast = run(frame)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if out != "-":
        forecast.to_parquet(out)
    versions = f"deepforecast {__version__}, pandas {pd.__version__}"
    return {"seconds": seconds, "one": statistics.median(one), "peak": peak, "versions": versions}


def measured(python: Path, name: str, panel: str, out: str) -> dict[str, Any]:
    """One run in a process of its own."""
    if name == "ours":
        command = [sys.executable, __file__, "--worker", panel, out]
        env = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    else:
        command = [str(python), str(HERE / "peers" / f"seasonal_naive_{PEER}.py"), panel, str(SEASON), str(HORIZON), name, out]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def peer_python() -> Path:
    """The peer's interpreter; its environment is made if it is not there."""
    named = os.environ.get("DEEPFORECAST_PEERS")
    folder = Path(named, PEER) if named else HERE.parent / "build" / "peers" / PEER
    subprocess.run(["sh", str(HERE / "peers" / "make-env"), PEER, str(folder)], check=True)
    return folder / "bin" / "python"


def differences(mine: pd.DataFrame, theirs: pd.DataFrame) -> list[str]:
    """What is not the same in the two frames of forecasts."""
    found = [f"column {name} is only in one" for name in set(mine) ^ set(theirs)]
    keys = [name for name in ("unique_id", "ds") if list(mine[name].astype(str)) != list(theirs[name].astype(str))]
    found += [f"column {name} differs" for name in keys]
    for name in sorted(set(mine) & set(theirs) - {"unique_id", "ds"}):
        here, there = mine[name].to_numpy(), theirs[name].to_numpy()
        distance = float(np.max(np.abs(here - there)) / np.max(np.abs(there)))
        if not distance <= (0 if name == "SeasonalNaive" else SAME):
            found.append(f"column {name} differs by {distance:.2g}")
    return found


def report(options: argparse.Namespace, found: dict[str, list[dict[str, Any]]]) -> tuple[list[str], float]:
    """The table as markdown, and how many times faster than the peer's fastest way on one core."""
    took = {key: {name: statistics.median(run[key] for run in runs) for name, runs in found.items()} for key in COLUMNS}
    seconds = took["seconds"]
    lines = [
        f"# SeasonalNaive beside {PEER}",
        "",
        f"{options.series * options.rows:,} rows, {options.series:,} series with text ids, season {SEASON}, {HORIZON} steps, "
        f"levels {LEVELS}; medians of {options.rounds} runs, taking turns.",
        "",
        "| | seconds | times ours | peak MB | one series, ms |",
        "|---|---|---|---|---|",
    ]
    for name, spent in seconds.items():
        label = "deepforecast: `fit`, then `predict`" if name == "ours" else f"{PEER}: {WAYS[name]}"
        times, peak, one = spent / seconds["ours"], took["peak"][name], 1000 * took["one"][name]
        lines.append(f"| {label} | {spent:.2f} | {times:.0f} | {peak:,.0f} | {one:.1f} |")
    versions = "; ".join(found[name][0]["versions"] for name in ("ours", "forecast"))
    lines += [
        "",
        f"{versions}; Python {platform.python_version()}, {os.cpu_count()} cores.",
        f"Points are equal bit for bit, bands to {SAME:g} of their size: both take the root mean square of the changes from",
        "season to season. They part where a value of the last season is missing (theirs is NaN then, ours the value of a",
        "season earlier) and where a series is one season long (their bands have width 0, ours are refused by name).",
    ]
    return lines, min(seconds["forecast"], seconds["fit_predict"]) / seconds["ours"]


if __name__ == "__main__":
    sys.exit(main())
