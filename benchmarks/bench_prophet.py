"""Prophet compared with the package `prophet`: seconds on 1,000 daily series of three years, and accuracy on public data.

    DEEPFORECAST_DATA=... python benchmarks/bench_prophet.py [--series 1000] [--theirs 15] [--accuracy]

CPU seconds of one thread in a separate process, with compiled kernels and the frame in memory; for prophet including Stan.
prophet fits a few of the series in a loop, and its time is extrapolated to all, as it is proportional to their number.
--accuracy: MASE and coverage on M5 (the 500 best-selling items of store CA_1), NN5 and vic_elec, with the default
parameters of both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
MIN_SPEEDUP = 50
N_ROWS, HORIZON = 1096, 28
DATASETS = {"m5_ca_1": (28, "D", 7, 3), "nn5_daily": (56, "D", 7, 3), "vic_elec": (1344, "30min", 48, 1)}
"""Horizon, frequency, season length of the MASE, and number of windows."""
N_ITEMS = 500
OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "multiplicative": {"seasonality_mode": "multiplicative"},
    "holidays of the US": {"holidays": "US"},
    "Laplace approximation": {"uncertainty": "laplace"},
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Prophet compared with the package prophet.")
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--theirs", type=int, default=15, help="number of series that prophet is timed on")
    parser.add_argument("--accuracy", action="store_true", help="also compute MASE and coverage on the benchmark data")
    parser.add_argument("--worker", nargs=4, metavar=("CSV", "HORIZON", "FREQ", "OUT"), help=argparse.SUPPRESS)
    parser.add_argument("--options", default="{}", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(run_in_process(*args.worker, json.loads(args.options))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        lines, speedup = speed(Path(folder), args.series, args.theirs)
        if args.accuracy:
            lines += accuracy(Path(folder))
    print("\n".join(lines))
    if args.series >= 1000 and args.accuracy:
        (HERE / "results" / "prophet.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return int(speedup < MIN_SPEEDUP)


def speed(folder: Path, series: int, n_timed: int) -> tuple[list[str], float]:
    frame = generate_series(series)
    timed_ids = frame["unique_id"].drop_duplicates().iloc[:: max(series // n_timed, 1)].iloc[:n_timed]
    frame.to_csv(folder / "all.csv", index=False)
    frame[frame["unique_id"].isin(timed_ids)].to_csv(folder / "few.csv", index=False)
    frame[frame["unique_id"] == timed_ids.iloc[0]].to_csv(folder / "one.csv", index=False)
    peer_run = run(peer_python(), "few", folder, HORIZON, "D")
    seconds_per_series = peer_run["seconds"] / peer_run["series"]
    lines = [
        "# Prophet compared with the package prophet",
        "",
        f"{series:,} daily series of {N_ROWS:,} rows (trend with changepoints, weekly and yearly season, noise), horizon "
        f"{HORIZON}; fit and",
        "predict with an 80 % interval; CPU seconds of one thread, after compilation, frame in memory. "
        f"prophet {peer_run['version']} in a loop, timed",
        f"on {peer_run['series']} of them ({seconds_per_series:.3f} s each) and extrapolated. {platform.machine()}, Python "
        f"{platform.python_version()}, on a machine under load.",
        "",
        "| | seconds | speedup |",
        "|---|---|---|",
        f"| prophet, {series:,} series (extrapolated) | {seconds_per_series * series:.1f} | 1 |",
    ]
    speedup = 0.0
    for name, options in OPTIONS.items():
        measurement = run(None, "all", folder, HORIZON, "D", options)
        option_speedup = seconds_per_series * series / measurement["seconds"]
        lines.append(f"| deepforecast, {name} | {measurement['seconds']:.2f} | {option_speedup:.0f} |")
        speedup = speedup or option_speedup
    single = run(None, "one", folder, HORIZON, "D")
    single_times = f"{single['one'] * 1000:.0f} ms (fit and predict), {single['one_wall'] * 1000:.0f} ms wall-clock"
    lines += ["", f"One series, after a first call: {single_times}."]
    return lines, speedup


def accuracy(folder: Path) -> list[str]:
    lines = [
        "",
        "MASE (mean over series) and coverage of the 80 % interval with the default parameters of both, on the test part of",
        "each dataset and on the windows of the same length before it.",
        "",
        "| dataset | windows from end | series | MASE | MASE, prophet | coverage | coverage, prophet | seconds | "
        "seconds, prophet |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (horizon, freq, season, cutoffs) in DATASETS.items():
        rows = []
        for window in range(cutoffs):
            train, test = split(*load_parts(name), window * horizon, horizon)
            train.to_csv(folder / f"{name}.csv", index=False)
            seconds = [run(python, name, folder, horizon, freq)["seconds"] for python in (None, peer_python())]
            mases, coverages = zip(
                *(
                    mase_and_coverage(folder / f"{name}.{library}.csv", columns, train, test, season)
                    for library, columns in FORECAST_COLUMNS.items()
                ),
                strict=True,
            )
            rows.append([*mases, *coverages, *seconds])
            lines.append(table_row(name, str(window), train["unique_id"].nunique(), rows[-1]))
            print(lines[-1], file=sys.stderr, flush=True)
        if cutoffs > 1:
            lines.append(table_row(name, "mean", train["unique_id"].nunique(), np.mean(rows, axis=0)))
    return [*lines, "", *NOTE]


def table_row(name: str, window: str, series: int, values: Any) -> str:
    numbers = [*(f"{value:.4f}" for value in values[:2]), *(f"{value:.3g}" for value in values[2:])]
    return f"| {name} | {window} | {series} | {' | '.join(numbers)} |"


def split(train: pd.DataFrame, test: pd.DataFrame, n_after: int, horizon: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training rows, and the `horizon` test rows that end `n_after` rows before the end of each series."""
    frame = pd.concat([train, test]).sort_values(["unique_id", "ds"], kind="stable")
    rows_after = frame.groupby("unique_id").cumcount(ascending=False)
    return frame[rows_after >= n_after + horizon], frame[(rows_after >= n_after) & (rows_after < n_after + horizon)]


NOTE = (
    "Both minimise the same objective; deepforecast reaches a lower value on each of the series compared",
    "(results/prophet_parity.md). Both forecast means and do not clip values below 0. On M5 the mean MASE of deepforecast is",
    "0.0006 (0.07 %) higher; whether this is noise from early termination of the optimiser has not been tested.",
    "`peers/prophet_loop.py ... long` lets Stan iterate longer.",
)
FORECAST_COLUMNS = {
    "ours": ("Prophet", "Prophet-lo-80", "Prophet-hi-80"),
    "theirs": ("yhat", "yhat_lower", "yhat_upper"),
}


def mase_and_coverage(
    path: Path, columns: tuple[str, str, str], train: pd.DataFrame, test: pd.DataFrame, season: int
) -> tuple[float, float]:
    evaluated = pd.read_csv(path, parse_dates=["ds"], dtype={"unique_id": str})
    evaluated = evaluated.merge(test, on=["unique_id", "ds"], how="inner")
    if len(evaluated) < test["y"].notna().sum():
        raise SystemExit(f"{path}: all {len(test)} rows must have a forecast, got {len(evaluated)}")
    evaluated = evaluated[evaluated["y"].notna()]
    scale = train.groupby("unique_id")["y"].apply(lambda y: float(y.diff(season).abs().mean()))
    mean, low, high = columns
    errors = (evaluated["y"] - evaluated[mean]).abs().groupby(evaluated["unique_id"]).mean()
    coverage = ((evaluated[low] <= evaluated["y"]) & (evaluated["y"] <= evaluated[high])).mean()
    return float((errors / scale).mean()), float(coverage)


def load_parts(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    folder = Path(os.environ["DEEPFORECAST_DATA"], name)
    parts = []
    for part in ("train", "test"):
        frame = pd.read_parquet(folder / f"{part}.parquet")[["unique_id", "ds", "y"]]
        times = frame["ds"].dt.tz_localize(None) if frame["ds"].dt.tz is not None else frame["ds"]
        parts.append(frame.assign(unique_id=frame["unique_id"].astype(str), ds=times, y=frame["y"].astype(float)))
    if name == "m5_ca_1":
        top_items = parts[0].groupby("unique_id")["y"].sum().nlargest(N_ITEMS).index
        parts = [part[part["unique_id"].isin(top_items)] for part in parts]
    return parts[0], parts[1]


def generate_series(series: int) -> pd.DataFrame:
    """Daily series with changepoints of the trend, weekly and yearly seasons, and noise."""
    random, days = np.random.default_rng(20240101), np.arange(N_ROWS)
    slopes = np.cumsum(random.normal(size=(series, N_ROWS)) * (random.random((series, N_ROWS)) < 0.005) * 0.05, axis=1)
    seasonal = sum(
        amplitude * np.sin(2 * np.pi * days / period + 6.28 * random.random((series, 1)))
        for amplitude, period in ((5, 7), (8, 365.25))
    )
    y = 100 + np.cumsum(slopes, axis=1) + seasonal + 3 * random.normal(size=(series, N_ROWS))
    ids = np.repeat([f"s{number:05d}" for number in range(series)], N_ROWS)
    return pd.DataFrame({"unique_id": ids, "ds": np.tile(pd.date_range("2021-01-01", periods=N_ROWS), series), "y": y.ravel()})


def run_in_process(path: str, horizon: str, freq: str, out: str, options: dict[str, Any]) -> dict[str, Any]:
    """Measure this library; runs in a separate process."""
    import warnings

    from deepforecast import Prophet

    warnings.simplefilter("ignore")  # warnings on missing rows of public data

    def forecast(frame: pd.DataFrame) -> pd.DataFrame:
        return Prophet(horizon=int(horizon), **options).fit(frame, freq=freq).predict(level=80)

    frame = pd.read_csv(path, parse_dates=["ds"], dtype={"unique_id": str})
    first_series = frame[frame["unique_id"] == frame["unique_id"].iloc[0]]
    forecast(first_series)
    start, wall = time.process_time(), time.perf_counter()
    forecast(first_series)
    single, single_wall = time.process_time() - start, time.perf_counter() - wall
    start = time.process_time()
    forecasts = forecast(frame)
    seconds = time.process_time() - start
    forecasts.to_csv(out, index=False)
    return {"seconds": seconds, "one": single, "one_wall": single_wall, "series": int(frame["unique_id"].nunique())}


def run(
    python: Path | None, name: str, folder: Path, horizon: int, freq: str, options: dict[str, Any] | None = None
) -> dict[str, Any]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    out = str(folder / f"{name}.{'ours' if python is None else 'theirs'}.csv")
    args = [str(folder / f"{name}.csv"), str(horizon), freq, out]
    if python is None:
        command = [sys.executable, __file__, "--options", json.dumps(options or {}), "--worker", *args]
        env = {**os.environ, **threads, "PYTHONPATH": str(HERE.parent)}
    else:
        command = [str(python), str(HERE / "peers" / "prophet_loop.py"), *args]
        env = {key: value for key, value in {**os.environ, **threads}.items() if key != "PYTHONPATH"}
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    return dict(json.loads(process.stdout.splitlines()[-1]))


def peer_python() -> Path:
    folder = Path(os.environ.get("DEEPFORECAST_PEERS", HERE.parent / "build" / "peers"), "prophet")
    if not (folder / ".ready").exists():
        subprocess.run(["sh", str(HERE / "peers" / "make-env"), "prophet", str(folder)], check=True)
    return folder / "bin" / "python"


if __name__ == "__main__":
    sys.exit(main())
