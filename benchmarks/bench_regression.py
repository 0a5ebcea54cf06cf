"""LightGBM compared with mlforecast, skforecast and the package lightgbm: time and memory in addition to the trees.

    python benchmarks/bench_regression.py [--rounds 3] [--series 1000] [--length 500]

All use the same series, lags, windows, calendar features and tree parameters, and forecast 24 steps recursively. The
other libraries run in their own environments (benchmarks/peers); every run is a separate process, runs alternate, and
idle threads wait passively.
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
RESULTS = HERE / "results" / "regression.md"
SETTINGS: dict[str, Any] = {
    "lags": [1, 2, 3, 4, 5, 6, 7, 14, 21, 28],
    "windows": [("mean", 7), ("mean", 14), ("mean", 28), ("std", 7), ("min", 7), ("max", 7)],
    "calendar": ["dayofweek", "month"],
    "differences": [],
    "scale": False,
    "freq": "D",
    "horizon": 24,
    "lightgbm": {"n_estimators": 100, "num_leaves": 31, "learning_rate": 0.1, "n_jobs": 2, "verbosity": -1, "random_state": 0,
                 "deterministic": True, "force_row_wise": True},
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--length", type=int, default=500)
    parser.add_argument("--child", choices=("run_deepforecast", "run_lightgbm", "predict_cost", "scaling_cost"))
    parser.add_argument("--panel", type=Path)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(globals()[args.child](pd.read_parquet(args.panel))))
        return 0
    os.environ.update(OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0")
    with tempfile.TemporaryDirectory() as folder:
        panel = Path(folder, "panel.parquet")
        walks(args.series, args.length).to_parquet(panel)
        runs: dict[str, list[dict[str, float]]] = {}
        for _ in range(args.rounds):
            for name in ("run_deepforecast", "run_lightgbm", "mlforecast", "skforecast"):
                runs.setdefault(name, []).append(child(name, panel) if name.startswith("run_") else peer(name, panel))
        many_series = Path(folder, "many.parquet")
        walks(10 * args.series, 100).to_parquet(many_series)
        predict_costs = [child("predict_cost", many_series) for _ in range(args.rounds)]
        scaling_costs = child("scaling_cost", panel)
        long_series = Path(folder, "large.parquet")
        walks(args.series, 4 * args.length).to_parquet(long_series)
        memory = {"run_deepforecast": child("run_deepforecast", long_series), "mlforecast": peer("mlforecast", long_series)}
    lines = [*report(args, runs, predict_costs, scaling_costs), *footer(args, memory)]
    print("\n".join(lines))
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


def walks(series: int, length: int) -> pd.DataFrame:
    """Random walks with a weekly season."""
    random = np.random.default_rng(0)
    y = 10 + np.sin(np.arange(length) * 2 * np.pi / 7) + 0.1 * random.normal(size=(series, length)).cumsum(axis=1)
    times = np.tile(pd.date_range("2020-01-01", periods=length).to_numpy(), series)
    return pd.DataFrame({"unique_id": np.repeat(np.arange(series), length), "ds": times, "y": y.reshape(-1)})


def make_model(trees: int | None = None) -> Any:
    """The model of deepforecast with the same features and trees."""
    from deepforecast import LightGBM

    tree_params = SETTINGS["lightgbm"]
    return LightGBM(
        horizon=SETTINGS["horizon"],
        lags=SETTINGS["lags"],
        lag_transforms=[f"{kind}_{size}" for kind, size in SETTINGS["windows"]],
        calendar=["day_of_week", "month"],
        differences=None,
        scale=False,
        n_estimators=trees or tree_params["n_estimators"],
        num_leaves=tree_params["num_leaves"],
        learning_rate=tree_params["learning_rate"],
        subsample=1.0,
        colsample_bytree=1.0,
        min_child_samples=20,
    )


def run_deepforecast(frame: pd.DataFrame) -> dict[str, float]:
    """Measure fit and predict; `own`: CPU seconds outside of lightgbm; `features`: of the table of features."""
    from deepforecast import LightGBM
    from deepforecast.models.regression import _samples

    make_model().fit(frame[frame["unique_id"] < 3]).predict()  # compiles and imports
    memory_before = peak_memory()
    seconds = {"trees": 0.0, "features": 0.0}
    timed = [(LightGBM, "_train", "trees"), (LightGBM, "_predict_rows", "trees")]
    timed += [(_samples, "feature_table", "features"), (_samples, "exogenous_columns", "features")]
    for owner, name, operation in timed:
        setattr(owner, name, count_time(getattr(owner, name), seconds, operation))
    start, wall = time.process_time(), time.perf_counter()
    fitted = make_model().fit(frame)
    fit, fitted_at = time.process_time() - start, time.process_time()
    fitted.predict()
    predict, wall = time.process_time() - fitted_at, time.perf_counter() - wall
    other_seconds = fit + predict - seconds["trees"]
    features = seconds["features"]
    return {
        "fit": fit, "predict": predict, "wall": wall, "own": other_seconds, "features": features, "peak": peak_memory(),
        "begin": memory_before,
    }  # fmt: skip


def count_time(function: Any, seconds: dict[str, float], operation: str) -> Any:
    """Return the function with its CPU seconds added to `seconds`."""

    def timed_function(*args: Any) -> Any:
        start = time.process_time()
        result = function(*args)
        seconds[operation] += time.process_time() - start
        return result

    return timed_function


def run_lightgbm(frame: pd.DataFrame) -> dict[str, float]:
    """Measure NumPy features, lightgbm.train and 24 recursive predictions without a forecasting library."""
    import lightgbm

    start, wall = time.process_time(), time.perf_counter()
    n_series = frame["unique_id"].nunique()
    y = frame["y"].to_numpy().reshape(n_series, -1)
    days = frame["ds"].to_numpy()[: y.shape[1]]
    first_position = max(SETTINGS["lags"])
    features = [build_features(y, position, days[position]) for position in range(first_position, y.shape[1])]
    params = {name: value for name, value in SETTINGS["lightgbm"].items() if name != "n_estimators"}
    data = lightgbm.Dataset(np.concatenate(features).astype(np.float32), y[:, first_position:].T.reshape(-1))
    booster = lightgbm.train(params, data, num_boost_round=SETTINGS["lightgbm"]["n_estimators"])
    fit, fitted_at = time.process_time() - start, time.process_time()
    for step in range(SETTINGS["horizon"]):
        forecast = booster.predict(build_features(y, y.shape[1], days[-1] + np.timedelta64(step + 1, "D")), num_threads=2)
        y = np.concatenate([y, forecast[:, None]], axis=1)
    return {"fit": fit, "predict": time.process_time() - fitted_at, "wall": time.perf_counter() - wall, "peak": peak_memory()}


def build_features(y: np.ndarray, position: int, day: Any) -> np.ndarray:
    """The features of one day, one row per series."""
    functions = {"mean": np.mean, "std": lambda part, axis: np.std(part, axis=axis, ddof=1), "min": np.min, "max": np.max}
    timestamp = pd.Timestamp(day)
    parts = [y[:, position - lag] for lag in SETTINGS["lags"]]
    parts += [functions[kind](y[:, position - size : position], axis=1) for kind, size in SETTINGS["windows"]]
    parts += [np.full(len(y), float(timestamp.dayofweek)), np.full(len(y), float(timestamp.month))]
    return np.stack(parts, axis=1)


def predict_cost(frame: pd.DataFrame) -> dict[str, float]:
    """Median CPU seconds of predict of many series, and of the calls of booster.predict that it makes."""
    from deepforecast import LightGBM

    fitted, tables, original = make_model().fit(frame), [], LightGBM._predict_rows
    booster = fitted.state_.learned["regressors"].models[0][0]

    def record(self: Any, regressor: Any, rows: Any) -> Any:
        tables.append(rows)
        return original(self, regressor, rows)

    LightGBM._predict_rows = record  # type: ignore[method-assign]
    fitted.predict()
    LightGBM._predict_rows = original  # type: ignore[method-assign]
    predict_seconds, call_seconds = [], []
    for _ in range(5):
        start = time.process_time()
        fitted.predict()
        predicted_at = time.process_time()
        for table in tables:
            booster.predict(table, num_threads=2)
        predict_seconds.append(predicted_at - start)
        call_seconds.append(time.process_time() - predicted_at)
    return {"predict": statistics.median(predict_seconds), "calls": statistics.median(call_seconds)}


def scaling_cost(frame: pd.DataFrame) -> dict[str, float]:
    """CPU seconds of fit and predict with few trees: all data, a tenth of the series, a tenth of the length."""
    seconds = {}
    n_series, length = frame["unique_id"].nunique(), len(frame) // frame["unique_id"].nunique()
    is_last_part = frame.groupby("unique_id").cumcount(ascending=False) < length // 10
    parts = {"whole": frame, "series": frame[frame["unique_id"] < n_series // 10], "length": frame[is_last_part]}
    for name, part in parts.items():
        make_model(10).fit(part).predict()
        start = time.process_time()
        make_model(10).fit(part).predict()
        seconds[name] = time.process_time() - start
    return seconds


def child(name: str, panel: Path) -> dict[str, float]:
    """Run one of the functions above in a separate process."""
    process = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--child", name, "--panel", str(panel)], check=True, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    return dict(json.loads(process.stdout.splitlines()[-1]))


def peer(name: str, panel: Path) -> dict[str, float]:
    """Run another library in its own environment; creates the environment if necessary."""
    environments = os.environ.get("DEEPFORECAST_PEERS")
    folder = Path(environments, name) if environments else HERE.parent / "build" / "peers" / name
    subprocess.run(["sh", str(HERE / "peers" / "make-env"), name, str(folder)], check=True)
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as out:
        process = subprocess.run(
            [str(folder / "bin" / "python"), "-W", "ignore", str(HERE / "peers" / f"regression_{name}.py"), str(panel),
             json.dumps(SETTINGS), str(Path(out, "out.parquet"))], check=True, stdout=subprocess.PIPE, text=True, env=env,
        )  # fmt: skip
    return dict(json.loads(process.stdout.splitlines()[-1]))


def peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(
    args: Any, runs: dict[str, list[dict[str, float]]], predict_costs: list[dict[str, float]], scaling_costs: dict[str, float]
) -> list[str]:
    medians = {
        name: {key: statistics.median(measurement[key] for measurement in measurements) for key in measurements[0]}
        for name, measurements in runs.items()
    }
    lines = [
        "# LightGBM compared with mlforecast, skforecast and lightgbm",
        "",
        f"{args.series:,} series of {args.length}, 10 lags, 6 windows, 2 calendar features, 100 trees, 24 recursive "
        f"steps; medians of {args.rounds} alternating runs, 2 threads, OMP_WAIT_POLICY=PASSIVE.",
        "",
        "| | fit, CPU s | predict, CPU s | wall-clock s | table of features, CPU s | peak MB |",
        "|---|---|---|---|---|---|",
    ]
    for name, measurement in medians.items():
        features = f"{measurement['features']:.3f}" if "features" in measurement else ""
        seconds = " | ".join(f"{measurement[column]:.2f}" for column in ("fit", "predict", "wall"))
        lines.append(f"| {name.removeprefix('run_')} | {seconds} | {features} | {measurement['peak']:.0f} |")
    ratio = statistics.median(measurement["predict"] / measurement["calls"] for measurement in predict_costs)
    feature_speedup = medians["mlforecast"]["features"] / medians["run_deepforecast"]["features"]
    lines += [
        "",
        f"- CPU time outside of lightgbm: {medians['run_deepforecast']['own']:.3f} s (required: at most 0.15).",
        f"- Table of features: {feature_speedup:.1f} times faster than mlforecast (required: 3).",
        f"- Peak memory: {describe_memory(medians)} (required: at most 0.7).",
        f"- {10 * args.series:,} series, 24 steps: {ratio:.2f} times the calls of booster.predict alone (required: at most "
        "1.15).",
        f"- Cost with 10 trees: {scaling_costs['whole'] / scaling_costs['series']:.1f} times for 10 times the series, "
        f"{scaling_costs['whole'] / scaling_costs['length']:.1f} times for 10 times the length (required: at most 11).",
    ]
    return lines


def describe_memory(runs: dict[str, dict[str, float]]) -> str:
    """Peak memory of deepforecast and mlforecast, and the ratio of their increases over that before the fit."""
    deepforecast, mlforecast = runs["run_deepforecast"], runs["mlforecast"]
    increase_ratio = (deepforecast["peak"] - deepforecast["begin"]) / (mlforecast["peak"] - mlforecast["begin"])
    return (
        f"{deepforecast['peak']:.0f} MB, {deepforecast['peak'] / mlforecast['peak']:.2f} of that of mlforecast "
        f"({mlforecast['peak']:.0f} MB); beyond the imported libraries and the frame ({deepforecast['begin']:.0f} and "
        f"{mlforecast['begin']:.0f} MB) {increase_ratio:.2f} of it"
    )


def footer(args: Any, memory: dict[str, dict[str, float]]) -> list[str]:
    return [
        f"- {args.series:,} series of {4 * args.length:,}: {describe_memory(memory)}.",
        "",
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}.",
    ]


if __name__ == "__main__":
    sys.exit(main())
