"""Seq2Seq on Nord Pool's prices with load and wind known ahead: the mean squared error of every window of the test part.

    python benchmarks/bench_seq2seq_epf.py [--seeds 1] [--quick]

Needs the data folder (DEEPFORECAST_DATA). Standardised by the first 36,691 rows, which alone are learned from; input 168,
horizon 24, each row of the last 10,483 but 23 begins a window. Wang et al. 2024 (TimeXer) have 0.236.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from beside_neural import write

from deepforecast import Seq2Seq, datasets

KNOWN = ["grid_load_forecast", "wind_power_forecast"]
INPUT, HORIZON, TRAIN, TEST = 168, 24, 36_691, 41_933
TOLD: dict[str, Any] = {"head": "point", "loss": "mse", "scaler": "standard", "teacher": "free", "decoding": "greedy",
                        "batch_size": 128, "max_steps": 350, "dropout": 0.05}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few steps: only that it runs")
    given = parser.parse_args()
    frame = standardised()
    lines = ["# Seq2Seq on Nord Pool's prices", "", "| seed | MSE | MAE | asked | fit, CPU s |", "|---|---|---|---|---|"]
    for seed in range(given.seeds):
        start = time.process_time()
        model = Seq2Seq(HORIZON, input_size=INPUT, seed=seed, **{**TOLD, **({"max_steps": 3} if given.quick else {})})
        model.fit(frame[:TRAIN], columns={"future": KNOWN})
        seconds = time.process_time() - start
        errors = forecast_errors(model, frame)
        lines.append(f"| {seed} | {(errors**2).mean():.4f} | {abs(errors).mean():.4f} | < 0.236 | {seconds:.0f} |")
        print(lines[-1], flush=True)
    write("seq2seq_epf", lines, given.quick)
    return 0


def standardised() -> pd.DataFrame:
    """All rows, the price by its first rows."""
    parts = [datasets.load("epf_np", split=split) for split in ("train", "test")]
    frame = pd.concat(parts).sort_values("ds", ignore_index=True)
    y = frame["y"].to_numpy(dtype=float)
    return frame.assign(unique_id="np", y=(y - y[:TRAIN].mean()) / y[:TRAIN].std())[["unique_id", "ds", "y", *KNOWN]]


def forecast_errors(model: Seq2Seq, frame: pd.DataFrame) -> np.ndarray:
    """Of every window of the test part, (windows, horizon)."""
    predictor, found = model.predictor(), []
    y, stamps = windows(frame["y"].to_numpy()), windows(frame["ds"].to_numpy())
    known = {name: windows(frame[name].to_numpy(dtype=float)) for name in KNOWN}
    for begin in range(0, len(y), 1024):
        part = slice(begin, begin + 1024)
        past = {name: values[part, :INPUT] for name, values in known.items()}
        future = {name: values[part, INPUT:] for name, values in known.items()}
        found.append(predictor(y[part, :INPUT], past=past, future=future, at=stamps[part, INPUT - 1]).points - y[part, INPUT:])
    return np.concatenate(found)


def windows(values: np.ndarray) -> np.ndarray:
    """(windows, INPUT + HORIZON), one for each cutoff of the test part."""
    return np.lib.stride_tricks.sliding_window_view(values[TEST - INPUT :], INPUT + HORIZON)


if __name__ == "__main__":
    sys.exit(main())
