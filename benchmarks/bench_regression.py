"""LightGBM beside mlforecast, skforecast and bare LightGBM: what is around the trees costs, in time and memory.

    python benchmarks/bench_regression.py [--rounds 3] [--series 1000] [--length 500]

The same series, lags, windows, calendar features and parameters of the trees; 24 steps, one after the other. Peers run in
environments of their own (benchmarks/peers); every run is a process of its own, in turn, with idle threads asleep.
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
    parser.add_argument("--child", choices=("ours", "bare", "steps", "cost"))
    parser.add_argument("--panel", type=Path)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(globals()[given.child](pd.read_parquet(given.panel))))
        return 0
    os.environ.update(OMP_WAIT_POLICY="PASSIVE", KMP_BLOCKTIME="0")
    with tempfile.TemporaryDirectory() as folder:
        panel = Path(folder, "panel.parquet")
        walks(given.series, given.length).to_parquet(panel)
        runs: dict[str, list[dict[str, float]]] = {}
        for _ in range(given.rounds):
            for name in ("ours", "bare", "mlforecast", "skforecast"):
                runs.setdefault(name, []).append(child(name, panel) if name in ("ours", "bare") else peer(name, panel))
        many = Path(folder, "many.parquet")
        walks(10 * given.series, 100).to_parquet(many)
        steps = [child("steps", many) for _ in range(given.rounds)]
        costs = child("cost", panel)
        large = Path(folder, "large.parquet")
        walks(given.series, 4 * given.length).to_parquet(large)
        memory = {"ours": child("ours", large), "mlforecast": peer("mlforecast", large)}
    lines = [*report(given, runs, steps, costs), *ending(given, memory)]
    print("\n".join(lines))
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


def walks(series: int, length: int) -> pd.DataFrame:
    """Random walks with a week in them."""
    random = np.random.default_rng(0)
    y = 10 + np.sin(np.arange(length) * 2 * np.pi / 7) + 0.1 * random.normal(size=(series, length)).cumsum(axis=1)
    stamps = np.tile(pd.date_range("2020-01-01", periods=length).to_numpy(), series)
    return pd.DataFrame({"unique_id": np.repeat(np.arange(series), length), "ds": stamps, "y": y.reshape(-1)})


def model(trees: int | None = None) -> Any:
    """Ours, with the same features and trees."""
    from deepforecast import LightGBM

    told = SETTINGS["lightgbm"]
    return LightGBM(
        horizon=SETTINGS["horizon"],
        lags=SETTINGS["lags"],
        lag_transforms=[f"{kind}_{size}" for kind, size in SETTINGS["windows"]],
        calendar=["day_of_week", "month"],
        differences=None,
        scale=False,
        n_estimators=trees or told["n_estimators"],
        num_leaves=told["num_leaves"],
        learning_rate=told["learning_rate"],
        subsample=1.0,
        colsample_bytree=1.0,
        min_child_samples=20,
    )


def ours(frame: pd.DataFrame) -> dict[str, float]:
    """Fit and predict; `own`: CPU seconds outside of LightGBM; `features`: of the table alone."""
    from deepforecast import LightGBM
    from deepforecast.models.regression import _samples

    model().fit(frame[frame["unique_id"] < 3]).predict()  # compiled and imported before
    begin = peak()
    spent = {"trees": 0.0, "features": 0.0}
    for owner, name, what in ((LightGBM, "_train", "trees"), (LightGBM, "_values", "trees"), (_samples, "table", "features"),
                              (_samples, "known", "features")):  # fmt: skip
        setattr(owner, name, timed(getattr(owner, name), spent, what))
    start, wall = time.process_time(), time.perf_counter()
    fitted = model().fit(frame)
    fit, middle = time.process_time() - start, time.process_time()
    fitted.predict()
    predict, wall = time.process_time() - middle, time.perf_counter() - wall
    own = fit + predict - spent["trees"]
    features = spent["features"]
    return {"fit": fit, "predict": predict, "wall": wall, "own": own, "features": features, "peak": peak(), "begin": begin}


def timed(function: Any, spent: dict[str, float], what: str) -> Any:
    """The function, its CPU seconds counted."""

    def counted(*args: Any) -> Any:
        start = time.process_time()
        found = function(*args)
        spent[what] += time.process_time() - start
        return found

    return counted


def bare(frame: pd.DataFrame) -> dict[str, float]:
    """NumPy features, lightgbm.train, 24 predictions that build their row from the last values: no library around."""
    import lightgbm

    start, wall = time.process_time(), time.perf_counter()
    count = frame["unique_id"].nunique()
    y = frame["y"].to_numpy().reshape(count, -1)
    days = frame["ds"].to_numpy()[: y.shape[1]]
    first = max(SETTINGS["lags"])
    rows = [row(y, at, days[at]) for at in range(first, y.shape[1])]
    told = {name: value for name, value in SETTINGS["lightgbm"].items() if name != "n_estimators"}
    data = lightgbm.Dataset(np.concatenate(rows).astype(np.float32), y[:, first:].T.reshape(-1))
    trees = lightgbm.train(told, data, num_boost_round=SETTINGS["lightgbm"]["n_estimators"])
    fit, middle = time.process_time() - start, time.process_time()
    for step in range(SETTINGS["horizon"]):
        found = trees.predict(row(y, y.shape[1], days[-1] + np.timedelta64(step + 1, "D")), num_threads=2)
        y = np.concatenate([y, found[:, None]], axis=1)
    return {"fit": fit, "predict": time.process_time() - middle, "wall": time.perf_counter() - wall, "peak": peak()}


def row(y: np.ndarray, at: int, day: Any) -> np.ndarray:
    """The features of one day, a row a series."""
    kinds = {"mean": np.mean, "std": lambda part, axis: np.std(part, axis=axis, ddof=1), "min": np.min, "max": np.max}
    stamp = pd.Timestamp(day)
    parts = [y[:, at - lag] for lag in SETTINGS["lags"]]
    parts += [kinds[kind](y[:, at - size : at], axis=1) for kind, size in SETTINGS["windows"]]
    parts += [np.full(len(y), float(stamp.dayofweek)), np.full(len(y), float(stamp.month))]
    return np.stack(parts, axis=1)


def steps(frame: pd.DataFrame) -> dict[str, float]:
    """predict of many series beside the bare calls of booster.predict it consists of, in turn: medians of five."""
    from deepforecast import LightGBM

    fitted, tables, values = model().fit(frame), [], LightGBM._predict_rows
    trees = fitted.state_.learned["regressors"].models[0][0]
    LightGBM._predict_rows = lambda self, regressor, rows: (tables.append(rows), values(self, regressor, rows))[1]  # type: ignore[method-assign]
    fitted.predict()
    LightGBM._predict_rows = values  # type: ignore[method-assign]
    whole, calls = [], []
    for _ in range(5):
        start = time.process_time()
        fitted.predict()
        middle = time.process_time()
        for one in tables:
            trees.predict(one, num_threads=2)
        whole.append(middle - start)
        calls.append(time.process_time() - middle)
    return {"predict": statistics.median(whole), "calls": statistics.median(calls)}


def cost(frame: pd.DataFrame) -> dict[str, float]:
    """CPU seconds of fit and predict with few trees: a tenth of the series, a tenth of the length, all."""
    found = {}
    count, length = frame["unique_id"].nunique(), len(frame) // frame["unique_id"].nunique()
    last = frame.groupby("unique_id").cumcount(ascending=False) < length // 10
    for name, part in {"whole": frame, "series": frame[frame["unique_id"] < count // 10], "length": frame[last]}.items():
        model(10).fit(part).predict()
        start = time.process_time()
        model(10).fit(part).predict()
        found[name] = time.process_time() - start
    return found


def child(name: str, panel: Path) -> dict[str, float]:
    """One of the functions above in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--child", name, "--panel", str(panel)], check=True, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


def peer(name: str, panel: Path) -> dict[str, float]:
    """A peer in its own environment, which is made if it is not there."""
    named = os.environ.get("DEEPFORECAST_PEERS")
    folder = Path(named, name) if named else HERE.parent / "build" / "peers" / name
    subprocess.run(["sh", str(HERE / "peers" / "make-env"), name, str(folder)], check=True)
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [str(folder / "bin" / "python"), "-W", "ignore", str(HERE / "peers" / f"regression_{name}.py"), str(panel),
             json.dumps(SETTINGS), str(Path(out, "out.parquet"))], check=True, stdout=subprocess.PIPE, text=True, env=env,
        )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(
    given: Any, runs: dict[str, list[dict[str, float]]], steps: list[dict[str, float]], costs: dict[str, float]
) -> list[str]:
    middle = {name: {key: statistics.median(one[key] for one in found) for key in found[0]} for name, found in runs.items()}
    lines = [
        "# LightGBM beside mlforecast, skforecast and bare LightGBM",
        "",
        f"{given.series:,} series of {given.length}, 10 lags, 6 windows, 2 calendar features, 100 trees, 24 steps one after "
        f"the other; medians of {given.rounds} runs in turn, 2 threads, OMP_WAIT_POLICY=PASSIVE.",
        "",
        "| | fit, CPU s | predict, CPU s | wall s | table of features, CPU s | peak MB |",
        "|---|---|---|---|---|---|",
    ]
    for name, one in middle.items():
        features = f"{one['features']:.3f}" if "features" in one else ""
        seconds = " | ".join(f"{one[what]:.2f}" for what in ("fit", "predict", "wall"))
        lines.append(f"| {name} | {seconds} | {features} | {one['peak']:.0f} |")
    ratio = statistics.median(one["predict"] / one["calls"] for one in steps)
    times = middle["mlforecast"]["features"] / middle["ours"]["features"]
    lines += [
        "",
        f"- CPU time outside of LightGBM: {middle['ours']['own']:.3f} s (asked: at most 0.15).",
        f"- Table of features: {times:.1f} times faster than mlforecast's (asked: 3).",
        f"- Peak memory: {remembered(middle)} (asked: at most 0.7).",
        f"- {10 * given.series:,} series, 24 steps: {ratio:.2f} times the bare calls of booster.predict (asked: at most 1.15).",
        f"- Cost with 10 trees: {costs['whole'] / costs['series']:.1f} times for 10 times the series, "
        f"{costs['whole'] / costs['length']:.1f} times for 10 times the length (asked: at most 11).",
    ]
    return lines


def remembered(runs: dict[str, dict[str, float]]) -> str:
    """Our peak of memory beside mlforecast's, and what each adds to the imported libraries and the frame."""
    ours, theirs = runs["ours"], runs["mlforecast"]
    more = (ours["peak"] - ours["begin"]) / (theirs["peak"] - theirs["begin"])
    return (
        f"{ours['peak']:.0f} MB beside {theirs['peak']:.0f}, {ours['peak'] / theirs['peak']:.2f} of mlforecast's; above the "
        f"imported libraries and the frame ({ours['begin']:.0f} and {theirs['begin']:.0f} MB) {more:.2f} of it"
    )


def ending(given: Any, memory: dict[str, dict[str, float]]) -> list[str]:
    return [
        f"- {given.series:,} series of {4 * given.length:,}: {remembered(memory)}.",
        "",
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}.",
    ]


if __name__ == "__main__":
    sys.exit(main())
