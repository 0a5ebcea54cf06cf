"""Prediction intervals of networks with and without tail calibration, on public data.

    python benchmarks/bench_network_intervals.py [--sets "M1 monthly" ...] [model ...]

Each network is fitted once on the training part, at defaults and with `intervals="uncalibrated"`, and
forecasts the test part; EPF in 146 forecasts of a day, three days apart, by `predict(frame=...)` with the
8 weeks before. Coverage of the 80 % and 95 % intervals, also by thirds of the horizon, interval score and MASE
(both divided by the error of the seasonal naive forecast in the training part), and CPU seconds of
fit and forecasts. A run replaces the rows of its models and sets in results/network_intervals.md. Requires the benchmark
data (DEEPFORECAST_DATA).
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bench_coverage import BENCHMARKS, HISTORY, Benchmark, load

from deepforecast.core import registry

RESULTS = Path(__file__).resolve().parent / "results" / "network_intervals.md"
COMMAND = "benchmarks/bench_network_intervals.py"
MODELS = ("MLP", "LSTM", "DLinear", "GRU", "NBEATS", "Transformer", "Seq2Seq")
SETS = {
    "EPF Nord Pool": BENCHMARKS["EPF Nord Pool hourly"],
    "EPF PJM": Benchmark(
        "epf_pjm", 24, "h", future=("system_load_forecast", "zonal_comed_load_forecast"), n_windows=146
    ),
    "NN5 daily": BENCHMARKS["NN5 daily"],
    "M1 monthly": BENCHMARKS["M1 monthly"],
}
SEASONS = {"h": 24, "D": 7, "MS": 12}
LEVELS = (80, 95)
COLUMNS = (
    "set", "model", "intervals", "coverage of 80 %", "of 95 %", "80 % by third of the horizon", "interval score 80",
    "interval score 95", "MASE", "fit CPU s", "forecast CPU s",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="data sets (default: all)")
    parser.add_argument("model", nargs="*", help="models to measure (default: all)")
    args = parser.parse_args()
    rows = read_rows()
    for name in args.model or MODELS:
        for key in args.sets:
            for intervals in ("uncalibrated", None):
                row = measure(name, key, intervals)
                rows[tuple(row[:3])] = row
                print(*row, sep=" | ", flush=True)
                write_rows(rows)
    return 0


def measure(name: str, key: str, intervals: str | None) -> list[str]:
    """One row of the table: a model on a set, with or without calibration."""
    benchmark = SETS[key]
    train, test = load(benchmark, None)
    model = registry.get(name)(
        horizon=benchmark.horizon, alias="model", intervals=intervals, trainer={"accelerator": "cpu"}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the figures show what the warnings tell
        started = time.process_time()
        model.fit(train, freq=benchmark.freq, columns={"future": benchmark.future})
        fitted = time.process_time()
        forecasts = forecast(model, train, test, benchmark)
        finished = time.process_time()
    joined = test[["unique_id", "ds", "y"]].merge(forecasts, on=["unique_id", "ds"])
    joined["scale"] = joined["unique_id"].map(naive_errors(train, SEASONS[benchmark.freq])).to_numpy()
    joined = joined[joined["y"].notna()]
    third = (3 * joined["step"]) // benchmark.horizon
    inside = {level: joined["y"].between(joined[f"model-lo-{level}"], joined[f"model-hi-{level}"]) for level in LEVELS}
    mase = ((joined["y"] - joined["model"]).abs() / joined["scale"]).mean()
    return [
        key, name, intervals or "calibrated", *(f"{100 * inside[level].mean():.1f}" for level in LEVELS),
        " / ".join(f"{100 * share:.0f}" for share in inside[80].groupby(third).mean()),
        *(f"{interval_score(joined, level):.3f}" for level in LEVELS), f"{mase:.3f}",
        f"{fitted - started:.1f}", f"{finished - fitted:.1f}",
    ]  # fmt: skip


def forecast(model: Any, train: pd.DataFrame, test: pd.DataFrame, benchmark: Benchmark) -> pd.DataFrame:
    """Forecasts of the test part with intervals, and the number of each step (from 0)."""
    if benchmark.n_windows == 1:
        parts = [model.predict(level=LEVELS)]
    else:
        whole, parts = pd.concat([train, test]), []
        for step in len(train) + 3 * benchmark.horizon * np.arange(benchmark.n_windows):
            history = whole.iloc[step - HISTORY : step]
            future = whole.iloc[step : step + benchmark.horizon].drop(columns="y")
            parts.append(model.predict(frame=history, future=future, level=LEVELS))
    return pd.concat([part.assign(step=part.groupby("unique_id").cumcount()) for part in parts])


def naive_errors(train: pd.DataFrame, season: int) -> pd.Series:
    """Mean absolute error of the seasonal naive forecast of each series."""
    changes = train.groupby("unique_id")["y"].diff(season).abs()
    return changes.groupby(train["unique_id"]).mean()


def interval_score(joined: pd.DataFrame, level: int) -> float:
    """Mean interval score, scaled (Gneiting and Raftery 2007)."""
    low, high, actual = joined[f"model-lo-{level}"], joined[f"model-hi-{level}"], joined["y"]
    missed = (low - actual).clip(lower=0) + (actual - high).clip(lower=0)
    return float(((high - low + 2 / (1 - level / 100) * missed) / joined["scale"]).mean())


def read_rows() -> dict[tuple[str, ...], list[str]]:
    """The rows of the table by set, model and intervals."""
    if not RESULTS.exists():
        return {}
    lines = [line for line in RESULTS.read_text("utf-8").splitlines() if line.startswith("|")][2:]
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    return {tuple(row[:3]): row for row in rows}


def write_rows(rows: dict[tuple[str, ...], list[str]]) -> None:
    """Write results/network_intervals.md."""
    order = {name: number for number, name in enumerate((*SETS, *MODELS, "uncalibrated", "calibrated"))}
    lines = [
        "# Prediction intervals of networks",
        "",
        f"`python {COMMAND}`: networks at defaults, fitted once, with the distribution",
        "as it is learned and calibrated on the tail of the training part (EPF: with factors from the 8 weeks before each",
        "forecast). Interval score and MASE: lower is better.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
        *(f"| {' | '.join(rows[key])} |" for key in sorted(rows, key=lambda key: [order[part] for part in key])),
    ]
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
