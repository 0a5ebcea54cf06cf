"""SeasonalNaive, fit and predict with two levels, compared with statsforecast on 10,000,000 rows of 100,000 series.

    python benchmarks/bench_seasonal_naive.py [--series 100000] [--rows 100] [--rounds 3]

Every run is a separate process that reads the series from a parquet file; the time from the frame in memory to the frame
of forecasts is measured. Runs alternate; medians. Forecasts and prediction intervals of both must be equal. The
environment of statsforecast is created if necessary (benchmarks/peers).
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
PEER_METHODS = {
    "forecast": "`forecast`, recommended for many series",
    "fit_predict": "`fit`, then `predict`",
    "forecast_all_cores": "`forecast` with n_jobs=-1",
}
COLUMNS = ("seconds", "peak", "one")
MIN_SPEEDUP = 10  # over the fastest method of statsforecast on one core
TOLERANCE = 1e-12  # relative to the largest value of the column


def main() -> int:
    args = arguments()
    if args.worker:
        print(json.dumps(run_in_process(*args.worker)))
        return 0
    python = peer_python()
    with tempfile.TemporaryDirectory() as folder:
        panel = write_panel(Path(folder, "panel.parquet"), args.series, args.rows)
        runs_by_name: dict[str, list[dict[str, Any]]] = {name: [] for name in ("ours", *PEER_METHODS)}
        for round_number in range(args.rounds):
            for name, runs in runs_by_name.items():
                out = str(Path(folder, f"{name}.parquet")) if round_number == 0 and name in ("ours", "forecast") else "-"
                runs.append(measure(python, name, str(panel), out))
                print(f"round {round_number + 1}: {name} {runs[-1]['seconds']:.2f} s", file=sys.stderr, flush=True)
        found_differences = differences(*(pd.read_parquet(Path(folder, f"{name}.parquet")) for name in ("ours", "forecast")))
    lines, speedup = report(args, runs_by_name)
    print("\n".join([*lines, *found_differences]))
    if found_differences or speedup < MIN_SPEEDUP:
        return 1
    if args.series * args.rows == 10_000_000:
        (HERE / "results" / "seasonal_naive.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="SeasonalNaive compared with statsforecast.")
    parser.add_argument("--series", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=100, help="rows per series")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", nargs=2, metavar=("PANEL", "OUT"), help=argparse.SUPPRESS)
    return parser.parse_args()


def write_panel(path: Path, series: int, rows: int) -> Path:
    """Write daily series with different levels, a weekly season and noise, sorted, with text ids."""
    random = np.random.default_rng(20240101)
    series_index, days = np.repeat(np.arange(series), rows), np.tile(np.arange(rows), series)
    y = 50 + series_index % 97 + 5 * np.sin(2 * np.pi * days / SEASON) + random.normal(size=series * rows)
    ids = np.array([f"s{index:06d}" for index in range(series)], dtype=object)[series_index]
    times = (np.datetime64("2023-01-01", "ns") + days * np.timedelta64(1, "D")).astype("datetime64[ns]")
    pd.DataFrame({"unique_id": ids, "ds": times, "y": y}).to_parquet(path)
    return path


def run_in_process(path: str, out: str) -> dict[str, Any]:
    """Measure this library; runs in a separate process."""
    from deepforecast import SeasonalNaive, __version__

    def run(frame: pd.DataFrame) -> pd.DataFrame:
        return SeasonalNaive(season_length=SEASON).fit(frame, freq="D").predict(HORIZON, level=LEVELS)

    frame = pd.read_parquet(path)
    first_series = frame.head(int((frame["unique_id"] == frame["unique_id"].iloc[0]).sum()))
    run(first_series)
    single_seconds = []
    for _ in range(20):
        start = time.perf_counter()
        run(first_series)
        single_seconds.append(time.perf_counter() - start)
    start = time.perf_counter()
    forecast = run(frame)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if out != "-":
        forecast.to_parquet(out)
    versions = f"deepforecast {__version__}, pandas {pd.__version__}"
    return {"seconds": seconds, "one": statistics.median(single_seconds), "peak": peak, "versions": versions}


def measure(python: Path, name: str, panel: str, out: str) -> dict[str, Any]:
    """Run deepforecast or a method of statsforecast in a separate process."""
    if name == "ours":
        command = [sys.executable, __file__, "--worker", panel, out]
        env = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    else:
        command = [str(python), str(HERE / "peers" / f"seasonal_naive_{PEER}.py"), panel, str(SEASON), str(HORIZON), name, out]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
    return dict(json.loads(process.stdout.splitlines()[-1]))


def peer_python() -> Path:
    """The interpreter of statsforecast; creates its environment if necessary."""
    environments = os.environ.get("DEEPFORECAST_PEERS")
    folder = Path(environments, PEER) if environments else HERE.parent / "build" / "peers" / PEER
    subprocess.run(["sh", str(HERE / "peers" / "make-env"), PEER, str(folder)], check=True)
    return folder / "bin" / "python"


def differences(forecasts: pd.DataFrame, peer_forecasts: pd.DataFrame) -> list[str]:
    """Descriptions of the differences between two frames of forecasts."""
    descriptions = [f"column {name} is in one frame only" for name in set(forecasts) ^ set(peer_forecasts)]
    different_keys = [
        name for name in ("unique_id", "ds") if list(forecasts[name].astype(str)) != list(peer_forecasts[name].astype(str))
    ]
    descriptions += [f"column {name} differs" for name in different_keys]
    for name in sorted(set(forecasts) & set(peer_forecasts) - {"unique_id", "ds"}):
        values, peer_values = forecasts[name].to_numpy(), peer_forecasts[name].to_numpy()
        distance = float(np.max(np.abs(values - peer_values)) / np.max(np.abs(peer_values)))
        if not distance <= (0 if name == "SeasonalNaive" else TOLERANCE):
            descriptions.append(f"column {name} differs by {distance:.2g}")
    return descriptions


def report(args: argparse.Namespace, runs_by_name: dict[str, list[dict[str, Any]]]) -> tuple[list[str], float]:
    """The results page, and the speedup over the fastest method of statsforecast on one core."""
    medians = {
        key: {name: statistics.median(run[key] for run in runs) for name, runs in runs_by_name.items()} for key in COLUMNS
    }
    seconds = medians["seconds"]
    lines = [
        f"# SeasonalNaive compared with {PEER}",
        "",
        f"{args.series * args.rows:,} rows, {args.series:,} series with text ids, season length {SEASON}, horizon {HORIZON}, "
        f"levels {LEVELS}; medians of {args.rounds} alternating runs.",
        "",
        "| | seconds | relative to deepforecast | peak MB | one series, ms |",
        "|---|---|---|---|---|",
    ]
    for name, run_seconds in seconds.items():
        label = "deepforecast: `fit`, then `predict`" if name == "ours" else f"{PEER}: {PEER_METHODS[name]}"
        ratio, peak, single_ms = run_seconds / seconds["ours"], medians["peak"][name], 1000 * medians["one"][name]
        lines.append(f"| {label} | {run_seconds:.2f} | {ratio:.0f} | {peak:,.0f} | {single_ms:.1f} |")
    versions = "; ".join(runs_by_name[name][0]["versions"] for name in ("ours", "forecast"))
    lines += [
        "",
        f"{versions}; Python {platform.python_version()}, {os.cpu_count()} cores.",
        f"Point forecasts are equal bitwise, interval bounds to a relative {TOLERANCE:g}: both use the root mean square of the",
        "seasonal differences. The libraries differ if a value of the last season is missing (statsforecast forecasts NaN,",
        "deepforecast the value one season earlier) and if a series has only one season (the intervals of statsforecast have",
        "width 0, deepforecast raises an error that names the series).",
    ]
    return lines, min(seconds["forecast"], seconds["fit_predict"]) / seconds["ours"]


if __name__ == "__main__":
    sys.exit(main())
